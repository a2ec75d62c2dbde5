"""What one batch of labels shows: accuracy, mean confidence and their difference, however few."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import special

from calibrant.core.arrays import Floats
from calibrant.core.estimate import Estimate
from calibrant.stats.intervals import joined_reach, logit_interval, wilson_interval
from calibrant.stats.units import UnitInfluence


def batch_estimates(confidence: Floats, correct: Floats) -> dict[str, Estimate]:
    """Return accuracy, mean confidence and accuracy minus confidence of a few labels.

    Outcomes that are all alike show no spread, so the accuracy has Wilson's interval, which is
    never of zero width. The mean confidence has Student's on the logit scale; of a single label
    it may be anything. Their difference joins the two, see `joined_reach`. All ends stay in the
    range of what they speak of.

    Examples
    --------
    >>> found = batch_estimates(np.array([0.5, 0.55, 0.6, 0.6, 0.65]), np.zeros(5))
    >>> print(found["accuracy"], "|", found["gap"])
    0.000 [0.000, 0.434] | -0.580 [-0.649, -0.140]
    """
    n = int(confidence.size)
    accuracy, said = _accuracy(correct, n), _mean_confidence(confidence, n)
    common = _pulls(confidence).correlation(_pulls(correct))
    low = joined_reach(accuracy.value - accuracy.low, said.high - said.value, common)
    high = joined_reach(accuracy.high - accuracy.value, said.value - said.low, common)
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


def _pulls(values: Floats) -> UnitInfluence:
    return UnitInfluence(values - values.mean(), None, int(values.size))


def drift_rate(history: Iterable[dict[str, Any]]) -> Estimate | None:
    """Return the change of the mean gap per day, by weighted least squares over batches.

    None where there are fewer than three batches with a time.
    """
    rows = [
        (entry["time"], entry["gap"].value, entry["n"])
        for entry in history
        if math.isfinite(entry["time"])
    ]
    if len(rows) < 3:
        return None
    time, gap, weight = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    centred = time - np.average(time, weights=weight)
    spread = float(weight @ centred**2)
    if spread == 0.0:
        return None
    slope = float(weight @ (centred * gap)) / spread
    rest = gap - np.average(gap, weights=weight) - slope * centred
    noise = float(weight @ rest**2) / (len(rows) - 2)
    # Three batches leave one degree of freedom: a normal quantile would promise far too much.
    half = float(special.stdtrit(len(rows) - 2, 0.975)) * math.sqrt(noise / spread)
    return Estimate(slope, slope - half, slope + half, n=int(weight.sum()), interval="student")
