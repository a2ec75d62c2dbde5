"""Intervals for the CORP parts, by simulation from recalibrated rates.

Isotonic regression follows noise, so MCB and DSC are biased upwards. For MCB candidates are
tested as in `gap_intervals`: the rates are moved from the confidences (perfect calibration)
towards the fitted curve and beyond, outcomes are drawn with them, and a candidate is kept where
the observed MCB is not extreme among the drawn ones.

Both vary with the outcomes and with the confidences that happened to be drawn. Outcomes drawn
with the fitted rates tell the bias and the first part of the variance; the second part is the
variance of the squared distance of the curve from the confidences (MCB) or the base rate (DSC).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from calibrant.metrics.corp import Corp, corp_from_sums, merged_cells
from calibrant.stats.binning import FloatArray
from calibrant.stats.intervals import normal_quantile
from calibrant.stats.inversion import crossing_interval
from calibrant.stats.isotonic import DistinctSums, isotonic_fit, isotonic_fits
from calibrant.stats.ranking import Influence

__all__ = ["CorpIntervals", "corp_intervals", "dsc_influence"]

CELLS = 100
DRAWS = 150
# Variance from which rounded normal numbers stand for binomial ones (six times as fast).
MANY = 9.0
ROUNDING = 1e-12
# How far rates are moved from the confidences (0) to the fitted curve (1) and beyond it.
MOVES = (0.0, 0.5, 0.8, 1.0, 1.25, 1.7)


class CorpIntervals(NamedTuple):
    """The interval of MCB; DSC without its bias, and its variance."""

    mcb: tuple[float, float]
    dsc: float
    dsc_variance: float


def corp_intervals(
    sums: DistinctSums,
    parts: Corp,
    *,
    rows: int,
    inflation: float,
    level: float,
    rng: np.random.Generator,
) -> CorpIntervals:
    """Return what the intervals of MCB and DSC need, from sums at distinct confidences."""
    cells = merged_cells(sums, CELLS)
    share = cells.weight / cells.weight.sum()
    # Units that hang together count for fewer independent rows.
    trials = np.maximum(np.rint(share * rows / inflation), 1).astype(np.int64)
    fitted = isotonic_fit(cells.weight, cells.outcome)
    rates = [
        np.clip(cells.confidence + move * (fitted - cells.confidence), 0.0, 1.0) for move in MOVES
    ]
    hits = np.concatenate([_drawn_hits(trials, rate, rng) for rate in rates])
    drawn, dsc = (part.reshape(len(MOVES), DRAWS) for part in _drawn_parts(cells, trials, hits))
    spread = dsc[MOVES.index(1.0)]
    candidates = [float(share @ (cells.confidence - rate) ** 2) for rate in rates]
    # Distances rather than their squares change evenly from one candidate to the next.
    values = np.maximum.accumulate(np.sqrt(candidates))
    # Fewer cells follow less noise, so what is compared with the draws has the same cells.
    seen = corp_from_sums(cells, 0.0)
    # A draw that equals the data shows the same MCB: its rounding must not take sides.
    drawn[np.abs(drawn - seen.mcb) < ROUNDING] = seen.mcb
    low, high = crossing_interval(values, drawn, seen.mcb, level)
    if values[-1] == 0:
        # The curve is the diagonal itself: no line leads away from it, noise alone speaks.
        high = float(np.sqrt(np.quantile(drawn[0], (1 + level) / 2)))

    def of_confidences(squares: FloatArray) -> float:
        return float(share @ (squares - share @ squares) ** 2) * inflation / rows

    # The draws keep the confidences; what those vary is added to the distance of the ends.
    drawn_too = normal_quantile(level) ** 2 * of_confidences((cells.confidence - fitted) ** 2)
    return CorpIntervals(
        _widened(low**2, high**2, parts.mcb, drawn_too),
        2 * seen.dsc - float(spread.mean()),
        float(spread.var(ddof=1)) + of_confidences((fitted - share @ fitted) ** 2),
    )


def _widened(low: float, high: float, value: float, square: float) -> tuple[float, float]:
    """Return the interval with a squared distance added to that of either end from the value."""
    low, high = min(low, value), max(high, value)
    if low > 0:
        low = max(value - math.sqrt((value - low) ** 2 + square), 0.0)
    return low, value + math.sqrt((high - value) ** 2 + square)


def dsc_influence(sums: DistinctSums, dsc: float) -> Influence:
    """Return the influence of rows on DSC, by distinct confidence in rising order.

    With g the recalibrated rate and m the base rate it is (g - m)^2 + 2 (g - m)(y - g) - DSC.
    """
    fitted = isotonic_fit(sums.weight, sums.outcome)
    away = fitted - sums.outcome.sum() / sums.weight.sum()
    return Influence(away**2 - 2 * away * fitted - dsc, 2 * away)


def _drawn_hits(trials: np.ndarray, rate: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Return binomial numbers, one row per draw; rounded normal ones in cells with many rows."""
    variance = trials * rate * (1 - rate)
    out = rng.standard_normal((DRAWS, trials.size))
    if (variance < MANY).all():
        size = (trials.size, DRAWS)
        return rng.binomial(trials[:, None], rate[:, None], size=size).T.astype(np.float64)
    out *= np.sqrt(variance)
    out += trials * rate
    np.clip(np.rint(out, out=out), 0, trials, out=out)
    few = np.flatnonzero(variance < MANY)
    # All draws of a cell in a row: the generator then sets up each cell only once.
    size = (few.size, DRAWS)
    out[:, few] = rng.binomial(trials[few, None], rate[few, None], size=size).T
    return out


def _drawn_parts(
    cells: DistinctSums, trials: np.ndarray, hits: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return MCB and DSC of every row of drawn hits."""
    weight = trials.astype(np.float64)
    total = weight.sum()
    fitted = isotonic_fits(weight, hits)
    away = cells.confidence - fitted
    mcb = away**2 @ weight + 2 * (away * (weight * fitted - hits)).sum(axis=1)
    centred = fitted - hits.sum(axis=1, keepdims=True) / total
    return mcb / total, centred**2 @ weight / total
