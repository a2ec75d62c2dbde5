"""The steepness of a calibration gap as the paper's own script estimates it."""

import math

import numpy as np
from msgspec import Struct, structs
from numpy.typing import ArrayLike

from calibrant.core.arrays import Floats
from calibrant.core.errors import InputError
from calibrant.core.estimate import Estimate
from calibrant.findings.verification.block import VerificationBlock
from calibrant.findings.verification.cells import SlopeEntry
from calibrant.metrics.stats.binning import width_index
from calibrant.metrics.stats.floors import LIPSCHITZ_CAP, optimal_bins, passive_floor

_BINS = 20
_FEWEST, _SHARE = 10, 0.01
_ASSUMED = 1.0
_NOTE = "by the paper's script: bins of 10 labels or 1 % of them, bins between two passed over"


class PublishedSteepness(Struct, frozen=True):
    """The estimate, between how many pairs of bins, and the ECE at the bins it is best at."""

    value: float
    pairs: int
    capped: bool
    ece: float


def published_steepness(confidence: ArrayLike, correct: ArrayLike) -> PublishedSteepness:
    """Return the Lipschitz constant of the gap by the rule that printed Table 4.

    Of 20 equal-width bins those take part that hold at least ``max(10, N / 100)`` labels; the gap
    is taken at the bin's centre, the slope between one such bin and the next, however far apart.
    The estimate is the 75th percentile of the slopes, at most 5, and 1 where only one bin is
    left. The text of the paper says 30 labels a bin, which gives other numbers.

    Parameters
    ----------
    confidence, correct
        Confidences in [0, 1] and outcomes of one model.

    References
    ----------
    The Verification Tax, Table 4, Appendix S, and the numbers its author published beside it.

    Examples
    --------
    >>> said = np.repeat([0.62, 0.97], 50)
    >>> found = published_steepness(said, np.r_[np.ones(20), np.zeros(30), np.ones(50)])
    >>> round(found.value, 2), found.pairs
    (0.71, 1)
    """
    p, y = np.asarray(confidence, dtype=np.float64), np.asarray(correct, dtype=np.float64)
    if p.shape != y.shape or p.ndim != 1 or not p.size:
        raise InputError("confidence and correct are vectors of one length, at least one row long")
    count, hits, _ = _sums(p, y, _BINS)
    used = np.flatnonzero(count >= max(_FEWEST, _SHARE * p.size))
    centre = (used + 0.5) / _BINS
    gap = hits[used] / count[used] - centre
    slopes = np.abs(np.diff(gap) / np.diff(centre))
    raw = float(np.quantile(slopes, 0.75)) if slopes.size else _ASSUMED
    value = min(raw, LIPSCHITZ_CAP)
    wrong = float(1.0 - y.mean())
    best = optimal_bins(error_rate=wrong, labels=p.size, lipschitz=value) if value * wrong else 1
    count, hits, confidences = _sums(p, y, best)
    ece = float(np.abs(hits - confidences).sum() / p.size)
    return PublishedSteepness(value, int(slopes.size), raw > LIPSCHITZ_CAP, ece)


def _sums(p: Floats, y: Floats, bins: int) -> tuple[Floats, Floats, Floats]:
    """Return rows, right answers and summed confidence by bin of equal width."""
    place = np.empty(p.size, np.intp)
    width_index(bins)(p, place, np.empty(p.size))
    place = np.minimum(place, bins - 1)
    weights: tuple[Floats | None, ...] = (None, y, p)
    sums = (np.bincount(place, weights=w, minlength=bins).astype(np.float64) for w in weights)
    count, hits, confidence = sums
    return count, hits, confidence


def with_published_steepness(
    block: VerificationBlock, confidence: ArrayLike, correct: ArrayLike
) -> VerificationBlock:
    """Return what labels show with the steepness of the paper's script in place of ours.

    It has no interval; that of the floor is the error rate's alone.
    """
    result, labels = published_steepness(confidence, correct), block.labels
    steep = Estimate(result.value, math.nan, math.nan, n=labels, interval="none published")
    rates = (block.error_rate.value, block.error_rate.low, block.error_rate.high)
    floor, low, high = (
        passive_floor(error_rate=rate, labels=labels, lipschitz=result.value) for rate in rates
    )
    bins = None
    if rates[0] and result.value:
        bins = optimal_bins(error_rate=rates[0], labels=labels, lipschitz=result.value)
    return structs.replace(
        block,
        lipschitz=steep,
        lipschitz_resolutions=[SlopeEntry(_BINS, steep, result.pairs, result.capped)],
        lipschitz_note=_NOTE,
        passive_floor=Estimate(floor, low, high, n=labels, interval="that of the error rate"),
        optimal_bins=bins,
    )
