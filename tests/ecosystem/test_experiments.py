"""Experiments of LangSmith, Braintrust and W&B, and batch results as they are documented.

The files were written by langsmith 0.14.17, braintrust 0.47.0 and wandb 0.31.0 on eight questions.
"""

import json
from pathlib import Path

import pytest

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.data.logs.json_text import ReadOptions
from calibrant.data.logs.recognise import read_log, recognise

FIXTURES = Path(__file__).parent / "fixtures"


def test_langsmith_writes_a_frame_whose_feedback_is_the_grade():
    path = FIXTURES / "langsmith.csv"
    log = read_log(path)
    assert log.kind == "langsmith"
    assert (log.draws.height, log.scores["method"].unique().to_list()) == (8, ["stated"])
    assert set(log.draws["correct"]) == {0.0, 1.0}
    assert log.draws["grader"].unique().to_list() == ["correct"]
    (found,) = cal.audit(path, correct="feedback.correct", resamples=20)["results"]
    assert found["n"] == 8
    other = read_log(path, options=ReadOptions(grade="brevity"))
    assert set(other.draws["correct"]) == {0.2, 1.0}


def test_braintrust_scores_are_grades_only_by_their_name():
    path = FIXTURES / "braintrust.jsonl"
    assert recognise(path) == "braintrust"
    log = read_log(path)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert log.draws["correct"].to_list() == [row["scores"]["Correct"] for row in rows]
    assert log.scores["confidence"].to_list() == [row["output"]["confidence"] for row in rows]
    assert log.draws["answer"].to_list() == [row["output"]["answer"] for row in rows]
    assert log.draws["model"].unique().to_list() == ["toy"]


def test_a_braintrust_row_that_failed_is_listed(tmp_path):
    lines = (FIXTURES / "braintrust.jsonl").read_text().splitlines()
    broken = {**json.loads(lines[0]), "error": "RateLimitError: slow down"}
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join([json.dumps(broken), *lines[1:]]))
    log = read_log(path)
    assert log.draws.height == 7
    assert "the task failed" in log.problems[0].reason


def test_a_table_of_wandb_is_read_as_a_table():
    (found,) = cal.audit(FIXTURES / "wandb.table.json", resamples=20)["results"]
    assert (found["model"], found["n"]) == ("toy", 8)


# The rows below are the examples of the providers' own documentation of batch results.
ANTHROPIC = [
    {
        "custom_id": "my-first-request",
        "result": {
            "type": "succeeded",
            "message": {
                "id": "msg_014VwiXbi91y3JMjcpyGBHX5",
                "type": "message",
                "role": "assistant",
                "model": "claude-opus-4-1",
                "content": [{"type": "text", "text": "Hello! How can I help you today?"}],
                "stop_reason": "end_turn",
                "stop_sequence": None,
                "usage": {"input_tokens": 11, "output_tokens": 36},
            },
        },
    },
    {
        "custom_id": "my-second-request",
        "result": {
            "type": "errored",
            "error": {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}},
        },
    },
]
GEMINI = [
    {
        "key": "request-1",
        "response": {
            "candidates": [
                {
                    "content": {"parts": [{"text": "Photosynthesis."}], "role": "model"},
                    "finishReason": "STOP",
                    "index": 0,
                }
            ],
            "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 3},
            "modelVersion": "gemini-2.5-flash",
        },
    },
    {"key": "request-2", "error": {"code": 13, "message": "internal"}},
]
RESPONSES = [
    {
        "id": "batch_req_1",
        "custom_id": "request-1",
        "response": {
            "status_code": 200,
            "request_id": "r",
            "body": {
                "id": "resp_1",
                "object": "response",
                "status": "completed",
                "model": "gpt-4.1",
                "output": [
                    {
                        "type": "message",
                        "role": "assistant",
                        "content": [{"type": "output_text", "text": "Lima", "annotations": []}],
                    }
                ],
                "usage": {"input_tokens": 36, "output_tokens": 2},
            },
        },
        "error": None,
    }
]


@pytest.mark.parametrize(
    ("rows", "kind", "answer", "failed"),
    [
        (ANTHROPIC, "anthropic-batch", "Hello! How can I help you today?", 1),
        (GEMINI, "gemini-batch", "Photosynthesis.", 1),
        (RESPONSES, "openai-batch", "Lima", 0),
    ],
)
def test_batch_results_are_answers_without_grades(tmp_path, rows, kind, answer, failed):
    path = tmp_path / "results.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert recognise(path) == kind
    log = read_log(path)
    assert log.draws["answer"].to_list() == [answer]
    assert log.draws["completion_tokens"][0] > 0
    assert log.draws["correct"].null_count() == 1
    assert len(log.problems) == failed
    with pytest.raises(InputError):
        cal.audit(path)
