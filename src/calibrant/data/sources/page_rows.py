"""Rows as a page shows them: columns by their places, questions cut to fit."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import polars as pl

# More rows of one part are chosen from the whole part, fewer are read one by one.
_MANY = 200


class StoredRows:
    """Rows that are read where they are asked for.

    Parameters
    ----------
    parts
        Parts in the order of places.
    heights
        Rows of each part.

    Examples
    --------
    >>> parts = [pl.LazyFrame({"a": [1, 2]}), pl.LazyFrame({"a": [3, 4, 5]})]
    >>> StoredRows(parts, [2, 3]).at([4, 0])["a"].to_list()
    [5, 1]
    """

    def __init__(self, parts: Sequence[pl.LazyFrame], heights: Sequence[int]) -> None:
        self._parts = parts
        self._starts = [0, *accumulate(heights)]

    def at(self, places: Sequence[int]) -> pl.DataFrame:
        """Return the rows at these places, in their order."""
        request = np.asarray(places)
        inverse = np.searchsorted(self._starts, request, side="right") - 1
        lazy, order = list[pl.LazyFrame](), list[np.ndarray]()
        for number in np.unique(inverse):
            positions = np.flatnonzero(inverse == number)
            part, offsets = self._parts[number], request[positions] - self._starts[number]
            if positions.size > _MANY:
                lazy.append(part.select(pl.all().gather(offsets)))
            else:
                lazy += [part.slice(offset, 1) for offset in offsets]
            order.append(positions)
        rows = pl.concat(pl.collect_all(lazy))
        return rows[np.argsort(np.concatenate(order))]

    def stretch(self, start: int, size: int) -> pl.LazyFrame:
        """Return rows that follow each other, within one part: fewer than asked at its end."""
        number = int(np.searchsorted(self._starts, start, side="right")) - 1
        return self._parts[number].slice(start - self._starts[number], size)

    def whole(self, *columns: str) -> pl.DataFrame:
        """Return all rows, with some columns or all."""
        target_names = columns or (pl.all(),)
        return pl.concat(pl.collect_all(part.select(target_names) for part in self._parts))


_ANSWERS_SHOWN, _SCORES_SHOWN, _LETTERS_SHOWN = 6, 16, 300
_HALF = 0.5


def by_meaning(draws: pl.DataFrame) -> pl.DataFrame:
    """Return drawn answers by question, model and meaning, the most frequent first."""
    return (
        draws.filter(pl.col("answer").is_not_null())
        .group_by("question_id", "model", "class_id", maintain_order=True)
        .agg(
            pl.len().alias("draws"),
            pl.col("answer").mode().sort().first(),
            pl.col("correct").first().cast(pl.Float64),
        )
        .sort("draws", descending=True, maintain_order=True)
        .group_by("question_id", "model", maintain_order=True)
        .head(_ANSWERS_SHOWN)
        .drop("class_id")
    )


def page_question(
    name: str, rows: Sequence[dict[str, Any]], meanings: Sequence[dict[str, Any]] | None
) -> dict[str, Any]:
    """Return a question as a page takes it."""
    first = rows[0]
    answers = {row["model"]: row for row in reversed(rows)}.values()
    value = meanings or [{**row, "draws": 1} for row in answers if row.get("answer")]
    request = first.get("question")
    return {
        "id": name if name != request else "",
        "text": _cut(request or f"Question {name}"),
        "reference": _cut(first.get("reference") or ""),
        "answers": [
            {
                "model": row["model"],
                "answer": _cut(row["answer"]),
                "draws": row["draws"],
                "correct": None if row["correct"] is None else row["correct"] >= _HALF,
            }
            for row in value
        ],
        "scores": [
            {
                "model": row["model"],
                "method": row["method"],
                "confidence": None if row["confidence"] is None else round(row["confidence"], 3),
                "correct": row["correct"],
            }
            for row in rows[:_SCORES_SHOWN]
        ],
        "facets": first["group"],
    }


def _cut(text: str) -> str:
    return text if len(text) <= _LETTERS_SHOWN else text[:_LETTERS_SHOWN] + " ..."
