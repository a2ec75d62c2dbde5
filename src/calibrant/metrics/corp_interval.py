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
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from calibrant.metrics.corp import Corp, corp_from_sums, merged_cells
from calibrant.stats.binning import FloatArray
from calibrant.stats.bootstrap import quantiles
from calibrant.stats.few.draws import CommonDraws, Stream
from calibrant.stats.intervals import normal_quantile
from calibrant.stats.inversion import first_crossing, share_of
from calibrant.stats.isotonic import DistinctSums, isotonic_fit, isotonic_fits
from calibrant.stats.ranking import Influence

__all__ = ["CorpIntervals", "corp_intervals", "dsc_influence"]

CELLS = 100
DRAWS = 150
# Variance from which rounded normal numbers stand for binomial ones (six times as fast).
MANY = 9.0
# A draw that equals the data shows the same MCB: its rounding must not take sides.
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
    rng: Stream,
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
    drawn = _Drawn(cells, trials, rates, rng)
    candidates = [float(share @ (cells.confidence - rate) ** 2) for rate in rates]
    # Distances rather than their squares change evenly from one candidate to the next.
    values = np.maximum.accumulate(np.sqrt(candidates))
    # Fewer cells follow less noise, so what is compared with the draws has the same cells.
    seen = parts if cells is sums else corp_from_sums(cells, 0.0)
    low = first_crossing(
        values, lambda move: share_of(drawn.mcb(move) >= seen.mcb - ROUNDING), level
    )
    high = _high_end(values, drawn, seen.mcb, level)
    if values[-1] == 0:
        # The curve is the diagonal itself: no line leads away from it, noise alone speaks.
        high = math.sqrt(float(quantiles(drawn.mcb(0), ((1 + level) / 2,))[0]))
    spread = drawn.dsc(MOVES.index(1.0))

    def of_confidences(squares: FloatArray) -> float:
        return float(share @ (squares - share @ squares) ** 2) * inflation / rows

    # The draws keep the confidences; what those vary is added to the distance of the ends.
    drawn_too = normal_quantile(level) ** 2 * of_confidences((cells.confidence - fitted) ** 2)
    return CorpIntervals(
        _widened(low**2, high**2, parts.mcb, drawn_too),
        2 * seen.dsc - float(spread.mean()),
        float(spread.var(ddof=1)) + of_confidences((fitted - share @ fitted) ** 2),
    )


class _Drawn:
    """MCB and DSC of the hits drawn at every move, computed when they are first asked for."""

    def __init__(
        self, cells: DistinctSums, trials: np.ndarray, rates: list[FloatArray], rng: Stream
    ) -> None:
        self._cells, self._trials = cells, trials
        self._parts: dict[int, tuple[FloatArray, FloatArray]] = {}
        self._hits: Sequence[Callable[[], FloatArray]]
        if isinstance(rng, CommonDraws):
            self._hits = [partial(rng.hits, trials, rate, DRAWS) for rate in rates]
        else:
            # A stream gives what comes next: what is looked at must not change it.
            drawn = [_drawn_hits(trials, rate, rng) for rate in rates]
            self._hits = [partial(np.asarray, hits) for hits in drawn]

    def mcb(self, move: int) -> FloatArray:
        """Return the MCB of every draw at a move."""
        return self._of(move)[0]

    def dsc(self, move: int) -> FloatArray:
        """Return the DSC of every draw at a move."""
        return self._of(move)[1]

    def _of(self, move: int) -> tuple[FloatArray, FloatArray]:
        if move not in self._parts:
            self._parts[move] = _drawn_parts(self._cells, self._trials, self._hits[move]())
        return self._parts[move]


def _high_end(values: FloatArray, drawn: _Drawn, seen: float, level: float) -> float:
    """Return the last distance at which the observed MCB is not too small."""
    last = len(values) - 1
    down = first_crossing(
        values[-1] - values[::-1],
        lambda place: share_of(drawn.mcb(last - place) <= seen + ROUNDING),
        level,
    )
    return float(values[-1] - down)


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
