"""Experiments of hosted tools, as they are exported: LangSmith, Braintrust.

A row has an input, an output, an expected output and named scores. Which score is the grade is
known by its name or named by the user; a confidence is a value of that name among the outputs, or
in the metadata. The other scores are opinions about the answer: never a confidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from calibrant.records.convert.exchange import (
    CONFIDENCE,
    Exchange,
    NoAnswerError,
    grade_among,
    plain_text,
    read_exchanges,
    response_logprobs,
)
from calibrant.records.convert.json_text import ReadOptions, json_rows, numbered
from calibrant.records.convert.log import ForeignLog, LogBuilder
from calibrant.records.tables import read_table

_PARTS = ("inputs", "outputs", "reference", "feedback", "metadata")
_INPUTS = ("input", "question", "prompt", "query", "inputs", "user_input")
_OUTPUTS = ("output", "answer", "prediction", "response", "completion", "outputs")
_EXPECTED = ("expected", "reference", "target", "label", "ground_truth", "expected_output")
_MODELS = ("model", "model_name", "ls_model_name")


# -- experiment.to_pandas().to_csv(..) of LangSmith, or its frame as JSON lines or parquet ---------


def read_langsmith(path: Path, options: ReadOptions) -> ForeignLog:
    """Read the frame of an experiment; repetitions of an example are draws of one question."""
    return _read("langsmith", path, options, _langsmith)


def _langsmith(row: Mapping[str, Any], grade: str | None) -> Exchange:
    parts: dict[str, dict[str, Any]] = {name: {} for name in _PARTS}
    for name, value in row.items():
        part, _, inner = name.partition(".")
        if part in parts and inner and value is not None:
            parts[part][inner] = value
    if row.get("error"):
        raise NoAnswerError(f"the run failed: {row['error']!r:.120}")
    correct, reason, grader = grade_among(parts["feedback"], grade)
    outputs = parts["outputs"]
    return Exchange(
        question_id=_text(row["example_id"]) or None,
        question=_one(parts["inputs"], _INPUTS),
        answer=_one(outputs, _OUTPUTS),
        model=_model({**parts["metadata"], **outputs}),
        correct=correct,
        reason=reason,
        grader=grader,
        confidence=outputs.get(CONFIDENCE, parts["feedback"].get(CONFIDENCE)),
        references=_references(_one(parts["reference"], _EXPECTED)),
    )


# -- rows of an experiment or of logs, exported from Braintrust or written by its Eval -------------


def read_braintrust(path: Path, options: ReadOptions) -> ForeignLog:
    """Read rows with input, output, expected and scores; the same input again is another draw."""
    return _read("braintrust", path, options, _braintrust)


def _braintrust(row: Mapping[str, Any], grade: str | None) -> Exchange:
    if row.get("error"):
        raise NoAnswerError(f"the task failed: {row['error']!r:.120}")
    scores, held = _mapping(row["scores"]), _mapping(row.get("metadata"))
    correct, reason, grader = grade_among(scores, grade)
    output = row["output"]
    stated = _mapping(output).get(CONFIDENCE, held.get(CONFIDENCE))
    return Exchange(
        question=plain_text(row.get("input")),
        answer=_said(output),
        model=_model(held),
        correct=correct,
        reason=reason,
        grader=grader,
        confidence=stated,
        tokens=response_logprobs(output),
        references=_references(plain_text(row.get("expected")) if row.get("expected") else ""),
    )


# -- what they have in common ----------------------------------------------------------------------


def _read(kind: str, path: Path, options: ReadOptions, exchange: Any) -> ForeignLog:
    builder = LogBuilder(kind, str(path))
    return read_exchanges(
        builder,
        list(_rows(path, builder)),
        lambda row: [exchange(row, options.grade)],
        options,
        row_is="a row",
        or_else="no row can be read",
    ).finish()


def _rows(path: Path, builder: LogBuilder) -> Iterator[tuple[str, Mapping[str, Any]]]:
    with path.open("rb") as file:
        head = file.read(4096).lstrip()
    if not head.startswith((b"{", b"[")):
        yield from numbered("row", read_table(path).iter_rows(named=True))
    else:
        yield from json_rows(path, builder)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _one(held: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """Return the value under the first of the names, or the only value there is."""
    plain = {str(name).casefold(): value for name, value in held.items()}
    found = next((plain[name] for name in names if plain.get(name) is not None), None)
    if found is None and len(held) == 1:
        found = next(iter(held.values()))
    return _text(found)


def _said(output: Any) -> str:
    held = _mapping(output)
    found = next((held[name] for name in _OUTPUTS if held.get(name) is not None), None)
    return _text(output if found is None else found)


def _text(value: Any) -> str:
    return "" if value is None else plain_text(value)


def _model(held: Mapping[str, Any]) -> str:
    return next((str(held[name]) for name in _MODELS if held.get(name)), "model")


def _references(text: str) -> list[str]:
    return [text] if text else []
