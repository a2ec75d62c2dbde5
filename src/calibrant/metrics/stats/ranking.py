"""Ranking measures and their influence functions, from sums at distinct scores."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from msgspec import Struct
from scipy.special import digamma, xlogy

from calibrant.core.arrays import Array, Floats, Indices, Mask


class DistinctSums(NamedTuple):
    """Weight and summed outcome at each distinct confidence, or other score, in order."""

    confidence: Floats
    weight: Floats
    outcome: Floats

    @classmethod
    def of(cls, confidence: Array, correct: Array, weights: Array | None) -> DistinctSums:
        """Return the sums at distinct confidences, rising: equal ones must get equal fits.

        Examples
        --------
        >>> sums = DistinctSums.of(np.array([0.5, 0.2, 0.5]), np.array([1, 0, 0]), None)
        >>> sums.confidence.tolist(), sums.weight.tolist(), sums.outcome.tolist()
        ([0.2, 0.5], [1.0, 2.0], [0.0, 1.0])
        """
        order = np.argsort(confidence)
        ordered, outcome = confidence[order], correct[order].astype(np.float64)
        starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
        if weights is None:
            mass = np.diff(starts, append=ordered.size).astype(np.float64)
        else:
            heavy = weights[order].astype(np.float64)
            outcome *= heavy
            mass = np.add.reduceat(heavy, starts)
        return cls(ordered[starts].astype(np.float64), mass, np.add.reduceat(outcome, starts))


class Influence(Struct, frozen=True):
    """An influence function a[g] + b[g] * outcome at score group g; its mean is 0."""

    constant: Floats
    slope: Floats

    def rows(self, group: Indices, correct: Array) -> Floats:
        """Return its value at every row."""
        return self.constant[group] + self.slope[group] * correct

    def second_moment(self, ranked: Ranked) -> float:
        """Return the weighted sum of its squares."""
        a, b = self.constant, self.slope
        return float(ranked.weight @ a**2 + 2 * (ranked.outcome @ (a * b)) + ranked.squares @ b**2)


class Ranked(Struct, frozen=True):
    """Sums at distinct scores, from the highest score down; `group` maps rows to them."""

    score: Floats
    weight: Floats
    outcome: Floats
    squares: Floats
    group: Indices

    @classmethod
    def of(cls, score: Array, correct: Array, weights: Array | None, *, rows: bool = True) -> Self:
        """Sort once and sum; without `rows` the map from rows to groups is left empty."""
        order = np.argsort(score, kind="stable")[::-1]
        ordered = score[order]
        new = np.empty(ordered.size, np.bool_)
        new[0] = True
        np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
        starts = np.flatnonzero(new)
        group = np.empty(ordered.size if rows else 0, np.intp)
        if rows:
            group[order] = np.cumsum(new) - 1
        outcome = correct[order].astype(np.float64)
        weight = np.diff(starts, append=ordered.size).astype(np.float64)
        parts = [outcome, outcome * outcome]
        if weights is not None:
            heavy = weights[order].astype(np.float64)
            weight, parts = np.add.reduceat(heavy, starts), [part * heavy for part in parts]
        sums, squares = (np.add.reduceat(part, starts) for part in parts)
        return cls(ordered[starts].astype(np.float64), weight, sums, squares, group)

    @property
    def total(self) -> float:
        """Sum of all weights."""
        return float(self.weight.sum())

    def scaled(self, factor: float) -> Ranked:
        """Return the same with all weights times `factor`."""
        if factor == 1:
            return self
        weight, outcome = self.weight * factor, self.outcome * factor
        return Ranked(self.score, weight, outcome, self.squares * factor, self.group)

    def measured(self, name: str) -> tuple[float, Influence]:
        """Return ``auroc``, ``auprc`` or ``aurc``, and its influence function."""
        value, influence = _MEASURES[name](self.weight, self.outcome)
        return float(value), influence


def area_by_merge(score: Array, positive: Mask) -> float:
    """Return the area under the ROC curve by sorting the two classes apart.

    The smaller class is looked up in the larger; ties count one half, exactly.
    """
    high, low = np.sort(score[positive]), np.sort(score[~positive])
    smaller, larger = (high, low) if high.size <= low.size else (low, high)
    below = np.searchsorted(larger, smaller, side="left")
    tied = larger[np.minimum(below, larger.size - 1)] == smaller
    pairs = float(below.sum(dtype=np.int64))
    if tied.any():
        first = below[tied]
        pairs += float((np.searchsorted(larger, smaller[tied], side="right") - first).sum()) / 2
    area = pairs / (float(smaller.size) * float(larger.size))
    return area if smaller is high else 1.0 - area


def area_under_curve(weight: Floats, outcome: Floats) -> tuple[Floats, Influence]:
    """Return the area under the ROC curve and its influence function, of one model or of several.

    A grade between 0 and 1 is that share of a right answer and the rest of a wrong one.
    """
    misses = weight - outcome
    positives, negatives, total = (_whole(column) for column in (outcome, misses, weight))
    beaten = (negatives - np.cumsum(misses, axis=-1) + misses / 2) / negatives
    beating = (np.cumsum(outcome, axis=-1) - outcome / 2) / positives
    area = _products(outcome, beaten) / positives
    of_hit = (beaten - area) * (total / positives)
    of_miss = (beating - area) * (total / negatives)
    return area[..., 0], Influence(of_miss, of_hit - of_miss)


def average_precision(weight: Floats, outcome: Floats) -> tuple[Floats, Influence]:
    """Return the average precision and its influence function, of one model or of several.

    A grade between 0 and 1 is that share of a right answer and the rest of a wrong one.
    """
    total = _whole(weight)
    share = _whole(outcome) / total
    covered = np.cumsum(weight, axis=-1) / total
    precision = np.cumsum(outcome, axis=-1) / total / covered
    joint = _products(outcome, precision) / total
    value = joint / share
    # Sums over all scores at or below the row's own, hence from the end.
    gained = _from_end(outcome / total / covered)
    missing = _from_end(outcome / total * precision / covered)
    slope = (precision + gained - value) / share
    constant = (-joint - missing + value * share) / share
    return value[..., 0], Influence(constant, slope)


def average_risk(weight: Floats, outcome: Floats) -> tuple[Floats, Influence]:
    """Return the area under the risk-coverage curve and its influence, of one model or of several.

    Risk is 1 minus the outcome. The value is the mean over k of the risk among the k highest
    scores; equal scores are taken in random order, in expectation. Whole weights count as
    repetitions.
    """
    total = _whole(weight)
    rate = 1.0 - outcome / weight
    places = np.zeros((*weight.shape[:-1], weight.shape[-1] + 1))
    np.cumsum(weight, axis=-1, out=places[..., 1:])
    # A risk; where every row is wrong rounding must not make it more than 1.
    value = np.minimum(_products(rate, _harmonic_shares(places, weight, total)) / total, 1.0)
    # In the limit the value is the sum of error mass times `depth`, the mean of -ln(coverage) over
    # a group. Mass that moves to a row changes the masses, the depth of the row's own group, and
    # the coverage of all groups after it.
    reached = xlogy(places, places / total) / total
    depth = 1.0 - (reached[..., 1:] - reached[..., :-1]) * (total / weight)
    log_covered = np.log(places[..., 1:] / total)
    later = np.zeros(rate.shape)
    later[..., :-1] = _from_end(rate[..., 1:] * (log_covered[..., 1:] - log_covered[..., :-1]))
    errors = rate * weight / total
    constant = depth - rate * (log_covered + depth) - later + _products(errors, 1.0 - depth)
    return value[..., 0], Influence(constant, -depth)


_MEASURES = {"auroc": area_under_curve, "auprc": average_precision, "aurc": average_risk}


def _whole(column: Floats) -> Floats:
    return np.asarray(column.sum(axis=-1, keepdims=True))


def _products(first: Floats, second: Floats) -> Floats:
    """Return the sum of products along the last axis, which stays with length 1."""
    return np.asarray(np.vecdot(first, second))[..., None]


def average_risk_value(score: Array, correct: Array, weights: Array | None, total: float) -> float:
    """Return the value of `average_risk` alone.

    Parameters
    ----------
    score, correct, weights
        Rows in any order.
    total
        Sum of the weights; places are counted in rows, so that their scale does not matter.
    """
    _, weight, outcome = (part[::-1] for part in DistinctSums.of(score, correct, weights))
    places = weight * (score.size / total)
    ends = np.cumsum(np.concatenate([[0.0], places]))
    value = (1.0 - outcome / weight) @ _harmonic_shares(ends, places, float(score.size))
    return min(float(value) / score.size, 1.0)


def _harmonic_shares(places: Floats, weight: Floats, total: Any) -> Floats:
    """Return, per group, the sum over its places i of (1/i + 1/(i+1) + ... + 1/total).

    Group g is on the places (places[g], places[g + 1]]. With H the harmonic numbers (digamma
    between whole numbers) and the identity sum of H(j) for j < n = n H(n) - n, a group on places
    (A, B] has (B - A)(H(total) + 1) - (B H(B) - A H(A)).
    """
    products = places * _harmonic(places)
    shares = weight * (_harmonic(total) + 1) - (products[..., 1:] - products[..., :-1])
    return np.asarray(shares)


def _harmonic(number: Any) -> Any:
    return digamma(number + 1) + np.euler_gamma


def _from_end(values: Floats) -> Floats:
    return np.cumsum(values[..., ::-1], axis=-1)[..., ::-1]
