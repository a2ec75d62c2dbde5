"""Text tables with commas, tabs or semicolons between their columns are the same table."""

import gzip

import polars as pl
import pytest

from calibrant import audit
from calibrant.data import load_scores, read_table

ROWS = [("a", 0.25, 1), ("b", 0.5, 0), ("c", 0.75, 1)]
EXPECTED = pl.DataFrame(ROWS, schema=["question_id", "confidence", "correct"], orient="row")


def text_of(mark):
    return "\n".join(mark.join(map(str, row)) for row in [EXPECTED.columns, *ROWS]) + "\n"


@pytest.mark.parametrize("mark", [",", "\t", ";"])
def test_the_mark_is_told_from_the_header(mark, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(text_of(mark))
    assert read_table(path).equals(EXPECTED)
    zipped = tmp_path / "table.csv.gz"
    zipped.write_bytes(gzip.compress(text_of(mark).encode()))
    assert read_table(zipped).equals(EXPECTED)


def test_a_streamed_text_table_is_read_by_the_same_rule(tmp_path):
    pytest.importorskip("pyarrow")
    found = []
    for mark in ",\t":
        path = tmp_path / "table.txt"
        path.write_text(text_of(mark))
        found.append(audit(path, engine="local")["results"])
    assert found[0] == found[1]


def test_a_cell_that_is_no_number_is_kept_in_what_is_left_out(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("confidence,correct\nhigh,1\n0.5,0\n")
    left_out = load_scores(path, on_invalid="drop").rejected
    assert left_out["confidence_text"].to_list() == ["high"]
