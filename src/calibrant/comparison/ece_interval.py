"""The interval of a model's ECE in a view, and of the gap between two.

One model: a test inverted, with the noise of the resamples.

The ECE is a sum of absolute residuals and never below 0, while its bootstrap lies too high, and
moved back by its bias it reaches below 0. As in an audit (`calibrant.metrics.gap_intervals`),
candidate values are tested instead: residuals with that absolute sum, plus the noise that the
resamples of questions show, weights and all. A candidate stays where the observed ECE is not
extreme among those. The low end is 0 where perfect calibration is not contradicted.

Two models: the spread of the paired gap. The ECE of the data lies above the true one, more so for a
calibrated model than for one that is wrong everywhere, and what is left of that in the gap is not
known: between none of it and all that perfect calibration would bring.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from calibrant.core.arrays import Floats
from calibrant.core.estimate import Estimate
from calibrant.metrics.gap_intervals import LUCK, POINTS, SET_ASIDE
from calibrant.stats.intervals import normal_quantile
from calibrant.stats.inversion import crossing_interval

# A sum of absolute normal numbers around 0 is all bias. Its resamples have twice the variance, so
# they lie above it by this share of it; away from 0 they show a larger share of a smaller bias.
SEEN_AGAIN = math.sqrt(2) - 1


def ece_estimate(residuals: Floats, n: int, *, level: float = 0.95) -> Estimate:
    """Return the ECE with its interval, whose ends lie between 0 and 1.

    Parameters
    ----------
    residuals
        (bins, 1 + resamples): share of the bin times its gap, in the data and in every resample;
        resamples without rows are NaN and left out.
    n
        Questions behind it.
    level
        Coverage.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> noise = 0.01 * rng.standard_normal((5, 1000))
    >>> seen = 0.01 * np.array([[1.0], [-1.0], [0.5], [1.0], [-0.5]])
    >>> found = ece_estimate(np.hstack([seen, seen + noise]), 400)
    >>> round(found.value, 2), found.low
    (0.04, 0.0)
    """
    seen, drawn = residuals[:, 0], residuals[:, 1:]
    value = float(np.abs(seen).sum())
    drawn = drawn[:, np.isfinite(drawn).all(axis=0)]
    if drawn.shape[1] < 2 or not math.isfinite(value):
        return Estimate(value, math.nan, math.nan, n, level, interval="none")
    noise = drawn - drawn.mean(axis=1, keepdims=True)
    error = noise.std(axis=1, ddof=1)
    few, even = _directions(seen, error, value)
    reach = 5 * math.sqrt(float(error @ error))
    # The low end lies below the observed value by noise and bias, the high end above by noise.
    lowest = max(value - reach - float(error.sum()), 0.0)
    down = np.unique(np.append(np.linspace(lowest, value, POINTS), 0.0))
    # No ECE is above 1, so nothing above it is a candidate.
    up = np.linspace(value, max(min(value + reach, 1.0), value), POINTS)
    low, _ = crossing_interval(down, _sums(down, few, noise), value, level)
    above = _sums(up, even, noise)
    high = crossing_interval(up, above, value, level)[1]
    if (above[0] <= value).mean() < LUCK:
        # Less error than even the observed amount would mostly show, by luck.
        high = max(high, float(np.median(above[0])))
    return Estimate(value, min(low, value), max(high, value), n, level, interval="test-inversion")


def gap_bias(value: float, drawn: Floats) -> float:
    """Return by how much at most the gap in the data is too high (below 0: too low).

    Examples
    --------
    >>> round(gap_bias(0.10, np.array([0.12, 0.10, 0.14])), 3)
    0.048
    """
    return float((drawn.mean() - value) / SEEN_AGAIN)


def gap_estimate(replicates: Floats, n: int, *, level: float = 0.95) -> Estimate:
    """Return the gap between the ECE of two models with its paired interval.

    The spread of the resamples around the gap, and the same moved by its largest bias: the
    interval holds both.

    Parameters
    ----------
    replicates
        Gap in the data, then in every resample; undefined resamples are left out.
    n
        Questions behind it.
    level
        Coverage.
    """
    value = float(replicates[0])
    drawn = replicates[1:][np.isfinite(replicates[1:])]
    if drawn.size < 2 or not math.isfinite(value):
        return Estimate(value, math.nan, math.nan, n, level, interval="none")
    reach, bias = normal_quantile(level) * float(drawn.std(ddof=1)), gap_bias(value, drawn)
    ends = value - reach - max(bias, 0.0), value + reach - min(bias, 0.0)
    return Estimate(value, *ends, n, level, interval="bootstrap-bias-bounded")


def gap_p_value(replicates: Floats, units: float) -> float:
    """Return the two-sided p-value of 'the two models have the same error'; NaN without spread.

    A share of resamples is never below one in their number, too coarse for what is corrected for
    many pairs. This takes the spread of the resamples and Student's law. The gap counts only for
    what its largest bias leaves of it (`gap_bias`).

    Parameters
    ----------
    replicates
        Gap in the data, then in every resample.
    units
        Questions behind the gap, effective ones where they are weighted.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> round(gap_p_value(np.append(0.1, 0.1 + 0.05 * rng.standard_normal(4000)), 200), 2)
    0.05
    """
    drawn = replicates[1:][np.isfinite(replicates[1:])]
    if drawn.size < 2 or not np.isfinite(replicates[0]):
        return math.nan
    spread, gap = float(drawn.std(ddof=1)), float(replicates[0])
    if spread == 0:
        return 1.0 if gap == 0 else math.nan
    towards = gap_bias(gap, drawn) * math.copysign(1.0, gap)
    left = max(abs(gap) - max(towards, 0.0), 0.0)
    return float(2 * special.stdtr(max(units - 1, 1), -left / spread))


def _directions(seen: Floats, error: Floats, value: float) -> tuple[Floats, Floats]:
    """Return where the true residuals may point: few large ones, or all bins alike.

    How far the ECE of the data lies above the true one depends on that: most where few bins carry
    it all. The variance of a bin's residual stands for its share of rows.
    """
    share = np.square(error)
    if value == 0 or not share.any():
        line = np.abs(seen) + share
        line = line / line.sum() if line.any() else np.full_like(line, 1 / line.size)
        return line, line
    ratio = np.divide(error, np.abs(seen), out=np.full_like(error, np.inf), where=seen != 0)
    few = seen * (1 - np.minimum(SET_ASIDE * ratio, 1.0) ** 2)
    few = few if few.any() else seen
    even = np.where(seen < 0, -share, share) / share.sum() + seen / value
    return few / np.abs(few).sum(), even / np.abs(even).sum()


def _sums(sizes: Floats, line: Floats, noise: Floats) -> Floats:
    """Return the ECE that each candidate size along the line would show, (sizes, draws)."""
    return np.stack([np.abs((size * line)[:, None] + noise).sum(axis=0) for size in sizes])
