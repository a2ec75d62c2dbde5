"""Who scored what: several scores of one name, edits, means, failed graders, and lists of scores.

Each log is built in the shape of its tool, small enough to be counted by hand.
"""

import copy
import gzip
import json
from pathlib import Path

import polars as pl
import pytest

from calibrant.core.errors import InputError
from calibrant.data.logs.json_text import ReadOptions
from calibrant.data.logs.recognise import read_log, recognise

FIXTURES = Path(__file__).parent / "fixtures"
OLD, NEW = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00.500Z"
MANUAL = "Manual result (overrides all other grading results)"


def read(path):
    """Return the log, and the columns of opinions as numbers or words."""
    kind = recognise(path, scores=True)
    log = read_log(path, kind=kind, options=ReadOptions(opinions=True))
    frame = pl.DataFrame(log.opinions, infer_schema_length=None)
    return log, {name: [value(cell) for cell in frame[name]] for name in frame.columns}


def value(cell):
    try:
        return None if cell is None else float(cell)
    except ValueError:
        return cell


def written(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = path.suffix == ".jsonl"
    path.write_text("\n".join(map(json.dumps, content)) if lines else json.dumps(content))
    return path


# -- Inspect: edits ------------------------------------------------------------------------------


def edit(mark, author="ann", time=OLD):
    origin = {"author": author, "timestamp": time}
    return {"value": mark, "answer": "UNCHANGED", "provenance": origin}


def inspect(tmp_path, *samples):
    """Write a log of samples, each with scores by name: a first value, and the edits after it."""
    log = json.loads((FIXTURES / "inspect.json").read_text())
    log |= {"samples": [copy.deepcopy(log["samples"][0]) for _ in samples]}
    for number, (sample, scores) in enumerate(zip(log["samples"], samples, strict=True)):
        sample |= {"id": f"q{number}", "epoch": 1, "scores": {}}
        for name, (first, *edits) in scores.items():
            history = ([{"value": first}] if first else []) + edits if edits else []
            sample["scores"][name] = {"value": edits[-1]["value"] if edits else first,
                                      "history": history}  # fmt: skip
    names = [sample["id"] for sample in log["samples"]]
    log["eval"]["dataset"] = {"samples": len(names), "sample_ids": names}
    log["eval"]["config"] = {}
    log.pop("results", None)
    return read(written(tmp_path / "log.json", log))


def test_a_score_that_a_person_added_is_no_judge_s(tmp_path):
    log, cells = inspect(tmp_path, {"judge": ["C"], "mine": [None, edit("I")]}, {"judge": ["I"]})
    assert cells["judge"] == [1, 0]
    assert cells["mine (people)"] == [0, None]
    assert "mine" not in cells
    assert log.roles == {"judge": "judge", "mine (people)": "people"}
    assert not log.corrections


def test_an_edit_of_the_explanation_is_no_rating(tmp_path):
    samples = [{"judge": ["C", edit("UNCHANGED")]}, {"judge": ["C", edit("I"), edit("UNCHANGED")]}]
    _, cells = inspect(tmp_path, *samples)
    assert cells["judge"] == [1, 1]
    assert cells["judge (people)"] == [None, 0]


def test_edits_are_counted_as_corrections(tmp_path):
    log, _ = inspect(tmp_path, {"a": ["C", edit("I")]}, {"a": ["I", edit("C")]}, {"a": ["C"]})
    assert log.corrections == {"a (people)": [True, True]}
    assert log.remarks() == [
        "a (people): 2 corrections, which change 2 verdicts; answers that people left alone do "
        "not count as agreement"
    ]
    parts = {"a": [{"x": 1, "y": 2}, edit({"x": 1, "y": 3})]}
    log, _ = inspect(tmp_path, {"a": [4, edit(4.0)]}, parts)
    expected = {"a (people)": [False], "a (people)/x": [False], "a (people)/y": [True]}
    assert log.corrections == expected


def test_a_scorer_that_found_no_answer_is_told(tmp_path):
    log, cells = inspect(tmp_path, {"judge": ["N"]}, {"judge": ["C"]})
    assert cells["judge"] == [None, 1]
    assert log.remarks() == ["1 scores are N (no answer): they count as empty"]


def test_two_who_edit_one_score_have_a_column_each(tmp_path):
    edits = [edit("I", "bob", OLD), edit("C", "ann", NEW), edit("C", "bob", NEW)]
    log, cells = inspect(tmp_path, {"a": ["C", *edits]})
    assert [cells[f"a{who}"] for who in ("", " (people: ann)", " (people: bob)")] == [[1]] * 3
    assert "1 older scores of the same annotator are left out" in log.remarks()


# -- Langfuse ------------------------------------------------------------------------------------


def score(source, number, **more):
    about = {"name": "ok", "source": source, "value": number, "stringValue": None}
    return about | {"dataType": "NUMERIC", "observationId": None, "updatedAt": OLD} | more


def langfuse(tmp_path, *traces, observations=()):
    first = json.loads((FIXTURES / "langfuse.json").read_text())["data"][0]
    first["observations"] += observations
    rows = [first | {"id": f"t{n}", "scores": scores} for n, scores in enumerate(traces)]
    return read(written(tmp_path / "log.json", {"data": rows}))


def test_the_newest_score_of_each_annotator_counts(tmp_path):
    log, cells = langfuse(
        tmp_path,
        # The interface lists the newest first; the second trace has them the other way round.
        [score("EVAL", 1, updatedAt=NEW), score("EVAL", 0), score("ANNOTATION", 0)],
        [score("EVAL", 0), score("EVAL", 1, updatedAt=NEW)],
    )
    assert cells["ok"] == [1, 1]
    assert cells["ok (people)"] == [0, None]
    assert log.remarks() == ["2 older scores of the same annotator are left out"]


def test_every_person_has_a_column(tmp_path):
    ann, bob = ({"authorUserId": name} for name in ("ann", "bob"))
    people = [score("ANNOTATION", 1, **ann), score("ANNOTATION", 0, **bob)]
    log, cells = langfuse(tmp_path, [score("EVAL", 1), *people], people[1:])
    assert cells["ok (people: ann)"] == [1, None]
    assert cells["ok (people: bob)"] == [0, 0]
    assert log.roles["ok"] == "judge"


def test_scores_of_other_parts_of_a_trace_are_not_the_answer_s(tmp_path):
    inner = {"id": "search", "type": "SPAN", "parentObservationId": "generation-0"}
    of_search = score("EVAL", 0, observationId="search", updatedAt=NEW)
    of_generation = score("ANNOTATION", 0, observationId="generation-0")
    traces = [[score("EVAL", 1), of_search, of_generation]]
    log, cells = langfuse(tmp_path, *traces, observations=[inner])
    assert (cells["ok"], cells["ok (people)"]) == ([1], [0])
    assert log.remarks()[0].startswith("1 scores of other parts of a trace are left out")


def test_who_wrote_through_the_api_is_not_guessed(tmp_path):
    log, cells = langfuse(tmp_path, [score("API", 1), score("EVAL", 0)])
    assert (cells["ok (api)"], cells["ok (judge)"]) == ([1], [0])
    assert log.roles == {"ok (judge)": "judge"}
    assert "'api', not whether people scored it" in log.remarks()[0]


SCORES = [(0, "EVAL", 1), (0, "ANNOTATION", 0), (1, "EVAL", 0), (2, "EVAL", 0)]


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz", "csv.gz", "parquet"])
def test_a_scheduled_export_tells_people_from_judges(tmp_path, ending):
    about = {"data_type": "NUMERIC", "string_value": None, "trace_id": "t"}
    tables = {
        "observations": [
            {"id": f"o{n}", "trace_id": "t", "type": kind, "parent_observation_id": "root",
             "start_time": OLD, "input": f"{n}+1", "output": "2"}
            for n, kind in enumerate(("GENERATION", "GENERATION", "RETRIEVER"))
        ],
        "scores": [
            about | {"observation_id": f"o{n}", "name": "ok", "source": source, "value": float(x)}
            for n, source, x in SCORES
        ],
    }  # fmt: skip
    for name, rows in tables.items():
        path = tmp_path / name / f"a.{ending}"
        path.parent.mkdir()
        if ending == "parquet":
            pl.DataFrame(rows).write_parquet(path)
            continue
        lines = "\n".join(map(json.dumps, rows))
        text = lines.encode() if "json" in ending else pl.DataFrame(rows).write_csv().encode()
        path.write_bytes(gzip.compress(text) if "gz" in ending else text)
    log, cells = read(tmp_path)
    assert (cells["ok"], cells["ok (people)"]) == ([1, 0], [0, None])
    assert set(cells) == {"question_id", "question", "model", "answer", "ok", "ok (people)"}
    assert log.remarks()[0].startswith("1 scores of other parts")


def test_a_damaged_file_of_a_scheduled_export_is_named(tmp_path):
    observation = {"id": "o", "trace_id": "t", "type": "GENERATION", "output": "2"}
    written(tmp_path / "observations" / "a.jsonl", [observation])
    (tmp_path / "scores").mkdir()
    damaged = tmp_path / "scores" / "bad.jsonl.gz"
    damaged.write_bytes(gzip.compress(b"{}" * 999)[:25])
    with pytest.raises(InputError, match=r"bad\.jsonl\.gz"):
        read(tmp_path)
    damaged.write_bytes(b"")
    assert [problem.place for problem in read(tmp_path)[0].problems] == ["bad.jsonl.gz"]


def test_a_page_of_langfuse_does_not_say_who_scored(tmp_path):
    row = {"id": "t", "timestamp": OLD, "name": "x", "input": "1+1", "output": "2",
           "metadata": {}, "environment": "default", "quality": [3.0]}  # fmt: skip
    log, cells = read(written(tmp_path / "page.json", [row]))
    assert cells["quality"] == [3]
    assert log.remarks()[0].startswith("this table does not say who scored")


# -- Phoenix, MLflow, LangSmith ------------------------------------------------------------------


def phoenix(tmp_path, spans, *notes):
    """Write spans (id, kind, around it) and annotations (span, kind, annotator, score, time)."""
    answers = pl.read_parquet(FIXTURES / "phoenix" / "spans.parquet")
    answer = answers.filter(pl.col("attributes.output.value").is_not_null())[0]
    rows = [
        answer.with_columns(**{
            "context.span_id": pl.lit(name), "span_kind": pl.lit(kind),
            "parent_id": pl.lit(around, pl.String), "context.trace_id": pl.lit("t"),
        })
        for name, kind, around in spans
    ]  # fmt: skip
    pl.concat(rows).write_parquet(tmp_path / "spans.parquet")
    names = ("span_id", "annotator_kind", "identifier", "result.score", "updated_at")
    table = [dict(zip(names, note, strict=True)) | {"annotation_name": "q"} for note in notes]
    pl.DataFrame(table, infer_schema_length=None).write_csv(tmp_path / "annotations.csv")
    return read(tmp_path)


def test_judges_and_people_of_phoenix_have_a_column_each(tmp_path):
    notes = [
        ("s", "LLM", "gpt", 1.0, NEW),
        ("s", "LLM", "claude", 0.0, OLD),
        ("s", "HUMAN", "px-app:a", 1.0, OLD),
        ("s", "HUMAN", "px-app:b", 0.0, OLD),
        ("s", "LLM", "gpt", 0.0, OLD),
    ]
    log, cells = phoenix(tmp_path, [("s", "LLM", None)], *notes)
    names = ["judge: gpt", "judge: claude", "people: a", "people: b"]
    assert [cells[f"q ({name})"] for name in names] == [[1], [0], [1], [0]]
    assert "1 older scores of the same annotator are left out" in log.remarks()


def test_an_annotation_of_the_whole_trace_is_about_its_answer(tmp_path):
    spans = [("root", "CHAIN", None), ("s", "LLM", "root")]
    _, cells = phoenix(tmp_path, spans, ("s", "LLM", "", 1.0, OLD), ("root", "HUMAN", "", 0.0, OLD))
    assert (cells["q"], cells["q (people)"]) == ([1], [0])


def test_people_and_judges_of_mlflow_have_a_column_each(tmp_path):
    def assessment(kind, who, number, time=OLD):
        return {"assessment_name": "q", "source": {"source_type": kind, "source_id": who},
                "feedback": {"value": number}, "last_update_time": time}  # fmt: skip

    said = [assessment("LLM_JUDGE", "gpt", 1.0), assessment("HUMAN", "ann", 1.0),
            assessment("HUMAN", "ann", 0.0, NEW)]  # fmt: skip
    trace = {"trace_id": "t", "request": "1+1", "response": "2", "trace_metadata": {}}
    log, cells = read(written(tmp_path / "log.jsonl", [trace | {"assessments": said}]))
    assert (cells["q"], cells["q (people)"]) == ([1], [0])
    assert log.roles == {"q": "judge", "q (people)": "people"}


def test_a_mean_over_judge_and_people_is_left_empty(tmp_path):
    def run(number, stats):
        about = {"run_type": "chain", "dotted_order": "x", "inputs": {"question": "1+1"}}
        about |= {"id": f"r{number}", "trace_id": f"r{number}", "outputs": {"output": "2"}}
        return about | {"feedback_stats": stats}

    app, model = '{"type": "app"}', '{"type": "model"}'
    tone = {"n": 1, "avg": None, "values": {"good": 1}}
    runs = [
        run(0, {"q": {"n": 2, "avg": 0.5, "sources": [app, model]}}),
        run(1, {"q": {"n": 1, "avg": 1.0, "sources": [model]}}),
        run(2, {"q": {"n": 1, "avg": 0.0, "sources": [app]}, "tone": tone}),
    ]
    log, cells = read(written(tmp_path / "runs.jsonl", runs))
    assert (cells["q"], cells["q (people)"]) == ([None, 1, None], [None, None, 0])
    assert cells["tone"] == [None, None, "good"]
    assert log.remarks()[0].startswith("1 means of several scores are left empty")


# -- promptfoo -----------------------------------------------------------------------------------


def part(kind, number, text="is right", **more):
    about = {"type": kind, "value": text}
    return {"pass": number >= 0.5, "score": number, "reason": "r", "assertion": about} | more


def promptfoo(tmp_path, *tests, **changes):
    log = json.loads((FIXTURES / "promptfoo.json").read_text())
    first, results = log["results"]["results"][0], []
    for number, parts in enumerate(tests):
        result = copy.deepcopy(first) | {"vars": {"q": f"{number}"}} | changes
        result["gradingResult"] |= {"componentResults": parts}
        results.append(result)
    log["results"] |= {"results": results, "stats": {}}
    return read(written(tmp_path / "log.json", log))


def test_every_rubric_of_a_test_is_read(tmp_path):
    polite = part("llm-rubric", 0, "is polite")
    whole = {"pass": False, "score": 0.5, "reason": "the parts of a set follow it"}
    # The order of the rubrics does not matter, nor that a test has one of them.
    tests = [[whole, part("llm-rubric", 1), polite], [polite, part("llm-rubric", 1)], [polite]] * 2
    log, cells = promptfoo(tmp_path, *tests)
    assert cells["llm-rubric: is right"] == [1, 1, None] * 2
    assert cells["llm-rubric: is polite"] == [0] * 6
    assert set(log.roles) == {"llm-rubric: is right", "llm-rubric: is polite"}
    texts = [[part("llm-rubric", n, f"{n}{test}") for n in (0, 1)] for test in range(3)]
    _, cells = promptfoo(tmp_path, *texts)
    assert (cells["llm-rubric"], cells["llm-rubric 2"]) == ([0] * 3, [1] * 3)


def test_a_grader_that_failed_gave_no_verdict(tmp_path):
    failed = part("llm-rubric", 0, metadata={"graderError": True})
    tests = [[failed, part("human", 1)], [part("llm-rubric", 1)]]
    log, cells = promptfoo(tmp_path, *tests, namedScores={"mean": 0.5})
    assert cells["llm-rubric"] == [None, 1]
    assert cells["mean"] == [None, 0.5]
    assert not log.corrections
    assert "1 verdicts are left empty: their grader failed" in log.remarks()
    path = tmp_path / "log.json"
    content = json.loads(path.read_text())
    content["results"]["results"][0]["gradingResult"]["componentResults"] = [failed]
    written(path, content)
    assert read_log(path).draws["reason"][0].startswith("a grader failed")


def test_a_number_that_a_person_gave_is_read(tmp_path):
    graded = {"pass": True, "score": 0.3, "reason": MANUAL}
    log, cells = promptfoo(tmp_path, [part("llm-rubric", 1)], gradingResult=graded)
    assert (cells["llm-rubric"], cells["human"]) == ([1], [0.3])
    assert log.roles == {"llm-rubric": "judge", "human": "people"}
    assert log.corrections == {"human": [True]}


def test_thumbs_are_corrections_and_failed_calls_are_told(tmp_path):
    thumb = part("human", 0, reason=MANUAL)
    right, wrong = part("llm-rubric", 1), part("llm-rubric", 0)
    log, cells = promptfoo(tmp_path, [right, thumb], [wrong, thumb], [right])
    assert cells["human"] == [0, 0, None]
    assert log.corrections == {"human": [True, False]}
    path = tmp_path / "log.json"
    content = json.loads(path.read_text())
    content["results"]["results"][0] |= {"failureReason": 2, "error": "boom", "response": None}
    log, _ = read(written(path, content))
    rule, _, first = log.remarks()[0].partition(" (")
    assert rule == "could not be read: 1 of the log's parts, 2 answers could"
    assert first == "result 1: the call failed: 'boom')"


# -- OpenAI's graders ----------------------------------------------------------------------------


def openai(tmp_path, *items):
    sample = {"model": "gpt", "error": None, "input": [{"role": "user", "content": "1+1"}],
              "output": [{"role": "assistant", "content": "2"}]}  # fmt: skip
    about = {"object": "eval.run.output_item", "eval_id": "e", "results": [], "sample": sample}
    return read(written(tmp_path / "items.jsonl", [about | item for item in items]))


def test_fields_and_graders_of_one_name_are_all_kept(tmp_path):
    grades = [{"name": "ok", "score": 1.0}, {"name": "ok", "passed": False}]
    item = {"ok": 0, "answer": "gold", "model": "B", "question": "x", "label": 1}
    log, cells = openai(tmp_path, {"datasource_item": item, "results": grades})
    assert (cells["ok"], cells["ok 2"], cells["item.ok"]) == ([1], ["False"], [0])
    names = ("answer", "item.answer", "model", "item.model", "item.question", "label")
    assert [cells[name] for name in names] == [[2], ["gold"], ["gpt"], ["B"], ["x"], [1]]
    assert log.roles == {"ok": "judge", "ok 2": "judge"}


def test_items_without_an_id_or_an_answer_are_read(tmp_path):
    grades = [{"name": "ok", "score": 1.0}]
    azure = {"datasource_item": {"sample.output_text": "two"}, "sample": {"model": "t"}}
    alone = {"datasource_item": {"question": "1+1"}, "sample": None}
    items = [item | {"results": grades} for item in (azure, alone)]
    _, cells = openai(tmp_path, *items, {"datasource_item": {}})
    assert cells["answer"] == ["two", None, 2]
    assert "None" not in cells["question_id"]
    assert cells["ok"] == [1, 1, None]


# -- lists of scores -----------------------------------------------------------------------------


def listed(tool):
    """Return scores of three items: a judge's of all, a person's of the first, twice."""
    said = [(n, "judge", x, OLD) for n, x in enumerate((1, 0, 1))]
    said += [(0, "person", 1, OLD), (0, "person", 0, NEW)]
    for item, kind, number, time in said:
        if tool == "langfuse":
            yield {"traceId": f"t{item}", "observationId": None, "name": "q", "dataType": "NUMERIC",
                   "source": "EVAL" if kind == "judge" else "ANNOTATION", "value": float(number),
                   "stringValue": None, "updatedAt": time}  # fmt: skip
        elif tool == "langsmith":
            source = {"type": "model" if kind == "judge" else "app"}
            yield {"run_id": f"r{item}", "trace_id": "t", "key": "q", "score": float(number),
                   "feedback_source": source, "modified_at": time}  # fmt: skip
        else:
            yield {"span_id": f"s{item}", "annotation_name": "q", "result.score": float(number),
                   "annotator_kind": "LLM" if kind == "judge" else "HUMAN",
                   "updated_at": time}  # fmt: skip


@pytest.mark.parametrize("ending", ["json", "jsonl", "csv", "data.json"])
@pytest.mark.parametrize("tool", ["langfuse", "langsmith", "phoenix"])
def test_a_list_of_scores_becomes_a_row_per_item(tmp_path, tool, ending):
    rows = list(listed(tool))
    path = tmp_path / f"scores.{ending}"
    if ending == "csv":
        texts = [
            {n: json.dumps(x) if isinstance(x, dict) else x for n, x in r.items()} for r in rows
        ]
        pl.DataFrame(texts).write_csv(path)
    else:
        written(path, {"data": rows} if ending == "data.json" else rows)
    log, cells = read(path)
    assert (cells["q"], cells["q (people)"]) == ([1, 0, 1], [0, None, None])
    assert log.roles == {"q": "judge", "q (people)": "people"}
    assert log.remarks() == ["1 older scores of the same annotator are left out"]


def test_a_list_of_scores_is_no_log_of_answers(tmp_path):
    path = written(tmp_path / "scores.json", list(listed("langfuse")))
    with pytest.raises(InputError, match="holds no answers"):
        read_log(path)
    assert recognise(written(tmp_path / "a.json", [{"name": "q", "value": 1}]), scores=True) is None
