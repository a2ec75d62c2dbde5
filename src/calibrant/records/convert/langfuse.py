"""Exports of Langfuse: traces or observations with their scores.

Read are the answers of the public API and its client (``data`` with ``observations`` and
``scores``), the tables that the pages export (JSON, JSONL or CSV, one column per score), and a
folder of the scheduled export with ``observations*`` and ``scores``.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from calibrant.core.errors import InputError
from calibrant.records.convert.exchange import (
    CONFIDENCE,
    Exchange,
    grade_among,
    number_in,
    plain_text,
    read_exchanges,
    response_logprobs,
)
from calibrant.records.convert.json_text import ReadOptions, json_rows, load_json, numbered
from calibrant.records.convert.log import ForeignLog, LogBuilder
from calibrant.records.folder_walk import entries_below

KIND = "langfuse"
_ANSWERS = frozenset({"GENERATION", "CHAIN", "AGENT", "SPAN"})
_TRACE_FIELDS = frozenset(
    {
        *("id", "timestamp", "name", "input", "output", "metadata", "sessionId", "release"),
        *("version", "userId", "tags", "public", "environment", "bookmarked", "latency", "usage"),
        *("inputCost", "outputCost", "totalCost", "level", "errorCount", "warningCount", "scores"),
        *("defaultCount", "debugCount", "observationCount", "inputTokens", "outputTokens"),
        *("totalTokens", "observations", "htmlPath", "projectId", "createdAt", "updatedAt"),
        *("externalId", "comments", "usageDetails", "costDetails", "model", "type", "traceId"),
    }
)


def read_langfuse(path: Path, options: ReadOptions) -> ForeignLog:
    """Read an export; the same input asked again is another draw of it."""
    builder = LogBuilder(KIND, str(path))
    if path.is_dir():
        rows = _scheduled(path, builder)
    else:
        rows = [_unfolded(found) for found in _rows(path, builder)]
    answers = [(row, _scores(row)) for row in rows if _is_answer(row)]
    if not answers:
        raise InputError("no answer of a model is in this export of Langfuse", source=str(path))
    _require_zeros(answers, options, path)
    return read_exchanges(
        builder,
        numbered("answer", answers),
        lambda answer: [_exchange(options.grade, *answer)],
        options,
        row_is="an answer",
    ).finish()


# -- what the files hold --------------------------------------------------------------------------


def _rows(path: Path, builder: LogBuilder) -> list[Mapping[str, Any]]:
    if path.suffix == ".csv":
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            return [dict(row) for row in csv.DictReader(file)]
    return [row for _, row in json_rows(path, builder)]


def _unfolded(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the answer of a trace: itself, or its generation where it has no output."""
    inner = row.get("observations")
    held = [one for one in inner or () if isinstance(one, Mapping)]
    generations = [one for one in held if one.get("type") == "GENERATION"]
    if not generations:
        return row
    last = generations[-1]
    model = last.get("model") or last.get("providedModelName")
    filled = {**row, "model": row.get("model") or model, "answer_of": last.get("output")}
    if row.get("output") in (None, ""):
        filled |= {"input": row.get("input") or last.get("input"), "output": last.get("output")}
    return filled


def _scheduled(path: Path, builder: LogBuilder) -> list[Mapping[str, Any]]:
    """Join the observations of a scheduled export with their scores, or those of their trace."""
    scores: dict[str, dict[str, Any]] = {}
    for row in _all_rows(path / "scores", builder):
        name, value = row.get("name"), row.get("value")
        if row.get("data_type") not in ("NUMERIC", None) and row.get("string_value"):
            value = row["string_value"]
        key = str(row.get("observation_id") or row.get("trace_id"))
        scores.setdefault(key, {})[str(name)] = value
    found: list[Mapping[str, Any]] = []
    # The enriched table has every observation of the plain one.
    folders = (path / name for name in ("observations_v2", "observations"))
    for row in _all_rows(next((one for one in folders if one.is_dir()), path), builder):
        own = scores.get(str(row.get("id")), {})
        whole = (
            scores.get(str(row.get("trace_id")), {}) if not row.get("parent_observation_id") else {}
        )
        found.append({**row, "scores": {**whole, **own}})
    return found


def _all_rows(folder: Path, builder: LogBuilder) -> list[Mapping[str, Any]]:
    files = [file for file in entries_below(folder) if file.is_file()]
    return [row for file in files for row in _rows(file, builder)]


# -- what a row says ------------------------------------------------------------------------------


def _is_answer(row: Mapping[str, Any]) -> bool:
    kind = row.get("type")
    wanted = kind is None or kind in _ANSWERS
    return wanted and row.get("output") not in (None, "")


def _scores(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scores by name: a list of objects, a mapping, or a column each."""
    held = row.get("scores")
    found: dict[str, Any] = {}
    if isinstance(held, list):
        for one in held:
            if isinstance(one, Mapping) and "name" in one:
                text = one.get("stringValue") or one.get("string_value")
                kind = one.get("dataType") or one.get("data_type")
                found[str(one["name"])] = text if text and kind != "NUMERIC" else one.get("value")
        return found
    if isinstance(held, Mapping):
        found |= {str(name): _single(value) for name, value in held.items()}
    for name, value in row.items():
        if name not in _TRACE_FIELDS and (value is None or isinstance(value, list | str)):
            single = _single(value)
            if single is None or not isinstance(single, str) or _short(single):
                found.setdefault(name, single)
    return found


def _single(value: Any) -> Any:
    """Return the one value of a score; in a CSV its list is JSON text."""
    if isinstance(value, str) and value.startswith("["):
        try:
            value = load_json(value.encode())
        except ValueError:
            return value
    if isinstance(value, list):
        return value[0] if len(value) == 1 else None
    return None if value == "" else value


def _short(text: str) -> bool:
    return len(text) <= 40


def _require_zeros(
    answers: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]], options: ReadOptions, path: Path
) -> None:
    """Refuse grades of a table from which the scores of 0 are missing.

    The pages of Langfuse leave a numeric score of 0 out of their tables. What is left are the right
    answers, and nothing tells a wrong one from one that was never graded.
    """
    if path.is_dir() or any(isinstance(row.get("scores"), list) for row, _ in answers):
        return
    found = [grade_among(scores, options.grade) for _, scores in answers]
    grades = [grade for grade, _, _ in found if grade is not None]
    names = {name for _, _, name in found if name is not None}
    values = (scores.get(name) for _, scores in answers for name in names)
    numbers = any(number_in(value) is not None for value in values)
    if numbers and grades and len(grades) < len(found) and all(grade > 0 for grade in grades):
        name = next(iter(names))
        raise InputError(
            f"every value of {name} is above 0 and {len(found) - len(grades)} are missing: the "
            "tables of Langfuse leave scores of 0 out, so wrong answers cannot be told from "
            "ungraded ones",
            source=str(path),
            hint="export by the API or the scheduled export, or make the score a boolean one",
        )


def _exchange(grade: str | None, row: Mapping[str, Any], scores: Mapping[str, Any]) -> Exchange:
    metadata = _mapping(row.get("metadata"))
    graded = {name: value for name, value in scores.items() if name != CONFIDENCE}
    correct, reason, grader = grade_among(graded, grade)
    model = row.get("model") or row.get("provided_model_name") or row.get("providedModelName")
    return Exchange(
        question=plain_text(row.get("input")),
        answer=plain_text(row["output"]),
        model=str(model or metadata.get("model") or "model"),
        correct=correct,
        reason=reason,
        grader=grader,
        confidence=scores.get(CONFIDENCE, metadata.get(CONFIDENCE)),
        tokens=response_logprobs(row.get("answer_of") or row["output"]),
    )


def _mapping(value: Any) -> Mapping[str, Any]:
    if isinstance(value, str) and value.startswith("{"):
        try:
            value = load_json(value.encode())
        except ValueError:
            return {}
    return value if isinstance(value, Mapping) else {}
