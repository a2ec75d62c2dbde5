"""Judges beside people: agreement in order and kappa, and whether a judge has favourites."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Literal

import numpy as np
from scipy.special import stdtrit

from calibrant.core.arrays import EstimateEntry, Floats, Indices, Mask
from calibrant.metrics.stats.intervals import MeanError

# Leave-one-out values nearer to 1 than this would have an infinite arctanh.
_EDGE = 0.9999
# With no event among n, a rate of 3.7 / n is at the end of a two-sided 95 % interval.
_NO_EVENT = 3.7
_NOTHING, _TWO_SIDED = 1e-24, 0.975
_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")
KAPPA, SHARE = (-1.0, 1.0), (0.0, 1.0)
"""Ends of the statistics."""


@dataclass(frozen=True, slots=True)
class Jackknife:
    """A statistic of n items, and its values with each item left out."""

    value: float
    left_out: Floats

    def minus(self, other: Jackknife) -> Jackknife:
        """Return the difference to a statistic of the same items."""
        return Jackknife(self.value - other.value, self.left_out - other.left_out)

    def estimate(self, n: int, span: tuple[float, float] | None) -> EstimateEntry:
        """Return it with its 95 % interval, on the arctanh scale of a `span` with ends.

        The degrees of freedom follow from the kurtosis of what single items do: where a few items
        decide, a normal law promises too much.
        """
        low, high = span or (-1.0, 1.0)
        middle, half = (low + high) / 2, (high - low) / 2

        def scaled(values: Floats | float) -> Floats:
            inside = np.clip((values - middle) / half, -_EDGE, _EDGE)
            return np.asarray(np.arctanh(inside) if span else values, dtype=np.float64)

        items, each = self.left_out.size, scaled(self.left_out)
        shift = each - each.mean()
        square = float(shift @ shift)
        if square <= _NOTHING:
            # That all of n agree is no proof for those that nobody looked at.
            low = max(self.value - 2 * half * _NO_EVENT / max(n, 1), low) if span else self.value
            return EstimateEntry(value=self.value, low=low, high=self.value, n=n)
        reach = stdtrit(kurtosis_df(shift), _TWO_SIDED) * np.sqrt((items - 1) / items * square)
        ends = scaled(self.value) + np.array([-reach, reach])
        if span:
            ends = middle + half * np.tanh(ends)
        return EstimateEntry(value=self.value, low=float(ends[0]), high=float(ends[1]), n=n)


def kurtosis_df(influence: Floats) -> float:
    """Return degrees of freedom of a variance that is a sum of these squares, 3 to n - 1."""
    n = influence.size
    second = float((influence**2).sum())
    kurtosis = n * float((influence**4).sum()) / second**2 if second > 0 else 1.0
    return min(n - 1.0, max(2 * n / max(kurtosis - 1, 1e-9), 3.0))


def mean_of(parts: list[Jackknife]) -> Jackknife:
    """Return the mean of statistics of the same items."""
    values = [part.value for part in parts]
    return Jackknife(float(np.mean(values)), np.mean([part.left_out for part in parts], axis=0))


def quadratic_kappa(a: Floats, b: Floats) -> Jackknife:
    """Return kappa with quadratic weights, which is Lin's concordance; Cohen's for yes/no.

    Items without one of the two ratings (NaN) have no part in it.

    Examples
    --------
    >>> round(quadratic_kappa(np.array([1.0, 2, 3, 4]), np.array([1.0, 2, 3, 5])).value, 3)
    0.929
    """
    overlap = np.isfinite(a) & np.isfinite(b)
    x, y = np.where(overlap, a, 0.0), np.where(overlap, b, 0.0)
    parts = np.stack([overlap.astype(np.float64), x, y, x * x, y * y, x * y])
    total = parts.sum(axis=1)
    return Jackknife(float(_kappa(total)), _kappa(total[:, None] - parts))


def _kappa(sums: Floats) -> Floats:
    n, a, b, aa, bb, ab = sums
    a, b, aa, bb, ab = (part / np.maximum(n, 1.0) for part in (a, b, aa, bb, ab))
    spread = (aa - a * a) + (bb - b * b) + (a - b) ** 2
    flat = spread <= 1e-12
    return np.asarray(np.where(flat, 1.0, 2 * (ab - a * b) / np.where(flat, 1.0, spread)))


def right_order(judge: Floats, people: Floats) -> Jackknife:
    """Return how often the better of two items, by people, is put first; ties of the judge half.

    Any two scales will do: only the order counts. Pairs that people rate alike have no part.

    Examples
    --------
    >>> round(right_order(np.array([1.0, 2, 2]), np.array([1.0, 2, 3])).value, 3)
    0.833
    """
    overlap = np.isfinite(judge) & np.isfinite(people)
    s, y = (np.unique(part[overlap], return_inverse=True)[1] for part in (judge, people))
    wins, scores = np.zeros(s.size), int(s.max(initial=0)) + 1
    # Two ranks first differ in one bit: every pair is counted there, in n log(n)^2 steps in all.
    for bit in range(int(y.max(initial=0)).bit_length()):
        block, better = y >> (bit + 1), (y >> bit) % 2 == 1
        for chosen in (better, ~better):
            peers = np.sort((block * scores + s)[~chosen])
            mine = (block * scores)[chosen]
            first, last = np.searchsorted(peers, [mine, mine + scores])
            below, upto = (np.searchsorted(peers, mine + s[chosen], side) for side in _SIDES)
            middle = (below + upto) / 2
            wins[chosen] += np.where(better[chosen], middle - first, last - middle)
    pairs = s.size - np.bincount(y)[y] if s.size else wins
    each = np.zeros((2, judge.size))
    each[:, overlap] = wins, pairs
    total = each.sum(axis=1) / 2
    return _share(total, each)


def same_side(judge: Floats, people: Floats) -> Jackknife:
    """Return how often the side that people prefer (1 or 0, ties 0.5) is preferred; ties half."""
    counts = np.isfinite(judge) & np.isfinite(people) & (people != 0.5)
    agreed = np.where(people > 0.5, judge, 1.0 - judge)
    each = np.stack([np.where(counts, agreed, 0.0), counts.astype(np.float64)])
    return _share(each.sum(axis=1), each)


def _share(total: Floats, each: Floats) -> Jackknife:
    value = float(total[0] / total[1]) if total[1] > 0 else 0.5
    hits, pairs = total[:, None] - each
    return Jackknife(value, np.where(pairs > 0, hits / np.maximum(pairs, 1e-9), value))


def row_mean(ratings: Floats) -> Floats:
    """Return the mean rating of each row, NaN where nobody rated.

    Examples
    --------
    >>> row_mean(np.array([[1.0, 2.0], [np.nan, 3.0], [np.nan, np.nan]])).tolist()
    [1.5, 3.0, nan]
    """
    count = np.isfinite(ratings).sum(axis=1)
    return np.where(count > 0, np.nan_to_num(ratings).sum(axis=1) / np.maximum(count, 1), np.nan)


Statistic = Callable[[Floats, Floats], Jackknife]


def agreement(
    statistic: Statistic, judge: Floats, people: Floats
) -> tuple[Jackknife, Jackknife | None]:
    """Return the agreement of a judge with a person, and of two people, each the mean of all.

    Parameters
    ----------
    statistic
        `quadratic_kappa`, `right_order` or `same_side`.
    judge, people
        Ratings, shape (n,) and (n, people); NaN where somebody did not rate.

    Returns
    -------
    tuple
        The second is None for one person.
    """
    pair = permutations if statistic is not quadratic_kappa else combinations
    pairs = [(a, b) for a, b in pair(people.T, 2) if (np.isfinite(a) & np.isfinite(b)).sum() >= 2]
    with_judge = mean_of([statistic(judge, person) for person in people.T])
    return with_judge, mean_of([statistic(a, b) for a, b in pairs]) if pairs else None


# Rows that two people rated, on each side, from which on a claim is made.
FEWEST_A_SIDE = 15
# A group's spread is pulled towards that of all rows by so many rows: equal scores are no proof.
PULL = 5.0


def favour(judge: Floats, people: Floats, chosen: Mask) -> MeanError | None:
    """Return the favour of a judge for the chosen rows, by people who err independently.

    The judge's score is compared with what people's quality explains. A regression on people's
    ratings would explain too little, because these err too, and leave a part of the quality as
    'favour'. The slope is therefore the judge's covariance with people over the covariance of
    people with each other, in which errors of single people cancel.

    Parameters
    ----------
    judge
        Scores, shape (n,).
    people
        Ratings, shape (n, k), NaN where there is none; rows with two or more are used.
    chosen
        Rows of the model, family or length in question.

    Returns
    -------
    MeanError or None
        In the judge's own units, of the rows that two people rated; None where either side has
        fewer than 15 of these, or people do not agree at all.

    Notes
    -----
    Influence of a row: its residual over the rows of its side, and its part in the slope times
    the difference in quality. The degrees of freedom follow from the kurtosis of these, at most
    twice the smaller side.
    """
    twice = np.isfinite(people).sum(axis=1) >= 2
    s, y, m = judge[twice], people[twice], chosen[twice]
    n, inside = s.size, int(m.sum())
    if min(inside, n - inside) < FEWEST_A_SIDE:
        return None
    slope, influence = _slope(s, y, m.astype(np.intp))
    if not np.isfinite(slope):
        return None
    quality = row_mean(y)
    remainder = s - slope * quality
    value = float(remainder[m].mean() - remainder[~m].mean())
    lead = quality[m].mean() - quality[~m].mean()
    error = _centred(remainder[:, None], m.astype(np.intp))[:, 0]
    size = np.where(m, inside, n - inside)
    each = np.where(m, 1.0, -1.0) * error / size * np.sqrt(size / (size - 1.0))
    each = each - lead * influence / n
    small = m if m.sum() <= (~m).sum() else ~m
    own, rows, part = float((each[small] ** 2).sum()), float(small.sum()), error[small]
    mixed = pulled_variance(float(part @ part), rows, float(error.var()))
    variance = float(each @ each) + max(mixed / rows - own, 0.0)
    df = max(min(kurtosis_df(each), n - 2.0, 2.0 * min(inside, n - inside)), 3.0)
    return MeanError(value, float(np.sqrt(variance)), df, n)


def _slope(s: Floats, people: Floats, group: Indices) -> tuple[float, Floats]:
    """Return the judge's points per point of quality, and each row's influence on it."""
    score = _centred(s[:, None], group)[:, 0]
    ratings = _centred(people, group)
    count = np.isfinite(ratings).sum(axis=1)
    total = np.nansum(ratings, axis=1)
    # Over pairs of people: no rating meets itself, so that errors of one person cancel.
    shared = (total**2 - np.nansum(ratings**2, axis=1)) / (count * (count - 1))
    common = float(shared.mean())
    if common <= 0:
        return np.nan, shared
    joint = score * total / count
    slope = float(joint.mean()) / common
    return slope, (joint - slope * shared) / common


def _centred(values: Floats, group: Indices) -> Floats:
    """Return columns minus their means within each group; what is missing stays so."""
    finite = np.isfinite(values)
    sums = np.zeros((int(group.max()) + 1, values.shape[1]))
    count = sums.copy()
    np.add.at(sums, group, np.nan_to_num(values))
    np.add.at(count, group, finite)
    return np.asarray(values - (sums / np.maximum(count, 1))[group])


def pulled_variance(square: float, n: float, pooled: float) -> float:
    """Return the variance of `n` rows by their sum of squares, pulled to that of all rows."""
    return (square + PULL * pooled) / (n - 1 + PULL)


def lead_beyond_people(judge: Floats, people: Floats, chosen: Mask) -> MeanError | None:
    """Return how much larger the lead of the chosen rows is than by people, on one scale.

    That is no favour yet: one rating each cannot tell a judge's favour from people's errors.
    """
    y = row_mean(people)
    finite = np.isfinite(y)
    a, b = ((judge - y)[finite & side] for side in (chosen, ~chosen))
    fewest = min(a.size, b.size)
    if fewest < FEWEST_A_SIDE:
        return None
    error = np.sqrt(a.var(ddof=1) / a.size + b.var(ddof=1) / b.size)
    return MeanError(float(a.mean() - b.mean()), float(error), fewest - 1.0, a.size + b.size)
