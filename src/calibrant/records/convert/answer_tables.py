"""Tables of answers with named values: frames of ragas, evaluation tables of MLflow.

A row has a question, an answer and columns of scores. Which column is the grade is known by its
name or named by the user; a confidence is a column of that name. The other scores are opinions
about the answer: never a confidence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from calibrant.core.errors import InputError
from calibrant.records.convert.exchange import (
    CONFIDENCE,
    Exchange,
    NoAnswerError,
    grade_among,
    plain_text,
    read_exchanges,
)
from calibrant.records.convert.json_text import ReadOptions, json_rows, load_json, numbered
from calibrant.records.convert.log import ForeignLog, LogBuilder
from calibrant.records.tables import read_table

_QUESTIONS = ("user_input", "question", "request", "inputs")
_ANSWERS = ("response", "answer", "outputs", "predictions")
_REFERENCES = ("reference", "ground_truth", "expected_response/value", "ground_truths", "targets")
_NO_SCORES = frozenset(
    {
        *("retrieved_contexts", "reference_contexts", "contexts", "rubrics", "multi_responses"),
        *("trace", "trace_id", "client_request_id", "state", "request_time", "tags", "spans"),
        *("execution_duration", "trace_metadata", "assessments", "token_count", "latency"),
        *("synthesizer_name", "persona_name", "query_style", "query_length"),
    }
)


def read_ragas(path: Path, options: ReadOptions) -> ForeignLog:
    """Read a frame of ragas, written as csv, json, jsonl or parquet."""
    return _read(LogBuilder("ragas", str(path)), path, options)


def read_mlflow(path: Path, options: ReadOptions) -> ForeignLog:
    """Read an evaluation table of MLflow: its artifact, or the table of `genai.evaluate`."""
    return _read(LogBuilder("mlflow", str(path)), path, options)


def _rows(path: Path, builder: LogBuilder) -> list[tuple[str, Mapping[str, Any]]]:
    with path.open("rb") as file:
        head = file.read(64).lstrip()
    if not head.startswith((b"{", b"[")):
        return list(numbered("row", read_table(path).iter_rows(named=True)))
    if not head.startswith(b'{"columns"'):
        return list(json_rows(path, builder))
    try:
        found = load_json(path.read_bytes())
    except ValueError as error:
        told = f"the table of MLflow is cut or damaged: {error}"
        raise InputError(told, source=str(path)) from None
    return list(numbered("row", _split_rows(found["columns"], found.get("data", ()), builder)))


def _split_rows(
    columns: Sequence[Any], rows: Iterable[Any], builder: LogBuilder
) -> Iterator[dict[Any, Any]]:
    """Yield the rows of a table that names its columns once."""
    for number, row in enumerate(rows, start=1):
        if isinstance(row, list) and len(row) == len(columns):
            yield dict(zip(columns, row, strict=True))
        else:
            builder.problem(f"row {number}", "it has other columns than the table says")


def _read(builder: LogBuilder, path: Path, options: ReadOptions) -> ForeignLog:
    rows = _rows(path, builder)
    builder.expected, builder.expected_unit = len(rows) + len(builder.problems), "rows"
    return read_exchanges(
        builder,
        rows,
        lambda row: [_exchange(row, options)],
        options,
        row_is="a row",
        or_else="no row has a question and an answer",
    ).finish()


def _first(row: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((row[name] for name in names if row.get(name) not in (None, "")), None)


def _exchange(row: Mapping[str, Any], options: ReadOptions) -> Exchange:
    asked, said, right = (_first(row, names) for names in (_QUESTIONS, _ANSWERS, _REFERENCES))
    if asked is None or said is None:
        raise NoAnswerError("there is no question, or no answer")
    known = {*_QUESTIONS, *_ANSWERS, *_REFERENCES, *_NO_SCORES}
    scores = {_score_name(name): value for name, value in row.items() if name not in known}
    wanted = options.columns.get("confidence", CONFIDENCE)
    stated = scores.pop(wanted, None)
    if stated is None and isinstance(said, Mapping):
        stated = said.get(wanted)
    correct, reason, grader = grade_among(scores, options.grade or options.columns.get("correct"))
    return Exchange(
        question=plain_text(asked),
        answer=plain_text(said),
        model=str(row.get(options.columns.get("model", "model")) or "model"),
        correct=correct,
        reason=reason,
        grader=grader,
        confidence=stated,
        references=[plain_text(right)] if right is not None else (),
    )


def _score_name(column: str) -> str:
    """Return the name of a score: MLflow adds ``/value``, ``/score`` and a version to it."""
    name = column.removesuffix("/value").removesuffix("/score")
    base, _, last = name.rpartition("/")
    return base if base and last[:1] == "v" and last[1:].isdecimal() else name
