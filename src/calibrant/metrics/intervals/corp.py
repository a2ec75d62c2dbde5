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
from functools import cache
from typing import NamedTuple

import numpy as np

from calibrant.core.arrays import Floats, Ints, Stream
from calibrant.metrics.corp import Corp, corp_from_sums, merged_cells
from calibrant.metrics.stats.bootstrap import first_crossing, quantiles, share_of
from calibrant.metrics.stats.intervals import normal_quantile
from calibrant.metrics.stats.ranking import DistinctSums, Influence
from calibrant.metrics.stats.regressions import isotonic_fit, isotonic_fits

CELLS = 100
DRAWS = 150
# Variance from which rounded normal numbers stand for binomial ones (six times as fast).
MANY = 9.0
# A draw that equals the data shows the same MCB: its rounding must not take sides.
ROUNDING = 1e-12
# How far rates are moved from the confidences (0) to the fitted curve (1) and beyond it.
MOVES = (0.0, 0.5, 0.8, 1.0, 1.25, 1.7)
_MOVES = np.array(MOVES)[:, None]
_FITTED = MOVES.index(1.0)


class CorpIntervals(NamedTuple):
    """The interval of MCB; DSC without its bias, and its variance."""

    mcb: tuple[float, float]
    dsc: float
    dsc_variance: float


class CorpTask(NamedTuple):
    """One block: sums at distinct confidences, its parts and fit, and how its rows vary.

    `inflation` is the variance of the data's own units over that of independent rows.
    """

    sums: DistinctSums
    parts: Corp
    fitted: Floats
    rows: int
    inflation: float
    stream: Stream


class _Line(NamedTuple):
    """Rates on the way from the confidences to the fitted curve and beyond, and their distances."""

    task: CorpTask
    cells: DistinctSums
    share: Floats
    trials: Ints
    fitted: Floats
    rates: Floats
    distances: Floats
    seen: Corp

    @classmethod
    def of(cls, task: CorpTask) -> _Line:
        cells = merged_cells(task.sums, CELLS)
        whole = cells is task.sums
        share = cells.weight / cells.weight.sum()
        # Units that hang together count for fewer independent rows.
        trials = np.maximum(np.rint(share * task.rows / task.inflation), 1).astype(np.int64)
        fitted = task.fitted if whole else isotonic_fit(cells.weight, cells.outcome)
        moved = cells.confidence + _MOVES * (fitted - cells.confidence)
        rates = np.minimum(np.maximum(moved, 0.0), 1.0)
        squares = (cells.confidence - rates) ** 2
        # Distances rather than their squares change evenly from one candidate to the next.
        distances = np.maximum.accumulate(np.sqrt([float(share @ square) for square in squares]))
        # Fewer cells follow less noise, so what is compared with the draws has the same cells.
        observed = task.parts if whole else corp_from_sums(cells, 0.0)
        return cls(task, cells, share, trials, fitted, rates, distances, observed)


def corp_intervals(task: CorpTask, level: float) -> CorpIntervals:
    """Return what the intervals of MCB and DSC need.

    Parameters
    ----------
    task
        The block.
    level
        Coverage of the intervals.
    """
    line, last = _Line.of(task), len(MOVES) - 1
    # All are drawn: what is looked at must not change what comes next.
    hits = [_drawn_hits(line.trials, rate, task.stream) for rate in line.rates]
    weight = line.trials.astype(np.float64)

    @cache
    def drawn(move: int) -> tuple[Floats, Floats]:
        return _drawn_parts(line.cells.confidence, weight, hits[move])

    def at_least(move: int) -> float:
        return share_of(drawn(move)[0] >= line.seen.mcb - ROUNDING)

    def at_most(place: int) -> float:
        return share_of(drawn(last - place)[0] <= line.seen.mcb + ROUNDING)

    low = first_crossing(line.distances, at_least, level)
    # The last distance at which the observed MCB is not too small.
    down = first_crossing(line.distances[-1] - line.distances[::-1], at_most, level)
    high = float(line.distances[-1] - down)
    if line.distances[-1] == 0:
        # The curve is the diagonal itself: no line leads away from it, noise alone speaks.
        high = math.sqrt(float(quantiles(drawn(0)[0], ((1 + level) / 2,))[0]))
    return _joined(line, low, high, drawn(_FITTED)[1], level)


def _joined(line: _Line, low: float, high: float, spread: Floats, level: float) -> CorpIntervals:
    """Return the intervals from the ends that outcomes leave, and the DSC of draws."""
    task, cells, fitted, share = line.task, line.cells, line.fitted, line.share

    def of_confidences(squares: Floats) -> float:
        return float(share @ (squares - share @ squares) ** 2) * task.inflation / task.rows

    # The draws keep the confidences; what those vary is added to the distance of the ends.
    drawn_too = normal_quantile(level) ** 2 * of_confidences((cells.confidence - fitted) ** 2)
    mcb = _widened(low**2, high**2, task.parts.mcb, drawn_too)
    dsc_variance = float(spread.var(ddof=1)) + of_confidences((fitted - share @ fitted) ** 2)
    return CorpIntervals(mcb, 2 * line.seen.dsc - float(spread.mean()), dsc_variance)


def _widened(low: float, high: float, value: float, square: float) -> tuple[float, float]:
    """Return the interval with a squared distance added to that of either end from the value."""
    low, high = min(low, value), max(high, value)
    if low > 0:
        low = max(value - math.sqrt((value - low) ** 2 + square), 0.0)
    return low, value + math.sqrt((high - value) ** 2 + square)


def dsc_influence(sums: DistinctSums, fitted: Floats, dsc: float) -> Influence:
    """Return the influence of rows on DSC, by distinct confidence in rising order.

    With g the recalibrated rate and m the base rate it is (g - m)^2 + 2 (g - m)(y - g) - DSC.
    """
    away = fitted - sums.outcome.sum() / sums.weight.sum()
    return Influence(away**2 - 2 * away * fitted - dsc, 2 * away)


def _drawn_hits(trials: np.ndarray, rate: Floats, rng: np.random.Generator) -> Floats:
    """Return binomial numbers, one row per draw; rounded normal ones in cells with many rows."""
    variance = trials * rate * (1 - rate)
    out = rng.standard_normal((DRAWS, trials.size))
    if (variance < MANY).all():
        size = (trials.size, DRAWS)
        return rng.binomial(trials[:, None], rate[:, None], size=size).T.astype(np.float64)
    out *= np.sqrt(variance)
    out += trials * rate
    np.clip(np.rint(out, out=out), 0, trials, out=out)
    small = np.flatnonzero(variance < MANY)
    # All draws of a cell in a row: the generator then sets up each cell only once.
    size = (small.size, DRAWS)
    out[:, small] = rng.binomial(trials[small, None], rate[small, None], size=size).T
    return out


def _drawn_parts(confidence: Floats, weight: Floats, hits: Floats) -> tuple[Floats, Floats]:
    """Return MCB and DSC of all drawn hits."""
    total, fitted = weight.sum(), isotonic_fits(weight, hits)
    away = confidence - fitted
    mcb = away**2 @ weight + 2 * (away * (weight * fitted - hits)).sum(axis=-1)
    centred = fitted - hits.sum(axis=-1, keepdims=True) / total
    return mcb / total, centred**2 @ weight / total
