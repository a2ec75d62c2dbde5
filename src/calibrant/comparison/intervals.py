"""Intervals of what a comparison reports, beside those of calibration errors."""

from __future__ import annotations

import math

import numpy as np
from msgspec.structs import replace

from calibrant.core.arrays import Floats
from calibrant.core.estimate import Estimate
from calibrant.findings.claims.compare import LEAST_QUESTIONS
from calibrant.metrics.stats.bootstrap import quantiles
from calibrant.metrics.stats.intervals import (
    logit_interval,
    normal_quantile,
    unseen_share,
    wilson_interval,
)


def interval(replicates: Floats, n: int, *, level: float = 0.95) -> Estimate:
    """Return the value (entry 0) with the percentile interval of the resamples.

    Parameters
    ----------
    replicates
        Value in the data, then in every resample; undefined resamples are left out.
    n
        Questions behind the value; of too few the resamples are too much alike.
    level
        Coverage.
    """
    value = float(replicates[0])
    draws = replicates[1:][np.isfinite(replicates[1:])]
    if n < LEAST_QUESTIONS or draws.size < 2 or not np.isfinite(value):
        return Estimate(value, float("nan"), float("nan"), n, level, interval="none")
    low, high = quantiles(draws, ((1 - level) / 2, (1 + level) / 2)).tolist()
    # Few rows have few resamples, which may all lie on one side of the value.
    ends = min(low, value), max(high, value)
    return Estimate(value, *ends, n, level, interval="bootstrap-percentile")


def design_effect(replicates: Floats, spread: float, n: int) -> float:
    """Return how many answers of clusters are worth one independent answer, at least 1.

    Parameters
    ----------
    replicates
        A mean in the data, then in every resample of clusters.
    spread
        Variance of one answer.
    n
        Answers.

    Examples
    --------
    >>> round(design_effect(np.array([0.5, 0.4, 0.6]), 0.25, 50), 6)
    4.0
    """
    draws = replicates[1:][np.isfinite(replicates[1:])]
    if draws.size < 2 or spread <= 0:
        return 1.0
    return max(float(draws.var(ddof=1)) * n / spread, 1.0)


def rate_interval(value: float, n: int, level: float, design: float = 1.0) -> Estimate:
    """Return Wilson's interval, as in an audit: of 1 in 20 the resamples say [0, 0.15].

    Outcomes with grades between 0 and 1 vary less, and theirs is too long rather than too short.
    """
    low, high = wilson_interval(value, n / design, level)
    return Estimate(value, float(low), float(high), n, level, interval="wilson")


def mean_interval(
    n: int, total: float, squares: float, level: float, design: float = 1.0
) -> Estimate:
    """Return the mean of n confidences from their sums, with Student's interval on log-odds."""
    mean = total / n
    spread = max(squares - n * mean**2, 0.0) / (n - 1) if n > 1 else float("nan")
    if spread <= 1e-12 * mean:
        # As in an audit: confidences that never varied may still do so.
        unseen = unseen_share(round(n / design), level)
        low, high = max(mean - unseen, 0.0), min(mean + unseen, 1.0)
    else:
        low, high = logit_interval(mean, (spread * design / n) ** 0.5, level, units=n / design)
    return Estimate(mean, low, high, n, level, interval="student-logit")


def normal_interval(
    value: float, error: float, n: int, level: float, how: str = "paired-normal"
) -> Estimate:
    """Return a difference of means with the interval of its standard error, inside [-1, 1]."""
    if n < LEAST_QUESTIONS or math.isnan(value):
        return Estimate(value, math.nan, math.nan, n, level, interval="none")
    reach = normal_quantile(level) * error
    ends = max(value - reach, -1.0), min(value + reach, 1.0)
    return Estimate(value, *ends, n, level, interval=how)


def without_ends(estimate: Estimate) -> Estimate:
    """Return the value of an estimate without its interval.

    Examples
    --------
    >>> print(without_ends(Estimate(0.1, 0.0, 0.2, n=5)))
    0.100 [nan, nan]
    """
    return replace(estimate, low=math.nan, high=math.nan, interval="none")
