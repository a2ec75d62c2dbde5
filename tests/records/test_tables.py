"""Which files a path stands for."""

import pytest

from calibrant.core.errors import InputError
from calibrant.records import read_table


def test_a_pattern_reads_text_tables_too_and_says_when_nothing_matches(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("confidence,correct\n0.5,1\n")
    assert read_table(str(tmp_path / "*.csv")).height == 2
    with pytest.raises(InputError, match="no file matches this pattern"):
        read_table(str(tmp_path / "*.parquet"))
