"""Binned calibration error with its upward bias taken off."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from calibrant.core.arrays import Floats
from calibrant.metrics.binned import BinStats, bin_statistics
from calibrant.metrics.inputs import check, check_choice
from calibrant.stats.inversion import Search, rooting, side_by_side


def ece_debiased(
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    bins: int = 15,
    strategy: str = "width",
    norm: str = "l1",
    estimator: str = "matched",
    weights: ArrayLike | None = None,
) -> float:
    r"""Return a binned calibration error with its upward bias taken off, in [0, 1]; 0 is best.

    Parameters
    ----------
    confidence, correct, bins, strategy, weights
        As for `ece`.
    norm
        ``l1`` or ``l2``.
    estimator
        For ``l1`` only. ``matched`` (the one that audits report): the observed gaps are shrunk
        by a common factor until the ECE that one would expect to observe,
        :math:`\sum_b p_b E|N(t g_b, s_b^2)|`, equals the ECE observed; the value is
        :math:`t \sum_b p_b |g_b|`, and 0 where even perfect calibration would be expected to
        show more. ``normal``: the observed ECE minus the bias that resampling normal bin means
        would show, :math:`2 \mathrm{ECE} - \sum_b p_b E|N(g_b, s_b^2)|` (in closed form; may
        fall slightly below 0), which removes only part of the bias near perfect calibration.
        For ``l2`` there is one form: each squared gap loses its sampling variance
        :math:`r_b(1-r_b)/(n_b-1)`; bins with one row are left out, a negative sum gives 0.

    References
    ----------
    Kumar, Liang, Ma (2019), 'Verified uncertainty calibration' (``l2`` and ``normal``);
    Broecker (2012), 'Estimating reliability and resolution of probability forecasts'.

    Examples
    --------
    >>> round(ece_debiased([0.9] * 10, [1, 1, 1, 1, 1, 1, 1, 1, 0, 0], bins=10), 3)
    0.052
    """
    check_choice("norm", norm, ("l1", "l2"))
    check_choice("estimator", estimator, ("matched", "normal"))
    stats = bin_statistics(check(confidence, correct, weights), bins=bins, strategy=strategy)
    if norm == "l2":
        return _l2_debiased(stats)
    return matched_error(stats) if estimator == "matched" else _l1_normal(stats)


def _l2_debiased(stats: BinStats) -> float:
    many = stats.effective > 1
    variance = stats.rate * (1 - stats.rate) / np.where(many, stats.effective - 1, 1)
    square = float(stats.mass @ np.where(many, stats.gap**2 - variance, 0.0))
    return math.sqrt(max(square, 0.0))


def _l1_normal(stats: BinStats) -> float:
    error = np.sqrt(stats.rate * (1 - stats.rate) / stats.effective)
    gap = np.abs(stats.gap)
    return float(stats.mass @ (2 * gap - folded_mean(gap, error)))


def matched_error(stats: BinStats, *, inflation: float = 1.0) -> float:
    """Return the ``matched`` debiased ECE of bin sums.

    `inflation` is the variance of the data's own units over that of independent rows.
    """
    return matched_errors([stats], [inflation])[0]


def matched_errors(stats: Sequence[BinStats], inflations: Sequence[float]) -> list[float]:
    """Return what `matched_error` does for many models, which are worked on together."""
    starts = np.cumsum([0, *(one.mass.size for one in stats)])
    mass, mean, rate, spread, effective = (
        np.concatenate([getattr(one, name) for one in stats])
        for name in ("mass", "confidence", "rate", "spread", "effective")
    )
    inflation = np.repeat(inflations, np.diff(starts))
    signed = mean - rate
    gap = np.abs(signed)
    pieces = [slice(*ends) for ends in pairwise(starts.tolist())]

    def excess(numbers: list[int], shrinks: list[float]) -> list[float]:
        some = np.concatenate([np.arange(pieces[k].start, pieces[k].stop) for k in numbers])
        sizes = [pieces[k].stop - pieces[k].start for k in numbers]
        shrink = np.repeat(shrinks, sizes)
        moved = shrink * signed[some]
        variance = spread[some] + moved * (2 * mean[some] - 1) - moved**2
        error = np.sqrt(np.maximum(variance, 0.0) * inflation[some] / effective[some])
        folded = folded_mean(shrink * gap[some], error)
        ends = pairwise([0, *accumulate(sizes)])
        return [
            float(mass[pieces[k]] @ folded[first:last]) - observed[k]
            for k, (first, last) in zip(numbers, ends, strict=True)
        ]

    observed = [float(mass[piece] @ gap[piece]) for piece in pieces]
    return side_by_side([_matching(one) for one in observed], excess)


def _matching(observed: float) -> Search:
    """Look for the share of the gaps that would show the observed error."""
    none = yield 0.0
    all_of_it = yield 1.0
    if none >= 0:
        return 0.0
    if all_of_it <= 0:
        return observed
    shrink = yield from rooting((0.0, none), (1.0, all_of_it))
    return shrink * observed


def folded_mean(centre: Floats, error: Floats) -> Floats:
    """Return E|X| for normal X with the given mean and standard deviation (0 allowed)."""
    scale = np.where(error > 0, error, 1.0)
    ratio = centre / scale
    mean = scale * math.sqrt(2 / math.pi) * np.exp(-(ratio**2) / 2) + centre * special.erf(
        ratio / math.sqrt(2)
    )
    return np.where(error > 0, mean, np.abs(centre))
