"""Is a difference small enough not to matter? Two one-sided tests, and what would decide."""

import math
from collections.abc import Mapping
from typing import Any

from scipy.special import ndtri, stdtr, stdtrit

from calibrant.core.estimate import Estimate, EstimateEntry

# Two points for the calibration error of one model, five for the difference of two models.
ERROR_MARGIN = 0.02
COMPARISON_MARGIN = 0.05
# A bound that equals its threshold but for rounding decides nothing.
ROUNDING = 1e-9
# The power of a forecast that knows no margin.
_POWER = 0.8416212335729143
_TWO_SIDED = 1.959963984540054
# A forecast asks for so many of the labels at hand at least.
_LEAST_MORE = 0.05
# Chance beyond one standard error, on one side.
_BEYOND_ONE = 0.15865525393145707
FORECAST_TRUE = 0.83
"""Least share of simulated audits in which a forecast of labels came true (docs/claims.md)."""


def gap_within(gap: Estimate, margin: float) -> float | None:
    """Return the p-value of 'the mean gap is within the margin', the larger of two tests.

    Examples
    --------
    >>> round(gap_within(Estimate(0.0, -0.01, 0.01, n=10_000), 0.02), 6)
    4.4e-05
    >>> gap_within(Estimate(0.03, 0.02, 0.04, n=10_000), 0.02) > 0.95
    True
    """
    if gap.n < 2 or not all(map(math.isfinite, (gap.value, gap.low, gap.high))):
        return None
    quantile = float(stdtrit(gap.n - 1, (1 + gap.level) / 2))
    down, up = gap.value - gap.low, gap.high - gap.value
    if min(down, up) <= 0:
        return None
    below = (margin - gap.value) / (up / quantile)
    above = (margin + gap.value) / (down / quantile)
    return float(stdtr(gap.n - 1, -min(below, above)))


def more_rows(estimate: EstimateEntry, margin: float) -> float:
    """Return how many more rows would tell a difference from 0, or from the margin.

    Examples
    --------
    >>> more_rows(Estimate(0.1, -0.1, 0.3, n=100), 0.05)
    300.0
    """
    value, low, high = estimate.numbers
    distance = max(abs(value), margin - abs(value), 1e-9)
    return float(max((estimate.n or 0) * (((high - low) / 2 / distance) ** 2 - 1), 0))


def more_labels(
    gap: Mapping[str, Any],
    margin: float,
    *,
    shown: float = 0.05,
    within: float = 0.05,
    among: float = 1.0,
) -> float | None:
    """Return how many more labels would decide the mean gap.

    They decide the hardest gap that is still likely, within one standard error of the one seen:
    larger gaps are shown sooner, and smaller ones are sooner shown to be within the margin. The
    largest gap of many models is large by chance too: within as many errors as that takes.

    Parameters
    ----------
    gap
        Mean gap with its 95 % interval and number of rows.
    margin
        The gap that does not matter; 0 where every difference does.
    shown, within
        P-values at which a gap is shown, two-sided, and shown to be within the margin.
    among
        Number of confidences of which this may be the one that stands out.

    Examples
    --------
    >>> round(more_labels({"value": 0.03, "low": -0.01, "high": 0.07, "n": 500}, 0.02))
    6266
    """
    value, low, high, n = (gap[name] for name in ("value", "low", "high", "n"))
    if value is None or low is None or high is None or not n:
        return None
    error, size = (high - low) / (2 * _TWO_SIDED), abs(value)
    of_gap = -float(ndtri(shown / 2))
    if margin <= 0:
        requirement = ((of_gap + _POWER) * error / size) ** 2 if size else math.inf
        return max(n * (requirement - 1), 0.0) if math.isfinite(requirement) else None
    of_margin = -float(ndtri(within))
    hardest = margin * of_gap / (of_gap + of_margin)
    likely = error * max(1.0, -float(ndtri(_BEYOND_ONE / among)))
    place = min(max(hardest, size - likely), size + likely)
    requirement = (of_gap * error / place) ** 2 if place > 0 else math.inf
    if place < margin:
        requirement = min(requirement, (of_margin * error / (margin - place)) ** 2)
    return float(n * max(requirement - 1, _LEAST_MORE))
