"""Spans of OpenTelemetry, runs of LangChain and evaluations of DSPy, from files that they wrote."""

import json
from pathlib import Path

import pytest

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.data.logs.json_text import ReadOptions
from calibrant.data.logs.recognise import read_log, recognise

FIXTURES = Path(__file__).parent / "fixtures"
SPANS = [json.loads(line) for line in (FIXTURES / "otel.jsonl").read_text().splitlines()]
ANSWERS = ["4", "6", "9", "14", "about 17", "12"]
RIGHT = [1.0, 1.0, 1.0, 0.0, 0.0, 1.0]
STATED = [0.9, 0.85, 0.8, 0.6, 0.55]


def otlp(span):
    """Return a span as OTLP writes it in JSON: lists of keys and typed values."""

    def listed(held):
        names = {str: "stringValue", float: "doubleValue", int: "intValue", list: "arrayValue"}
        return [{"key": key, "value": {names[type(x)]: x}} for key, x in held.items()]

    return {
        "traceId": span["context"]["trace_id"],
        "spanId": span["context"]["span_id"],
        "name": span["name"],
        "attributes": listed(span["attributes"]),
        "events": [
            {"name": event["name"], "attributes": listed(event["attributes"])}
            for event in span["events"]
        ],
    }


def with_spans(path, spans, *, pretty=False):
    path.write_text("\n".join(json.dumps(span, indent=4 if pretty else None) for span in spans))
    return path


def evaluated(name, value, **more):
    known = {"gen_ai.evaluation.name": name, "gen_ai.evaluation.score.value": value, **more}
    return {"name": "gen_ai.evaluation.result", "attributes": known}


@pytest.mark.parametrize("kind", ["lines", "console", "list", "otlp"])
def test_spans_are_read_however_they_were_written(kind, tmp_path):
    path = with_spans(tmp_path / "spans.json", SPANS, pretty=kind == "console")
    if kind == "list":
        path.write_text(json.dumps(SPANS))
    if kind == "otlp":
        held = [{"scopeSpans": [{"spans": [otlp(span)]}]} for span in SPANS]
        path.write_text(json.dumps({"resourceSpans": held}))
    assert recognise(path) == "otel"
    log = read_log(path)
    assert log.draws["answer"].to_list() == ANSWERS
    assert log.draws["correct"].to_list() == RIGHT
    assert log.draws["model"].unique().to_list() == ["toy-1"]
    assert log.questions["text"].to_list() == ["2+2", "3+3", "5+4", "7+6", "8+8", "9+3"]
    assert log.scores["confidence"].to_list() == STATED
    assert log.problems == []


def test_a_judges_opinion_is_no_grade_and_no_confidence(tmp_path):
    log = read_log(FIXTURES / "otel.jsonl", options=ReadOptions(grade="helpfulness"))
    assert log.draws["correct"].to_list() == [0.7] * 6
    assert log.scores["method"].unique().to_list() == ["stated"]


def test_what_calibrant_wrote_into_a_span_comes_back_as_its_method(tmp_path):
    spans = [{**span, "events": []} for span in SPANS]
    for number, span in enumerate(spans):
        if span["name"] == "ask":
            own = evaluated("calibrant.verb", 0.5 + number / 100)
            span["events"] = [own, evaluated("correct", float(number < 6))]
    path = with_spans(tmp_path / "spans.jsonl", spans)
    log = read_log(path)
    assert log.scores["method"].unique().to_list() == ["verb"]
    assert log.scores["confidence"].round(2).to_list() == [0.51, 0.53, 0.55, 0.57, 0.59, 0.61]
    (found,) = cal.audit(path, resamples=20)["results"]
    assert (found["method"], found["n"], found["metrics"]["accuracy"]["value"]) == ("verb", 6, 0.5)


def test_two_answers_in_one_trace_are_told_apart_by_the_reply_or_not_at_all(tmp_path):
    one = "0x1"
    spans = [{**span, "context": {**span["context"], "trace_id": one}} for span in SPANS[:4]]
    spans[1] = {**spans[1], "events": [evaluated("correct", 1.0)]}
    named = evaluated("correct", 0.0, **{"gen_ai.response.id": "chatcmpl-1"})
    spans[3] = {**spans[3], "events": [named]}
    log = read_log(with_spans(tmp_path / "spans.jsonl", spans))
    # The first is about the one answer below its span; without that it is about either.
    assert log.draws["correct"].to_list() == [1.0, 0.0]
    log = read_log(with_spans(tmp_path / "x.jsonl", [{**s, "parent_id": None} for s in spans]))
    assert log.draws["correct"].to_list() == [None, 0.0]
    (problem,) = log.problems
    assert problem.place == "evaluation correct"
    assert problem.reason.startswith("1 of these name no answer")


@pytest.mark.parametrize("older", ["attributes", "events"])
def test_conventions_of_before_are_read(older, tmp_path):
    attributes = {"gen_ai.request.model": "m"}
    events = [evaluated("correct", 1.0)]
    if older == "attributes":
        attributes |= {"gen_ai.prompt.0.content": "Be brief.", "gen_ai.prompt.1.content": "2+2"}
        attributes |= {"gen_ai.completion.0.content": "4"}
    else:
        events.append({"name": "gen_ai.user.message", "attributes": {"content": "2+2"}})
        choice = {"index": 0, "message": '{"role": "assistant", "content": "4"}'}
        events.append({"name": "gen_ai.choice", "attributes": choice})
    span = {"context": {"trace_id": "0x1", "span_id": "0x2"}, "attributes": attributes}
    log = read_log(with_spans(tmp_path / "spans.jsonl", [{**span, "events": events}]))
    assert log.draws.select("question_id", "answer", "model", "correct").rows() == [
        ("2+2", "4", "m", 1.0)
    ]


def test_spans_without_content_say_what_is_missing(tmp_path):
    bare = [
        {**span, "attributes": {"gen_ai.request.model": "m"}}
        for span in SPANS
        if span["name"] != "ask"
    ]
    with pytest.raises(InputError, match="record the content of messages"):
        read_log(with_spans(tmp_path / "spans.jsonl", bare))


def test_a_cut_file_gives_the_spans_before_the_cut(tmp_path):
    text = (FIXTURES / "otel.jsonl").read_text()
    path = tmp_path / "spans.jsonl"
    path.write_text(text[: int(0.6 * len(text))])
    log = read_log(path)
    assert 2 <= log.draws.height < 6
    assert "damaged" in log.problems[0].reason


def test_runs_of_langchain_carry_token_probabilities_of_their_model():
    path = FIXTURES / "langchain.jsonl"
    assert recognise(path) == "langchain"
    log = read_log(path)
    assert log.draws["answer"].to_list() == ANSWERS
    assert log.draws["correct"].to_list() == RIGHT
    stated = log.scores.filter(log.scores["method"] == "stated")
    assert stated["confidence"].to_list() == STATED
    whole = log.scores.filter(log.scores["method"] == "sequence_probability")
    assert whole["confidence"][3] == pytest.approx(2.718281828459045**-1.2)
    assert log.draws["model"].unique().to_list() == ["toy"]


def test_children_inside_their_run_feedback_and_failures_of_langchain(tmp_path):
    runs = [json.loads(x) for x in (FIXTURES / "langchain.jsonl").read_text().splitlines()]
    first, second = runs[:4], runs[4:8]
    nested = {**first[0], "child_runs": first[1:], "extra": {}}
    nested["feedback_stats"] = {"correct": {"n": 1, "avg": 0.0}}
    failed = {**second[0], "error": "RateLimitError"}
    path = tmp_path / "runs.json"
    path.write_text(json.dumps([nested, failed]))
    log = read_log(path)
    assert log.draws.select("answer", "correct", "model").rows() == [("4", 0.0, "toy")]
    assert log.scores["method"].to_list() == ["perplexity", "sequence_probability"]
    assert "RateLimitError" in log.problems[0].reason


def test_the_metric_of_a_dspy_evaluation_is_the_grade(tmp_path):
    path = FIXTURES / "dspy.json"
    assert recognise(path) == "dspy"
    log = read_log(path)
    assert log.draws["answer"].to_list() == ANSWERS
    assert log.draws["correct"].to_list() == RIGHT
    assert log.draws["grader"].unique().to_list() == ["answer_exact_match"]
    assert log.questions["references"][3].to_list() == [["13"]]
    assert log.scores["confidence"].to_list() == [*STATED, 0.5]
    rows = json.loads(path.read_text())
    rows[0] |= {"pred_answer": None}
    other = tmp_path / "dspy.json"
    other.write_text(json.dumps(rows))
    log = read_log(other)
    assert (log.draws.height, len(log.problems)) == (5, 1)
