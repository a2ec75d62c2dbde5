"""What one batch of labels shows: accuracy, mean confidence and their difference, however few."""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.core.estimate import Estimate
from calibrant.stats.intervals import logit_interval, wilson_interval

__all__ = ["batch_estimates"]

Floats: TypeAlias = NDArray[np.float64]


def batch_estimates(confidence: Floats, correct: Floats) -> dict[str, Estimate]:
    """Return accuracy, mean confidence and accuracy minus confidence of a few labels.

    Outcomes that are all alike show no spread, so the accuracy has Wilson's interval, which is
    never of zero width. The mean confidence has Student's on the logit scale; of a single label
    it may be anything. Their difference joins the two (Newcombe): each end takes the distances to
    the ends of both, less what confidence and outcome have in common. All ends stay in the range
    of what they speak of.

    References
    ----------
    Newcombe (1998), 'Improved confidence intervals for the difference between binomial
    proportions based on paired data'. Zou and Donner (2008), 'Construction of confidence limits
    about effect measures: a general approach'.

    Examples
    --------
    >>> found = batch_estimates(np.array([0.5, 0.55, 0.6, 0.6, 0.65]), np.zeros(5))
    >>> print(found["accuracy"], "|", found["gap"])
    0.000 [0.000, 0.434] | -0.580 [-0.649, -0.140]
    """
    n = int(confidence.size)
    accuracy, said = _accuracy(correct, n), _mean_confidence(confidence, n)
    common = _shared_part(confidence, correct)
    low = _joined(accuracy.value - accuracy.low, said.high - said.value, common)
    high = _joined(accuracy.high - accuracy.value, said.value - said.low, common)
    gap = accuracy.value - said.value
    return {
        "accuracy": accuracy,
        "mean_confidence": said,
        "gap": Estimate(gap, gap - low, gap + high, n=n, interval="newcombe"),
    }


def _accuracy(correct: Floats, n: int) -> Estimate:
    value = float(correct.mean())
    low, high = wilson_interval(value, n)
    return Estimate(value, float(low), float(high), n=n, interval="wilson")


def _mean_confidence(confidence: Floats, n: int) -> Estimate:
    value = float(confidence.mean())
    low, high = 0.0, 1.0
    if n > 1:
        error = float(confidence.std(ddof=1)) / math.sqrt(n)
        low, high = logit_interval(value, error, 0.95, units=n)
    return Estimate(value, low, high, n=n, interval="student-logit")


def _shared_part(confidence: Floats, correct: Floats) -> float:
    """Return the correlation of confidence and outcome, held back where the labels are few.

    Of a handful of labels it may be near 1 by luck, and would then take the interval away.
    """
    spread = float(confidence.std() * correct.std())
    if confidence.size < 3 or spread == 0:
        return 0.0
    together = float(((confidence - confidence.mean()) * (correct - correct.mean())).mean())
    return together / spread * (1 - 2 / confidence.size)


def _joined(first: float, second: float, common: float) -> float:
    return math.sqrt(max(first**2 + second**2 - 2 * common * first * second, 0.0))
