"""HELM run folders, batch outputs and judged answers."""

import json
import math
from pathlib import Path

import polars as pl
import pytest

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.data.logs.recognise import read_log, recognise
from calibrant.report import render_markdown
from calibrant.verbs.import_logs import import_logs
from ecosystem.raw_logs import binned_error

HELM = Path(__file__).parent / "fixtures" / "helm"


def test_helm_run_folder():
    states = json.loads((HELM / "scenario_state.json").read_text())["request_states"]
    stats = json.loads((HELM / "per_instance_stats.json").read_text())
    right = {
        entry["instance_id"]: stat["mean"]
        for entry in stats
        for stat in entry["stats"]
        if stat["name"]["name"] == "exact_match"
    }
    assert 0 < sum(right.values()) < len(right) == 12
    completions = [state["result"]["completions"][0] for state in states]
    confidence = [math.exp(c["tokens"][0]["logprob"]) for c in completions]
    grades = [right[state["instance"]["id"]] for state in states]
    assert recognise(HELM) == "helm"
    blocks = {b["method"]: b for b in cal.audit(HELM, resamples=50)["results"]}
    found = blocks["perplexity"]
    assert (found["model"], found["n"]) == ("simple/model1", 12)
    assert found["metrics"]["ece"]["value"] == pytest.approx(binned_error(confidence, grades, 15))
    log = read_log(HELM)
    mapped = [s["output_mapping"][c["text"]] for s, c in zip(states, completions, strict=True)]
    assert log.draws["answer"].to_list() == mapped


def test_an_imported_study_gives_the_audit_of_its_log(tmp_path, lm_eval_file):
    logs = {
        "one draw": HELM,
        "options": lm_eval_file("tiny_choice"),
        "repeats": lm_eval_file("tiny_open"),
        "partly graded": lm_eval_file("tiny_worded"),
        "epochs": HELM.parent / "inspect.eval",
    }
    for name, log in logs.items():
        import_logs(log, tmp_path / name)
        direct = cal.audit(log, resamples=20)
        study = cal.audit(tmp_path / name, resamples=20)
        for left, right in zip(direct["results"], study["results"], strict=True):
            assert left["metrics"] == right["metrics"], name
        assert direct["sem_ece"] == study["sem_ece"], name


def test_helm_without_its_grades(tmp_path):
    (tmp_path / "scenario_state.json").write_bytes((HELM / "scenario_state.json").read_bytes())
    log = read_log(tmp_path)
    assert log.draws["correct"].null_count() == 12
    assert log.problems[0].place == "per_instance_stats.json"


def batch_row(name, texts, status=200):
    choices = [
        {
            "index": i,
            "message": {"role": "assistant", "content": text},
            "finish_reason": "stop",
            "logprobs": {"content": [{"token": text, "logprob": -0.5, "top_logprobs": []}]},
        }
        for i, text in enumerate(texts)
    ]
    body = {"id": "c", "object": "chat.completion", "model": "m", "choices": choices, "usage": {}}
    return {
        "id": f"batch_req_{name}",
        "custom_id": name,
        "response": {"status_code": status, "request_id": "r", "body": body},
        "error": None,
    }


def test_openai_batch_output(tmp_path):
    path = tmp_path / "output.jsonl"
    rows = [batch_row("a", ["Paris", "Paris", "Rome"]), batch_row("b", ["x"], status=500)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = import_logs(path, tmp_path / "study")
    entry = result["results"][0]
    assert (entry["kind"], entry["draws"], entry["unreadable"]) == ("openai-batch", 3, 1)
    assert entry["ungraded"] == {"a batch output holds no grades": 3}
    scores = pl.read_parquet(tmp_path / "study" / "tables" / "scores.parquet")
    shares = scores.filter(pl.col("method") == "consistency")["confidence"]
    assert shares.to_list() == pytest.approx([2 / 3])
    with pytest.raises(InputError, match="no grades"):
        cal.audit(path)


@pytest.mark.parametrize(
    ("tokens", "why"),
    [
        ([("Lon", -0.1), ("don", -0.2)], "do not spell the answer"),
        ([("Par", -0.1), ("is", -9999.0)], "no log-probability"),
        ([("Par", 0.3), ("is", -0.2)], "no log-probability"),
        ([("Par", -0.1), ("is", None)], "no log-probability"),
        ([("Par", -0.1), ("is", -0.2)], None),
    ],
    ids=["another text", "placeholder", "above 0", "missing", "sound"],
)
def test_log_probs_of_a_batch_are_believed_only_where_they_can_be_the_answers(
    tmp_path, tokens, why
):
    row = batch_row("a", ["Paris"])
    content = [{"token": text, "logprob": value} for text, value in tokens]
    row["response"]["body"]["choices"][0]["logprobs"] = {"content": content}
    path = tmp_path / "output.jsonl"
    path.write_text(json.dumps(row) + "\n")
    log = read_log(path)
    assert log.draws["answer"].to_list() == ["Paris"]
    assert log.draws["token_logprobs"].to_list() == [None if why else [-0.1, -0.2]]
    assert log.scores.height == (0 if why else 2)
    assert any(why in note for note in log.notes) if why else len(log.notes) == 1


def test_judged_answers_state_percentages(tmp_path):
    def entry(correct, confidence):
        judged = {"model_answer": "7", "correct_answer": "7", "correct": correct}
        return {
            "model": "m",
            "response": f"Answer: 7\nConfidence: {confidence}%",
            "judge_response": {**judged, "confidence": confidence},
        }

    stated = [(95, "yes"), (80, "no"), (100, "yes"), (60, "no"), (90, "no"), (70, "yes")]
    entries = {f"q{i}": entry(grade, number) for i, (number, grade) in enumerate(stated)}
    entries["q9"] = {"model": "m", "response": "?", "judge_response": None}
    path = tmp_path / "judged_model.json"
    path.write_text(json.dumps(entries))
    audited = cal.audit(path, resamples=50)
    block = audited["results"][0]
    expected = binned_error([c / 100 for c, _ in stated], [g == "yes" for _, g in stated], 15)
    assert (block["method"], block["n"]) == ("verb", 6)
    assert block["metrics"]["ece"]["value"] == pytest.approx(expected)
    assert audited["dropped"] == {"unreadable_in_log": 1}


def test_what_a_log_promises_has_its_unit(tmp_path, lm_eval_file):
    """Repeats give many draws per question; the run file counts questions."""
    result = import_logs([lm_eval_file("tiny_open"), HELM], out=tmp_path / "study")
    repeated, helm = result["results"]
    assert repeated["draws"] > repeated["questions"] == repeated["expected"]
    assert (repeated["expected_unit"], helm["expected_unit"]) == ("questions", "requests")
    text = render_markdown(result.to_dict())
    assert f"{repeated['expected']} questions" in text
    assert f"{helm['expected']} requests" in text


@pytest.mark.parametrize("run", ["hellaswag_pythia-1b", "mmlu_philosophy_gpt2"])
def test_a_default_of_the_writer_is_no_confidence(shared_data, run):
    """These clients wrote 0 for every log-probability: it used to be read as certainty."""
    found = cal.audit(shared_data / "logs" / "helm" / run)
    assert found["schema"] == "calibrant.accuracy/1"
    assert any("placeholder of the writer" in note for note in found["data"]["notes"])
