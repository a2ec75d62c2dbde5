"""Rankings subject by subject: which of them the questions of a subject can carry."""

from typing import Any

import numpy as np
import polars as pl

from calibrant.comparison.questions import align_models
from calibrant.core.errors import InputError
from calibrant.labels.ranking import leaderboard
from calibrant.metrics.stats.floors import passive_floor

_FEWEST = 20


def subject_rankings(
    rows: pl.DataFrame, by: str, *, metric: str = "accuracy", seed: int = 0
) -> list[dict[str, Any]]:
    """Rank the models on every subject, with the paper's floor and the instability of the order.

    Parameters
    ----------
    rows
        Columns ``question_id``, ``model``, ``confidence``, ``correct`` and `by`.
    by
        Column of subjects; those with fewer than 20 questions answered by all models are left
        out.
    metric
        ``accuracy``, ``brier`` or ``ece``.
    seed
        Seed of the resampling.

    References
    ----------
    The Verification Tax, Table 3.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rows = pl.DataFrame({"question_id": [str(k) for k in range(200)] * 2, "topic": "law",
    ...     "model": ["a"] * 200 + ["b"] * 200, "confidence": 0.7,
    ...     "correct": np.r_[rng.random(200) < 0.9, rng.random(200) < 0.5] * 1.0})
    >>> found = subject_rankings(rows, "topic")[0]
    >>> found["subject"], found["ranked_pairs"], found["above_floor"]
    ('law', 1, True)
    """
    if by not in rows.columns:
        raise InputError(f"there is no column {by!r} to rank by")
    names = rows["model"].unique(maintain_order=True).to_list()
    rankings = []
    for part in rows.partition_by(by, maintain_order=True):
        if len(names) < 2 or part["model"].n_unique() < len(names):
            continue
        whole = align_models(part, names)
        if (~np.isnan(whole.correct)).all(axis=0).sum() < _FEWEST:
            continue
        models = zip(whole.models, whole.confidence, whole.correct, strict=True)
        arrays = {name: (statement, right) for name, statement, right in models}
        board = leaderboard(arrays, metric=metric, seed=seed)
        accuracy = {model: float(np.nanmean(y)) for model, (_, y) in arrays.items()}
        error = 1.0 - float(np.mean(list(accuracy.values())))
        # The paper's Table 3 puts the number of subjects where the number of questions belongs.
        floor, as_printed = (
            passive_floor(error_rate=error, labels=labels, lipschitz=1.0)
            for labels in (whole.size, rows[by].n_unique())
        )
        gap = max(accuracy.values()) - min(accuracy.values())
        rankings.append(
            {
                "subject": str(part[by][0]),
                "n": whole.size,
                "accuracy": accuracy,
                "largest_gap": gap,
                "floor": floor,
                "above_floor": gap > floor,
                "groups": board["groups"],
                "ranked_pairs": sum(not pair.tie for pair in board["pairs"]),
                "pairs": len(board["pairs"]),
                "instability": board["instability"],
                "floor_as_printed": as_printed,
            }
        )
    return sorted(rankings, key=lambda entry: -entry["n"])
