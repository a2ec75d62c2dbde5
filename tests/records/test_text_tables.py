"""Text tables as people save them: read right, or refused by name."""

import datetime as dt
import gzip
import os
import time
import zipfile
import zlib

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.data import load_scores, read_table

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
    "cells",
    [{"q50": '"open', "q149": 'close"'}, {"q50": '"open', "q51": 'close"'}],
    ids=["rows below", "the next row"],
)
def test_rows_inside_of_a_quoted_cell_are_refused(tmp_path, cells):
    """Every quote stands where one may stand, and still 99 rows, or one, would be lost."""
    path = tmp_path / "table.csv"
    path.write_text(two_hundred_rows(**cells))
    with pytest.raises(InputError, match="looks like further rows of this table") as caught:
        cal.audit(path)
    assert caught.value.row == 51


@pytest.mark.parametrize("cell", ['"0,1,1\n1,0,1"', '"so:\nq1, 0.5, or 1"', '"a\nb\nc, d, 0.5"'])
def test_lines_of_a_text_are_no_rows(tmp_path, cell):
    path = tmp_path / "table.csv"
    path.write_text(two_hundred_rows(q50=cell))
    assert cal.audit(path, resamples=20)["results"][0]["n"] == 200


@pytest.mark.parametrize("digits", ["\uff11\uff12", "\u0661\u0662", "\u09e7\u09e8"])
def test_digits_of_another_script_are_text(tmp_path, digits):
    """They were taken for numbers, which could then not be read: the table was refused."""
    path = tmp_path / "table.csv"
    lines = ["question_id,answer,confidence,correct"]
    lines += [f"q{n},{digits},0.5,{n % 2}" for n in range(4)]
    path.write_text("\n".join(lines))
    assert read_table(path)["answer"].to_list() == [digits] * 4
    assert cal.audit(path, resamples=20)["results"][0]["n"] == 4


def test_a_zero_byte_is_refused_wherever_it_stands(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(two_hundred_rows(q0="x" * 70_000).encode() + b"q\x00,text,0.5,1\n")
    with pytest.raises(InputError, match="zero bytes"):
        read_table(path)


def test_line_ends_of_two_kinds_are_named(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(two_hundred_rows().replace("\nq50,", "\rq50,").encode())
    with pytest.raises(InputError, match="a carriage return stands alone") as caught:
        cal.audit(path)
    assert caught.value.row == 50


PACKED = {
    "zlib": lambda raw: zlib.compress(raw),
    "zstd": lambda raw: bytes.fromhex("28b52ffd") + raw,
    "lz4": lambda raw: bytes.fromhex("04224d18") + raw,
    "a zip file": lambda raw: b"PK\x03\x04" + raw,
    "a PDF document": lambda raw: b"%PDF-1.7\n" + raw,
    "the database cannot be read": lambda raw: b"SQLite format 3\x00" + raw,
    "packed twice": lambda raw: gzip.compress(gzip.compress(raw)),
}


@pytest.mark.parametrize("kind", PACKED)
def test_what_is_no_table_is_refused_by_name(tmp_path, kind):
    """One that polars unpacks by itself had no limit, and none of its bytes were checked."""
    path = tmp_path / "table.csv"
    path.write_bytes(PACKED[kind](text_of().encode()))
    with pytest.raises(InputError, match=kind):
        cal.audit(path)
    path.write_text("BZhours,confidence,correct\n1,0.5,1\n2,0.7,0\n")
    assert read_table(path).height == 2, "a text may begin with these letters"


def test_a_pipe_is_refused_at_once(tmp_path):
    """Nobody writes to it: opening it would wait for ever."""
    path = tmp_path / "pipe.csv"
    os.mkfifo(path)
    with pytest.raises(InputError, match="this is a pipe"):
        cal.audit(path)


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


@pytest.mark.parametrize(
    "ids",
    [
        ["1", "1.0", "1.00"],
        ["4.1", "4.10", "3.5"],
        ["1e3", "1000", "0.5"],
        ["9007199254740993", "9007199254740992", "1.5"],
        ["1" * 48, "1" * 47 + "2", "3"],
        ["true", "True", "false"],
    ],
    ids=lambda ids: ids[0][:6] + ids[1][:6],
)
@pytest.mark.parametrize("column", ["question_id", "model", "Model Name", "version"])
def test_names_that_look_like_numbers_are_kept_as_they_are_written(tmp_path, ids, column):
    path = tmp_path / "table.csv"
    path.write_text(f"{column},confidence,correct\n" + "".join(f"{one},0.5,1\n" for one in ids))
    own = {"version": {"model": "version"}}.get(column, {})
    role = "question_id" if column == "question_id" else "model"
    assert load_scores(path, **own).frame[role].to_list() == ids


def test_blanks_and_marks_around_names_of_columns_are_no_part_of_them(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("\ufeff\ufeffquestion_id , confidence,correct \na,0.5,1\na,0.7,0\n")
    with pytest.raises(InputError, match="appears more than once"):
        load_scores(path)
    path.write_text("confidence, confidence,correct\n0.5,0.9,1\n")
    with pytest.raises(InputError, match="'confidence' 2 times"):
        load_scores(path)
    path.write_text('"a\nb","a\nb",confidence,correct\n1,2,0.5,1\n')
    assert {"a\nb", "a\nb [2]"} < {*load_scores(path).frame.columns}


@pytest.mark.parametrize(
    ("raw", "row", "why"),
    [
        (b"confidence,correct\n0.5,1\n0.6,1,9\n", 2, "it has 3 cells, and the header 2"),
        (b"a,confidence,correct\nx,0.5,1\n\x81,0.6,1\n", 2, "byte 0x81 is no UTF-8"),
        (b'{"confidence": 0.5, "correct": 1}\n{"confidence": NaN}\n', 2, "the confidence is NaN"),
        (b'{"confidence": 0.5, "correct": 1}\n{"confidence": 0.\n', 2, "no JSON object"),
    ],
    ids=["more cells", "no text", "NaN", "cut line"],
)
def test_a_row_that_cannot_be_read_is_named(tmp_path, raw, row, why):
    path = tmp_path / "table"
    path.write_bytes(raw)
    with pytest.raises(InputError, match=why) as caught:
        cal.audit(path)
    assert caught.value.row == row


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
@pytest.mark.parametrize("text", ['{"correct": 1}\r\n{"correct": 0}\r\n', '[{"correct": 1}]'])
def test_json_with_a_mark_of_its_encoding_is_read(tmp_path, encoding, text):
    path = tmp_path / "table.json"
    path.write_bytes(text.encode(encoding))
    assert read_table(path)["correct"].to_list()[0] == 1


def test_utf_32_is_refused_by_name(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes(text_of().encode("utf-32"))
    with pytest.raises(InputError, match="UTF-32"):
        read_table(path)


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


def test_letters_of_old_windows_are_read_and_told(tmp_path):
    path = tmp_path / "table.csv"
    path.write_bytes("thème,confidence,correct\nété,0.5,1\nœuf,0.6,0\n".encode("cp1252"))
    assert read_table(path)["thème"].to_list() == ["été", "œuf"]
    assert cal.read(path).notes == ("It is written in the letters of Windows-1252.",)


def test_lines_around_a_table_are_left_out_and_told(tmp_path):
    path = tmp_path / "table.csv"
    rows = "".join(f"q{n},0.{n % 9 + 1},{n % 2}\n" for n in range(30))
    path.write_text(f"# evalbot\nRun of May\n\nid,confidence,correct\n{rows}Total,0.51,\n")
    assert read_table(path).height == 30
    notes = ("Left out: 2 lines above the header.", "Left out: 1 row of totals.")
    assert cal.read(path).notes == notes


def test_the_largest_sheet_of_a_workbook_is_read_with_its_dates(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["notes"])
    sheet = book.create_sheet("Answers")
    sheet.append(["day", "confidence", "correct", "id"])
    for n in range(20):
        sheet.append([dt.date(2026, 5, 1 + n), n / 20, bool(n % 2), n])
    path = tmp_path / "table.xlsx"
    book.save(path)
    table = read_table(path)
    assert table["day"].to_list()[0] == "2026-05-01"
    assert table["id"].to_list()[:2] == [0, 1]
    assert cal.read(path).notes == ("The sheet 'Answers' is read, the largest; Sheet is not.",)


def test_a_damaged_workbook_is_refused_by_name(tmp_path):
    path = tmp_path / "table.xlsx"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("xl/workbook.xml", "<none")
    with pytest.raises(InputError, match="the workbook cannot be read"):
        read_table(path)
