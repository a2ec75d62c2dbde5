"""A question as the runner sees it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from calibrant.core.errors import InputError

KINDS = ("open", "choice", "number", "binary")


@dataclass(frozen=True, slots=True)
class Question:
    """One row of the questions table, as far as asking needs it."""

    question_id: str
    text: str
    kind: str = "open"
    choices: tuple[str, ...] = ()


def iterate_questions(frame: pl.DataFrame) -> Iterator[Question]:
    """Yield the rows of a questions table."""
    columns = [name for name in ("question_id", "text", "kind", "choices") if name in frame.columns]
    for number, row in enumerate(frame.select(columns).iter_rows(named=True), 1):
        kind = row.get("kind") or ("choice" if row.get("choices") else "open")
        if kind not in KINDS:
            raise InputError(
                f"kind is one of {', '.join(KINDS)}, got {kind!r}", source="questions", row=number
            )
        yield Question(row["question_id"], row["text"], kind, tuple(row.get("choices") or ()))
