"""Audits of a log that Inspect wrote, against numbers computed without calibrant."""

import json
import math
from collections import defaultdict

import polars as pl
import pytest

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.data.logs.json_text import ReadOptions
from calibrant.data.logs.recognise import read_log, recognise
from calibrant.verbs.import_logs import import_logs
from ecosystem.raw_logs import binned_error, inspect_samples, modal
from support import call


@pytest.fixture
def blocks(inspect_log):
    document = cal.audit(inspect_log, resamples=50)
    return {block["method"]: block for block in document["results"]}, document


def test_stated_confidence_is_audited_over_unreduced_epochs(blocks, inspect_log):
    samples = list(inspect_samples(inspect_log))
    stated = [s["scores"]["stated_match"]["metadata"]["confidence"] for s in samples]
    right = [s["scores"]["stated_match"]["value"] == "C" for s in samples]
    found = blocks[0]["verb"]
    assert found["n"] == len(samples) == 80
    assert found["metrics"]["accuracy"]["value"] == pytest.approx(sum(right) / 80)
    brier = sum((c - r) ** 2 for c, r in zip(stated, right, strict=True)) / 80
    assert found["metrics"]["brier"]["value"] == pytest.approx(brier)
    # A mean over epochs would bring this below: grades and confidences stay paired.
    assert found["metrics"]["ece"]["value"] == pytest.approx(binned_error(stated, right, 15))


def test_token_probabilities(blocks, inspect_log):
    confidence, right = [], []
    for sample in inspect_samples(inspect_log):
        tokens = sample["output"]["choices"][0]["logprobs"]["content"]
        mean = sum(token["logprob"] for token in tokens) / len(tokens)
        confidence.append(math.exp(mean))
        right.append(sample["scores"]["stated_match"]["value"] == "C")
    found = blocks[0]["perplexity"]["metrics"]
    assert found["mean_confidence"]["value"] == pytest.approx(sum(confidence) / 80)
    assert found["ece"]["value"] == pytest.approx(binned_error(confidence, right, 15))


def test_epochs_are_draws(blocks, inspect_log):
    answers, grades = defaultdict(list), {}
    for sample in inspect_samples(inspect_log):
        score = sample["scores"]["stated_match"]
        answers[sample["id"]].append(score["answer"])
        grades[sample["id"], score["answer"]] = score["value"] == "C"
    chosen = {key: modal(texts) for key, texts in answers.items()}
    shares = [share for _, share in chosen.values()]
    right = [grades[key, answer] for key, (answer, _) in chosen.items()]
    found = blocks[0]["consistency"]
    assert found["n"] == 8
    assert found["metrics"]["mean_confidence"]["value"] == pytest.approx(sum(shares) / 8)
    assert found["metrics"]["ece"]["value"] == pytest.approx(binned_error(shares, right, 15))
    semantic = blocks[1]["sem_ece"][0]
    assert semantic["sem1"]["value"] == pytest.approx(binned_error(shares, right, 10))


def test_the_command_line_gives_the_same(blocks, inspect_log, tmp_path):
    out = tmp_path / "audit.json"
    done = call("audit", inspect_log, "--resamples", 50, "--json", out)
    assert done.returncode == 0, done.stderr
    assert json.loads(out.read_text())["results"] == blocks[1]["results"]


def test_json_logs_hold_the_same_as_archives(inspect_log):
    path = inspect_log.with_suffix(".json")
    raw = json.loads(path.read_text())["samples"]
    log = read_log(path)
    assert recognise(path) == "inspect"
    assert log.expected == len(raw) == log.draws.height == 12
    grades = [float(s["scores"]["stated_match"]["value"] == "C") for s in raw]
    assert log.draws["correct"].to_list() == grades
    assert log.draws["text"].to_list() == [s["output"]["completion"] for s in raw]


def test_recognised_by_content_not_by_name(inspect_log, tmp_path):
    renamed = tmp_path / "scores.csv"
    renamed.write_bytes(inspect_log.read_bytes())
    assert recognise(renamed) == "inspect"
    table = tmp_path / "table.eval"
    table.write_text("confidence,correct\n0.5,1\n")
    assert recognise(table) is None
    assert recognise(tmp_path) is None


def test_another_scorer_can_be_chosen(inspect_log):
    log = read_log(inspect_log, options=ReadOptions(grade="match"))
    assert set(log.draws["grader"]) == {"match"}
    raw = {
        (s["id"], s["epoch"] - 1): s["scores"]["match"]["value"]
        for s in inspect_samples(inspect_log)
    }
    for row in log.draws.iter_rows(named=True):
        assert row["correct"] == float(raw[row["question_id"], row["draw"]] == "C")


def test_an_imported_study_audits_like_the_log(blocks, inspect_log, tmp_path):
    result = import_logs(inspect_log, tmp_path / "study")
    assert result["results"][0]["draws"] == 80
    again = cal.audit(tmp_path / "study", resamples=50)
    for entry in again["results"]:
        metrics = blocks[0][entry["method"]]["metrics"]
        assert entry["metrics"]["ece"]["value"] == pytest.approx(metrics["ece"]["value"])
    assert again["sem_ece"][0]["sem1"] == blocks[1]["sem_ece"][0]["sem1"]


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_scores_as_one_table(inspect_log, tmp_path, ending):
    out = tmp_path / f"scores.{ending}"
    import_logs(inspect_log, out)
    table = cal.data.read_table(out)
    assert table.height == 3 * 80 + 2 * 8
    assert table["confidence"].is_between(0, 1).all()


def test_percentages_are_refused_as_a_whole(inspect_log, tmp_path, monkeypatch):
    log = json.loads(inspect_log.with_suffix(".json").read_text())
    for sample in log["samples"]:
        sample["scores"]["stated_match"]["metadata"]["confidence"] *= 100
    path = tmp_path / "percent.json"
    path.write_text(json.dumps(log))
    with pytest.raises(InputError, match="percent"):
        cal.audit(path)
    block = cal.audit(path, scale="percent", resamples=20)["results"][0]
    assert block["method"] == "verb"
    assert 0 < block["metrics"]["mean_confidence"]["value"] <= 1


def test_two_models_are_compared_by_their_agreement(inspect_log, tmp_path):
    log = json.loads(inspect_log.with_suffix(".json").read_text())
    held = list(inspect_samples(inspect_log))
    # A comparison needs twenty questions: the logged ones, three times over.
    log["samples"] = [{**one, "id": f"{one['id']}-{copy}"} for copy in range(3) for one in held]
    paths = []
    for name in ("model", "other"):
        log["eval"]["model"] = f"mockllm/{name}"
        paths.append(tmp_path / f"{name}.json")
        paths[-1].write_text(json.dumps(log))
    result = cal.compare(paths, resamples=20)
    assert {entry["model"] for entry in result["results"]} == {"mockllm/model", "mockllm/other"}
    assert {entry["method"] for entry in result["results"]} == {
        "consistency",
        "first_run_consistency",
    }
    with pytest.raises(InputError, match="the models share 8 questions"):
        cal.compare([inspect_log, _renamed(inspect_log, tmp_path / "few.json")], resamples=20)


def _renamed(inspect_log, path):
    log = json.loads(inspect_log.with_suffix(".json").read_text())
    log["eval"]["model"] = "mockllm/other"
    log["samples"] = list(inspect_samples(inspect_log))
    path.write_text(json.dumps(log))
    return path


def test_the_same_run_twice_is_refused(inspect_log):
    with pytest.raises(InputError, match="twice"):
        cal.audit([inspect_log, inspect_log])


def test_one_meaning_has_one_grade_where_the_log_grades_its_draws_differently(
    inspect_log, tmp_path
):
    log = json.loads(inspect_log.with_suffix(".json").read_text())
    for sample in log["samples"]:
        score = sample["scores"]["stated_match"]
        score["answer"], score["value"] = "same", "I" if sample["epoch"] == 1 else "C"
    path = tmp_path / "divided.json"
    path.write_text(json.dumps(log))
    from calibrant.answers.logs import foreign_tables

    tables = foreign_tables([path])
    epochs = log["eval"]["config"]["epochs"]
    grades = tables.semantics.group_by("question_id", "class_id").agg("correct", pl.len())
    assert grades["len"].to_list() == [epochs] * 4
    most = epochs - 1 > 1
    assert {grade for row in grades["correct"] for grade in row} == {most}
    taken = tables.semantics.filter(pl.col("reason") == "graded as the same answer")
    assert taken.height == 4 * (1 if most else epochs - 1)
    (note,) = [note for note in tables.notes if "graded right and" in note]
    assert "4 of 4." in note


def test_another_version_is_refused_by_name(inspect_log, tmp_path):
    log = json.loads(inspect_log.with_suffix(".json").read_text())
    path = tmp_path / "later.json"
    path.write_text(json.dumps(log | {"version": 4}))
    with pytest.raises(InputError, match=r"versions 2 and 3 .*got 4"):
        read_log(path)


def test_a_log_without_any_confidence_says_what_to_do(inspect_log, tmp_path):
    log = json.loads(inspect_log.with_suffix(".json").read_text())
    log["samples"] = [sample for sample in log["samples"] if sample["epoch"] == 1]
    log["eval"]["config"]["epochs"] = 1
    for sample in log["samples"]:
        sample["scores"]["stated_match"].pop("metadata")
        sample["output"]["choices"][0].pop("logprobs")
    path = tmp_path / "grades.json"
    path.write_text(json.dumps(log))
    found = cal.audit(path)
    assert found["schema"] == "calibrant.accuracy/1"
    assert "There is no confidence" in found["data"]["notes"][0]


def test_attachments_and_content_parts_are_put_back(inspect_log, tmp_path):
    log = json.loads(inspect_log.with_suffix(".json").read_text())
    sample = log["samples"][0]
    sample["attachments"] = {"abc": "a long question"}
    sample["input"] = [{"role": "user", "content": "attachment://abc"}]
    parts = [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "Paris 1.0"}]
    sample["output"]["choices"][0]["message"]["content"] = parts
    path = tmp_path / "parts.json"
    path.write_text(json.dumps(log))
    read = read_log(path)
    assert read.questions["text"][0] == "a long question"
    assert read.draws["text"][0] == "Paris 1.0"
