"""Is one method's AUROC higher than another's? A bootstrap over questions, paired."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.core.errors import InputError
from calibrant.core.estimate import Estimate
from calibrant.core.rng import RngLike, as_generator
from calibrant.metrics.multi_answer.leaves import Leaf
from calibrant.metrics.multi_answer.macro import macro_auroc
from calibrant.stats.bootstrap import percentile_interval
from calibrant.stats.ranking import Ranked

__all__ = ["Comparison", "compare_aurocs"]

FloatArray = NDArray[np.float64]
Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Difference of two AUROCs (first minus second), and how surely it is not 0.

    `p` is two-sided: twice the smaller share of draws on either side of 0, where one draw is
    added to each side, so that it is never 0.
    """

    difference: Estimate
    p: float
    draws: int
    items: int


def compare_aurocs(
    first: tuple[Array, Array],
    second: tuple[Array, Array],
    parts: Sequence[Leaf],
    *,
    draws: int = 1_000,
    items: int | None = 1_000,
    level: float = 0.95,
    rng: RngLike = 0,
) -> Comparison:
    """Compare two methods on the same questions.

    In each draw, `items` questions are taken with replacement, shared by the parts in
    proportion to their sizes; both methods are scored on the same ones. A part that a draw
    leaves without right or without wrong answers is left out of that draw for both methods.

    Parameters
    ----------
    first, second
        Confidence and outcome of each method, row by row about the same questions. The
        outcomes may differ: each method is about its own answer.
    parts
        Parts to pool within; one part with all rows gives the pooled test.
    draws, items
        Number of draws and of questions in each; None, and at most: as many as there are.
    level
        Coverage of the interval of the difference.
    rng
        Source of randomness.

    Examples
    --------
    >>> from calibrant.metrics.multi_answer.leaves import leaves
    >>> rng = np.random.default_rng(0)
    >>> right = (rng.random(400) < 0.5).astype(float)
    >>> good, bad = right + rng.normal(size=400), rng.normal(size=400)
    >>> compare_aurocs((good, right), (bad, right), leaves(["a"] * 400)).p < 0.01
    True
    """
    if draws < 100:
        raise InputError(f"a test needs at least 100 draws, got {draws}")
    size = sum(leaf.rows.size for leaf in parts)
    # More questions than there are would promise a precision that the data do not have.
    drawn = size if items is None else min(items, size)
    generator = as_generator(rng)
    sums = [np.zeros(draws), np.zeros(draws)]
    weights = np.zeros(draws)
    for leaf in parts:
        # Every part gives at least two questions: with fewer it has no AUROC at all.
        share = max(2, round(drawn * leaf.rows.size / size))
        taken = generator.integers(leaf.rows.size, size=(draws, share))
        areas = [
            _resampled_areas(values[leaf.rows], correct[leaf.rows], taken)
            for values, correct in (first, second)
        ]
        defined = ~np.isnan(areas[0]) & ~np.isnan(areas[1])
        weights += leaf.weight * defined
        for total, area in zip(sums, areas, strict=True):
            total += np.where(defined, leaf.weight * area, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        gaps = (sums[0] - sums[1]) / weights
    return _comparison(first, second, parts, gaps[weights > 0], drawn, level)


def _comparison(
    first: tuple[Array, Array],
    second: tuple[Array, Array],
    parts: Sequence[Leaf],
    gaps: FloatArray,
    items: int,
    level: float,
) -> Comparison:
    n = sum(leaf.rows.size for leaf in parts)
    values = [macro_auroc(*method, parts).estimate.value for method in (first, second)]
    if gaps.size == 0 or any(math.isnan(value) for value in values):
        nothing = Estimate(math.nan, math.nan, math.nan, n=n, level=level)
        return Comparison(nothing, math.nan, int(gaps.size), items)
    low, high = percentile_interval(gaps, level)
    above = (1 + np.count_nonzero(gaps >= 0)) / (gaps.size + 1)
    below = (1 + np.count_nonzero(gaps <= 0)) / (gaps.size + 1)
    estimate = Estimate(
        values[0] - values[1], low, high, n=n, level=level, interval="bootstrap-percentile"
    )
    return Comparison(estimate, float(min(1.0, 2 * min(above, below))), int(gaps.size), items)


def _resampled_areas(score: Array, correct: Array, taken: NDArray[np.int64]) -> FloatArray:
    """Return the AUROC of each row of `taken`: sorted once, then counts at distinct scores."""
    ranked = Ranked.of(score, correct, None)
    draws, groups = taken.shape[0], ranked.score.size
    place = ranked.group[taken] + groups * np.arange(draws)[:, None]
    shape = (draws, groups)
    size = draws * groups
    hits = np.bincount(place[correct[taken] > 0], minlength=size).reshape(shape)
    misses = np.bincount(place.ravel(), minlength=size).reshape(shape) - hits
    positives, negatives = hits.sum(axis=1), misses.sum(axis=1)
    # Twice the pairs won, so that a tie counts one and all stays in whole numbers.
    below = 2 * (negatives[:, None] - np.cumsum(misses, axis=1)) + misses
    with np.errstate(invalid="ignore", divide="ignore"):
        areas: FloatArray = (hits * below).sum(axis=1) / (2.0 * positives * negatives)
    return areas
