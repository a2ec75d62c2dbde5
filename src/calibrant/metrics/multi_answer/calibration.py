"""Calibration error within parts, and its mean over parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.core.estimate import Estimate
from calibrant.metrics.binned import ece
from calibrant.metrics.multi_answer.leaves import Leaf
from calibrant.stats.intervals import wald_interval

__all__ = ["macro_ece"]

_BINS = 15


def macro_ece(
    confidence: NDArray[Any], correct: NDArray[Any], parts: Sequence[Leaf], *, level: float = 0.95
) -> Estimate:
    """Return the mean over parts of the ECE within them (15 equal-width bins).

    The interval is normal around the estimate, with the error of the binned gaps: in each bin
    the gap's sign times its noise. It takes the bins as they are; where most bins have a gap
    near zero the ECE of a calibrated model is not zero, and the value tells more about n than
    about the model.

    Examples
    --------
    >>> from calibrant.metrics.multi_answer.leaves import leaves
    >>> found = macro_ece(np.array([0.9] * 50 + [0.1] * 50), np.ones(100), leaves(["a"] * 100))
    >>> round(found.value, 3)
    0.5
    """
    value = error = 0.0
    for leaf in parts:
        own, right = confidence[leaf.rows], correct[leaf.rows]
        value += leaf.weight * ece(own, right, bins=_BINS)
        error += (leaf.weight * _error(own, right)) ** 2
    n = sum(leaf.rows.size for leaf in parts)
    low, high = wald_interval(value, math.sqrt(error), level, units=n)
    # A calibration error is never negative: the interval ends where the quantity does.
    return Estimate(value, max(0.0, low), high, n=n, level=level, interval="normal")


def _error(confidence: NDArray[Any], correct: NDArray[Any]) -> float:
    """Return the standard error of the sum of signed gaps."""
    place = np.minimum((confidence * _BINS).astype(np.intp), _BINS - 1)
    residual = correct - confidence
    sums = np.bincount(place, residual, _BINS)
    signed = np.sign(sums)[place] * residual
    return float(signed.std(ddof=1) / math.sqrt(signed.size)) if signed.size > 1 else math.nan
