"""Is a difference small enough not to matter, what would decide, what could missing answers do?

Two one-sided tests of a margin, forecasts of labels, and the mean gap of all answers in three views
where some have no confidence.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from msgspec import Struct
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from calibrant.core.arrays import Estimate, EstimateEntry
from calibrant.findings.documents.audits import MissingEntry, View
from calibrant.metrics.stats.cells import ValueSums

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


# With fewer rows of an outcome their mean confidence says too little about the missing.
_FEWEST = 5
# From this share on, the worst case needs one side only (Imbens and Manski 2004).
_ONE_SIDE = 0.02


class Missing(Struct, frozen=True, dict=True):
    """Graded answers that have no confidence.

    Parameters
    ----------
    right, wrong
        How many there are.
    """

    right: float
    wrong: float

    @property
    def count(self) -> float:
        """How many there are."""
        return self.right + self.wrong


def missing_entry(sums: ValueSums, gap: Estimate, missing: Missing) -> MissingEntry:
    """Return what is known about all graded answers of a block, and about the missing ones.

    Parameters
    ----------
    sums
        Rows with a confidence.
    gap
        Their mean gap.
    missing
        The others.

    Examples
    --------
    >>> value = np.array([0.6, 0.8])
    >>> sums = ValueSums.of_counts(value, np.array([100.0, 100.0]), np.array([60.0, 80.0]))
    >>> gap = Estimate(0.0, -0.06, 0.06, n=200)
    >>> found = missing_entry(sums, gap, Missing(0, 60))
    >>> round(found["share"], 3), found["rows"], found["p_value"] < 0.01
    (0.231, 60, True)
    >>> found["worst_case"]["low"] < 0 < found["reweighted"]["low"]
    True
    """
    rows, right = float(sums.rows.sum()), float(sums.right.sum())
    worst = _worst_case(sums, missing, gap.level)
    return {
        "rows": round(missing.count),
        "share": missing.count / (rows + missing.count),
        "missing_accuracy": missing.right / missing.count,
        "p_value": fisher_p_value(right, rows - right, missing.right, missing.wrong),
        "with_confidence": _view(gap.value, gap.low, gap.high),
        "reweighted": _reweighted(sums, missing, gap.level),
        "worst_case": worst,
    }


def _view(value: float | None, low: float, high: float, p_value: float = 1.0) -> View:
    return {"value": value, "low": low, "high": high, "p_value": p_value}


def _reweighted(sums: ValueSums, missing: Missing, level: float) -> View | None:
    """Return the mean gap if missing confidences were like others of their outcome."""
    right = sums.right
    wrong = sums.rows - right
    means, variances = [], []
    for counts in (wrong, right):
        number = float(counts.sum())
        if number < _FEWEST:
            return None
        mean = float(counts @ sums.value) / number
        means.append(mean)
        variances.append(float(counts @ (sums.value - mean) ** 2) / ((number - 1) * number))
    whole = float(sums.rows.sum()) + missing.count
    share = (float(right.sum()) + missing.right) / whole
    value = (1 - share) * means[0] + share * means[1] - share
    variance = (1 - share) ** 2 * variances[0] + share**2 * variances[1]
    variance += (means[1] - means[0] - 1) ** 2 * share * (1 - share) / whole
    error = math.sqrt(variance)
    reach = float(ndtri((1 + level) / 2)) * error
    p_value = 2 * float(ndtr(-abs(value) / max(error, 1e-12)))
    return _view(value, value - reach, value + reach, p_value)


def _worst_case(sums: ValueSums, missing: Missing, level: float) -> View:
    """Return the ends of the mean gap if all missing confidences were 0, or were 1."""
    rows, right = sums.rows, sums.right
    whole = float(rows.sum()) + missing.count
    sides = 1 if missing.count / whole > _ONE_SIDE else 2
    z = float(ndtri((1 + level) / 2)) if sides == 2 else float(ndtri(level))
    ends, tails = [], []
    for confidence, sign in ((0.0, -1), (1.0, 1)):
        total = float(rows @ sums.value - right.sum()) + confidence * missing.count - missing.right
        square = float(right @ (sums.value - 1) ** 2 + (rows - right) @ sums.value**2)
        square += missing.right * (confidence - 1) ** 2 + missing.wrong * confidence**2
        mean = total / whole
        error = math.sqrt(max(square - whole * mean**2, 0.0) / max(whole - 1, 1) / whole)
        ends.append(mean + sign * z * error)
        tails.append(float(ndtr(sign * mean / max(error, 1e-12))))
    return _view(None, ends[0], ends[1], min(sides * min(tails), 1.0))


def fisher_p_value(a: float, b: float, c: float, d: float) -> float:
    """Return Fisher's exact p-value, two-sided, of a table of counts (a, b; c, d).

    Examples
    --------
    >>> round(fisher_p_value(8, 2, 1, 5), 4)
    0.035
    """
    first, column, whole = a + b, a + c, a + b + c + d
    if min(first, whole - first, column, whole - column) <= 0:
        return 1.0
    least, most = max(0, round(first + column - whole)), round(min(first, column))
    observed = np.arange(least, most + 1)
    log = _log_choose(column, observed) + _log_choose(whole - column, first - observed)
    log -= _log_choose(whole, first)
    here = log[round(a) - least]
    return float(min(np.exp(log[log <= here + 1e-7]).sum(), 1.0))


def _log_choose(n: Any, k: Any) -> Any:
    # Loaded here, for few audits: scipy takes long to load.
    from scipy import special

    return special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
