"""Isotonic regression of outcomes on confidences, from rows or from sums over cells."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression

__all__ = ["DistinctSums", "distinct_sums", "isotonic_fit"]

FloatArray: TypeAlias = NDArray[np.float64]


class DistinctSums(NamedTuple):
    """Weight and summed outcome at each distinct confidence, in rising order."""

    confidence: FloatArray
    weight: FloatArray
    outcome: FloatArray


def distinct_sums(
    confidence: NDArray[Any], correct: NDArray[Any], weights: NDArray[Any] | None
) -> DistinctSums:
    """Return the sums at distinct confidences: equal confidences must get equal fits.

    Examples
    --------
    >>> import numpy as np
    >>> sums = distinct_sums(np.array([0.5, 0.2, 0.5]), np.array([1, 0, 0]), None)
    >>> sums.confidence.tolist(), sums.weight.tolist(), sums.outcome.tolist()
    ([0.2, 0.5], [1.0, 2.0], [0.0, 1.0])
    """
    order = np.argsort(confidence, kind="stable")
    ordered = confidence[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    outcome = correct[order].astype(np.float64)
    if weights is None:
        mass = np.diff(starts, append=ordered.size).astype(np.float64)
    else:
        heavy = weights[order].astype(np.float64)
        outcome *= heavy
        mass = np.add.reduceat(heavy, starts)
    return DistinctSums(ordered[starts].astype(np.float64), mass, np.add.reduceat(outcome, starts))


def isotonic_fit(weight: FloatArray, outcome: FloatArray) -> FloatArray:
    """Return the rising fit to outcome/weight; cells without weight take a neighbour's value."""
    held = weight > 0
    if held.all():
        return np.asarray(isotonic_regression(outcome / weight, weights=weight).x)
    fitted = np.asarray(isotonic_regression(outcome[held] / weight[held], weights=weight[held]).x)
    filled: FloatArray = fitted[np.clip(np.cumsum(held) - 1, 0, None)]
    return filled
