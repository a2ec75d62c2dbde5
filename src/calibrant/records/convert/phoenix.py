"""Exports of Phoenix and other tools that speak OpenInference: spans, or runs of an experiment.

Read are the runs of an experiment (``/v1/experiments/ID/json``), a table of spans as
``get_spans_dataframe()`` returns it, and a folder with that table and the one of its annotations.
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
    response_logprobs,
)
from calibrant.records.convert.json_text import (
    ReadOptions,
    as_text,
    json_rows,
    load_json,
    numbered,
)
from calibrant.records.convert.kinds import ROWS, fits
from calibrant.records.convert.log import ForeignLog, LogBuilder
from calibrant.records.tables import read_table

KIND = "phoenix"
_SPAN = "context.span_id"
_KIND = ("span_kind", "attributes.openinference.span.kind")
_TABLES = (".parquet", ".csv", ".jsonl")


def _named(path: Path, stem: str) -> Path | None:
    return next(
        (path / f"{stem}{end}" for end in _TABLES if (path / f"{stem}{end}").is_file()), None
    )


def read_phoenix(path: Path, options: ReadOptions) -> ForeignLog:
    """Read spans or runs; the same input asked again is another draw of it."""
    builder = LogBuilder(KIND, str(path))
    rows, annotations = _content(path, builder)

    def exchanges(row: Mapping[str, Any]) -> Iterator[Exchange]:
        if fits(row, ROWS[KIND]):
            yield _run(row, options.grade)
        elif _is_answer(row):
            yield _span(row, annotations, options.grade)

    return read_exchanges(
        builder,
        rows,
        exchanges,
        options,
        row_is="a span or a run",
        or_else="no answer of a model is among the spans",
    ).finish()


def _content(
    path: Path, builder: LogBuilder
) -> tuple[Iterable[tuple[str, Mapping[str, Any]]], Mapping[str, dict[str, Any]]]:
    """Return the rows, and the annotations by span."""
    if path.is_dir():
        spans, notes = _named(path, "spans"), _named(path, "annotations")
        if spans is None or notes is None:
            raise InputError(
                "a folder of Phoenix holds a table `spans` and a table `annotations`",
                source=str(path),
                hint="write both with the client of Phoenix, as parquet, csv or jsonl",
            )
        return numbered("row", _table(spans)), _by_span(_table(notes))
    with path.open("rb") as file:
        listed = file.read(64).lstrip().startswith(b"[")
    return (json_rows(path, builder) if listed else numbered("row", _table(path))), {}


def _table(path: Path) -> list[Mapping[str, Any]]:
    return list(read_table(path).iter_rows(named=True))


def _by_span(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        name = as_text(row.get("annotation_name") or row.get("name"))
        span = as_text(row.get("span_id") or row.get(_SPAN))
        if name is not None and span is not None:
            found.setdefault(span, {})[name] = _opinion(row, "result.")
    return found


def _opinion(row: Mapping[str, Any], before: str = "") -> Any:
    """Return the score of an annotation, or its label where it has none."""
    score = row.get(f"{before}score", row.get("score"))
    return row.get(f"{before}label", row.get("label")) if score is None else score


def _is_answer(row: Mapping[str, Any]) -> bool:
    kind = next((row[name] for name in _KIND if row.get(name)), "LLM")
    return kind == "LLM" and row.get("attributes.output.value") not in (None, "")


def _span(
    row: Mapping[str, Any], annotations: Mapping[str, dict[str, Any]], grade: str | None
) -> Exchange:
    values = dict(annotations.get(str(row.get(_SPAN)), {}))
    for name, value in row.items():
        base, _, last = name.rpartition(".")
        if name.startswith("eval.") and last in ("score", "label") and value is not None:
            values.setdefault(base.removeprefix("eval."), value)
    stated = values.pop(CONFIDENCE, _metadata(row).get(CONFIDENCE))
    correct, reason, grader = grade_among(values, grade)
    output = row["attributes.output.value"]
    return Exchange(
        question=plain_text(row.get("attributes.input.value")),
        answer=plain_text(output),
        model=str(row.get("attributes.llm.model_name") or "model"),
        correct=correct,
        reason=reason,
        grader=grader,
        confidence=stated,
        tokens=response_logprobs(output),
    )


def _metadata(row: Mapping[str, Any]) -> Mapping[str, Any]:
    held = row.get("attributes.metadata")
    if isinstance(held, str) and held.lstrip().startswith("{"):
        try:
            held = load_json(held.encode())
        except ValueError:
            held = None
    found = dict(held) if isinstance(held, Mapping) else {}
    inner = {
        name.removeprefix("attributes.metadata."): value
        for name, value in row.items()
        if name.startswith("attributes.metadata.") and value is not None
    }
    return {**found, **inner}


def _run(row: Mapping[str, Any], grade: str | None) -> Exchange:
    if row.get("error"):
        raise NoAnswerError(f"the run failed: {row['error']!r:.120}")
    values = {
        str(one["name"]): _opinion(one)
        for one in row["annotations"] or ()
        if isinstance(one, Mapping) and "name" in one
    }
    output, right = row["output"], row.get("reference_output")
    beside = output.get(CONFIDENCE) if isinstance(output, Mapping) else None
    stated = values.pop(CONFIDENCE, beside)
    correct, reason, grader = grade_among(values, grade)
    return Exchange(
        question_id=str(row["example_id"]),
        question=plain_text(row.get("input")),
        answer=plain_text(output),
        correct=correct,
        reason=reason,
        grader=grader,
        confidence=beside if stated is None else stated,
        tokens=response_logprobs(output),
        references=[plain_text(right)] if right else (),
    )
