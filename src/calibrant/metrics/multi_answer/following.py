"""Does confidence follow accuracy when more answers are right?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from calibrant.core.estimate import Estimate
from calibrant.metrics.multi_answer.leaves import Leaf
from calibrant.metrics.multi_answer.rows import ScoreRows


def gap_change(few: ScoreRows, many: ScoreRows, *, level: float = 0.95) -> dict[str, Any] | None:
    """Return how the gap between confidence and accuracy changes from few right answers to many.

    Below 0, confidence falls behind accuracy: variety among right answers is taken for doubt.
    Parts (domains, kinds of Math) that one side lacks are left out. The standard error counts
    one right and one wrong answer more in every part, so that a part where no answer was wrong
    still has a spread; degrees of freedom follow Welch and Satterthwaite.

    Parameters
    ----------
    few, many
        Scores on questions with few and with many right answers.
    level
        Coverage of the interval.

    Examples
    --------
    >>> rows = [ScoreRows(np.arange(100), np.full(100, c), np.arange(100) % 10 < right,
    ...                   np.full(100, k), np.full(100, "a"), None)
    ...         for c, right, k in ((0.8, 5, 1), (0.7, 7, 6))]
    >>> found = gap_change(*rows)
    >>> round(found["value"].value, 3), found["p_value"] < 0.001
    (-0.3, True)
    """
    names = {leaf.name for leaf in few.leaves()} & {leaf.name for leaf in many.leaves()}
    sides = [_side(rows, names) for rows in (few, many)]
    if not names or any(side is None for side in sides):
        return None
    before, after = (side for side in sides if side is not None)
    value = after.mean - before.mean
    error = math.hypot(before.error, after.error)
    freedom = error**4 / sum(side.fourth for side in (before, after))
    reach = float(special.stdtrit(freedom, (1 + level) / 2)) * error
    low, high = max(value - reach, -2.0), min(value + reach, 2.0)
    return {
        "value": Estimate(value, low, high, n=before.n + after.n, level=level, interval="student"),
        "error": error,
        "freedom": freedom,
        "p_value": float(2 * special.stdtr(freedom, -abs(value) / error)),
        "accuracy": after.accuracy - before.accuracy,
        "confidence": after.confidence - before.confidence,
    }


@dataclass(frozen=True, slots=True)
class _Side:
    mean: float
    error: float
    fourth: float
    accuracy: float
    confidence: float
    n: int


def _side(rows: ScoreRows, names: set[str]) -> _Side | None:
    parts = [leaf for leaf in rows.leaves() if leaf.name in names]
    total = sum(leaf.weight for leaf in parts)
    if not parts or any(leaf.rows.size < 2 for leaf in parts):
        return None
    weights = [leaf.weight / total for leaf in parts]
    confidence = _weighted(rows.confidence, parts, weights)
    accuracy = _weighted(rows.correct, parts, weights)
    variances = [
        _variance(rows.confidence[leaf.rows], rows.correct[leaf.rows]) / leaf.rows.size
        for leaf in parts
    ]
    squares = [weight**2 * variance for weight, variance in zip(weights, variances, strict=True)]
    fourth = sum(
        square**2 / (leaf.rows.size - 1) for square, leaf in zip(squares, parts, strict=True)
    )
    n = sum(leaf.rows.size for leaf in parts)
    error = math.sqrt(sum(squares))
    return _Side(confidence - accuracy, error, fourth, accuracy, confidence, n)


def _weighted(values: NDArray[Any], parts: Sequence[Leaf], weights: Sequence[float]) -> float:
    return float(
        sum(weight * values[leaf.rows].mean() for weight, leaf in zip(weights, parts, strict=True))
    )


def _variance(confidence: NDArray[Any], correct: NDArray[Any]) -> float:
    """Return the variance of confidence minus grade with one right and one wrong answer more."""
    mean = confidence.mean()
    return float(np.var(np.append(confidence - correct, (mean - 1.0, mean)), ddof=1))
