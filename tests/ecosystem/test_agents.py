"""Traces of agents: the last reply answers, calls of tools are steps, opinions find theirs."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.data.logs.agent_turns import Runs, Turn
from calibrant.data.logs.recognise import read_log
from calibrant.data.study import Study
from calibrant.verbs.import_logs import import_logs

FIXTURES = Path(__file__).parent / "fixtures"
ASKED = ["What is 12 plus 30 ?", "What is 25 plus 17 ?", "What is 40 plus 9 ?"]
TOOLS = ["look_up", None, "look_up", "add", None, "look_up", "add", "look_up", None]


@pytest.mark.parametrize("kind", ["otel", "langchain"])
def test_four_runs_of_langgraph_are_four_answers_and_their_steps(kind):
    log = read_log(FIXTURES / f"agent_{kind}.jsonl")
    assert log.kind == kind
    assert log.questions["question_id"].to_list()[:3] == ASKED
    assert log.draws["answer"].to_list() == ["42", "42", "50", "23"]
    assert log.draws["correct"].to_list() == [1.0, 1.0, 0.0, 1.0]
    assert log.steps["run"].n_unique() == 4
    assert log.steps["tool"].to_list() == [*TOOLS, "look_up", None]
    per_run = log.steps.group_by("run", maintain_order=True).agg(pl.col("correct").unique())
    assert per_run["correct"].to_list() == [[1.0], [1.0], [0.0], [1.0]]
    assert log.problems == log.notes == []


def test_token_probabilities_of_every_turn_are_its_confidence():
    steps = read_log(FIXTURES / "agent_langchain.jsonl").steps
    wrong = steps.filter(pl.col("correct") == 0)
    assert steps["method"].unique().to_list() == ["perplexity"]
    assert wrong["confidence"].to_list() == pytest.approx([0.8, 0.6, 0.4, 0.2])


def test_what_is_said_of_steps_and_of_runs_without_an_answer_is_listed(tmp_path):
    lines = (FIXTURES / "agent_otel.jsonl").read_text().splitlines()
    spans = [json.loads(line) for line in lines]
    last = next(n for n, span in enumerate(spans) if "23" in str(span["attributes"]))
    tool = {**spans[0], "attributes": {"gen_ai.operation.name": "execute_tool"}}
    tool["context"] = {**tool["context"], "span_id": "0xtool"}
    helpful = {"gen_ai.evaluation.name": "useful", "gen_ai.evaluation.score.value": 1.0}
    tool["events"] = [{"name": "gen_ai.evaluation.result", "attributes": helpful}]
    path = tmp_path / "spans.jsonl"
    path.write_text("\n".join(json.dumps(s) for s in [*spans[:last], *spans[last + 1 :], tool]))
    log = read_log(path)
    assert log.draws.height == 3
    told = {problem.place: problem.reason for problem in log.problems}
    assert "name no answer" in told["evaluation useful"]
    assert any("ends with a call of look_up" in reason for reason in told.values())
    text = str(import_logs(path))
    assert "All of it was read" not in text


def test_feedback_on_a_child_of_a_run_is_about_its_answer(tmp_path):
    lines = (FIXTURES / "agent_langchain.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    for row in rows:
        row.pop("feedback_stats", None)
    calls = [row for row in rows if row["run_type"] in ("llm", "chat_model")]
    calls[0]["feedback_stats"] = {"useful": {"n": 1, "avg": 1.0}}
    calls[1]["feedback_stats"] = {"correct": {"n": 1, "avg": 0.0}}
    path = tmp_path / "runs.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    log = read_log(path)
    assert log.draws["correct"].to_list() == [0.0, None, None, None]
    assert [problem.place for problem in log.problems] == ["feedback useful"]


def many_runs(count, seed=0):
    """Spans of agents in the manner of the fixture, with a stated confidence on every turn."""
    rng = np.random.default_rng(seed)

    def span(trace, name, parent, held, said):
        events = [
            {
                "name": "gen_ai.evaluation.result",
                "attributes": {
                    "gen_ai.evaluation.name": key,
                    "gen_ai.evaluation.score.value": float(value),
                },
            }
            for key, value in said.items()
        ]
        where = {"trace_id": trace, "span_id": f"{trace}-{name}"}
        around = None if parent is None else f"{trace}-{parent}"
        more = {"attributes": held, "events": events, "start_time": f"{name:>4}"}
        return {"context": where, "parent_id": around, **more}

    for run in range(count):
        good, steps = rng.random() < 0.6, int(rng.integers(2, 9))
        for step in range(steps):
            sure = np.clip(rng.normal(0.85 if good or step < 1 else 0.35, 0.1), 0.01, 0.99)
            part = {"type": "text", "content": str(run)}
            if step < steps - 1:
                part = {"type": "tool_call", "name": "search", "id": str(step), "arguments": {}}
            asked = [{"role": "user", "parts": [{"type": "text", "content": f"task {run}"}]}]
            said = [{"role": "assistant", "parts": [part]}]
            held = {"gen_ai.output.messages": json.dumps(said), "gen_ai.request.model": "m"}
            held["gen_ai.input.messages"] = json.dumps(asked)
            yield span(f"t{run}", str(step), "root", held, {"confidence": round(float(sure), 2)})
        held = {"gen_ai.operation.name": "invoke_agent"}
        yield span(f"t{run}", "root", None, held, {"correct": good})


def test_from_a_trace_to_a_promise_when_to_stop(tmp_path):
    path = tmp_path / "spans.jsonl"
    path.write_text("\n".join(map(json.dumps, many_runs(300))))
    result = import_logs(path, out=tmp_path / "study")
    assert result["results"][0]["draws"] == 300
    steps = tmp_path / "study" / "steps.parquet"
    assert pl.read_parquet(steps).height == result["results"][0]["steps"] > 900
    assert "steps" not in [str(name) for name in Study(tmp_path / "study").path.glob("tables/*")]
    assert result["next"]["command"] == f"calibrant audit {steps} --unit run"
    assert cal.audit(steps, resamples=50)["results"][0]["questions"] == 300, "runs are noticed"
    (by_run,) = cal.audit(steps, unit="run", resamples=200)["results"]
    assert by_run["questions"] == 300
    (entry,) = cal.decide(steps, unit="run", stop=True, max_error=0.1)["results"]
    assert entry["certified"]
    assert entry["n"] == 300
    assert entry["unit"]["steps_saved"] > 0.1
    # The answers alone are the last turns.
    assert cal.audit(path, resamples=20)["results"][0]["n"] == 300


def test_an_agent_inside_another_has_answers_of_its_own():
    spans = [
        Turn("root", "t", is_agent=True),
        Turn("inner", "t", "root", is_agent=True),
        Turn("a", "t", "inner", "1", True, ("search",)),
        Turn("b", "t", "inner", "2", True),
        Turn("c", "t", "root", "3", True),
    ]
    runs = Runs(spans)
    assert runs.steps == {"b": ["a"], "c": []}
    assert runs.judged("inner") == "b"
    assert runs.judged("root") == "c"


def test_calls_of_tools_in_a_log_of_inspect_are_steps(tmp_path):
    """Messages and events as Inspect 0.3 writes them: a reply that calls, then the answer."""
    head = json.loads((FIXTURES / "inspect.json").read_text())
    sample = head["samples"][0]
    sample["messages"] = [
        {"role": "user", "content": "What is 1 + 2?", "id": "u"},
        {"role": "assistant", "content": "", "id": "a",
         "tool_calls": [{"id": "c", "function": "add", "arguments": {"x": 1}, "type": "function"}]},
        {"role": "tool", "content": "3", "tool_call_id": "c", "function": "add", "id": "t"},
        {"role": "assistant", "content": "3", "id": "b", "tool_calls": None},
    ]  # fmt: skip
    sample["events"] = [
        {
            "event": "model",
            "output": {
                "choices": [
                    {
                        "message": {"id": name},
                        "logprobs": {"content": [{"token": "x", "logprob": logprob}]},
                    }
                ]
            },
        }
        for name, logprob in (("a", -0.1), ("b", -0.3))
    ]
    path = tmp_path / "tools.json"
    path.write_text(json.dumps(head))
    log = read_log(path)
    assert log.steps["tool"].to_list() == ["add", None]
    assert log.steps["confidence"].to_list() == pytest.approx([np.exp(-0.1), np.exp(-0.3)])
    assert log.steps["correct"].unique().to_list() == [log.draws["correct"][0]]
    assert log.draws.height == len(head["samples"]), "the last reply is the answer"
    sample["events"], sample["messages"][1]["tool_calls"] = "none", 7
    path.write_text(json.dumps(head))
    assert read_log(path).draws.height >= len(head["samples"]) - 1
