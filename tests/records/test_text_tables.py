"""Text tables as people save them: read right, or refused by name."""

import gzip
import time

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.records import load_scores, read_table

ROWS = [("a", 0.25, 1), ("b", 0.5, 0), ("c", 0.75, 1)]
EXPECTED = pl.DataFrame(ROWS, schema=["question_id", "confidence", "correct"], orient="row")


def text_of(mark=",", end="\n"):
    return end.join(mark.join(map(str, row)) for row in [EXPECTED.columns, *ROWS]) + end


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("mark", [",", "\t", ";", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_encodings_marks_and_line_ends(tmp_path, encoding, mark, end):
    path = tmp_path / "table.csv"
    raw = text_of(mark, end).encode(encoding)
    if encoding in ("utf-16-le", "utf-16-be"):
        # Without the two bytes that say what it is, nobody can tell: it is refused.
        path.write_bytes(raw)
        with pytest.raises(InputError, match="UTF-8"):
            read_table(path)
        return
    path.write_bytes(raw)
    assert read_table(path).equals(EXPECTED)
    path.write_bytes(gzip.compress(raw))
    assert read_table(path).equals(EXPECTED)


def test_two_columns_of_one_name_are_refused(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("confidence,correct,confidence\n0.5,1,0.9\n")
    with pytest.raises(InputError, match=r"names the column 'confidence' 2 times"):
        cal.audit(path)
    path.write_text("confidence,correct,,\n0.5,1,,\n0.7,0,,\n")
    assert read_table(path).height == 2, "empty names at the end are harmless"


def two_hundred_rows(**replaced):
    lines = ["question_id,answer,confidence,correct"]
    lines += [f"q{n},{replaced.get(f'q{n}', 'text')},0.{n % 9 + 1},{n % 2}" for n in range(200)]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    "cells",
    [
        {"q50": '"open', "q149": '"close'},
        {"q50": '6" pipe', "q149": '8" pipe'},
        {"q50": '"open'},
        {"q50": '6" pipe'},
        {"q50": '"open', "q149": '"both"'},
    ],
    ids=["two open", "two inside", "one open", "one inside", "closed by another"],
)
@pytest.mark.parametrize("zipped", [False, True])
def test_quotes_that_join_rows_are_refused_with_their_row(tmp_path, cells, zipped):
    path = tmp_path / "table.csv"
    raw = two_hundred_rows(**cells).encode()
    path.write_bytes(gzip.compress(raw) if zipped else raw)
    with pytest.raises(InputError, match="a quote opens") as caught:
        cal.audit(path)
    if "both" not in str(cells):
        assert caught.value.row == 51


@pytest.mark.parametrize(
    "cell",
    ['"two\nlines"', '"a ""quoted"" word"', '"a, b"', '6" x 4"', '""', '"x"', '"a ""b"" \n c"'],
)
def test_quotes_of_a_sound_table_are_fine(tmp_path, cell):
    path = tmp_path / "table.csv"
    path.write_text(two_hundred_rows(q50=cell, q149=cell))
    assert read_table(path).height == 200


def test_ids_with_leading_zeros_stay_apart(tmp_path):
    path = tmp_path / "table.csv"
    lines = ["question_id,confidence,correct", "1,0.5,1", "01,0.6,0", "001,0.7,1"]
    path.write_text("\n".join(lines) + "\n")
    scores = load_scores(path)
    assert scores.frame["question_id"].to_list() == ["1", "01", "001"]
    lines = ["model,confidence,correct", "1,0.5,1", "01,0.6,0", "1,0.7,1", "01,0.7,1"]
    path.write_text("\n".join(lines) + "\n")
    assert [entry["model"] for entry in cal.audit(path)["results"]] == ["1", "01"]


def test_numbers_stay_numbers(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("question_id,confidence,correct,year\n1,0.05,0,2026\n2,00.5,1,2027\n")
    table = read_table(path)
    assert table.schema["year"].is_integer()
    assert table.schema["confidence"] == pl.Float64


@pytest.mark.parametrize("name", ["scores[1].csv", "scores[a-z]*.csv", "what?.csv"])
def test_signs_of_patterns_in_file_names(tmp_path, name):
    path = tmp_path / name
    path.write_text(text_of())
    (tmp_path / "scores1.csv").write_text("confidence,correct\n0.1,1\n")
    assert read_table(path).equals(EXPECTED)
    for ending, write in (("parquet", "write_parquet"), ("jsonl", "write_ndjson")):
        other = tmp_path / name.replace("csv", ending)
        getattr(EXPECTED, write)(other)
        assert read_table(other).equals(EXPECTED)
    folder = tmp_path / "run[2]"
    folder.mkdir()
    EXPECTED.write_parquet(folder / "part[0].parquet")
    assert read_table(folder).equals(EXPECTED)


def test_a_file_that_changes_is_looked_at_again(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(text_of(","))
    assert read_table(path).equals(EXPECTED)
    time.sleep(0.01)
    path.write_text(text_of("|") + "d|0.5|1\n")
    assert read_table(path).height == 4


def test_masked_values_are_missing_not_numbers():
    confidence = np.ma.masked_array([0.1, 0.9, 0.5, 0.7], mask=[0, 1, 0, 0])
    correct = np.ma.masked_array([0, 1, 1, 1], mask=[0, 0, 0, 1])
    result = cal.audit(confidence, correct, on_invalid="drop")
    assert result["results"][0]["n"] == 2
    assert sum(result["dropped"].values()) == 2
    with pytest.raises(InputError):
        cal.audit(confidence, correct)


def test_metrics_refuse_masked_values():
    confidence = np.ma.masked_array([0.1, 0.9, 0.5, 0.7], mask=[0, 1, 0, 0])
    with pytest.raises(InputError):
        cal.metrics.brier(confidence, [0, 1, 1, 1])


def test_columns_of_unequal_length_are_refused_by_their_lengths():
    with pytest.raises(InputError, match="equal lengths, got confidence 3, correct 2"):
        cal.audit({"confidence": [0.1, 0.2, 0.3], "correct": [1, 0]})
