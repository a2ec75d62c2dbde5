"""Exports of Langfuse, Phoenix, MLflow and ragas, and damaged copies."""

import csv
import json
import math
from pathlib import Path

import polars as pl
import pytest

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.data.logs.exchange import grade_among, plain_text
from calibrant.data.logs.json_text import ReadOptions
from calibrant.data.logs.recognise import read_log, recognise
from calibrant.verbs.import_logs import import_logs

FIXTURES = Path(__file__).parent / "fixtures"
LANGFUSE = FIXTURES / "langfuse.json"
PHOENIX = FIXTURES / "phoenix"
MLFLOW = FIXTURES / "mlflow"
RAGAS = FIXTURES / "ragas.csv"
GRADES = [1, 1, 1, 0, 0, 1]
STATED = [0.9, 0.85, 0.8, 0.6, 0.55]
TOKENS = [[-0.1], [-0.2], [-0.25], [-0.5, -0.7], [-0.4, -0.9], [-0.3, -0.1]]
ALL = {
    "langfuse": LANGFUSE,
    "phoenix": PHOENIX / "experiment.json",
    "mlflow": MLFLOW / "genai.json",
    "ragas": RAGAS,
}


def by_method(log, method):
    return log.scores.filter(method=method).sort("question_id")["confidence"].to_list()


def sorted_grades(log):
    return log.draws.sort("question_id")["correct"].to_list()


# -- Langfuse ------------------------------------------------------------------------------------


def test_langfuse_traces_of_the_api():
    log = read_log(LANGFUSE)
    assert recognise(LANGFUSE) == log.kind == "langfuse"
    assert sorted_grades(log) == GRADES
    assert by_method(log, "stated") == STATED
    assert by_method(log, "perplexity") == pytest.approx(
        [math.exp(sum(logs) / len(logs)) for logs in TOKENS]
    )
    assert set(log.draws["model"]) == {"toy"}
    assert set(log.draws["grader"]) == {"correctness"}


def test_an_opinion_is_a_grade_only_where_it_is_named():
    log = read_log(LANGFUSE, options=ReadOptions(grade="helpfulness"))
    assert set(log.draws["correct"]) == {0.7}
    other = read_log(LANGFUSE, options=ReadOptions(grade="beauty"))
    assert other.draws["correct"].null_count() == 6
    assert "correctness, helpfulness" in other.draws["reason"][0]


def pages_of_langfuse(tmp_path, grades, ending):
    """Write a table as the pages of Langfuse export it: a column per score, lists in it."""
    rows = [
        {
            "id": f"t{number}",
            "timestamp": "2026-01-01T00:00:00Z",
            "name": "sums",
            "input": {"question": f"{number}+1"},
            "output": {"answer": str(number + 1)},
            "metadata": None,
            "bookmarked": False,
            "environment": "default",
            "observationCount": 1,
            "correctness": None if grade is None else [grade],
            "confidence": [round(0.9 - number / 20, 2)],
        }
        for number, grade in enumerate(grades)
    ]
    path = tmp_path / f"export.{ending}"
    if ending == "csv":
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(
                {k: json.dumps(v) if isinstance(v, list | dict) else v for k, v in row.items()}
                for row in rows
            )
    elif ending == "jsonl":
        path.write_text("\n".join(map(json.dumps, rows)))
    else:
        path.write_text(json.dumps(rows))
    return path


@pytest.mark.parametrize("ending", ["json", "jsonl", "csv"])
def test_langfuse_tables_of_its_pages(tmp_path, ending):
    path = pages_of_langfuse(tmp_path, ["True", "False", "True", "False", "True"], ending)
    log = read_log(path)
    assert log.kind == "langfuse"
    assert log.draws["correct"].to_list() == [1, 0, 1, 0, 1]
    assert log.scores["confidence"].to_list() == [0.9, 0.85, 0.8, 0.75, 0.7]


@pytest.mark.parametrize("ending", ["json", "csv"])
def test_a_table_without_its_zeros_is_refused(tmp_path, ending):
    # Langfuse's pages leave a numeric score of 0 out: only right answers would be graded.
    path = pages_of_langfuse(tmp_path, [1, None, 1, None, 1], ending)
    with pytest.raises(InputError, match="leave scores of 0 out"):
        read_log(path)
    whole = pages_of_langfuse(tmp_path, [1, 0, 1, 0, 1], ending)
    assert read_log(whole).draws["correct"].to_list() == [1, 0, 1, 0, 1]


def test_langfuse_scheduled_export(tmp_path):
    for name in ("observations_v2", "scores"):
        (tmp_path / name).mkdir()
    observed = [
        {
            "id": f"o{number}",
            "trace_id": f"t{number}",
            "type": "GENERATION",
            "start_time": "2026-01-01 00:00:00.000000",
            "provided_model_name": "toy",
            "input": f"{number}+1",
            "output": str(number + 1),
            "metadata": {"confidence": 0.9 - number / 10},
        }
        for number in range(4)
    ]
    scores = [
        {"trace_id": f"t{n}", "observation_id": None, "name": "correct", "value": float(n % 2)}
        for n in range(4)
    ]
    (tmp_path / "observations_v2" / "a.jsonl").write_text("\n".join(map(json.dumps, observed)))
    (tmp_path / "scores" / "a.jsonl").write_text("\n".join(map(json.dumps, scores)))
    assert recognise(tmp_path) == "langfuse"
    log = read_log(tmp_path)
    assert log.draws["correct"].to_list() == [0, 1, 0, 1]
    assert log.scores["confidence"].to_list() == pytest.approx([0.9, 0.8, 0.7, 0.6])
    assert set(log.draws["model"]) == {"toy"}


# -- Phoenix -------------------------------------------------------------------------------------


def test_phoenix_experiment():
    log = read_log(PHOENIX / "experiment.json")
    assert recognise(PHOENIX / "experiment.json") == log.kind == "phoenix"
    asked = log.questions.select("question_id", "text")
    rows = log.draws.join(asked, on="question_id").sort("text", maintain_order=True)
    # The text of a draw comes first: the question is joined behind it.
    found = dict(zip(rows["text_right"], rows["correct"], strict=True))
    assert found == dict(zip(["2+2", "3+3", "5+4", "7+6", "8+8", "9+3"], GRADES, strict=True))
    assert sorted(log.scores["confidence"], reverse=True) == STATED


def test_phoenix_spans_with_their_annotations():
    assert recognise(PHOENIX) == "phoenix"
    log = read_log(PHOENIX)
    assert sorted_grades(log) == GRADES
    assert by_method(log, "stated") == pytest.approx(STATED)
    assert by_method(log, "perplexity") == pytest.approx(
        [math.exp(sum(logs) / len(logs)) for logs in TOKENS]
    )


def test_phoenix_spans_alone_have_no_grades():
    log = read_log(PHOENIX / "spans.parquet")
    assert recognise(PHOENIX / "spans.parquet") == "phoenix"
    assert log.draws["correct"].null_count() == 6
    with pytest.raises(InputError, match="no grades"):
        cal.audit(PHOENIX / "spans.parquet")


# -- MLflow and ragas ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["genai.json", "table.json", "traces.json"])
def test_mlflow_tables(name):
    log = read_log(MLFLOW / name)
    assert recognise(MLFLOW / name) == log.kind == "mlflow"
    assert sorted_grades(log) == GRADES
    assert by_method(log, "stated") == STATED
    assert log.expected == 6


def test_a_score_from_one_to_five_is_no_grade(tmp_path):
    table = json.loads((MLFLOW / "table.json").read_text())
    table["columns"][-1] = "answer_correctness/v1/score"
    for row in table["data"]:
        row[-1] = 4
    path = tmp_path / "five.json"
    path.write_text(json.dumps(table, separators=(",", ":")))
    assert "name one as grade: answer_correctness" in read_log(path).draws["reason"][0]
    named = read_log(path, options=ReadOptions(grade="answer_correctness"))
    assert named.draws["correct"].null_count() == 6
    assert "neither right nor wrong" in named.draws["reason"][0]


def test_ragas_frame(tmp_path):
    # A table: `audit` takes it as it is, `import` knows its columns.
    assert recognise(RAGAS) is None
    log = read_log(RAGAS)
    assert log.kind == "ragas"
    assert sorted_grades(log) == GRADES
    assert by_method(log, "stated") == STATED
    block = cal.audit(RAGAS, correct="exact_match", on_invalid="drop", resamples=20)["results"][0]
    assert (block["n"], block["metrics"]["accuracy"]["value"]) == (5, 4 / 6)
    import_logs(RAGAS, tmp_path / "study")
    again = cal.audit(tmp_path / "study", resamples=20)["results"][0]
    assert again["metrics"]["ece"]["value"] == block["metrics"]["ece"]["value"]


@pytest.mark.parametrize("ending", ["parquet", "jsonl", "json"])
def test_ragas_frames_of_other_formats(tmp_path, ending):
    table = pl.read_csv(RAGAS, schema_overrides={"response": pl.String, "reference": pl.String})
    path = tmp_path / f"frame.{ending}"
    if ending == "parquet":
        table.write_parquet(path)
    elif ending == "jsonl":
        table.write_ndjson(path)
    else:
        path.write_text(json.dumps(table.to_dicts()))
    log = read_log(path, kind="ragas")
    assert sorted_grades(log) == GRADES
    assert by_method(log, "stated") == STATED


# -- all of them ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["langfuse", "phoenix", "mlflow"])
def test_an_audit_of_each(kind):
    blocks = {b["method"]: b for b in cal.audit(ALL[kind], resamples=20)["results"]}
    assert (blocks["stated"]["n"], blocks["stated"]["metrics"]["accuracy"]["value"]) == (5, 0.6)


@pytest.mark.parametrize("kind", ["langfuse", "phoenix", "mlflow"])
def test_cut_files(tmp_path, kind):
    data = ALL[kind].read_bytes()
    path = tmp_path / "cut.json"
    path.write_bytes(data[: len(data) * 2 // 3])
    if kind == "langfuse":
        # One object, not a list of rows: of its beginning nothing is whole.
        with pytest.raises(InputError, match=str(path)):
            read_log(path, kind=kind)
        return
    log = read_log(path, kind=kind)
    assert 0 < log.draws.height < 6
    assert "damaged" in log.problems[0].reason


@pytest.mark.parametrize("kind", list(ALL))
@pytest.mark.parametrize("text", ["[]", "[1]", "{}", "3", '{"columns": 3}', '{"data": [3]}'])
def test_files_of_another_layout_are_refused(tmp_path, kind, text):
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(InputError, match=str(path)):
        read_log(path, kind=kind)


def zeros(kind, tmp_path):
    """Write a copy in which every confidence is 0, as a tool fills in what it does not have."""
    text = ALL[kind].read_text()
    for value in STATED:
        text = text.replace(f": {value}", ": 0.0").replace(f":{value}", ":0.0")
        text = text.replace(f",{value}\n", ",0.0\n")
    path = tmp_path / ALL[kind].name
    path.write_text(text)
    return path


@pytest.mark.parametrize("kind", list(ALL))
def test_a_confidence_that_is_always_0_is_a_placeholder(tmp_path, kind):
    log = read_log(zeros(kind, tmp_path), kind=kind)
    assert log.draws.height == 6
    assert log.scores.filter(method="stated").height == 0
    assert any("every confidence is 0" in note for note in log.notes)


def test_a_confidence_that_never_changes_is_told(tmp_path):
    text = RAGAS.read_text()
    for value in STATED:
        text = text.replace(f",{value}\n", ",0.7\n")
    path = tmp_path / "same.csv"
    path.write_text(text)
    log = read_log(path)
    assert by_method(log, "stated") == [0.7] * 5
    assert any("make sure that the tool did not fill it in" in note for note in log.notes)


def test_words_and_numbers_that_grade():
    assert grade_among({"Exact Match": True}, None)[:3] == (1.0, None, "Exact Match")
    assert grade_among({"accuracy": "INCORRECT"}, None)[0] == 0.0
    assert grade_among({}, None)[1] == "no grade: nothing was graded"
    assert grade_among({"correct": None}, None)[1] == "correct is empty"


def test_words_however_they_are_wrapped():
    chat = {"choices": [{"message": {"role": "assistant", "content": "4"}}]}
    for wrapped in ("4", chat, json.dumps(chat), [{"content": "4"}], {"answer": "4"}):
        assert plain_text(wrapped) == "4"
    assert plain_text("{no json") == "{no json"
    assert plain_text({"a": 1, "b": 2}) == '{"a": 1, "b": 2}'
