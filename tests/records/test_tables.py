"""Which files a path stands for."""

import polars as pl
import pytest

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.data import read_table


def test_a_pattern_reads_text_tables_too_and_says_when_nothing_matches(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("confidence,correct\n0.5,1\n")
    assert read_table(str(tmp_path / "*.csv")).height == 2
    with pytest.raises(InputError, match="no file matches this pattern"):
        read_table(str(tmp_path / "*.parquet"))


def test_names_in_a_damaged_footer_are_no_crash(tmp_path):
    path = tmp_path / "scores.parquet"
    pl.DataFrame({"confidence": [0.5, 0.7], "correct": [1, 0]}).write_parquet(path)
    raw = path.read_bytes()
    place, ends = -1, set()
    while (place := raw.find(b"confidence", place + 1)) >= 0:
        path.write_bytes(raw[:place] + b"\xff" + raw[place + 1 :])
        # Not every copy of a name is needed to read the data.
        try:
            ends.add(cal.audit(path, resamples=20)["results"][0]["n"])
        except InputError:
            ends.add("refused")
    assert "refused" in ends
    assert ends <= {"refused", 2}


def test_an_address_that_its_library_trips_over_is_refused_by_name():
    with pytest.raises(InputError, match="the address cannot be opened"):
        cal.audit("https://[::1/scores.parquet")
