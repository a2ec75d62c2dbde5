"""Is one method's AUROC higher than another's? A bootstrap over questions, paired."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

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
    added to each side, so that it is never 0. It is as coarse as the number of draws; what is
    corrected for many comparisons needs a finer one: `p_student` takes the spread of the draws,
    brought to all questions, and Student's law.
    """

    difference: Estimate
    p: float
    p_student: float
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
        Confidence and outcome of each method, row by row about the same questions. A fair
        comparison gives both the same outcomes: the grades of one and the same answer.
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
        return Comparison(nothing, math.nan, math.nan, int(gaps.size), items)
    low, high = percentile_interval(gaps, level)
    above = (1 + np.count_nonzero(gaps >= 0)) / (gaps.size + 1)
    below = (1 + np.count_nonzero(gaps <= 0)) / (gaps.size + 1)
    estimate = Estimate(
        values[0] - values[1], low, high, n=n, level=level, interval="bootstrap-percentile"
    )
    p = float(min(1.0, 2 * min(above, below)))
    rows = np.concatenate([leaf.rows for leaf in parts])
    rarer = min(_rarer(correct[rows]) for _, correct in (first, second))
    # Draws of fewer questions vary more than the questions at hand do.
    spread = float(gaps.std(ddof=1)) * math.sqrt(items / n)
    student = _student_p(estimate.value, spread, rarer, p)
    return Comparison(estimate, p, student, int(gaps.size), items)


def _rarer(correct: Array) -> int:
    """Return the number of the rarer outcome: it limits what an AUROC rests on."""
    right = np.count_nonzero(correct > 0)
    return int(min(right, correct.size - right))


def _student_p(difference: float, spread: float, rarer: int, p: float) -> float:
    """Return the two-sided p-value of the difference by Student's law.

    Degrees of freedom come from the rarer outcome: with a handful of right answers the draws
    show too little of their own spread, and only so does the test keep its level far out.
    """
    if spread == 0:
        return 1.0 if difference == 0 else p
    return float(2 * special.stdtr(max(rarer - 1, 1), -abs(difference) / spread))


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
