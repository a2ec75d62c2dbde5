"""Logs of LightEval, simple-evals, OpenAI's evals and HLE-style judges, and damaged copies."""

import json
import math
import shutil
from pathlib import Path

import polars as pl
import pytest

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.data.logs.json_text import ReadOptions
from calibrant.data.logs.log import stated_percent
from calibrant.data.logs.recognise import read_log, recognise
from calibrant.verbs.import_logs import import_logs
from calibrant.verbs.opening.open_input import logs_in

FIXTURES = Path(__file__).parent / "fixtures"
SIMPLE = FIXTURES / "simple_evals.json"
EVALS = FIXTURES / "openai_evals.jsonl"
LIGHTEVAL = FIXTURES / "lighteval"


def stated(log):
    rows = log.scores.select("question_id", "confidence", "correct").rows()
    return {name: (sure, right) for name, sure, right in rows}


# -- LightEval -----------------------------------------------------------------------------------


def details(task):
    return next(LIGHTEVAL.rglob(f"details_{task}_*.parquet"))


def test_lighteval_options():
    table = pl.read_parquet(details("colours"))
    log = read_log(details("colours"))
    assert recognise(details("colours")) == log.kind == "lighteval"
    assert set(log.draws["model"]) == {"toy/tiny"}
    assert set(log.draws["task"]) == {"colours"}
    # Its own metric, which it computed itself, is the grade of the same option.
    assert log.draws["correct"].to_list() == [row["acc"] for row in table["metric"]]
    for row, sure in zip(table["model_response"], log.scores["confidence"], strict=True):
        weights = [math.exp(value) for value in row["logprobs"]]
        assert sure == pytest.approx(max(weights) / sum(weights))
    assert log.expected == log.draws.height == 12
    assert log.notes == []


def test_lighteval_written_answers_have_grades_and_no_confidence():
    log = read_log(details("sums"))
    assert log.draws["correct"].to_list() == [1, 1, 1, 1, 0, 1]
    assert log.draws["answer"].to_list()[4] == "9"
    assert log.scores.height == 0
    found = cal.audit(details("sums"))
    assert found["schema"] == "calibrant.accuracy/1"
    assert found["results"][0]["accuracy"]["value"] == pytest.approx(5 / 6)


def test_a_folder_of_lighteval_is_its_files():
    assert [path.name.split("_")[1] for path in logs_in(LIGHTEVAL)] == ["colours", "sums"]
    found = cal.audit(LIGHTEVAL, resamples=20)["results"]
    assert [(block["method"], block["n"]) for block in found] == [("option_softmax", 12)]


def test_totals_of_lighteval_are_named():
    (path,) = LIGHTEVAL.rglob("results_*.json")
    with pytest.raises(InputError, match=r"LightEval holds totals only, no samples\n.*details_"):
        cal.audit(path)


def test_equal_likelihoods_are_a_placeholder(tmp_path):
    table = pl.read_parquet(details("colours"))
    rows = table.to_dicts()
    for row in rows:
        row["model_response"]["logprobs"] = [0.0] * 4
    path = tmp_path / "zero.parquet"
    pl.DataFrame(rows, schema=table.schema).write_parquet(path)
    log = read_log(path)
    assert log.scores.height == 0
    assert any("placeholder" in note for note in log.notes)
    found = cal.audit(path)
    assert found["schema"] == "calibrant.accuracy/1"
    assert any("placeholder" in note for note in found["data"]["notes"])


def test_several_samples_share_one_metric_and_stay_ungraded(tmp_path):
    table = pl.read_parquet(details("sums"))
    rows = table.to_dicts()
    for row in rows:
        row["model_response"]["text"] = row["model_response"]["text"] * 3
    path = tmp_path / "several.parquet"
    pl.DataFrame(rows, schema=table.schema).write_parquet(path)
    log = read_log(path)
    assert log.draws.height == 18
    assert log.draws["correct"].null_count() == 18


def test_the_flat_layout_of_older_versions(tmp_path):
    nested = pl.read_parquet(details("colours")).to_dicts()
    rows = [
        {
            "example": row["doc"]["query"],
            "full_prompt": row["doc"]["query"],
            "predictions": str([[value, False] for value in row["model_response"]["logprobs"]]),
            "pred_logits": "[]",
            "choices": str(row["doc"]["choices"]),
            "gold_index": [row["doc"]["gold_index"]],
            "metrics": row["metric"],
        }
        for row in nested
    ]
    path = tmp_path / "flat.parquet"
    pl.DataFrame(rows).write_parquet(path)
    log, new = read_log(path), read_log(details("colours"))
    assert log.kind == "lighteval"
    assert log.scores["confidence"].to_list() == new.scores["confidence"].to_list()
    assert log.scores["correct"].to_list() == new.scores["correct"].to_list()


@pytest.mark.parametrize("share", [0.4, 0.9])
def test_cut_details_are_refused_in_one_line(tmp_path, share):
    path = tmp_path / "cut.parquet"
    data = details("colours").read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(InputError, match="cut or damaged"):
        read_log(path, kind="lighteval")
    with pytest.raises(InputError) as caught:
        cal.audit(path)
    assert "Traceback" not in str(caught.value)


# -- simple-evals --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["simple_evals.json", "simple_evals.html"])
def test_simple_evals_reads_what_the_reply_states(name):
    log = read_log(FIXTURES / name)
    assert recognise(FIXTURES / name) == log.kind == "simple-evals"
    assert log.draws.height == 6
    assert log.draws["correct"].mean() == json.loads(SIMPLE.read_text())["score"]
    found = {question.partition("\n")[0]: pair for question, pair in stated(log).items()}
    # The sixth reply states nothing, and gets no confidence.
    assert found == {
        "2+2": (0.9, 1),
        "3+3": (0.85, 1),
        "5+4": (0.8, 1),
        "7+6": (0.6, 0),
        "8+8 < 20, what is 8+8?": (0.55, 0),
    }


def test_simple_evals_in_an_audit():
    (block,) = cal.audit(SIMPLE, resamples=20)["results"]
    assert (block["n"], block["metrics"]["accuracy"]["value"]) == (5, 0.6)


def test_simple_evals_cut_short_keeps_whole_examples(tmp_path):
    page = (FIXTURES / "simple_evals.html").read_bytes()
    path = tmp_path / "cut.html"
    path.write_bytes(page[: int(len(page) * 0.7)])
    log = read_log(path)
    assert 0 < log.draws.height < 6
    assert "cut off" in log.problems[-1].reason
    document = SIMPLE.read_bytes()
    path = tmp_path / "cut.json"
    path.write_bytes(document[: document.index(b'"convos"') // 2])
    log = read_log(path)
    assert 0 < log.draws.height < 6
    assert "damaged" in log.problems[0].reason


def test_totals_of_simple_evals_are_named(tmp_path):
    path = tmp_path / "gpqa.json"
    path.write_text('{\n  "chars": 2026.2,\n  "score:std": 0.3,\n  "score": 0.1\n}')
    with pytest.raises(InputError, match=r"simple-evals holds totals only.*\n.*_allresults"):
        cal.audit(path)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Confidence: 85%", 0.85),
        ("**Confidence:** 0.4", 0.4),
        ("Confidence score: 70 %", 0.7),
        ("confidence: 100", 1.0),
        ("Confidence: 20%\nNo, wait.\nConfidence: 30%", 0.3),
        ("Confidence: high", None),
        ("I have 90% of it", None),
        ("Confidence: 850%", None),
    ],
)
def test_what_counts_as_a_statement(text, value):
    assert stated_percent(text) == value


# -- OpenAI's evals ------------------------------------------------------------------------------


def test_openai_evals():
    log = read_log(EVALS)
    assert recognise(EVALS) == log.kind == "openai-evals"
    report = next(
        row["final_report"]
        for row in map(json.loads, EVALS.read_text().splitlines())
        if "final_report" in row
    )
    assert log.draws["correct"].mean() == pytest.approx(report["accuracy"])
    assert sorted(log.scores["confidence"]) == [0.55, 0.6, 0.7, 0.8, 0.85, 0.9]
    assert set(log.draws["model"]) == {"toy"}
    assert set(log.draws["task"]) == {"sums.dev.v0"}
    (block,) = cal.audit(EVALS, resamples=20)["results"]
    assert block["n"] == 6


def test_openai_evals_graded_by_a_model(tmp_path):
    lines = [json.loads(line) for line in EVALS.read_text().splitlines()]
    matches = [row for row in lines if row.get("type") == "match"]
    for number, row in enumerate(matches):
        choice = {"choice": "Yes", "score": 1.0} if number % 2 else {"choice": "__invalid__"}
        row |= {"type": "metrics", "data": choice}
    path = tmp_path / "graded.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    log = read_log(path)
    reasons = log.draws.filter(pl.col("correct").is_null())["reason"].to_list()
    assert len(reasons) == 3
    assert all("without a score" in reason for reason in reasons)


def test_a_second_run_in_the_same_log_is_drawn_again(tmp_path):
    text = EVALS.read_text()
    run = json.loads(text.splitlines()[0])["spec"]["run_id"]
    path = tmp_path / "two.jsonl"
    path.write_text(text + text.replace(run, "another"))
    log = read_log(path)
    assert log.draws.height == 12
    assert sorted(set(log.draws["draw"])) == [0, 1]


def test_openai_evals_damaged(tmp_path):
    lines = EVALS.read_text().splitlines()
    path = tmp_path / "cut.jsonl"
    path.write_text("\n".join(lines)[: len("\n".join(lines)) * 2 // 3])
    log = read_log(path)
    assert 0 < log.draws.height < 6
    assert any("not JSON" in problem.reason for problem in log.problems)
    path.write_text("\n".join(lines[:2]))
    with pytest.raises(InputError, match="no events of samples"):
        read_log(path)


# -- judged in the manner of HLE -----------------------------------------------------------------


def judged(confidence, response, correct="yes"):
    held = {"model_answer": "4", "correct": correct, "confidence": confidence}
    return {"model": "toy", "response": response, "judge_response": held}


def test_the_judges_default_is_no_confidence(tmp_path):
    entries = {
        "a": judged(100, "Exact Answer: 4"),
        "b": judged(100, "Exact Answer: 4\nConfidence: 100%"),
        "c": judged(80, "Exact Answer: 4\nConfidence: 80%", "no"),
    }
    path = tmp_path / "judged.json"
    path.write_text(json.dumps(entries))
    log = read_log(path)
    assert log.draws["correct"].to_list() == [1, 1, 0]
    assert stated(log) == {"b": (1.0, 1), "c": (0.8, 0)}
    assert "the judge writes 100 there" in log.problems[0].reason


@pytest.mark.parametrize("layout", ["lines", "list"])
def test_judged_answers_as_rows(tmp_path, layout):
    rows = [{"id": str(i), **judged(50 + i, f"Confidence: {50 + i}%")} for i in range(4)]
    path = tmp_path / f"judged.{'jsonl' if layout == 'lines' else 'json'}"
    text = "\n".join(map(json.dumps, rows)) if layout == "lines" else json.dumps(rows)
    path.write_text(text)
    assert recognise(path) == "hle"
    log = read_log(path)
    assert log.scores["confidence"].to_list() == [0.5, 0.51, 0.52, 0.53]
    assert log.expected == 4


# -- all of them ---------------------------------------------------------------------------------


def test_imported_logs_give_the_same_audit(tmp_path):
    for path in (SIMPLE, EVALS, details("colours")):
        import_logs(path, tmp_path / path.stem)
        direct = cal.audit(path, resamples=20)["results"]
        again = cal.audit(tmp_path / path.stem, resamples=20)["results"]
        assert [b["metrics"] for b in again] == [b["metrics"] for b in direct]


@pytest.mark.parametrize("kind", ["lighteval", "simple-evals", "openai-evals", "hle"])
@pytest.mark.parametrize("text", ["[]", "[1]", "{}", "3", '{"htmls": [1], "score": 1}', "<html>"])
def test_files_of_another_layout_are_refused(tmp_path, kind, text):
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(InputError, match=str(path)):
        read_log(path, kind=kind, options=ReadOptions())


def test_a_pointer_in_place_of_details(tmp_path):
    target = tmp_path / "details" / "m" / "date"
    target.mkdir(parents=True)
    shutil.copy(details("colours"), target / "details_colours_date.parquet")
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
    (target / "details_colours_date.parquet").write_text(pointer)
    with pytest.raises(InputError, match="Git LFS pointer"):
        cal.audit(target / "details_colours_date.parquet")
