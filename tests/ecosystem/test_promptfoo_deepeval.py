"""Results of promptfoo and test runs of DeepEval, written by those tools; and damaged copies."""

import json
import math
from pathlib import Path

import pytest

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.data.logs.json_text import ReadOptions
from calibrant.data.logs.recognise import read_log, recognise

FIXTURES = Path(__file__).parent / "fixtures"
PROMPTFOO = FIXTURES / "promptfoo.json"
DEEPEVAL = FIXTURES / "deepeval.json"


@pytest.mark.parametrize("name", ["promptfoo.json", "promptfoo.jsonl"])
def test_promptfoo_grades_and_confidences(name):
    path = FIXTURES / name
    results = json.loads(PROMPTFOO.read_text())["results"]["results"]
    answered = [row for row in results if "output" in row["response"]]
    assert recognise(path) == "promptfoo"
    log = read_log(path)
    assert log.draws["correct"].to_list() == [float(row["success"]) for row in answered]
    assert log.draws["question_id"].n_unique() == 7
    assert sorted(log.draws["draw"].unique()) == [0, 1]
    token = log.scores.filter(method="perplexity")["confidence"].to_list()
    expected = [math.exp(sum(row["response"]["logProbs"]) / 2) for row in answered]
    assert token == pytest.approx(expected)
    stated = log.scores.filter(method="stated")["confidence"].to_list()
    assert stated == [row["response"]["metadata"]["confidence"] for row in answered]
    assert [problem.reason for problem in log.problems] == [
        "the call failed: 'no such question'"
    ] * 2


def test_promptfoo_says_how_many_results_there_are():
    log = read_log(PROMPTFOO)
    assert log.expected == log.draws.height + len(log.problems) == 16


def test_promptfoo_in_an_audit():
    blocks = {b["method"]: b for b in cal.audit(PROMPTFOO, resamples=20)["results"]}
    found = blocks["stated"]
    assert (found["model"], found["n"], found["questions"]) == ("toy", 14, 7)
    assert found["metrics"]["accuracy"]["value"] == pytest.approx(8 / 14)


def test_a_promptfoo_test_without_assertion_has_no_grade(tmp_path):
    document = json.loads(PROMPTFOO.read_text())
    for row in document["results"]["results"]:
        if row["gradingResult"]:
            row |= {"success": True, "score": 1}
            row["gradingResult"] |= {"pass": True, "componentResults": []}
    path = tmp_path / "free.json"
    path.write_text(json.dumps(document))
    log = read_log(path)
    assert log.draws["correct"].null_count() == log.draws.height == 14
    assert set(log.draws["reason"]) == {"the test has no assertion"}
    with pytest.raises(InputError, match="no grades"):
        cal.audit(path)


def with_assertion(tmp_path, kind, passed, *, alone=False):
    document = json.loads(PROMPTFOO.read_text())
    for row in document["results"]["results"]:
        if row["gradingResult"]:
            more = {"pass": passed, "score": int(passed), "assertion": {"type": kind}}
            held = [] if alone else row["gradingResult"]["componentResults"]
            row["gradingResult"]["componentResults"] = [*held, more]
            row["success"] = row["success"] and passed
    path = tmp_path / "more.json"
    path.write_text(json.dumps(document))
    return path


@pytest.mark.parametrize("kind", ["latency", "cost", "is-json", "not-contains-json"])
def test_a_promptfoo_answer_that_is_only_slow_dear_or_ill_formed_is_not_wrong(tmp_path, kind):
    before = read_log(PROMPTFOO).draws["correct"].to_list()
    assert read_log(with_assertion(tmp_path, kind, False)).draws["correct"].to_list() == before
    alone = read_log(with_assertion(tmp_path, kind, True, alone=True))
    assert alone.draws["correct"].null_count() == alone.draws.height
    assert set(alone.draws["reason"]) == {f"no assertion is about the answer being right: {kind}"}


def test_a_promptfoo_answer_that_fails_a_second_test_of_its_content_is_wrong(tmp_path):
    log = read_log(with_assertion(tmp_path, "llm-rubric", False))
    assert set(log.draws["correct"]) == {0.0}


def test_promptfoo_placeholder_logprobs_are_no_confidence(tmp_path):
    document = json.loads(PROMPTFOO.read_text())
    for row in document["results"]["results"]:
        if "logProbs" in row["response"]:
            row["response"]["logProbs"] = [0, 0]
    path = tmp_path / "zero.json"
    path.write_text(json.dumps(document))
    log = read_log(path)
    assert set(log.scores["method"]) == {"stated"}
    assert any("placeholder" in note for note in log.notes)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_a_promptfoo_file_cut_short_is_refused_in_one_line(tmp_path, share):
    path = tmp_path / "cut.json"
    data = PROMPTFOO.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(InputError, match="cut or damaged"):
        read_log(path)


def test_promptfoo_lines_cut_short_are_listed(tmp_path):
    path = tmp_path / "cut.jsonl"
    data = (FIXTURES / "promptfoo.jsonl").read_bytes()
    path.write_bytes(data[: len(data) // 2])
    log = read_log(path)
    assert 0 < log.draws.height < 14
    assert any("not JSON" in problem.reason for problem in log.problems)


def test_several_prompts_are_several_models(tmp_path):
    document = json.loads(PROMPTFOO.read_text())
    for row in document["results"]["results"][::2]:
        row["promptIdx"] = 1
    path = tmp_path / "two.json"
    path.write_text(json.dumps(document))
    assert set(read_log(path).draws["model"]) == {"toy (prompt 0)", "toy (prompt 1)"}


def test_deepeval_grades_and_confidences():
    assert recognise(DEEPEVAL) == "deepeval"
    log = read_log(DEEPEVAL)
    assert log.draws["correct"].to_list() == [1, 1, 1, 0, 0, 1]
    assert log.draws["model"].to_list() == ["toy"] * 6
    assert log.scores["confidence"].to_list() == [0.9, 0.85, 0.8, 0.6, 0.55]
    assert log.scores["correct"].to_list() == [1, 1, 1, 0, 0]
    assert log.expected == 6
    block = cal.audit(DEEPEVAL, resamples=20)["results"][0]
    assert (block["n"], block["metrics"]["accuracy"]["value"]) == (5, 0.6)


def test_deepeval_by_one_metric():
    log = read_log(DEEPEVAL, options=ReadOptions(grade="Pattern Match"))
    assert log.draws["correct"].to_list() == [1, 1, 1, 1, 0, 1]
    other = read_log(DEEPEVAL, options=ReadOptions(grade="Patern"))
    assert other.draws["correct"].null_count() == 6
    assert "it has: Exact Match, Pattern Match" in other.draws["reason"][0]


def test_deepeval_as_its_own_folder_wraps_it(tmp_path):
    path = tmp_path / ".latest_test_run.json"
    run = json.loads(DEEPEVAL.read_text())
    path.write_text(json.dumps({"testRunData": run, "testRunLink": None}))
    assert read_log(path).draws.equals(read_log(DEEPEVAL).draws)


def test_a_metric_that_failed_gives_no_grade(tmp_path):
    run = json.loads(DEEPEVAL.read_text())
    run["testCases"][0]["metricsData"][0] |= {"success": False, "error": "no judge"}
    path = tmp_path / "failed.json"
    path.write_text(json.dumps(run))
    draws = read_log(path).draws
    assert draws["correct"].to_list()[0] is None
    assert "no judge" in draws["reason"][0]


def test_deepeval_cut_short_keeps_the_whole_cases(tmp_path):
    path = tmp_path / "cut.json"
    data = DEEPEVAL.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    log = read_log(path)
    assert 0 < log.draws.height < 6
    assert "damaged" in log.problems[0].reason


@pytest.mark.parametrize("text", ["[]", "[1]", "{}", "3", '{"results": [1]}', '{"testCases": 3}'])
@pytest.mark.parametrize("kind", ["promptfoo", "deepeval"])
def test_json_of_another_layout_is_refused(tmp_path, kind, text):
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(InputError, match=str(path)):
        read_log(path, kind=kind)
