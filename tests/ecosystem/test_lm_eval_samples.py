"""Audits of sample files that lm-evaluation-harness wrote, against plain Python."""

import json
import math
from collections import defaultdict

import pytest

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.data.logs.json_text import ReadOptions
from calibrant.data.logs.recognise import read_log, recognise
from ecosystem.raw_logs import binned_error, modal


def rows(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def results_of(path):
    return json.loads(next(path.parent.glob("results_*.json")).read_text())


def test_multiple_choice_log_likelihoods_become_a_softmax(lm_eval_file):
    path = lm_eval_file("tiny_choice")
    confidence, right = [], []
    for row in rows(path):
        logs = [float(response[0][0]) for response in row["resps"]]
        confidence.append(math.exp(max(logs)) / sum(math.exp(value) for value in logs))
        # Graded from the target, not from the logged accuracy.
        right.append(logs.index(max(logs)) == int(row["target"]))
    block = cal.audit(path, resamples=50)["results"][0]
    assert (block["method"], block["n"]) == ("option_softmax", 30)
    assert block["metrics"]["ece"]["value"] == pytest.approx(binned_error(confidence, right, 15))
    # Equal to what the harness itself reports.
    reported = results_of(path)["results"]["tiny_choice"]["acc,none"]
    assert block["metrics"]["accuracy"]["value"] == pytest.approx(reported)


def test_repeats_and_two_filters(lm_eval_file):
    path = lm_eval_file("tiny_open")
    log = read_log(path)
    by_question = defaultdict(dict)
    for row in rows(path):
        by_question[row["doc_id"]][row["filter"]] = row
    assert len(rows(path)) == 40  # one row per filter ...
    assert log.questions.height == 20  # ... one question each
    assert log.draws.height == 100
    blocks = {b["method"]: b for b in cal.audit(path, resamples=50)["results"]}
    shares, right = [], []
    for filters in by_question.values():
        answer, share = modal(filters["first"]["resps"][0])
        assert filters["majority"]["filtered_resps"] == [answer]
        shares.append(share)
        right.append(filters["majority"]["exact_match"])
    found = blocks["consistency"]["metrics"]
    assert found["accuracy"]["value"] == pytest.approx(sum(right) / 20)
    assert found["ece"]["value"] == pytest.approx(binned_error(shares, right, 15))
    reported = results_of(path)["results"]["tiny_open"]
    assert found["accuracy"]["value"] == pytest.approx(reported["exact_match,majority"])
    first = blocks["first_run_consistency"]["metrics"]
    assert first["accuracy"]["value"] == pytest.approx(reported["exact_match,first"])


def test_the_answers_of_all_repeats_are_read_with_the_runs_own_filter(lm_eval_file):
    path = lm_eval_file("tiny_worded")
    shares, right = [], []
    for row in rows(path):
        numbers = [text.rsplit("#### ", 1)[1] for text in row["resps"][0]]
        assert row["filtered_resps"] == numbers[:1]
        shares.append(numbers.count(numbers[0]) / len(numbers))
        right.append(row["exact_match"])
    audited = cal.audit(path, resamples=50)
    blocks = {block["method"]: block for block in audited["results"]}
    # Only the first answer is graded, so what the majority says cannot be judged fairly.
    assert set(blocks) == {"first_run_consistency"}
    assert audited["sem_ece"] == []
    assert any("not a random part" in note for note in blocks["first_run_consistency"]["notes"])
    found = blocks["first_run_consistency"]["metrics"]
    assert found["mean_confidence"]["value"] == pytest.approx(sum(shares) / 20)
    assert found["ece"]["value"] == pytest.approx(binned_error(shares, right, 15))


def test_without_the_results_file_the_folder_names_the_model(lm_eval_file, tmp_path):
    source = lm_eval_file("tiny_choice")
    folder = tmp_path / "my__model"
    folder.mkdir()
    path = folder / source.name
    path.write_bytes(source.read_bytes())
    log = read_log(path)
    assert log.expected is None
    assert set(log.draws["model"]) == {"my__model"}
    assert recognise(path) == "lm-eval"


def test_filters_and_grades_can_be_chosen(lm_eval_file):
    path = lm_eval_file("tiny_open")
    log = read_log(path, options=ReadOptions(filter="majority"))
    graded = {row["doc_id"]: row for row in rows(path) if row["filter"] == "majority"}
    for draw in log.draws.filter(log.draws["correct"].is_not_null()).iter_rows(named=True):
        assert draw["answer"] == graded[int(draw["question_id"])]["filtered_resps"][0]
    with pytest.raises(InputError, match="majority"):
        read_log(path, options=ReadOptions(filter="nothing"))


def test_several_tasks_keep_their_questions_apart(lm_eval_file):
    paths = [lm_eval_file("tiny_open"), lm_eval_file("tiny_choice")]
    blocks = {b["method"]: b for b in cal.audit(paths, resamples=20)["results"]}
    assert blocks["option_softmax"]["n"] == 30
    assert blocks["first_run_consistency"]["n"] == 20


def test_a_choice_is_graded_about_its_own_option(lm_eval_file, tmp_path):
    source = lm_eval_file("tiny_choice")
    with pytest.raises(InputError, match="another option"):
        read_log(source, options=ReadOptions(grade="acc_norm"))
    path = tmp_path / "samples_tiny_choice.jsonl"
    without = [{key: row[key] for key in row if key != "acc"} for row in rows(source)]
    path.write_text("".join(json.dumps(row) + "\n" for row in without))
    assert read_log(path).draws["correct"].equals(read_log(source).draws["correct"])


def test_the_likelihood_of_one_continuation_is_listed(lm_eval_file, tmp_path):
    (row, *_) = rows(lm_eval_file("tiny_choice"))
    row["resps"], row["filtered_resps"] = row["resps"][:1], row["filtered_resps"][:1]
    path = tmp_path / "samples_x.jsonl"
    path.write_text(json.dumps(row) + "\n")
    log = read_log(path)
    assert log.draws.height == 0
    assert "no confidence" in log.problems[0].reason
