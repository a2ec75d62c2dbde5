"""Confidence minus accuracy, with its interval."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core.estimate import Estimate
from calibrant.metrics.inputs import check
from calibrant.stats.intervals import wald_interval
from calibrant.stats.units import unit_codes, unit_sums

__all__ = ["confidence_gap"]


def confidence_gap(
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    units: ArrayLike | None = None,
    level: float = 0.95,
) -> Estimate:
    """Return mean confidence minus accuracy, in [-1, 1]; above 0 is over-confidence.

    Unlike a calibration error it has a sign and no bias; unlike one it can be 0 although the
    confidence is wrong in places. The interval is Student's, from the variance between units.

    Examples
    --------
    >>> print(confidence_gap([0.9, 0.8, 0.9, 0.8], [1, 0, 1, 1]))
    0.100 [-0.646, 0.846]
    """
    data = check(confidence, correct, weights)
    residual = data.confidence.astype(np.float64) - data.correct
    mass = np.ones(data.rows) if data.weights is None else data.weights.astype(np.float64)
    groups = unit_codes(units, data.rows)
    total = unit_sums(mass, groups)
    value = float(mass @ residual / mass.sum())
    # Linearised ratio: a unit moves the mean by its weighted distance from it.
    influence = unit_sums(mass * (residual - value), groups) / total.sum()
    n = groups.count
    if n < 2:
        return Estimate(value, float("nan"), float("nan"), n, level, interval="none")
    error = float(np.sqrt((influence**2).sum() * n / (n - 1)))
    low, high = wald_interval(value, error, level, units=n)
    return Estimate(value, low, high, n, level, interval="student")
