"""Models in the order of a metric, on the questions that all of them have."""

from __future__ import annotations

from typing import Any

from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.planning import leaderboard
from calibrant.records import Scores

__all__ = ["ranked_models"]


def ranked_models(table: Scores, metric: str, seed: int) -> dict[str, Any]:
    """Return the leaderboard of a table with one method."""
    frame = table.frame
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
