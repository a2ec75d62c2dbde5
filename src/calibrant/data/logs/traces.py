"""Exports of Phoenix and other tools that speak OpenInference, and of Langfuse.

Of Phoenix are read the runs of an experiment (``/v1/experiments/ID/json``), a table of spans, and
a folder with that table and the one of its annotations. Of Langfuse the answers of its API, the
tables that its pages export, and a folder of the scheduled export.
"""

import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import starmap
from pathlib import Path
from typing import Any

from calibrant.core.errors import InputError
from calibrant.data.formats import entries_below, first_bytes, read_bytes
from calibrant.data.logs import exchange
from calibrant.data.logs.agent_turns import Runs, Turn
from calibrant.data.logs.json_text import KINDS, as_text, json_or_none, json_rows, numbered
from calibrant.data.logs.log import ForeignLog
from calibrant.data.logs.opinions import Opinion, by_name, opinion_in, opinions_in
from calibrant.data.logs.recognise import ROWS, fits
from calibrant.data.logs.spans import generation_of, generation_tokens
from calibrant.data.tables import read_table

_SPAN = "context.span_id"
_KIND = ("span_kind", "attributes.openinference.span.kind")
_TABLES = (".parquet", ".csv", ".jsonl")


def _named(path: Path, stem: str) -> Path | None:
    places = (path / f"{stem}{ending}" for ending in _TABLES)
    return next((place for place in places if place.is_file()), None)


def read_phoenix(log: ForeignLog) -> None:
    """Read spans or runs; the same input asked again is another draw of it."""
    rows, annotations = _content(log)
    rows = list(rows)
    spans = [row for _, row in rows if row.get(_SPAN) and not fits(row, ROWS["phoenix"])]
    runs = Runs(map(_turn, spans))
    annotations = _of_replies(log, runs, annotations)
    if runs.has_tools:
        rows = [(place, row) for place, row in rows if str(row.get(_SPAN)) in runs.steps]

    def exchanges(row: exchange.Raw) -> Iterator[exchange.Exchange]:
        if fits(row, ROWS["phoenix"]):
            yield _run(row, log.options.grade)
        elif _is_reply(row):
            yield _span(row, annotations, log.options.grade)

    exchange.read_exchanges(log, rows, exchanges)
    if runs.has_tools:
        by_id = {str(row[_SPAN]): row for row in spans}
        runs.add_to(
            log,
            {place: by_name(reply) for place, reply in annotations.items()},
            lambda place: _model(by_id[place]),
            lambda place: _tokens(by_id[place]["attributes.output.value"]),
        )


def _turn(row: exchange.Raw) -> Turn:
    kind = next((row[name] for name in _KIND if row.get(name)), "LLM")
    matches: list[str] = []
    for message in row.get("attributes.llm.output_messages") or ():
        inner = exchange.mapping_in(message)
        for call in inner.get("message.tool_calls") or ():
            name = exchange.mapping_in(call).get("tool_call.function.name")
            matches += [] if name is None else [str(name)]
    about = exchange.first_of(row, ("parent_id", "parent_span_id"))
    return Turn(
        str(row[_SPAN]),
        str(row.get("context.trace_id")),
        None if about is None else str(about),
        str(row.get("start_time") or ""),
        reply=kind == "LLM" and (bool(matches) or _is_reply(row)),
        tools=tuple(matches),
        is_tool=kind == "TOOL",
    )


def _of_replies(
    log: ForeignLog, runs: Runs, annotations: Mapping[str, list[Opinion]]
) -> Mapping[str, list[Opinion]]:
    """Return what was said by the reply it is about; what is about none is listed."""
    reply: dict[str, list[Opinion]] = {}
    for span, opinions in annotations.items():
        place = runs.judged(span) if span in runs.by_id else None
        if place is None:
            for opinion in opinions:
                log.problem(f"annotation {opinion.name} of {span}", "it is about no answer")
        else:
            reply.setdefault(place, []).extend(opinions)
    return reply


def _model(row: exchange.Raw) -> str:
    return str(row.get("attributes.llm.model_name") or "model")


def _content(
    log: ForeignLog,
) -> tuple[Iterable[tuple[str, exchange.Raw]], Mapping[str, list[Opinion]]]:
    """Return the rows, and the annotations by span."""
    if (path := log.path).is_dir():
        spans, notes = _named(path, "spans"), _named(path, "annotations")
        if spans is None or notes is None:
            raise InputError(
                "a folder of Phoenix holds a table `spans` and a table `annotations`",
                hint="write both with the client of Phoenix, as parquet, csv or jsonl",
            )
        return numbered("row", read_table(spans).iter_rows(named=True)), _by_span(notes)
    return exchange.log_rows(log), {}


def _by_span(path: Path) -> dict[str, list[Opinion]]:
    annotations: dict[str, list[Opinion]] = {}
    for row in read_table(path).iter_rows(named=True):
        span = as_text(row.get("span_id") or row.get(_SPAN))
        if span is not None and (opinion := opinion_in(row)) is not None:
            annotations.setdefault(span, []).append(opinion)
    return annotations


def _is_reply(row: exchange.Raw) -> bool:
    kind = next((row[name] for name in _KIND if row.get(name)), "LLM")
    return kind == "LLM" and row.get("attributes.output.value") not in (None, "")


def _span(
    row: exchange.Raw, annotations: Mapping[str, list[Opinion]], grade: str | None
) -> exchange.Exchange:
    columns: dict[str, Any] = {}
    for name, value in row.items():
        base, _, last = name.rpartition(".")
        if name.startswith("eval.") and last in ("score", "label") and value is not None:
            columns.setdefault(base.removeprefix("eval."), value)
    opinions = [*annotations.get(str(row.get(_SPAN)), ()), *starmap(Opinion, columns.items())]
    values = by_name(opinions)
    confidence = values.pop(exchange.CONFIDENCE, _metadata(row).get(exchange.CONFIDENCE))
    output = row["attributes.output.value"]
    return exchange.Exchange(
        question=_words(row, "input", ("user", "human"))
        or exchange.plain_text(row.get("attributes.input.value")),
        answer=_words(row, "output", ("assistant", "ai")) or exchange.plain_text(output),
        model=_model(row),
        grade=exchange.grade_among(values, grade)._replace(opinions=opinions),
        confidence=confidence,
        tokens=_tokens(output),
    )


def _words(row: exchange.Raw, mode: str, roles: tuple[str, ...]) -> str:
    """Return the last message of a role, where messages are kept one by one."""
    messages = map(exchange.mapping_in, row.get(f"attributes.llm.{mode}_messages") or ())
    own = [m.get("message.content") for m in messages if m.get("message.role") in roles]
    return exchange.plain_text(own[-1]) if own and own[-1] else ""


def _tokens(output: Any) -> list[Any] | None:
    return exchange.response_logprobs(output) or generation_tokens(generation_of(output))


def _metadata(row: exchange.Raw) -> exchange.Raw:
    inner = {
        name.removeprefix("attributes.metadata."): value
        for name, value in row.items()
        if name.startswith("attributes.metadata.") and value is not None
    }
    return {**exchange.mapping_in(row.get("attributes.metadata")), **inner}


def _run(row: exchange.Raw, grade: str | None) -> exchange.Exchange:
    exchange.refuse_failed(row, "run")
    opinions = opinions_in(row["annotations"])
    values = by_name(opinions)
    output = row["output"]
    companion = output.get(exchange.CONFIDENCE) if isinstance(output, Mapping) else None
    confidence = values.pop(exchange.CONFIDENCE, None)
    return exchange.Exchange(
        question_id=str(row["example_id"]),
        question=exchange.plain_text(row.get("input")),
        answer=exchange.plain_text(output),
        grade=exchange.grade_among(values, grade)._replace(opinions=opinions),
        confidence=companion if confidence is None else confidence,
        tokens=exchange.response_logprobs(output),
        references=exchange.plain_text(row.get("reference_output") or ""),
    )


_ANSWERS = frozenset({"GENERATION", "CHAIN", "AGENT", "SPAN"})
_TRACE_FIELDS = frozenset(KINDS["langfuse"]["others"].split())
_NOT_READ = "scores of other parts of a trace are left out: they are not about its answer"


def read_langfuse(log: ForeignLog) -> None:
    """Read an export; the same input asked again is another draw of it."""
    if log.path.is_dir():
        rows = _scheduled(log)
    else:
        rows = [_unfolded(row) for row in _rows(log.path, log)]
    replies = [_with_opinions(row, log) for row in rows if _is_answer(row)]
    answers = [(row, _scores(row)) for row in replies]
    if not answers:
        raise InputError("no answer of a model is in this export of Langfuse")
    _require_zeros(answers, log)
    grade = log.options.grade
    exchange.read_exchanges(log, numbered("answer", answers), lambda one: [_exchange(grade, *one)])


# -- what the files hold --------------------------------------------------------------------------


def _rows(path: Path, log: ForeignLog) -> list[exchange.Raw]:
    if first_bytes(path, 4) == b"PAR1":
        return list(read_table(path).iter_rows(named=True))
    if ".csv" in path.suffixes:
        text = io.StringIO(read_bytes(path).decode("utf-8-sig", "replace"), newline="")
        return [dict(row) for row in csv.DictReader(text)]
    rows: list[exchange.Raw] = [row for _, row in json_rows(path, log)]
    if not rows:
        log.problem(path.name, "no row of it can be read")
    return rows


def _is_answer(row: exchange.Raw) -> bool:
    return row.get("output") not in (None, "") and row.get("type") in (None, *_ANSWERS)


def _observations(row: exchange.Raw) -> list[exchange.Raw]:
    return [item for item in row.get("observations") or () if isinstance(item, Mapping)]


def _unfolded(row: exchange.Raw) -> exchange.Raw:
    """Return the answer of a trace: itself, or its generation where it has no output."""
    generations = [item for item in _observations(row) if item.get("type") == "GENERATION"]
    if not generations:
        return row
    last = generations[-1]
    model = last.get("model") or last.get("providedModelName")
    filled = {**row, "model": row.get("model") or model, "answer_of": last.get("output")}
    if row.get("output") in (None, ""):
        filled |= {"input": row.get("input") or last.get("input"), "output": last.get("output")}
    return filled


def _scheduled(log: ForeignLog) -> list[exchange.Raw]:
    """Join the observations of a scheduled export with their scores, or those of their trace."""
    path, scores = log.path, defaultdict[str, list[exchange.Raw]](list)
    for row in _all_rows(path / "scores", log):
        scores[str(row.get("observation_id") or row.get("trace_id"))].append(row)
    rows: list[exchange.Raw] = []
    places: set[str] = set()
    # The enriched table has every observation of the plain one.
    folders = (path / name for name in ("observations_v2", "observations"))
    for row in _all_rows(next((item for item in folders if item.is_dir()), path), log):
        keys = [str(row.get("id"))]
        if not row.get("parent_observation_id"):
            keys.append(str(row.get("trace_id")))
        if _is_answer(row):
            rows.append({**row, "scores": [score for key in keys for score in scores[key]]})
            places.update(keys)
    log.counts[_NOT_READ] += sum(len(scores[key]) for key in scores if key not in places)
    return rows


def _all_rows(folder: Path, log: ForeignLog) -> list[exchange.Raw]:
    files = [file for file in entries_below(folder) if file.is_file()]
    return [row for file in files for row in _rows(file, log)]


# -- what a row says ------------------------------------------------------------------------------


def _with_opinions(row: exchange.Raw, log: ForeignLog) -> exchange.Raw:
    """Return an answer with the opinions about it; those about other parts are counted."""
    if not isinstance(row.get("scores"), list):
        if log.options.opinions:
            log.note(
                "this table does not say who scored, and may hold means over judge and people: "
                "export the scores by the API, or by the scheduled export"
            )
        return row
    inner = _observations(row)
    generations = [item.get("id") for item in inner if item.get("type") == "GENERATION"]
    roots = [item.get("id") for item in inner if not item.get("parentObservationId")]
    # What was said of the only outermost observation is about the output of the trace, too.
    places = [None, row.get("id"), *generations[-1:], *(roots if len(roots) == 1 else ())]
    items = [item for item in row["scores"] if isinstance(item, Mapping)]
    names = ("observationId", "observation_id")
    scores = [item for item in items if exchange.first_of(item, names) in places]
    log.counts[_NOT_READ] += len(items) - len(scores)
    return {**row, "scores": opinions_in(scores)}


def _scores(row: exchange.Raw) -> dict[str, object]:
    """Return the scores by name: a list of objects, a mapping, or a column each."""
    recorded = row.get("scores")
    scores: dict[str, object] = {}
    if isinstance(recorded, list):
        return by_name(recorded)
    if isinstance(recorded, Mapping):
        scores |= {str(name): _single(value) for name, value in recorded.items()}
    for name, value in row.items():
        if name not in _TRACE_FIELDS and (value is None or isinstance(value, list | str)):
            single = _single(value)
            if not isinstance(single, str) or len(single) <= 40:
                scores.setdefault(name, single)
    return scores


def _single(value: Any) -> Any:
    """Return the one value of a score; in a CSV its list is JSON text."""
    if isinstance(value, str) and value.startswith("["):
        listed = json_or_none(value.encode())
        value = value if listed is None else listed
    if isinstance(value, list):
        return value[0] if len(value) == 1 else None
    return None if value == "" else value


def _require_zeros(answers: Sequence[tuple[exchange.Raw, exchange.Raw]], log: ForeignLog) -> None:
    """Refuse grades of a table from which the scores of 0 are missing.

    The pages of Langfuse leave a numeric score of 0 out of their tables. What is left are the right
    answers, and nothing tells a wrong one from one that was never graded.
    """
    if log.path.is_dir() or any(isinstance(row.get("scores"), list) for row, _ in answers):
        return
    graded = [exchange.grade_among(scores, log.options.grade) for _, scores in answers]
    grades = [item.correct for item in graded if item.correct is not None]
    names = {item.grader for item in graded if item.grader is not None}
    values = (scores.get(name) for _, scores in answers for name in names)
    numbers = any(exchange.number_in(value) is not None for value in values)
    if numbers and 0 < len(grades) < len(graded) and min(grades) > 0:
        raise InputError(
            f"every value of {next(iter(names))} is above 0 and {len(graded) - len(grades)} are "
            "missing: the tables of Langfuse leave scores of 0 out, so wrong answers cannot be "
            "told from ungraded ones",
            hint="export by the API or the scheduled export, or make the score a boolean one",
        )


def _exchange(grade: str | None, row: exchange.Raw, scores: exchange.Raw) -> exchange.Exchange:
    metadata = exchange.mapping_in(row.get("metadata"))
    graded = {name: value for name, value in scores.items() if name != exchange.CONFIDENCE}
    model = row.get("model") or row.get("provided_model_name") or row.get("providedModelName")
    opinions = row["scores"] if isinstance(row.get("scores"), list) else graded
    return exchange.Exchange(
        question=exchange.plain_text(row.get("input")),
        answer=exchange.plain_text(row["output"]),
        model=str(model or metadata.get("model") or "model"),
        grade=exchange.grade_among(graded, grade)._replace(opinions=opinions),
        confidence=scores.get(exchange.CONFIDENCE, metadata.get(exchange.CONFIDENCE)),
        tokens=exchange.response_logprobs(row.get("answer_of") or row["output"]),
    )
