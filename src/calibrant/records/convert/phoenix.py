"""Exports of Phoenix and other tools that speak OpenInference: spans, or runs of an experiment.

Read are the runs of an experiment (``/v1/experiments/ID/json``), a table of spans as
``get_spans_dataframe()`` returns it, and a folder with that table and the one of its annotations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    response_logprobs,
)
from calibrant.records.convert.json_text import ReadOptions, as_text, load_json, readable_rows
from calibrant.records.convert.log import ForeignLog, LogBuilder
from calibrant.records.tables import read_table

KIND = "phoenix"
_SPAN = "context.span_id"
_KIND = ("span_kind", "attributes.openinference.span.kind")
_TABLES = (".parquet", ".csv", ".jsonl")


def is_experiment_row(row: Mapping[str, Any]) -> bool:
    """Return whether a row is a run of an experiment."""
    return {"example_id", "output", "annotations"} <= set(row)


def is_span_row(row: Mapping[str, Any]) -> bool:
    """Return whether a table with these columns holds spans of OpenInference."""
    return _SPAN in row and any(name.startswith("attributes.") for name in row)


def is_phoenix_folder(path: Path) -> bool:
    """Return whether a folder holds a table of spans and one of their annotations."""
    return path.is_dir() and _named(path, "spans") is not None and _notes(path) is not None


def _named(path: Path, stem: str) -> Path | None:
    return next(
        (path / f"{stem}{end}" for end in _TABLES if (path / f"{stem}{end}").is_file()), None
    )


def _notes(path: Path) -> Path | None:
    return _named(path, "annotations")


def read_phoenix(path: Path, options: ReadOptions) -> ForeignLog:
    """Read spans or runs; the same input asked again is another draw of it."""
    builder = LogBuilder(KIND, str(path))
    draws: Draws = Draws()
    rows, annotations = _content(path, builder)
    for number, row in enumerate(rows, start=1):
        place = f"row {number}"
        if is_experiment_row(row):
            _add_run(builder, place, row, draws, options)
        elif _is_answer(row):
            _add_span(builder, place, row, annotations, draws, options)
    if not draws:
        first = next(iter(builder.problems), None)
        why = "" if first is None else f"; {first.place}: {first.reason}"
        raise InputError(f"no answer of a model is among the spans{why}", source=str(path))
    return builder.finish()


def _content(
    path: Path, builder: LogBuilder
) -> tuple[Sequence[Mapping[str, Any]], Mapping[str, dict[str, Any]]]:
    """Return the rows, and the annotations by span."""
    if path.is_dir():
        spans, notes = _named(path, "spans"), _notes(path)
        if spans is None or notes is None:
            raise InputError(
                "a folder of Phoenix holds a table `spans` and a table `annotations`",
                source=str(path),
                hint="write both with the client of Phoenix, as parquet, csv or jsonl",
            )
        return _table(spans), _by_span(_table(notes))
    with path.open("rb") as file:
        head = file.read(64).lstrip()
    if not head.startswith(b"["):
        return _table(path), {}
    data = path.read_bytes()
    try:
        found = load_json(data)
    except ValueError as error:
        builder.problem(path.name, f"the JSON is damaged: {error}; its end may be missing")
        found = readable_rows(data)
    return [row for row in found if isinstance(row, Mapping)], {}


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


def _add_span(
    builder: LogBuilder,
    place: str,
    row: Mapping[str, Any],
    annotations: Mapping[str, dict[str, Any]],
    draws: Draws,
    options: ReadOptions,
) -> None:
    values = dict(annotations.get(str(row.get(_SPAN)), {}))
    for name, value in row.items():
        base, _, last = name.rpartition(".")
        if name.startswith("eval.") and last in ("score", "label") and value is not None:
            values.setdefault(base.removeprefix("eval."), value)
    correct, reason, grader = grade_among(_without(values), options.grade)
    output = row["attributes.output.value"]
    add_exchange(
        builder,
        Exchange(
            question=plain_text(row.get("attributes.input.value")),
            answer=plain_text(output),
            model=str(row.get("attributes.llm.model_name") or "model"),
            correct=correct,
            reason=reason,
            grader=grader,
            confidence=values.get(CONFIDENCE, _metadata(row).get(CONFIDENCE)),
            tokens=response_logprobs(output),
        ),
        draws,
        options,
        place=place,
    )


def _without(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name != CONFIDENCE}


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


def _add_run(
    builder: LogBuilder, place: str, row: Mapping[str, Any], draws: Draws, options: ReadOptions
) -> None:
    if row.get("error"):
        builder.problem(place, f"the run failed: {row['error']!r:.120}")
        return
    values = {
        str(one["name"]): _opinion(one)
        for one in row["annotations"] or ()
        if isinstance(one, Mapping) and "name" in one
    }
    correct, reason, grader = grade_among(_without(values), options.grade)
    output = row["output"]
    stated = values.get(CONFIDENCE)
    if stated is None and isinstance(output, Mapping):
        stated = output.get(CONFIDENCE)
    right = row.get("reference_output")
    add_exchange(
        builder,
        Exchange(
            question_id=str(row["example_id"]),
            question=plain_text(row.get("input")),
            answer=plain_text(output),
            model="model",
            correct=correct,
            reason=reason,
            grader=grader,
            confidence=stated,
            tokens=response_logprobs(output),
            references=[plain_text(right)] if right else (),
        ),
        draws,
        options,
        place=place,
    )
