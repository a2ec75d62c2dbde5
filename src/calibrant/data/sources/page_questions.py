"""Questions with their answers and confidences, cut to what a page has room for."""

from collections.abc import Sequence
from typing import Any

import polars as pl

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
