"""Is one method's AUROC higher than another's? A bootstrap over questions, paired."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from calibrant.core.arrays import Array, Floats
from calibrant.core.errors import InputError
from calibrant.core.estimate import Estimate
from calibrant.core.rng import RngLike, as_generator
from calibrant.metrics.multi_answer.leaves import Leaf
from calibrant.metrics.multi_answer.macro import macro_auroc
from calibrant.stats.bootstrap import percentile_interval


@dataclass(frozen=True, slots=True)
class Comparison:
    """Difference of two AUROCs (first minus second), and how surely it is not 0.

    `p` is two-sided: twice the smaller share of draws on either side of 0, where one draw is
    added to each side, so that it is never 0. It is as coarse as the number of draws; what is
    corrected for many comparisons needs a finer one: `p_student` takes the spread of the draws,
    brought to all questions (`error`), and Student's law with `freedom` degrees.
    """

    difference: Estimate
    p: float
    p_student: float
    draws: int
    items: int
    error: float
    freedom: int


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
        times = _times_taken(taken, leaf.rows.size)
        areas = [
            _resampled_areas(values[leaf.rows], correct[leaf.rows], times)
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
    gaps: Floats,
    items: int,
    level: float,
) -> Comparison:
    n = sum(leaf.rows.size for leaf in parts)
    values = [macro_auroc(*method, parts).estimate.value for method in (first, second)]
    if gaps.size == 0 or any(math.isnan(value) for value in values):
        nothing = Estimate(math.nan, math.nan, math.nan, n=n, level=level)
        return Comparison(nothing, math.nan, math.nan, int(gaps.size), items, math.nan, 1)
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
    freedom = max(rarer - 1, 1)
    student = _student_p(estimate.value, spread, freedom, p)
    return Comparison(estimate, p, student, int(gaps.size), items, spread, freedom)


def _rarer(correct: Array) -> int:
    """Return the number of the rarer outcome: it limits what an AUROC rests on."""
    right = np.count_nonzero(correct > 0)
    return int(min(right, correct.size - right))


def _student_p(difference: float, spread: float, freedom: int, p: float) -> float:
    """Return the two-sided p-value of the difference by Student's law.

    Degrees of freedom come from the rarer outcome: with a handful of right answers the draws
    show too little of their own spread, and only so does the test keep its level far out.
    """
    if spread == 0:
        return 1.0 if difference == 0 else p
    return float(2 * special.stdtr(freedom, -abs(difference) / spread))


def _times_taken(taken: NDArray[np.int64], size: int) -> NDArray[np.int32]:
    """Return how often each row is taken by each draw, shape (rows, draws)."""
    draws = taken.shape[0]
    place = draws * taken + np.arange(draws)[:, None]
    return np.bincount(place.ravel(), minlength=draws * size).astype(np.int32).reshape(size, draws)


def _resampled_areas(score: Array, correct: Array, times: NDArray[np.int32]) -> Floats:
    """Return the AUROC of each draw: wrong answers sorted once, looked up by the right ones."""
    right, wrong = np.flatnonzero(correct > 0), np.flatnonzero(correct <= 0)
    wrong = wrong[np.argsort(score[wrong], kind="stable")]
    # Wrong answers of a draw below each place of their order.
    below = np.zeros((wrong.size + 1, times.shape[1]), np.int32)
    np.cumsum(times[wrong], axis=0, out=below[1:])
    low, high = (np.searchsorted(score[wrong], score[right], side=s) for s in ("left", "right"))
    hits = times[right]
    # Twice the pairs won, so that a tie counts one and all stays in whole numbers.
    beaten = below[low]
    beaten += below[high]
    won = np.einsum("ij,ij->j", hits, beaten, dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        areas: Floats = won / (2.0 * hits.sum(axis=0) * below[-1])
    return areas
