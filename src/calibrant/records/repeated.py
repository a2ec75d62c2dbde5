"""Rows that stand in a table several times, or belong to one question, without an id to say so."""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from calibrant.records.scored.table import Scores
from calibrant.stats.repeats import find_repeats

RULE = "repeated_row"
_KEYS = ["model", "method"]
# A text that stands in more rows than this is no question: the same prompt is put to all rows.
_MOST_ROWS, _LEAST_QUESTIONS = 20, 10


def rows_per_text(frame: pl.DataFrame) -> float | None:
    """Return how many rows the texts of questions have, or None where they name no questions.

    Examples
    --------
    >>> table = pl.DataFrame({"model": "m", "method": "p", "question_id": ["a", "b"] * 20})
    >>> rows_per_text(table) is None
    True
    """
    counts = frame.group_by(_KEYS).agg(
        pl.len().alias("rows"), pl.col("question_id").n_unique().alias("texts")
    )
    most = counts.select((pl.col("rows") / pl.col("texts")).max()).item()
    if most == 1:
        return 1.0
    few = counts["texts"].min()
    named = most <= _MOST_ROWS and isinstance(few, int) and few >= _LEAST_QUESTIONS
    return float(most) if named and not frame["question_id"].null_count() else None


def counted_once(scores: Scores) -> Scores:
    """Return a table without ids with each row once, where rows stand in it several times."""
    kept, lost = [], []
    for part in scores.frame.partition_by(_KEYS, maintain_order=True):
        found = find_repeats(part["confidence"].to_numpy(), part["correct"].to_numpy())
        again = pl.Series(found.again) if found is not None else None
        kept.append(part if again is None else part.filter(~again))
        if again is not None:
            lost.append(part.filter(again))
    if not lost:
        return scores
    left, gone = sum(part.height for part in kept), sum(part.height for part in lost)
    text = (
        f"{left + gone:,} rows are {left:,} different ones, some of them several times: each "
        "counts once."
    )
    rejected = pl.concat(lost).with_columns(rule=pl.lit(RULE))
    return replace(
        scores,
        frame=pl.concat(kept),
        dropped={**scores.dropped, RULE: gone},
        dropped_rows={
            **scores.dropped_rows,
            RULE: rejected["question_id"].head(10).cast(pl.Int64).to_list(),
        },
        rejected=pl.concat([scores.rejected, rejected], how="diagonal_relaxed"),
        reading=replace(scores.reading, repeats=text),
    )
