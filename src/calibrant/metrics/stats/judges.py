"""Judges beside people: agreement in order and kappa, and whether a judge has favourites."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import numpy as np
from scipy.special import stdtrit

from calibrant.core.arrays import EstimateEntry, Floats, Mask
from calibrant.metrics.stats.intervals import Bounds, MeanError

# Leave-one-out values nearer to 1 than this would have an infinite arctanh.
_EDGE = 0.9999
# With no event among n, a rate of 3.7 / n is at the end of a two-sided 95 % interval.
_NO_EVENT = 3.7
_NOTHING, _TWO_SIDED = 1e-24, 0.975
KAPPA, SHARE = (-1.0, 1.0), (0.0, 1.0)
"""Ends of the statistics."""


def jackknife_estimate(jackknife: Floats, n: int, span: Bounds | None = None) -> EstimateEntry:
    """Return a statistic with its 95 % interval, on the arctanh scale of a `span` with ends.

    The first value is that of all items, each other one that with an item left out. The degrees of
    freedom follow from the kurtosis of what single items do: where a few items decide, a normal
    law promises too much.
    """
    low, high = span or (-1.0, 1.0)
    middle, half, value = (low + high) / 2, (high - low) / 2, float(jackknife[0])
    inside = np.clip((jackknife - middle) / half, -_EDGE, _EDGE)
    scaled = np.arctanh(inside) if span else jackknife
    shift = scaled[1:] - scaled[1:].mean()
    square = float(shift @ shift)
    if square <= _NOTHING:
        # That all of n agree is no proof for those that nobody looked at.
        low = max(value - 2 * half * _NO_EVENT / max(n, 1), low) if span else value
        return EstimateEntry(value=value, low=low, high=value, n=n)
    items = shift.size
    reach = stdtrit(kurtosis_df(shift), _TWO_SIDED) * np.sqrt((items - 1) / items * square)
    ends = scaled[0] + np.array([-reach, reach])
    if span:
        ends = middle + half * np.tanh(ends)
    return EstimateEntry(value=value, low=float(ends[0]), high=float(ends[1]), n=n)


def kurtosis_df(influence: Floats) -> float:
    """Return degrees of freedom of a variance that is a sum of these squares, 3 to n - 1."""
    n = influence.size
    second = float((influence**2).sum())
    kurtosis = n * float((influence**4).sum()) / second**2 if second > 0 else 1.0
    return min(n - 1.0, max(2 * n / max(kurtosis - 1, 1e-9), 3.0))


def quadratic_kappa(a: Floats, b: Floats) -> Floats:
    """Return kappa with quadratic weights, which is Lin's concordance; Cohen's for yes/no.

    Items without one of the two ratings (NaN) have no part in it. Like every statistic here it is
    a jackknife: the value of all items, then that without each of them.

    Examples
    --------
    >>> round(float(quadratic_kappa(np.array([1.0, 2, 3, 4]), np.array([1.0, 2, 3, 5]))[0]), 3)
    0.929
    """
    overlap = np.isfinite(a) & np.isfinite(b)
    x, y = np.where(overlap, a, 0.0), np.where(overlap, b, 0.0)
    parts = np.stack([overlap.astype(np.float64), x, y, x * x, y * y, x * y])
    count, *sums = _left_out(parts.sum(axis=1), parts)
    a, b, aa, bb, ab = sums / np.maximum(count, 1.0)
    spread = (aa - a * a) + (bb - b * b) + (a - b) ** 2
    flat = spread <= 1e-12
    return np.asarray(np.where(flat, 1.0, 2 * (ab - a * b) / np.where(flat, 1.0, spread)))


def _left_out(total: Floats, each: Floats) -> Floats:
    """Return sums over all items, then without each of them."""
    return total[:, None] - np.insert(each, 0, 0.0, axis=1)


def right_order(judge: Floats, people: Floats) -> Floats:
    """Return how often the better of two items, by people, is put first; ties of the judge half.

    Any two scales will do: only the order counts. Pairs that people rate alike have no part.

    Examples
    --------
    >>> round(float(right_order(np.array([1.0, 2, 2]), np.array([1.0, 2, 3]))[0]), 3)
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
            mine, own = (block * scores)[chosen], (block * scores + s)[chosen]
            first, last, below = np.searchsorted(peers, [mine, mine + scores, own])
            middle = (below + np.searchsorted(peers, own, "right")) / 2
            wins[chosen] += np.where(better[chosen], middle - first, last - middle)
    pairs = s.size - np.bincount(y)[y] if s.size else wins
    each = np.zeros((2, judge.size))
    each[:, overlap] = wins, pairs
    # Each pair stands at both of its items.
    return _share(each.sum(axis=1) / 2, each)


def same_side(judge: Floats, people: Floats) -> Floats:
    """Return how often the side that people prefer (1 or 0, ties 0.5) is preferred; ties half."""
    counts = np.isfinite(judge) & np.isfinite(people) & (people != 0.5)
    agreed = np.where(people > 0.5, judge, 1.0 - judge)
    each = np.stack([np.where(counts, agreed, 0.0), counts.astype(np.float64)])
    return _share(each.sum(axis=1), each)


def _share(total: Floats, each: Floats) -> Floats:
    hits, pairs = _left_out(total, each)
    usual = hits[0] / pairs[0] if pairs[0] > 0 else 0.5
    return np.where(pairs > 0, hits / np.maximum(pairs, 1e-9), usual)


def row_mean(ratings: Floats) -> Floats:
    """Return the mean rating of each row, NaN where nobody rated.

    Examples
    --------
    >>> row_mean(np.array([[1.0, 2.0], [np.nan, 3.0], [np.nan, np.nan]])).tolist()
    [1.5, 3.0, nan]
    """
    count = np.isfinite(ratings).sum(axis=1)
    return np.where(count > 0, np.nan_to_num(ratings).sum(axis=1) / np.maximum(count, 1), np.nan)


def agreement(
    statistic: Callable[[Floats, Floats], Floats], judge: Floats, people: Floats
) -> tuple[Floats, Floats | None]:
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
    both = permutations(people.T, 2)
    pairs = [(a, b) for a, b in both if (np.isfinite(a) & np.isfinite(b)).sum() >= 2]
    with_judge = np.mean([statistic(judge, person) for person in people.T], axis=0)
    return with_judge, np.mean([statistic(a, b) for a, b in pairs], axis=0) if pairs else None


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
    slope, influence = _slope(s, y, m)
    if not np.isfinite(slope):
        return None
    quality = row_mean(y)
    remainder = s - slope * quality
    value = float(remainder[m].mean() - remainder[~m].mean())
    lead = quality[m].mean() - quality[~m].mean()
    error = _centred(remainder[:, None], m)[:, 0]
    size = np.where(m, inside, n - inside)
    each = np.where(m, 1.0, -1.0) * error / size * np.sqrt(size / (size - 1.0))
    each = each - lead * influence / n
    small = m if 2 * inside <= n else ~m
    own, rows, part = float((each[small] ** 2).sum()), float(small.sum()), error[small]
    mixed = pulled_variance(float(part @ part), rows, float(error.var()))
    variance = float(each @ each) + max(mixed / rows - own, 0.0)
    df = max(min(kurtosis_df(each), n - 2.0, 2.0 * min(inside, n - inside)), 3.0)
    return MeanError(value, float(np.sqrt(variance)), df, n)


def _slope(s: Floats, people: Floats, side: Mask) -> tuple[float, Floats]:
    """Return the judge's points per point of quality, and each row's influence on it."""
    score, ratings = _centred(s[:, None], side)[:, 0], _centred(people, side)
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


def _centred(values: Floats, side: Mask) -> Floats:
    """Return columns minus their means on either side; what is missing stays so."""
    group, (sums, count) = side.astype(np.intp), np.zeros((2, 2, values.shape[1]))
    np.add.at(sums, group, np.nan_to_num(values))
    np.add.at(count, group, np.isfinite(values))
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
