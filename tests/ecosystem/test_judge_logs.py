"""Logs in which a judge and people scored the same answers, in the shapes that tools write."""

import copy
import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.data.judge_table import open_judged

FIXTURES = Path(__file__).parent / "fixtures"
ROWS, RATED = 60, 30
RNG = np.random.default_rng(4)
PEOPLE = RNG.integers(0, 2, ROWS)
JUDGE = np.where(RNG.random(ROWS) < 0.85, PEOPLE, 1 - PEOPLE)


def numbered(value, row):
    """A copy of a fixture's row, its ids and questions made those of another one."""
    text = json.dumps(value).replace("2+2", f"{row}+2").replace("trace-0", f"trace-{row}")
    return json.loads(text)


def inspect(folder):
    log = json.loads((FIXTURES / "inspect.json").read_text())
    first, samples = log["samples"][0], []
    for row in range(ROWS):
        sample = copy.deepcopy(first) | {"id": f"q{row}", "epoch": 1}
        sample["scores"] = {
            "model_graded_qa": {"value": "CI"[1 - JUDGE[row]], "answer": "x", "history": []}
        }
        if row < RATED:
            # What `edit_score` leaves: the value before, then who changed it.
            sample["scores"]["model_graded_qa"] |= {
                "value": "CI"[1 - PEOPLE[row]],
                "history": [
                    {"value": "CI"[1 - JUDGE[row]], "answer": "x", "provenance": None},
                    {"value": "CI"[1 - PEOPLE[row]], "answer": "UNCHANGED",
                     "provenance": {"timestamp": "2026-01-01T00:00:00Z", "author": "ann"}},
                ],
            }  # fmt: skip
        samples.append(sample)
    log |= {"samples": samples}
    log["eval"]["dataset"] = {"samples": ROWS, "sample_ids": [f"q{row}" for row in range(ROWS)]}
    return written(folder / "log.json", log), "model_graded_qa", "model_graded_qa (people)"


def promptfoo(folder):
    log = json.loads((FIXTURES / "promptfoo.json").read_text())
    first, results = log["results"]["results"][0], []
    for row in range(ROWS):
        result = copy.deepcopy(first) | {"vars": {"question": f"{row}+2"}}
        rubric = {"type": "llm-rubric", "value": "is right"}
        parts = [{"pass": bool(JUDGE[row]), "score": int(JUDGE[row]), "assertion": rubric}]
        if row < RATED:
            reason = "Manual result (overrides all other grading results)"
            parts.append({"pass": bool(PEOPLE[row]), "score": int(PEOPLE[row]), "reason": reason,
                          "assertion": {"type": "human"}})  # fmt: skip
        result["gradingResult"]["componentResults"] = parts
        results.append(result)
    log["results"]["results"] = results
    return written(folder / "log.json", log), "llm-rubric", "human"


def langfuse(folder):
    first, traces = json.loads((FIXTURES / "langfuse.json").read_text())["data"][0], []
    for row in range(ROWS):
        trace = numbered(first, row)
        score = trace["scores"][0] | {"dataType": "NUMERIC", "stringValue": None}
        trace["scores"] = [score | {"source": "EVAL", "value": float(JUDGE[row])}]
        if row < RATED:
            trace["scores"].append(score | {"source": "ANNOTATION", "value": float(PEOPLE[row])})
        traces.append(trace)
    return written(folder / "log.json", {"data": traces}), "correctness", "correctness (people)"


def phoenix(folder):
    first, runs = json.loads((FIXTURES / "phoenix" / "experiment.json").read_text())[0], []
    for row in range(ROWS):
        run = numbered(first, row) | {"example_id": f"e{row}"}
        note = run["annotations"][0]
        kinds = [("LLM", JUDGE[row])] + [("HUMAN", PEOPLE[row])] * (row < RATED)
        run["annotations"] = [
            note | {"annotator_kind": kind, "score": float(value)} for kind, value in kinds
        ]
        runs.append(run)
    return written(folder / "log.json", runs), "correct", "correct (people)"


def phoenix_folder(folder):
    spans = pl.read_parquet(FIXTURES / "phoenix" / "spans.parquet")
    notes = pl.read_csv(FIXTURES / "phoenix" / "annotations.csv", infer_schema_length=None)
    answers = spans.filter(pl.col("attributes.output.value").is_not_null())
    spans, kept = [], []
    for row in range(ROWS):
        one = answers[row % answers.height]
        name = pl.lit(f"s{row}").alias("context.span_id")
        spans.append(one.with_columns(name))
        for kind, value in [("LLM", JUDGE[row])] + [("HUMAN", PEOPLE[row])] * (row < RATED):
            kept.append(notes[0].with_columns(
                span_id=pl.lit(f"s{row}"), annotator_kind=pl.lit(kind),
                **{"result.score": pl.lit(float(value)), "result.label": pl.lit(None, pl.String)},
            ))  # fmt: skip
    pl.concat(spans).write_parquet(folder / "spans.parquet")
    pl.concat(kept).write_csv(folder / "annotations.csv")
    return folder, "correctness", "correctness (people)"


def langsmith(folder):
    first = pl.read_csv(FIXTURES / "langsmith.csv", infer_schema_length=None)[0]
    rows = [
        first.with_columns(
            pl.lit(f"e{row}").alias("example_id"),
            pl.lit(int(JUDGE[row])).alias("feedback.correctness"),
            pl.lit(int(PEOPLE[row]) if row < RATED else None).alias("feedback.user_score"),
        )
        for row in range(ROWS)
    ]
    pl.concat(rows, how="vertical_relaxed").write_csv(folder / "log.csv")
    return folder / "log.csv", "feedback.correctness", "feedback.user_score"


def openai_graders(folder):
    items = [
        {
            "object": "eval.run.output_item", "id": f"outputitem_{row}", "run_id": "evalrun_1",
            "eval_id": "eval_1", "status": "pass", "created_at": 1,
            "datasource_item_id": row,
            "datasource_item": {"question": f"{row}+2",
                                "human_label": int(PEOPLE[row]) if row < RATED else None},
            "results": [{"name": "Matcher-1", "passed": bool(JUDGE[row]),
                         "score": float(JUDGE[row]), "sample": None}],
            "sample": {"model": "gpt-4o-mini", "finish_reason": "stop", "error": None,
                       "input": [{"role": "user", "content": f"{row}+2"}],
                       "output": [{"role": "assistant", "content": str(row)}]},
        }
        for row in range(ROWS)
    ]  # fmt: skip
    path = folder / "items.jsonl"
    path.write_text("".join(json.dumps(item) + "\n" for item in items))
    return path, "Matcher-1", "human_label"


def written(path, value):
    path.write_text(json.dumps(value))
    return path


TOOLS = [inspect, promptfoo, langfuse, phoenix, phoenix_folder, langsmith, openai_graders]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.__name__)
def test_a_log_is_read_as_a_judge_beside_people(tool, tmp_path):
    path, judge, human = tool(tmp_path)
    table = open_judged(path)
    assert table[judge].cast(pl.Float64).to_list() == JUDGE.tolist()
    assert table[human].cast(pl.Float64).to_list()[:RATED] == PEOPLE[:RATED].tolist()
    assert table[human][RATED:].is_null().all()
    found = cal.judge(str(path), judge=[judge], human=[human]).results[0]
    assert (found.n, found.labels, found.scale.kind) == (ROWS, RATED, "yes/no")
    agreed = np.mean(JUDGE[:RATED] == PEOPLE[:RATED])
    assert found.order.value == pytest.approx(agreed, abs=0.1)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.__name__)
def test_what_a_log_holds_is_proposed(tool, tmp_path):
    path, judge, human = tool(tmp_path)
    with pytest.raises(InputError, match="which columns hold") as refused:
        cal.judge(str(path))
    assert judge in str(refused.value)
    assert human in str(refused.value)


def test_a_log_without_scores_is_refused(tmp_path):
    rows = [{"custom_id": "1", "response": {"body": {"choices": [{"message": {"content": "4"}}]}}}]
    path = tmp_path / "batch.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(InputError, match=r"column|nobody scored"):
        cal.judge(str(path), judge=["a"], human=["b"])
