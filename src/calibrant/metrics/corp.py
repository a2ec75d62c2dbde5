"""CORP: reliability by isotonic regression, the score decomposition it gives, and its intervals.

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
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike

from calibrant.core import InputError, RngLike, as_generator
from calibrant.core.arrays import Floats, Indices, Ints, MaybeArray, Stream
from calibrant.core.document import Stored
from calibrant.metrics.inputs import check, check_level
from calibrant.metrics.stats.bootstrap import first_crossing, quantiles, share_of
from calibrant.metrics.stats.intervals import normal_quantile
from calibrant.metrics.stats.ranking import DistinctSums
from calibrant.metrics.stats.regressions import isotonic_fit, isotonic_fits

# Cells of nearly equal confidences that the band is made for, and simulations behind it.
BAND_CELLS = 512
BAND_DRAWS = 200


class Corp(Struct, frozen=True):
    """Parts of the mean squared score: ``score = mcb - dsc + unc``, each of them at least 0."""

    score: float
    mcb: float
    dsc: float
    unc: float


def corp_from_sums(sums: DistinctSums, squares: float, fitted: Floats | None = None) -> Corp:
    """Return the parts from sums at distinct confidences and the summed squared outcomes.

    Parameters
    ----------
    sums, squares
        Of the rows.
    fitted
        The isotonic fit, where it is known.
    """
    c, w, y = sums
    total = w.sum()
    if fitted is None:
        fitted = isotonic_fit(w, y)
    mean = y.sum() / total

    def score(forecast: Floats | float) -> float:
        return float((w @ np.square(forecast) - 2 * (y @ np.asarray(forecast)) + squares) / total)

    # Written as squared distances, the two differences of scores cannot turn negative.
    mcb = float(w @ (c - fitted) ** 2 + 2 * ((c - fitted) @ (w * fitted - y))) / total
    dsc = float(w @ (fitted - mean) ** 2) / total
    unc = max(squares / total - mean**2, 0.0)
    return Corp(score=score(c), mcb=float(max(mcb, 0.0)), dsc=float(dsc), unc=float(unc))


def corp(confidence: ArrayLike, correct: ArrayLike, *, weights: MaybeArray = None) -> Corp:
    """Return miscalibration, discrimination and uncertainty of the Brier score.

    The outcomes are regressed on the confidences by isotonic regression, which needs no bins
    and is consistent for any rising relation. MCB is how much the Brier score would fall by
    recalibrating (0 is best, biased upwards in small samples), DSC how much the recalibrated
    confidences beat the base rate (more is better), UNC the score of the base rate.

    Parameters
    ----------
    confidence
        Probabilities in [0, 1], shape (n,).
    correct
        Outcomes, 0 or 1 or a grade between, shape (n,).
    weights
        A weight of 2 counts as two equal rows.

    References
    ----------
    Dimitriadis, Gneiting, Jordan (2021), 'Stable reliability diagrams for probabilistic
    classifiers'.

    Examples
    --------
    >>> parts = corp([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    >>> round(parts.mcb, 3), parts.dsc, parts.unc
    (0.06, 0.125, 0.25)
    """
    data = check(confidence, correct, weights).present()
    y = data.correct.astype(np.float64, copy=False)
    squares = float(y @ y) if data.weights is None else float(np.square(y) @ data.weights)
    return corp_from_sums(DistinctSums.of(*data), squares)


def mcb(confidence: ArrayLike, correct: ArrayLike, *, weights: MaybeArray = None) -> float:
    """Return the miscalibration part of `corp`, in [0, 1]; 0 is best.

    Examples
    --------
    >>> round(mcb([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1]), 3)
    0.06
    """
    return corp(confidence, correct, weights=weights).mcb


def dsc(confidence: ArrayLike, correct: ArrayLike, *, weights: MaybeArray = None) -> float:
    """Return the discrimination part of `corp`, in [0, 0.25]; more is better.

    Examples
    --------
    >>> dsc([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    0.125
    """
    return corp(confidence, correct, weights=weights).dsc


def unc(confidence: ArrayLike, correct: ArrayLike, *, weights: MaybeArray = None) -> float:
    """Return the uncertainty part of `corp`, the variance of outcomes, in [0, 0.25].

    Examples
    --------
    >>> unc([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    0.25
    """
    return corp(confidence, correct, weights=weights).unc


@dataclass(frozen=True, slots=True)
class ReliabilityCurve(Stored):
    """A reliability curve by isotonic regression: rate as a rising function of confidence.

    `band_low` and `band_high` are pointwise: where the curve would lie, at this number of rows,
    if the confidences were right. `weight` is the share of rows at each point.
    """

    confidence: Floats
    rate: Floats
    band_low: Floats
    band_high: Floats
    weight: Floats
    n: int
    level: float


def reliability_curve(
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    weights: MaybeArray = None,
    points: int = 200,
    level: float = 0.95,
    resamples: int = BAND_DRAWS,
    rng: RngLike = 0,
) -> ReliabilityCurve:
    """Return the CORP reliability curve with the band of a calibrated model at this n.

    Parameters
    ----------
    confidence, correct, weights
        As for `corp`. The band takes outcomes as 0 or 1.
    points
        Most points of the returned curve; the fit itself uses every row.
    level, resamples, rng
        Level of the band, simulations behind it, and their seed.

    Examples
    --------
    >>> curve = reliability_curve([0.1, 0.4, 0.6, 0.9], [0, 1, 0, 1])
    >>> curve.rate.tolist()
    [0.0, 0.5, 0.5, 1.0]
    """
    check_level(level)
    if points < 2 or resamples < 20:
        raise InputError(
            f"a curve needs points >= 2 and resamples >= 20, got {points} and {resamples}"
        )
    data = check(confidence, correct, weights).present()
    sums = DistinctSums.of(*data)
    fitted = isotonic_fit(sums.weight, sums.outcome)
    return curve_of_sums(sums, fitted, data.rows, points, level, rng, resamples)


def curve_of_sums(
    sums: DistinctSums,
    fitted: Floats,
    rows: int,
    points: int,
    level: float,
    rng: RngLike,
    resamples: int = BAND_DRAWS,
) -> ReliabilityCurve:
    """Return the curve at some of its points.

    Parameters
    ----------
    sums, fitted, rows
        Sums at distinct confidences, the isotonic fit to them, and the rows behind them.
    points, level, rng, resamples
        As for `reliability_curve`.
    """
    display = even_places(sums.weight.size, points)
    nearest, cells = display, merged_cells(sums, BAND_CELLS)
    # Outcomes are drawn with the confidences as probabilities.
    trials = np.maximum(np.round(cells.weight * (rows / sums.weight.sum())), 1).astype(np.int64)
    hits = as_generator(rng).binomial(trials, cells.confidence, size=(resamples, trials.size))
    draws = hits.astype(np.float64)
    band = quantiles(
        isotonic_fits(trials.astype(np.float64), draws), ((1 - level) / 2, (1 + level) / 2)
    )
    if cells is not sums:
        nearest = np.searchsorted(cells.confidence, sums.confidence[display])
        nearest = np.minimum(nearest, cells.weight.size - 1)
    low, high = (end[nearest] for end in band)
    weight = np.add.reduceat(sums.weight, display) / sums.weight.sum()
    return ReliabilityCurve(
        sums.confidence[display], fitted[display], low, high, weight, rows, level
    )


@lru_cache(maxsize=64)
def even_places(size: int, points: int) -> Indices:
    """Return which of many points are shown: the first, the last, and evenly between."""
    places = np.linspace(0, size - 1, points).round().astype(np.intp)
    # They rise. `np.unique` would load the module of masked arrays.
    return places[np.diff(places, prepend=-1) > 0]


def merged_cells(sums: DistinctSums, most: int) -> DistinctSums:
    """Return the sums over at most `most` neighbouring cells of about equal weight."""
    if sums.weight.size <= most:
        return sums
    reached = np.cumsum(sums.weight)
    group = np.minimum((reached - sums.weight / 2) / reached[-1] * most, most - 1).astype(np.intp)
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    weight = np.add.reduceat(sums.weight, starts)
    confidence = np.add.reduceat(sums.confidence * sums.weight, starts) / weight
    return DistinctSums(confidence, weight, np.add.reduceat(sums.outcome, starts))


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
        total, fitted = weight.sum(), isotonic_fits(weight, hits[move])
        away = line.cells.confidence - fitted
        mcb = away**2 @ weight + 2 * (away * (weight * fitted - hits[move])).sum(axis=-1)
        centred = fitted - hits[move].sum(axis=-1, keepdims=True) / total
        return mcb / total, centred**2 @ weight / total

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
    mcb = task.parts.mcb
    low, high = min(low**2, mcb), max(high**2, mcb)
    if low > 0:
        low = max(mcb - math.sqrt((mcb - low) ** 2 + drawn_too), 0.0)
    ends = low, mcb + math.sqrt((high - mcb) ** 2 + drawn_too)
    dsc_variance = float(spread.var(ddof=1)) + of_confidences((fitted - share @ fitted) ** 2)
    return CorpIntervals(ends, 2 * line.seen.dsc - float(spread.mean()), dsc_variance)


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
