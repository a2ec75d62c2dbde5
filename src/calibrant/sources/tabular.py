"""Yes/no questions from the rows of a table: one sentence per column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from calibrant.core.errors import InputError
from calibrant.core.registry import did_you_mean
from calibrant.records import read_table


@dataclass(frozen=True, slots=True)
class TabularTask:
    """How a row becomes a question.

    Parameters
    ----------
    target
        Column of the outcome.
    positive
        Value of the outcome for which the right answer is Yes.
    question
        What is asked after the description of the row.
    columns
        Column to sentence, in the order they are written; ``{value}`` is filled in.
    values
        Column to (value to words), for coded values.
    introduction
        What comes before the sentences.
    """

    target: str
    positive: Any
    question: str
    columns: Mapping[str, str]
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    introduction: str = "Here is what is known about one case."


def tabular_questions(source: Any, task: TabularTask, *, limit: int | None = None) -> pl.DataFrame:
    """Return a questions table of kind ``binary``, one question per row.

    The columns described stay in the table as features, so that `calibrant groups` can use them;
    a missing value is said to be unknown, never filled in.

    Parameters
    ----------
    source
        Path or dataframe.
    task
        How a row becomes a question.
    limit
        Keep the first `limit` rows.

    Examples
    --------
    >>> task = TabularTask("y", 1, "Does it rain tomorrow?", {"wind": "The wind is {value}."})
    >>> frame = tabular_questions(pl.DataFrame({"wind": ["west"], "y": [1]}), task)
    >>> print(frame["text"][0])
    Here is what is known about one case.
    - The wind is west.
    Does it rain tomorrow?
    >>> frame["references"].to_list()
    [[['Yes']]]
    """
    frame = read_table(source)
    frame = frame if limit is None else frame.head(limit)
    name = str(source) if isinstance(source, str) else type(source).__name__
    for column in (task.target, *task.columns):
        if column not in frame.columns:
            raise InputError(
                f"there is no column {column!r}",
                source=name,
                hint=did_you_mean(column, frame.columns),
            )
    if task.target in task.columns:
        raise InputError(
            f"the target {task.target!r} must not be told in the question", source=name
        )
    outcomes = frame[task.target].to_list()
    for row, outcome in enumerate(outcomes, 1):
        if outcome is None:
            raise InputError(f"the target {task.target!r} is missing", source=name, row=row)
    if not any(_same(outcome, task.positive) for outcome in outcomes):
        raise InputError(
            f"no row has the outcome {task.positive!r} in {task.target!r}; it has "
            + ", ".join(map(repr, dict.fromkeys(outcomes[:1000]))),
            source=name,
        )
    rows = [
        {
            "question_id": f"row{number:07d}",
            "text": _text(row, task),
            "references": [["Yes" if _same(row[task.target], task.positive) else "No"]],
            "kind": "binary",
            "k": 1,
        }
        for number, row in enumerate(frame.iter_rows(named=True), 1)
    ]
    return pl.concat([pl.DataFrame(rows), frame.select(list(task.columns))], how="horizontal")


def _same(value: Any, positive: Any) -> bool:
    return bool(value == positive) or str(value) == str(positive)


def _text(row: Mapping[str, Any], task: TabularTask) -> str:
    lines = [task.introduction]
    for column, sentence in task.columns.items():
        value = row[column]
        words = "unknown" if value is None else task.values.get(column, {}).get(str(value), value)
        lines.append("- " + sentence.replace("{value}", str(words)))
    return "\n".join([*lines, task.question])
