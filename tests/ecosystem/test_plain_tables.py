"""`import` of a plain table: every row is taken over or listed."""

import json

import polars as pl
import pytest

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.verbs.import_logs import import_logs
from support import call

TABLE = """id,stated,right,topic
a,0.9,1,law
b,1.7,0,law
c,0.4,0,medicine
d,,1,medicine
e,0.8,1,law
"""
COLUMNS = {"confidence": "stated", "correct": "right", "question": "id"}


@pytest.fixture
def csv(tmp_path):
    path = tmp_path / "answers.csv"
    path.write_text(TABLE)
    return path


def test_rows_are_taken_over_or_listed(csv, tmp_path):
    result = import_logs(csv, tmp_path / "study", columns=COLUMNS)
    (entry,) = result["results"]
    assert (entry["kind"], entry["expected"], entry["scores"]) == ("table", 5, 3)
    assert [problem["place"] for problem in entry["problems"]] == ["row 2", "row 4"]
    assert "confidence_above_1" in entry["problems"][0]["reason"]
    scores = pl.read_parquet(tmp_path / "study" / "tables" / "scores.parquet")
    assert scores["question_id"].to_list() == ["a", "c", "e"]
    assert scores["topic"].to_list() == ["law", "medicine", "law"]  # further columns stay
    audit = cal.audit(tmp_path / "study", resamples=20)["results"][0]
    assert audit["metrics"]["brier"]["value"] == pytest.approx((0.01 + 0.16 + 0.04) / 3)
    assert pl.read_csv(tmp_path / "study" / "unreadable.csv").height == 2


def test_the_command_names_the_columns(csv, tmp_path):
    options = ["--confidence", "stated", "--correct", "right", "--question", "id"]
    target = tmp_path / "out.json"
    done = call("import", csv, *options, "--out", tmp_path / "s.csv", "--json", target)
    assert done.returncode == 0, done.stderr
    assert "3 rows were read; 2 parts could not be read" in " ".join(done.stdout.split())
    assert json.loads(target.read_text())["scores"][0]["n"] == 3
    assert pl.read_csv(tmp_path / "s.csv").height == 3
    done = call("import", csv)
    assert done.returncode == 2
    assert "--confidence COL" in done.stderr


def test_usual_names_need_no_options(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("confidence,correct\n0.5,1\n0.25,0\n")
    (entry,) = import_logs(path)["results"]
    assert (entry["scores"], entry["unreadable"]) == (2, 0)


def test_ragged_rows_are_listed(csv):
    csv.write_text(TABLE + "f,0.5\ng,0.5,1,law,more\nh,7,1,law\n")
    (entry,) = import_logs(csv, columns=COLUMNS)["results"]
    assert (entry["expected"], entry["scores"], entry["unreadable"]) == (8, 3, 5)
    places = {problem["place"] for problem in entry["problems"]}
    assert places == {"row 2", "row 4", "row 6", "row 7", "row 8"}  # as numbered in the file
    assert "2 cells where the header has 4" in entry["problems"][0]["reason"]


def test_damaged_json_lines_are_listed(tmp_path):
    rows = [{"confidence": 0.5, "correct": 1}] * 3
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"confidence": 0.')
    (entry,) = import_logs(path, kind="table")["results"]
    assert (entry["expected"], entry["scores"], entry["unreadable"]) == (4, 3, 1)


def test_several_answers_of_a_question_are_repeats(csv, tmp_path):
    csv.write_text("id,stated,right\na,0.9,1\na,0.8,0\nb,0.4,0\n")
    result = import_logs(csv, tmp_path / "study", columns=COLUMNS)
    assert any("repeated" in note for note in result["notes"])
    assert cal.audit(tmp_path / "study", resamples=20)["results"][0]["n"] == 3


def test_percentages_are_refused_or_divided(csv):
    csv.write_text("id,stated,right\na,90,1\nb,40,0\n")
    (entry,) = import_logs(csv, columns=COLUMNS, scale="percent")["results"]
    assert entry["scores"] == 2
    with pytest.raises(InputError):
        import_logs(csv, columns=COLUMNS | {"confidence": "nothing"})
