"""Is a difference small enough not to matter? Two one-sided tests, and what would decide."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from calibrant.core.estimate import Estimate
from calibrant.stats.error_bound import claim_z, ece_upper

# Two points for the calibration error of one model, five for the difference of two models.
ERROR_MARGIN = 0.02
COMPARISON_MARGIN = 0.05
# One-sided 5 % and the power of a forecast.
_Z = 1.6448536269514722
_POWER = 0.8416212335729143
_TWO_SIDED = 1.959963984540054
# A bound that equals its threshold but for rounding decides nothing.
ROUNDING = 1e-9


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
    quantile = float(special.stdtrit(gap.n - 1, (1 + gap.level) / 2))
    down, up = gap.value - gap.low, gap.high - gap.value
    if min(down, up) <= 0:
        return None
    below = (margin - gap.value) / (up / quantile)
    above = (margin + gap.value) / (down / quantile)
    return float(special.stdtr(gap.n - 1, -min(below, above)))


def error_within(
    residual: NDArray[np.float64],
    error: NDArray[np.float64],
    margin: float,
    lean: float = 0.0,
    extra: float = 0.0,
) -> dict[str, float]:
    """Return the p-value of 'the calibration error is below the margin' and its upper bound.

    Parameters
    ----------
    residual
        Share of each bin times its gap; their absolute sum is the calibration error.
    error
        Standard errors of the residuals.
    margin
        The error that does not matter.
    lean, extra
        How far single rows pull the error upwards, and what the shares of the bins add to its
        variance, see `calibrant.stats.error_bound`.

    Examples
    --------
    >>> found = error_within(np.array([0.001, -0.002]), np.array([0.002, 0.002]), 0.02)
    >>> found["p_value"] < 1e-6, round(found["upper"], 4)
    (True, 0.0073)
    """
    ones = np.ones_like(residual)
    z = claim_z(residual, error, ones, margin, lean, extra)
    return {
        "p_value": float(special.ndtr(-z)),
        "upper": ece_upper(residual, error, ones, _Z, lean=lean, extra=extra),
    }


def more_labels(gap: Mapping[str, Any], margin: float, tests: float = 1.0) -> float | None:
    """Return how many more labels would decide the mean gap with a power of 80 %.

    The smaller of two numbers: those that show the gap if it is as large as it looks, and those
    that show it to be within the margin.

    Parameters
    ----------
    gap
        Mean gap with its 95 % interval and number of rows.
    margin
        The gap that does not matter.
    tests
        By how much the p-value of the gap is multiplied, because other tests are made.

    Examples
    --------
    >>> round(more_labels({"value": 0.03, "low": -0.01, "high": 0.07, "n": 500}, 0.02))
    1316
    """
    value, low, high, n = (gap[name] for name in ("value", "low", "high", "n"))
    if value is None or low is None or high is None or not n:
        return None
    error = (high - low) / (2 * _TWO_SIDED)
    needed = []
    if value != 0:
        quantile = -float(special.ndtri(0.025 / max(tests, 1.0)))
        needed.append(((quantile + _POWER) * error / value) ** 2)
    if abs(value) < margin:
        needed.append(((_Z + _POWER) * error / (margin - abs(value))) ** 2)
    return max(n * (min(needed) - 1), 0.0) if needed else None
