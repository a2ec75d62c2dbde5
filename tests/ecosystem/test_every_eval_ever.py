"""Samples in the shared format of the EvalEval coalition, as its schema 0.2.1 describes them."""

import json

import pytest

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.data.logs.recognise import read_log, recognise


def sample(number, *, right, stated=None, replies=("B",), error=None):
    return {
        "schema_version": "0.2.1",
        "evaluation_id": "arc/m/1",
        "model_id": "maker/m",
        "evaluation_name": "arc",
        "sample_id": f"arc_{number}",
        "interaction_type": "single_turn",
        "input": {"raw": f"Question {number}?", "reference": ["B"], "choices": ["A", "B"]},
        "output": {"raw": list(replies)},
        "messages": None,
        "answer_attribution": [
            {
                "turn_idx": 0,
                "source": "output.raw",
                "extracted_value": replies[0].strip(),
                "extraction_method": "regex",
                "is_terminal": True,
            }
        ],
        "evaluation": {"score": float(right), "is_correct": right},
        "token_usage": {"input_tokens": 7, "output_tokens": 1, "total_tokens": 8},
        "error": error,
        # Values of metadata are texts, by the schema.
        "metadata": None if stated is None else {"confidence": str(stated)},
    }


def written(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_samples_are_read_with_grade_and_stated_confidence(tmp_path):
    rows = [sample(k, right=k % 3 > 0, stated=0.6 + k / 100) for k in range(30)]
    rows.append(sample(30, right=False, error="timeout"))
    path = written(tmp_path / "samples.jsonl", rows)
    assert recognise(path) == "every-eval-ever"
    log = read_log(path)
    assert (log.draws.height, log.draws["correct"].sum()) == (30, 20)
    assert log.scores["confidence"].to_list() == pytest.approx([0.6 + k / 100 for k in range(30)])
    assert log.questions["references"][0].to_list() == [["B"]]
    assert log.problems[0].reason == "the sample failed: 'timeout'"
    assert cal.audit(path, resamples=20)["results"][0]["n"] == 30


def test_several_replies_are_draws_without_a_grade(tmp_path):
    path = written(tmp_path / "samples.jsonl", [sample(0, right=True, replies=("A", "B"))])
    log = read_log(path)
    assert log.draws["answer"].to_list() == ["A", "B"]
    assert log.draws["correct"].null_count() == 2


def test_a_record_without_samples_is_refused_by_name(tmp_path):
    path = tmp_path / "record.json"
    record = {"schema_version": "0.2.1", "evaluation_id": "d/m/1", "model_info": {"id": "m"}}
    rest = {"source_metadata": {}, "evaluation_results": [{"evaluation_name": "d"}]}
    path.write_text(json.dumps({**record, **rest}))
    with pytest.raises(InputError, match="Every Eval Ever holds totals only"):
        cal.audit(path)
