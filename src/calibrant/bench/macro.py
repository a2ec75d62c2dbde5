"""Means over leaves (a domain, a number of right answers), each counted once, with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
import polars as pl
from msgspec import Struct, structs
from numpy.typing import ArrayLike

from calibrant.core.arrays import Array, Estimate, Floats, Indices, Ints, MaybeArray
from calibrant.core.errors import InputError
from calibrant.metrics.estimates import metric_estimates
from calibrant.metrics.stats import intervals, ranking


class Leaf(Struct, frozen=True):
    """Rows that are pooled, and their weight in the average over domains."""

    domain: str
    subtype: str | None
    rows: Indices
    weight: float

    @property
    def name(self) -> str:
        """For example ``math/prime``."""
        return self.domain if self.subtype is None else f"{self.domain}/{self.subtype}"


# The domain whose kinds are parts of their own.
_NESTED = "math"


def leaves(domain: ArrayLike, subtype: ArrayLike | None = None) -> list[Leaf]:
    """Return the parts to pool within, with weights that sum to 1.

    Every domain weighs the same. Math is the mean of its subtypes, so each of its five kinds of
    numbers has a fifth of its weight.

    Examples
    --------
    >>> parts = leaves(["award", "math", "math"], ["", "prime", "cube"])
    >>> [(part.name, part.weight) for part in parts]
    [('award', 0.5), ('math/cube', 0.25), ('math/prime', 0.25)]
    """
    domains = np.asarray(domain).astype(str)
    kinds = None if subtype is None else np.asarray(subtype).astype(str)
    names = sorted(set(domains.tolist()))
    parts = []
    for name in names:
        rows, share = np.flatnonzero(domains == name), 1 / len(names)
        if kinds is None or name != _NESTED:
            parts.append(Leaf(name, None, rows, share))
            continue
        nested = sorted(set(kinds[rows].tolist()))
        parts += [Leaf(name, k, rows[kinds[rows] == k], share / len(nested)) for k in nested]
    return parts


def mixes_of(ks: Collection[int]) -> list[list[int]]:
    """Return the mixes that add one number of answers after the other.

    Examples
    --------
    >>> mixes_of([6, 1, 2])
    [[1], [1, 2], [1, 2, 6]]
    """
    ordered = sorted(set(ks))
    return [ordered[: end + 1] for end in range(len(ordered))]


class ScoreRows(Struct, frozen=True):
    """The scores of one model and method as arrays."""

    question: Array
    confidence: Array
    correct: Array
    k: Array
    domain: Array
    subtype: Array | None

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.correct.size)

    @classmethod
    def of(cls, frame: pl.DataFrame) -> ScoreRows:
        """Read the rows of one model and method from a table of scores."""
        subtype = frame["subtype"].fill_null("").to_numpy() if "subtype" in frame.columns else None
        return cls(
            question=frame["question_id"].to_numpy(),
            confidence=frame["confidence"].to_numpy().astype(np.float64),
            correct=frame["correct"].cast(pl.Float64).to_numpy(),
            k=frame["k"].to_numpy(),
            domain=frame["domain"].to_numpy(),
            subtype=subtype,
        )

    def take(self, rows: Array) -> ScoreRows:
        """Return these rows alone."""
        columns = structs.astuple(self)
        parts: list[Any] = [None if column is None else column[rows] for column in columns]
        return ScoreRows(*parts)

    def of_k(self, ks: Collection[int]) -> ScoreRows:
        """Return the questions with one of these numbers of right answers."""
        return self.take(np.flatnonzero(np.isin(self.k, list(ks))))

    def shared(self, other: ScoreRows) -> tuple[ScoreRows, ScoreRows]:
        """Return the rows of the questions that both have, in the same order."""
        _, own, peers = np.intersect1d(self.question, other.question, return_indices=True)
        return self.take(own), other.take(peers)

    def leaves(self) -> list[Leaf]:
        """Domains, and the kinds within Math: the parts of accuracy and confidence."""
        return leaves(self.domain, self.subtype)

    def domains(self) -> list[Leaf]:
        """Whole domains: AUROC pools the kinds of Math, as the paper does (C.2)."""
        return leaves(self.domain, None)


_LEAST_RARER = 5
_USUAL = 0.95


class MacroPart(Struct, frozen=True):
    """A value within one leaf, its standard error and number of questions."""

    value: float
    error: float
    n: int


class Macro(Struct, frozen=True):
    """The mean over parts, and the parts where it is undefined."""

    estimate: Estimate
    left_out: tuple[str, ...]


def _part_mean(values: Array) -> MacroPart:
    """Return a mean with its standard error."""
    n = int(values.size)
    error = float(values.std(ddof=1) / math.sqrt(n)) if n > 1 else math.nan
    return MacroPart(float(values.mean()), error, n)


def _part_auroc(confidence: Array, correct: Array) -> MacroPart:
    """Return the AUROC of one part; NaN where all answers are right or all are wrong."""
    n = int(correct.size)
    if correct.min() == correct.max():
        return MacroPart(math.nan, math.nan, n)
    order = ranking.Ranked.of(confidence, correct, None)
    area, influence = order.measured("auroc")
    error = math.sqrt(influence.second_moment(order)) / n
    rarer = min(correct.sum(), n - correct.sum())
    if rarer < _LEAST_RARER and confidence.min() < confidence.max():
        # A handful of answers shows too little of its own spread; no AUROC varies more than
        # this bound (van Dantzig 1951), taken at an area drawn a little towards one half.
        pairs = correct.sum() * (n - correct.sum())
        near = (area * pairs + 0.5) / (pairs + 1)
        error = max(error, math.sqrt(near * (1 - near) / rarer))
    if area in (0.0, 1.0):
        # An area without a single exchange shows no spread; its score interval has a width.
        low, high = intervals.area_score_interval(area, correct.sum(), n - correct.sum(), _USUAL)
        error = max(error, (high - low) / intervals.normal_quantile(_USUAL))
    return MacroPart(area, error, n)


def macro_mean(
    values: Array,
    parts: Sequence[Leaf],
    *,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
) -> Macro:
    """Return the mean over parts of the mean within them.

    Values that never varied may still do so: with `bounds`, the range of the values, up to the
    share that this many questions may all have missed; without, there is no interval.

    Examples
    --------
    >>> parts = leaves(["a", "a", "a", "b"])
    >>> macro_mean(np.array([0.0, 0.0, 0.0, 1.0]), parts).estimate.value
    0.5
    """

    def interval(value: float, error: float, n: int, level: float) -> tuple[float, float]:
        if error > 0:
            low, high = intervals.wald_interval(value, error, level, units=n)
        elif bounds is None:
            return math.nan, math.nan
        else:
            unseen = intervals.unseen_share(n, level)
            low, high = (value + unseen * (bound - value) for bound in bounds)
        return (low, high) if bounds is None else (max(low, bounds[0]), min(high, bounds[1]))

    return _macro(lambda rows: _part_mean(values[rows]), parts, level, interval)


def macro_rate(correct: Array, parts: Sequence[Leaf], *, level: float = 0.95) -> Macro:
    """Return the mean over parts of the share of right answers; the interval is Wilson's."""
    return _macro(lambda rows: _part_mean(correct[rows]), parts, level, _wilson)


def macro_auroc(
    confidence: Array, correct: Array, parts: Sequence[Leaf], *, level: float = 0.95
) -> Macro:
    """Return the mean over parts of the AUROC within them.

    A part where all answers are right, or all are wrong, has no AUROC; it is left out of the
    mean and named.

    Examples
    --------
    >>> parts = leaves(["a"] * 3 + ["b"] * 2)
    >>> found = macro_auroc(np.array([.9, .8, .1, .5, .5]), np.array([1., 0, 0, 1, 1]), parts)
    >>> found.estimate.value, found.left_out
    (1.0, ('b',))
    """
    return _macro(lambda rows: _part_auroc(confidence[rows], correct[rows]), parts, level, _logit)


def _macro(
    of_rows: Callable[[Array], MacroPart],
    parts: Sequence[Leaf],
    level: float,
    interval: Callable[[float, float, int, float], tuple[float, float]],
) -> Macro:
    measurements = _with_errors([(leaf, of_rows(leaf.rows)) for leaf in parts])
    left_out = tuple(leaf.name for leaf, part in measurements if math.isnan(part.value))
    defined = [(leaf, part) for leaf, part in measurements if not math.isnan(part.value)]
    if not defined:
        return Macro(Estimate(math.nan, math.nan, math.nan, n=0, level=level), left_out)
    n, total = sum(part.n for _, part in defined), sum(leaf.weight for leaf, _ in defined)
    value = sum(leaf.weight * part.value for leaf, part in defined) / total
    error = math.sqrt(sum((leaf.weight * part.error / total) ** 2 for leaf, part in defined))
    low, high = interval(value, error, n, level) if math.isfinite(error) else (math.nan, math.nan)
    return Macro(Estimate(value, low, high, n=n, level=level), left_out)


def _with_errors(measurements: list[tuple[Leaf, MacroPart]]) -> list[tuple[Leaf, MacroPart]]:
    """Give a part of one question, which has no spread, the pooled spread of the others."""
    spread = [(p.n - 1, p.error**2 * p.n) for _, p in measurements if p.n > 1 and p.error >= 0]
    freedom = sum(n for n, _ in spread)
    if not freedom:
        return measurements
    pooled = math.sqrt(sum(n * variance for n, variance in spread) / freedom)
    return [
        (leaf, MacroPart(part.value, pooled, 1) if part.n == 1 else part)
        for leaf, part in measurements
    ]


def _logit(value: float, error: float, n: int, level: float) -> tuple[float, float]:
    """Return the interval on the logit scale; at 0 and 1, where there is none, to one side."""
    if error == 0:
        return _wilson(value, error, n, level)
    if not 0 < value < 1:
        reach = intervals.normal_quantile(level) * error
        return max(value - reach, 0.0), min(value + reach, 1.0)
    return intervals.logit_interval(value, error, level, units=n)


def _wilson(value: float, error: float, n: int, level: float) -> tuple[float, float]:
    """Return Wilson's interval for the number of questions that the error is worth."""
    worth = value * (1 - value) / error**2 if error > 0 else float(n)
    low, high = intervals.wilson_interval(value, worth, level)
    return float(low), float(high)


def difference(first: Estimate, second: Estimate) -> Estimate:
    """Return second minus first of two independent estimates.

    The distances to the ends of their intervals are added in squares, each side for itself
    (Zou and Donner 2008), so that an end that shows no spread still counts with its interval.

    Examples
    --------
    >>> few, many = Estimate(0.5, 0.4, 0.6, n=90), Estimate(1.0, 0.9, 1.0, n=40)
    >>> print(difference(few, many))
    0.500 [0.359, 0.600]
    """
    value = second.value - first.value
    low = value - math.hypot(second.value - second.low, first.high - first.value)
    high = value + math.hypot(second.high - second.value, first.value - first.low)
    n = first.n + second.n
    return Estimate(value, low, high, n=n, level=first.level, interval="combined ends")


def macro_ece(
    confidence: Array,
    correct: Array,
    parts: Sequence[Leaf],
    *,
    level: float = 0.95,
) -> Estimate:
    """Return the mean over parts of the ECE within them (15 equal-width bins).

    Each part's interval comes from inverting a test of its own; the distances to their ends
    are added in squares, each side for itself (Zou and Donner 2008), so the interval stays
    lopsided where those of the parts are.

    Examples
    --------
    >>> found = macro_ece(np.array([0.9] * 50 + [0.1] * 50), np.ones(100), leaves(["a"] * 100))
    >>> round(found.value, 3)
    0.5
    """
    generator = np.random.default_rng(0)
    value = below = above = 0.0
    for leaf in parts:
        ece = metric_estimates(
            confidence[leaf.rows], correct[leaf.rows], names=("ece",), level=level, rng=generator
        )["ece"]
        value += leaf.weight * ece.value
        below += (leaf.weight * (ece.value - ece.low)) ** 2
        above += (leaf.weight * (ece.high - ece.value)) ** 2
    n = sum(leaf.rows.size for leaf in parts)
    low, high = value - math.sqrt(below), value + math.sqrt(above)
    return Estimate(value, low, high, n=n, level=level, interval="combined inversions")


def knowledge_coverage(
    unit: ArrayLike, class_id: ArrayLike, mass: MaybeArray = None, *, threshold: float = 0.1
) -> tuple[Array, Ints]:
    """Return the units and their number of meanings with at least `threshold` of the mass.

    Parameters
    ----------
    unit
        Question of each draw, shape (n,).
    class_id
        Meaning of each draw; negative for a draw without an answer, which counts in the mass
        of its question but is no meaning.
    mass
        Probability of each draw's text. Without it every draw weighs 1 / draws of its question.
    threshold
        Least mass of a meaning that counts as known.

    References
    ----------
    Wang et al., 'Evaluating and Calibrating LLM Confidence on Questions with Multiple Correct
    Answers', where the mass is the summed probability of the texts.

    Examples
    --------
    >>> knowledge_coverage(["q"] * 20, [0] * 12 + [1] * 6 + [2] * 1 + [3] * 1)
    (array(['q'], dtype='<U1'), array([2]))
    """
    if not 0 <= threshold <= 1:
        raise InputError(f"the threshold lies in [0, 1], got {threshold}")
    names, codes = np.unique(np.asarray(unit), return_inverse=True)
    classes = np.asarray(class_id)
    if classes.shape != codes.shape:
        raise InputError(f"one class per draw: {codes.size} draws, {classes.size} classes")
    shares = 1.0 / np.bincount(codes)[codes]
    weight = shares if mass is None else np.asarray(mass, dtype=np.float64)
    pairs, inverse = np.unique(np.stack([codes, classes]), axis=1, return_inverse=True)
    sums = np.bincount(np.ravel(inverse), weight, pairs.shape[1])
    # Twenty draws of 0.05 make 1.0 only up to rounding, and 0.1 means two of twenty.
    finite = (pairs[1] >= 0) & (sums >= threshold - 1e-12)
    return names, np.bincount(pairs[0][finite], minlength=names.size).astype(np.int64)


def _mean_ranks(values: Floats) -> Floats:
    """Return ranks; equal values share the mean of theirs. Loading `scipy.stats` takes a second."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(count) - (count - 1) / 2)[place])


def spearman(first: ArrayLike, second: ArrayLike, *, level: float = 0.95) -> Estimate:
    """Return Spearman's rank correlation, in [-1, 1]; NaN where one side is constant.

    The interval is Fisher's with the variance of Bonett and Wright (2000).

    Examples
    --------
    >>> spearman([1, 2, 3, 4, 5], [5, 6, 7, 8, 7]).value
    0.82...
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    n = int(a.size)
    if n < 4 or a.min() == a.max() or b.min() == b.max():
        return Estimate(math.nan, math.nan, math.nan, n=n, level=level)
    rho = float(np.corrcoef(_mean_ranks(a), _mean_ranks(b))[0, 1])
    if abs(rho) >= 1:
        return Estimate(rho, math.nan, math.nan, n=n, level=level, interval="fisher")
    reach = intervals.normal_quantile(level) * math.sqrt((1 + rho**2 / 2) / (n - 3))
    low, high = (math.tanh(math.atanh(rho) + side * reach) for side in (-1, 1))
    return Estimate(rho, low, high, n=n, level=level, interval="fisher")
