"""CORP: reliability by isotonic regression, and the score decomposition it gives."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike

from calibrant.core import InputError, RngLike, as_generator
from calibrant.core.arrays import Floats, Indices, MaybeArray
from calibrant.core.document import Stored
from calibrant.metrics.inputs import check, check_level
from calibrant.metrics.stats.bootstrap import quantiles
from calibrant.metrics.stats.ranking import DistinctSums
from calibrant.metrics.stats.regressions import isotonic_fit, isotonic_fits, pooled_sums

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
    blocks, of_confidence, of_both = pooled_sums(*data)
    y = data.correct.astype(np.float64, copy=False)
    of_outcome = float(y @ y) if data.weights is None else float(np.square(y) @ data.weights)
    total = data.total
    rate = blocks.outcome / blocks.weight
    mean = float(blocks.outcome.sum()) / total
    score = (of_confidence - 2 * of_both + of_outcome) / total
    # The fit is the mean of its block, so its own products with the outcomes are squares too.
    recalibrated = (of_outcome - float(blocks.weight @ rate**2)) / total
    mcb, unc = max(score - recalibrated, 0.0), max(of_outcome / total - mean**2, 0.0)
    return Corp(score, mcb, float(blocks.weight @ (rate - mean) ** 2) / total, unc)


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
