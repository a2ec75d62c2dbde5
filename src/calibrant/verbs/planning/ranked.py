"""Models in the order of a metric, on the questions that all of them have."""

from __future__ import annotations

from typing import Any

import polars as pl

from calibrant.claims.data import LEAST_ONE_SIDED, unranked_warning
from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.planning import leaderboard
from calibrant.records import Scores


def rankable(table: Scores) -> tuple[Scores, list[dict[str, Any]]]:
    """Return the table without models that are never right, and what is to be said of them.

    Their answers are empty, or were never graded as right: nothing that a ranking measures.
    They stay where fewer than two other models are left.
    """
    counted = table.graded.group_by("model", maintain_order=True).agg(
        pl.col("correct").count().alias("n"), pl.col("correct").max().alias("best")
    )
    never = counted.filter((pl.col("best") == 0) & (pl.col("n") >= LEAST_ONE_SIDED))
    if counted.height - never.height < 2:
        return table, []
    left = [name for name in counted["model"] if name not in set(never["model"])]
    told = [unranked_warning(str(name), n) for name, n in never.select("model", "n").iter_rows()]
    return table.only(model=left), told


def ranked_models(table: Scores, metric: str, seed: int) -> dict[str, Any]:
    """Return the leaderboard of a table with one method; accuracy needs no confidence."""
    frame = table.frame
    if metric == "accuracy":
        # It is about outcomes alone: a row without a confidence counts, and none is looked at.
        frame = table.graded.with_columns(confidence=pl.lit(0.0))
    methods = frame["method"].unique().to_list()
    if len(methods) > 1:
        raise InputError(
            f"a leaderboard compares one method, got {', '.join(map(str, sorted(methods)))}",
            hint=Hint("choose one with {confidence}"),
        )
    names = frame["model"].unique(maintain_order=True).to_list()
    counts = frame.group_by("question_id").len()
    common = counts.filter(counts["len"] == len(names))["question_id"]
    if common.is_empty():
        raise InputError("no question was answered by all models", source=table.source)
    part = frame.filter(frame["question_id"].is_in(common.implode())).sort("question_id")
    arrays = {
        str(name): (rows["confidence"].to_numpy(), rows["correct"].to_numpy())
        for name in names
        for rows in [part.filter(part["model"] == name)]
    }
    return leaderboard(arrays, metric=metric, seed=seed)
