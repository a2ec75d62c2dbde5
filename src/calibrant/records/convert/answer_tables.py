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
    Draws,
    Exchange,
    add_exchange,
    grade_among,
    plain_text,
)
from calibrant.records.convert.json_text import ReadOptions, json_lines, load_json, readable_rows
from calibrant.records.convert.log import ForeignLog, LogBuilder
from calibrant.records.tables import read_table

RAGAS, MLFLOW = "ragas", "mlflow"
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


def is_ragas_row(row: Mapping[str, Any]) -> bool:
    """Return whether a table with these columns is a result of ragas."""
    names = set(row)
    new = {"user_input", "response"} <= names
    old = {"question", "answer", "contexts"} <= names
    return (new and bool(names & {"retrieved_contexts", "reference"})) or old


def is_mlflow_row(row: Mapping[str, Any]) -> bool:
    """Return whether a row is one of `mlflow.genai.evaluate`."""
    return {"trace_id", "request", "response"} <= set(row) and bool(
        set(row) & {"assessments", "trace_metadata", "execution_duration"}
    )


def is_mlflow(head: bytes) -> bool:
    """Return whether the beginning of a file is that of an evaluation table of MLflow."""
    start = head[:400].lstrip()
    return start.startswith(b'{"columns":') and b'"data":' in head and b'"inputs"' in start


def read_ragas(path: Path, options: ReadOptions) -> ForeignLog:
    """Read a frame of ragas, written as csv, json, jsonl or parquet."""
    builder = LogBuilder(RAGAS, str(path))
    return _read(builder, _rows(path, builder), options, path)


def read_mlflow(path: Path, options: ReadOptions) -> ForeignLog:
    """Read an evaluation table of MLflow: its artifact, or the table of `genai.evaluate`."""
    builder = LogBuilder(MLFLOW, str(path))
    return _read(builder, _rows(path, builder), options, path)


def _rows(path: Path, builder: LogBuilder) -> list[Mapping[str, Any]]:
    with path.open("rb") as file:
        head = file.read(64).lstrip()
    if not head.startswith((b"{", b"[")):
        return list(read_table(path).iter_rows(named=True))
    data = path.read_bytes()
    try:
        found = load_json(data)
    except ValueError as error:
        if head.startswith(b"["):
            builder.problem(path.name, f"the JSON is damaged: {error}; its end may be missing")
            return [row for row in readable_rows(data) if isinstance(row, Mapping)]
        if head.startswith(b'{"columns"'):
            raise InputError(
                f"the table of MLflow is cut or damaged: {error}", source=str(path)
            ) from None
        return [row for _, row in json_lines(path, builder)]
    if isinstance(found, Mapping) and isinstance(found.get("columns"), list):
        return list(_split_rows(found["columns"], found.get("data", ()), builder))
    listed = found if isinstance(found, list) else [found]
    return [row for row in listed if isinstance(row, Mapping)]


def _split_rows(
    columns: Sequence[Any], rows: Iterable[Any], builder: LogBuilder
) -> Iterator[dict[Any, Any]]:
    """Yield the rows of a table that names its columns once."""
    for number, row in enumerate(rows, start=1):
        if isinstance(row, list) and len(row) == len(columns):
            yield dict(zip(columns, row, strict=True))
        else:
            builder.problem(f"row {number}", "it has other columns than the table says")


def _read(
    builder: LogBuilder, rows: Sequence[Mapping[str, Any]], options: ReadOptions, path: Path
) -> ForeignLog:
    draws: Draws = Draws()
    builder.expected, builder.expected_unit = len(rows) + len(builder.problems), "rows"
    for number, row in enumerate(rows, start=1):
        asked, said = _first(row, _QUESTIONS), _first(row, _ANSWERS)
        if asked is None or said is None:
            builder.problem(f"row {number}", "there is no question, or no answer")
            continue
        _add(builder, number, row, plain_text(asked), said, draws, options)
    if not draws:
        raise InputError("no row has a question and an answer", source=str(path))
    return builder.finish()


def _first(row: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((row[name] for name in names if row.get(name) not in (None, "")), None)


def _add(
    builder: LogBuilder,
    number: int,
    row: Mapping[str, Any],
    question: str,
    said: Any,
    draws: Draws,
    options: ReadOptions,
) -> None:
    known = {*_QUESTIONS, *_ANSWERS, *_REFERENCES, *_NO_SCORES}
    scores = {_score_name(name): value for name, value in row.items() if name not in known}
    wanted = options.columns.get("confidence", CONFIDENCE)
    stated = scores.pop(wanted, None)
    if stated is None and isinstance(said, Mapping):
        stated = said.get(wanted)
    correct, reason, grader = grade_among(scores, options.grade or options.columns.get("correct"))
    right = _first(row, _REFERENCES)
    add_exchange(
        builder,
        Exchange(
            question=question,
            answer=plain_text(said),
            model=str(row.get(options.columns.get("model", "model")) or "model"),
            correct=correct,
            reason=reason,
            grader=grader,
            confidence=stated,
            references=[plain_text(right)] if right is not None else (),
        ),
        draws,
        options,
        place=f"row {number}",
    )


def _score_name(column: str) -> str:
    """Return the name of a score: MLflow adds ``/value``, ``/score`` and a version to it."""
    name = column.removesuffix("/value").removesuffix("/score")
    base, _, last = name.rpartition("/")
    return base if base and last[:1] == "v" and last[1:].isdecimal() else name
