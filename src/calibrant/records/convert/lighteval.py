"""Details of LightEval: a parquet file per task, one row per question.

Of a choice, LightEval keeps the log-likelihood of every option: the softmax of the most likely one
is the confidence, and it is right where that option is a gold one. Of written answers it keeps no
probabilities; several samples show agreement. Two layouts are read: ``doc``, ``model_response``
and ``metric`` (since 0.9), and the flat one before it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from calibrant.core.errors import InputError
from calibrant.records.convert.exchange import (
    Exchange,
    NoAnswerError,
    first_grade,
    grade_value,
    most_likely,
    read_exchanges,
)
from calibrant.records.convert.json_text import ReadOptions, finite_number
from calibrant.records.convert.log import FILTERED_ONLY, ForeignLog, LogBuilder
from calibrant.records.tables import UNREADABLE, reason_of

KIND = "lighteval"
NESTED_COLUMNS = frozenset({"doc", "model_response", "metric"})
FLAT_COLUMNS = frozenset({"full_prompt", "predictions", "metrics", "gold_index"})
_GRADES = ("acc", "em", "exact_match", "qem", "extractive_match", "pem", "pqem")


@dataclass(frozen=True, slots=True)
class _Row:
    """What both layouts say about a question."""

    question: str
    choices: Sequence[str]
    gold: Sequence[int]
    texts: Sequence[str]
    logs: Sequence[float]
    metrics: Mapping[str, Any]
    name: str | None = None


@dataclass(slots=True)
class _Seen:
    """What all rows together show."""

    spread: bool = False
    chosen: int = 0
    other_grade: int = 0


def read_lighteval(path: Path, options: ReadOptions) -> ForeignLog:
    """Read the details of one task."""
    try:
        table = pl.read_parquet(path)
    except UNREADABLE as error:
        raise InputError(
            f"the details of LightEval are cut or damaged: {reason_of(error)}",
            source=str(path),
            hint="a parquet file has its index at its end: fetch or write the file again",
        ) from None
    nested = set(table.columns) >= NESTED_COLUMNS
    if not nested and not set(table.columns) >= FLAT_COLUMNS:
        raise InputError("not the columns of LightEval's details", source=str(path))
    builder = LogBuilder(KIND, str(path))
    builder.expected = table.height
    model, task = _model_and_task(path)
    seen = _Seen()

    def exchanges(numbered: tuple[int, Mapping[str, Any]]) -> Iterator[Exchange]:
        number, values = numbered
        row = _nested(values) if nested else _flat(values)
        about = Exchange(
            question_id=row.name or f"row {number}",
            question=row.question,
            answer=None,
            model=model,
            task=task,
            references=[row.choices[at].strip() for at in row.gold if 0 <= at < len(row.choices)],
        )
        if row.choices and len(row.logs) >= len(row.choices) > 1:
            yield _choice(about, row, seen, options.grade)
        elif row.texts:
            correct, reason, grader = _grade(row, options.grade)
            graded = replace(about, correct=correct, reason=reason, grader=grader)
            yield from (replace(graded, answer=text.strip()) for text in row.texts)
        else:
            raise NoAnswerError("neither a written answer nor log-likelihoods of several options")

    rows = enumerate(table.iter_rows(named=True), start=1)
    read_exchanges(
        builder, ((f"row {row[0]}", row) for row in rows), exchanges, options, row_is="a detail"
    )
    return _finished(builder, seen)


def _finished(builder: LogBuilder, seen: _Seen) -> ForeignLog:
    if seen.other_grade:
        builder.note(
            f"{seen.other_grade} of {seen.chosen} questions have another grade in LightEval, whose "
            "metric may normalise by length: here the most likely option is graded"
        )
    if not seen.chosen or seen.spread:
        return builder.finish()
    # The same number for every option of every question was never computed by a model.
    builder.note(
        "all options have the same log-likelihood, which is a placeholder of the writer; it is "
        "not read as a confidence"
    )
    log = builder.finish()
    return replace(log, scores=log.scores.filter(pl.col("method") != "option_softmax"))


def _nested(values: Mapping[str, Any]) -> _Row:
    doc, reply = values["doc"], values["model_response"]
    return _Row(
        question=str(doc["query"]),
        choices=[str(one) for one in doc.get("choices") or ()],
        gold=_places(doc.get("gold_index")),
        texts=[str(one) for one in reply.get("text_post_processed") or reply.get("text") or ()],
        logs=[float(one) for one in reply.get("logprobs") or ()],
        metrics=values["metric"] or {},
        name=str(doc["id"]) if doc.get("id") not in (None, "") else None,
    )


def _flat(values: Mapping[str, Any]) -> _Row:
    choices = [str(one) for one in _listed(values.get("choices"))]
    predictions = _listed(values["predictions"])
    likely = [_loglikelihood(one) for one in predictions] if len(choices) > 1 else []
    return _Row(
        question=str(values.get("example") or values["full_prompt"]),
        choices=choices,
        gold=_places(_listed(values.get("gold_index"))),
        texts=[] if likely and None not in likely else [str(one) for one in predictions],
        logs=[one for one in likely if one is not None] if None not in likely else [],
        metrics=values["metrics"] or {},
    )


def _listed(value: Any) -> list[Any]:
    """Return a list; some versions wrote lists as their text."""
    if isinstance(value, str):
        value = ast.literal_eval(value) if value.lstrip().startswith(("[", "(")) else [value]
    return [] if value is None else list(value) if isinstance(value, list | tuple) else [value]


def _loglikelihood(value: Any) -> float | None:
    """Return the log-likelihood of a prediction: a number, or the first of (number, greedy)."""
    if isinstance(value, str) and value.lstrip().startswith(("[", "(")):
        value = ast.literal_eval(value)
    if isinstance(value, Mapping):
        value = next(iter(value.values()), None)
    if isinstance(value, list | tuple):
        value = value[0] if value else None
    return finite_number(value)


def _places(value: Any) -> list[int]:
    return [int(one) for one in (value if isinstance(value, list | tuple) else [value])]


def _model_and_task(path: Path) -> tuple[str, str]:
    """Return the names in ``details/MODEL/DATE/details_TASK_DATE.parquet``."""
    date = path.parent.name
    task = path.stem.removeprefix("details_").removesuffix(f"_{date}")
    parts = path.parts
    if "details" in parts[:-2]:
        place = len(parts) - 1 - parts[::-1].index("details")
        named = "/".join(parts[place + 1 : -2])
        return named or "model", task
    return "model", task


def _choice(about: Exchange, row: _Row, seen: _Seen, grade: str | None) -> Exchange:
    # Twice as many: those behind are the options without the question.
    logs = row.logs[: len(row.choices)]
    chosen, share = most_likely(logs)
    correct = float(chosen in row.gold)
    theirs = grade_value(row.metrics.get(grade or "acc"))
    seen.chosen += 1
    seen.spread |= max(logs) != min(logs)
    seen.other_grade += theirs is not None and theirs != correct
    return replace(
        about,
        answer=row.choices[chosen].strip(),
        correct=correct,
        grader="gold_index",
        choices=[option.strip() for option in row.choices],
        scores={"option_softmax": share},
    )


def _grade(row: _Row, name: str | None) -> tuple[float | None, str | None, str | None]:
    if len(row.texts) > 1:
        # pass@k, maj@n and avg@n are about all samples of a question, not about one of them.
        return None, FILTERED_ONLY, None
    known = [one for one in _GRADES if one in row.metrics]
    return first_grade(row.metrics, [name] if name else known or row.metrics)
