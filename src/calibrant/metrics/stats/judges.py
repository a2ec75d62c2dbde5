"""Judges beside people: agreement in order and kappa, and whether a judge has favourites."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import stdtrit

from calibrant.core.arrays import EstimateEntry, Floats, Indices, Mask
from calibrant.metrics.stats.intervals import Bounds, MeanError, joined_reach, wilson_ends

# Leave-one-out values nearer to 1 than this would have an infinite arctanh.
_EDGE = 0.9999
# With no event among n, a rate of 3.7 / n is at the end of a two-sided 95 % interval.
_NO_EVENT = 3.7
_NOTHING, _TWO_SIDED = 1e-24, 0.975
# With fewer rows beside the commonest rating these alone make all pairs: each counts as so many.
_FEW_OFF, _WORTH = 10, 1.5
# With fewer rows beside the commonest rating these alone make all pairs: each counts as so many.
_FEW_OFF, _WORTH = 10, 1.5
KAPPA, SHARE = (-1.0, 1.0), (0.0, 1.0)
"""Ends of the statistics."""


def jackknife_estimate(
    jackknife: Floats, n: int, span: Bounds | None = None, unit: Indices | None = None
) -> EstimateEntry:
    """Return a statistic with its 95 % interval, on the arctanh scale of a `span` with ends.

    The first value is that of all rows, each other one that with a row left out; what rows of one
    `unit` do is summed. The degrees of freedom follow from the kurtosis of what single units do:
    where a few decide, a normal law promises too much.
    """
    low, high = span or (-1.0, 1.0)
    middle, half, value = (low + high) / 2, (high - low) / 2, float(jackknife[0])
    inside = np.clip((jackknife - middle) / half, -_EDGE, _EDGE)
    scaled = np.arctanh(inside) if span else jackknife
    shift, rows = scaled[1:] - scaled[1:].mean(), scaled.size - 1
    shift = shift if unit is None else unit_sums(shift, unit)
    square, units = float(shift @ shift), shift.size
    if square <= _NOTHING:
        # That all of n agree is no proof for those that nobody looked at.
        reach = 2 * half * _NO_EVENT / max(n, 1) if span else 0.0
        low, high = max(value - reach, low), min(value + reach, high)
        return EstimateEntry(value=value, low=low, high=high, n=n)
    reach = stdtrit(kurtosis_df(shift), _TWO_SIDED) * np.sqrt(units / max(units - 1, 1) * square)
    reach *= (rows - 1) / rows
    ends = scaled[0] + np.array([-reach, reach])
    if span:
        ends = middle + half * np.tanh(ends)
    return EstimateEntry(value=value, low=float(ends[0]), high=float(ends[1]), n=n)


def unit_sums(values: Floats, unit: Indices) -> Floats:
    """Return the sums of the values of each unit; where all are one unit, nothing is known of them.

    Examples
    --------
    >>> unit_sums(np.array([1.0, 2.0, 4.0]), np.array([7, 3, 7])).tolist()
    [2.0, 5.0]
    """
    units, place = np.unique(unit, return_inverse=True)
    return values if units.size < 2 else np.bincount(place, values).astype(np.float64)


def agreement_estimate(
    jackknife: Floats, people: Floats, span: Bounds, unit: Indices | None = None
) -> EstimateEntry:
    """Return an agreement with its interval, which has Wilson's inside where ratings are skewed.

    The few rows beside the commonest rating then decide it nearly alone.
    """
    estimate, off = jackknife_estimate(jackknife, len(people), span, unit), _rows_off(people)
    if off >= _FEW_OFF:
        return estimate
    value, low, high = estimate.ends
    least, most = wilson_ends(max(value, 0.0), _WORTH * max(off, 1.0), 0.95)
    return EstimateEntry(value=value, low=min(low, least), high=max(high, most), n=estimate.n)


def difference_estimate(
    parts: tuple[Floats, Floats], people: Floats, span: Bounds, unit: Indices | None = None
) -> EstimateEntry:
    """Return by how much the first agreement is larger, as `agreement_estimate` does.

    Where ratings are skewed it reaches as far as the ends of both would have it.
    """
    estimate = jackknife_estimate(parts[0] - parts[1], len(people), None, unit)
    if _rows_off(people) >= _FEW_OFF:
        return estimate
    (a, a_low, a_high), (b, b_low, b_high) = (
        agreement_estimate(part, people, span, unit).ends for part in parts
    )
    down, up = joined_reach(a - a_low, b_high - b, 0.0), joined_reach(a_high - a, b - b_low, 0.0)
    value, low, high = estimate.ends
    low, high = min(low, value - down), max(high, value + up)
    return EstimateEntry(value=value, low=low, high=high, n=estimate.n)


def _rows_off(people: Floats) -> float:
    """Return how many rows are beside the commonest rating, parts of a row's ratings counted."""
    finite = np.isfinite(people)
    values, counts = np.unique(people[finite], return_counts=True)
    return float(np.nansum(row_mean(np.where(finite, people != values[counts.argmax()], np.nan))))


def kurtosis_df(influence: Floats) -> float:
    """Return degrees of freedom of a variance that is a sum of these squares, 3 to n - 1."""
    n = influence.size
    second = float((influence**2).sum())
    kurtosis = n * float((influence**4).sum()) / second**2 if second > 0 else 1.0
    return max(min(n - 1.0, max(2 * n / max(kurtosis - 1, 1e-9), 3.0)), 1.0)


def quadratic_kappa(judge: Floats | None, people: Floats) -> Floats:
    """Return kappa with quadratic weights, which is Lin's concordance; Cohen's for yes/no.

    It is 1 minus the squared difference of two ratings of a row, over that of two rows. Each row
    counts once, however many rated it; the means of people stay apart, as in Cohen's. Like every
    statistic here it is a jackknife: the value of all rows, then that without each of them.

    Parameters
    ----------
    judge
        Scores, shape (n,); None for the agreement of people with each other.
    people
        Ratings, shape (n,) or (n, people), NaN where somebody did not rate.

    Examples
    --------
    >>> round(float(quadratic_kappa(np.array([1.0, 2, 3, 4]), np.array([1.0, 2, 3, 5]))[0]), 3)
    0.929
    """
    y, share = _shares(judge, people)
    rated, mean, square = share.sum(axis=1), (share * y).sum(axis=1), (share * y * y).sum(axis=1)
    rows = np.maximum(_left_out(rated), 1.0)
    if judge is None:
        count = (share > 0).sum(axis=1)
        both = (y.sum(axis=1) ** 2 - (y * y).sum(axis=1)) / np.maximum(count * (count - 1), 1)
        x, xx = mean, square
    else:
        both, x, xx = judge * mean, rated * judge, rated * judge**2
    parts = (xx, square, both, mean, x)
    xx, yy, xy, usual, chance = (_left_out(part) / rows for part in parts)
    chance = chance * usual
    if judge is None:
        # Two different people meet: what a person's mean is away from all means does not.
        own, part = _left_out(share * y), _left_out(share)
        away = ((own - part * usual[:, None]) ** 2).sum(axis=1)
        chance = chance - away / np.maximum(rows**2 - (part**2).sum(axis=1), 1e-9)
    spread = xx + yy - 2 * chance
    flat = spread <= 1e-12
    return np.asarray(np.where(flat, 1.0, 2 * (xy - chance) / np.where(flat, 1.0, spread)))


def _shares(judge: Floats | None, people: Floats) -> tuple[Floats, Floats]:
    """Return ratings, a column per person, and shares that make 1 in each row that counts."""
    people = people.reshape(len(people), -1)
    finite = np.isfinite(people)
    count = finite.sum(axis=1, keepdims=True)
    finite &= count > 1 if judge is None else np.isfinite(judge)[:, None]
    return np.where(finite, people, 0.0), finite / np.maximum(count, 1)


def _left_out(each: Floats) -> Floats:
    """Return sums over all rows, then without each of them."""
    return np.asarray(each.sum(axis=0) - np.insert(each, 0, 0.0, axis=0))


def right_order(judge: Floats | None, people: Floats) -> Floats:
    """Return how often the better of two items, by people, is put first; ties of the judge half.

    Any two scales will do: only the order counts. Pairs that people rate alike have no part. Of
    several people all pairs are counted together; without a judge each person is in its place.

    Examples
    --------
    >>> round(float(right_order(np.array([1.0, 2, 2]), np.array([1.0, 2, 3]))[0]), 3)
    0.833
    """
    people = people.reshape(len(people), -1)
    each, columns = np.zeros((len(people), 2)), list(people.T)
    for place, person in enumerate(columns):
        others = [judge] if judge is not None else columns[:place] + columns[place + 1 :]
        for other in others:
            each += _ordered(other, person)
    # Each pair stands at both of its items.
    return _share(each.sum(axis=0) / 2, each)


def _ordered(judge: Floats, people: Floats) -> Floats:
    """Return of each item in how many pairs it is in the right order, and in how many it is."""
    overlap, each = np.isfinite(judge) & np.isfinite(people), np.zeros((judge.size, 2))
    if overlap.sum() < 2:
        return each
    s, y = (np.unique(part[overlap], return_inverse=True)[1] for part in (judge, people))
    wins, scores = np.zeros(s.size), int(s.max()) + 1
    # Two ranks first differ in one bit: every pair is counted there, in n log(n)^2 steps in all.
    for bit in range(int(y.max()).bit_length()):
        block, better = y >> (bit + 1), (y >> bit) % 2 == 1
        for chosen in (better, ~better):
            peers = np.sort((block * scores + s)[~chosen])
            mine, own = (block * scores)[chosen], (block * scores + s)[chosen]
            first, last, below = np.searchsorted(peers, [mine, mine + scores, own])
            middle = (below + np.searchsorted(peers, own, "right")) / 2
            wins[chosen] += np.where(better[chosen], middle - first, last - middle)
    each[overlap] = np.column_stack([wins, s.size - np.bincount(y)[y]])
    return each


def same_side(judge: Floats | None, people: Floats) -> Floats:
    """Return how often the side that people prefer (1 or 0, ties 0.5) is preferred; ties half.

    Each row counts once; without a judge the others who rated it are in its place.
    """
    y, share = _shares(judge, people)
    credit = np.where(y != 0.5, share, 0.0)
    count, total = (share > 0).sum(axis=1), y.sum(axis=1)
    x = judge[:, None] if judge is not None else (
        (total[:, None] - y) / np.maximum(count - 1, 1)[:, None]
    )  # fmt: skip
    agreed = np.where(credit > 0, np.where(y > 0.5, x, 1.0 - x), 0.0)
    each = np.column_stack([(credit * agreed).sum(axis=1), credit.sum(axis=1)])
    return _share(each.sum(axis=0), each)


def _share(total: Floats, each: Floats) -> Floats:
    hits, pairs = (total - np.insert(each, 0, 0.0, axis=0)).T
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
    statistic: Callable[[Floats | None, Floats], Floats], judge: Floats, people: Floats
) -> tuple[Floats, Floats]:
    """Return the agreement of a judge with a person, and that of two people, of the same rows.

    Parameters
    ----------
    statistic
        `quadratic_kappa`, `right_order` or `same_side`.
    judge, people
        Ratings, shape (n,) and (n, people); NaN where somebody did not rate.
    """
    twice = np.isfinite(people).sum(axis=1) > 1
    return statistic(judge[twice], people[twice]), statistic(None, people[twice])


# Rows that two people rated, on each side, from which on a claim is made.
FEWEST_A_SIDE = 15
# A group's spread is pulled towards that of all rows by so many rows: equal scores are no proof.
PULL = 5.0


def favour(
    judge: Floats, people: Floats, chosen: Mask, item: Indices | None = None
) -> MeanError | None:
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
    item
        What each row is about, shape (n,): rows of an item are no independent ones.

    Returns
    -------
    MeanError or None
        In the judge's own units, of the rows that two people rated; None where either side has
        fewer than 15 of these, or people do not agree at all.

    Notes
    -----
    Influence of a row: its residual over the rows of its side, and its part in the slope times
    the difference in quality; those of an item are summed. The degrees of freedom follow from the
    kurtosis of these, at most twice the items of the smaller side.
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
    unit = np.arange(n) if item is None else item[twice]
    total, fewest = unit_sums(each, unit), min(np.unique(unit[side]).size for side in (m, ~m))
    spread = _of_units(total, n)
    df = max(min(kurtosis_df(total), total.size - 2.0, 2.0 * fewest), 3.0)
    return MeanError(value, float(np.sqrt(spread + max(mixed / rows - own, 0.0))), df, n)


def _of_units(total: Floats, n: int) -> float:
    """Return the variance of a sum over units, of which each row's part is free of its mean."""
    units = total.size
    return float(total @ total) * units / max(units - 1, 1) * (n - 1) / n


def _slope(s: Floats, people: Floats, side: Mask) -> tuple[float, Floats]:
    """Return the judge's points per point of quality, and each row's influence on it."""
    # Beside the others' mean: of a person with few ratings on a side these are most of the mean.
    score = _centred(s[:, None], side, beside=True)[:, 0]
    ratings = _centred(people, side, beside=True)
    count = np.isfinite(ratings).sum(axis=1)
    total, twice = np.nansum(ratings, axis=1), count > 1
    # Over pairs of people: no rating meets itself, so that errors of one person cancel.
    shared = total**2 - np.nansum(ratings**2, axis=1)
    shared = np.where(twice, shared / np.maximum(count * (count - 1), 1), 0.0)
    common = float(shared.mean())
    if common <= 0:
        return np.nan, shared
    joint = np.where(twice, score * total / np.maximum(count, 1), 0.0)
    slope = float(joint.mean()) / common
    return slope, (joint - slope * shared) / common


def _centred(values: Floats, side: Mask, *, beside: bool = False) -> Floats:
    """Return columns minus their means on either side, or those of all others `beside` a value.

    What is missing stays so.
    """
    group, (sums, count) = side.astype(np.intp), np.zeros((2, 2, values.shape[1]))
    np.add.at(sums, group, np.nan_to_num(values))
    np.add.at(count, group, np.isfinite(values))
    centred = np.asarray(values - (sums / np.maximum(count, 1))[group])
    if not beside:
        return centred
    return np.where(count > 1, count / np.maximum(count - 1, 1), np.nan)[group] * centred


def pulled_variance(square: float, n: float, pooled: float) -> float:
    """Return the variance of `n` rows by their sum of squares, pulled to that of all rows."""
    return (square + PULL * pooled) / (n - 1 + PULL)


def lead_beyond_people(
    judge: Floats, people: Floats, chosen: Mask, item: Indices | None = None
) -> MeanError | None:
    """Return how much larger the lead of the chosen rows is than by people, on one scale.

    That is no favour yet: one rating each cannot tell a judge's favour from people's errors.
    """
    y = row_mean(people)
    finite = np.isfinite(y)
    gap, m = (judge - y)[finite], chosen[finite]
    fewest = min(int(m.sum()), int((~m).sum()))
    if fewest < FEWEST_A_SIDE:
        return None
    size = np.where(m, m.sum(), (~m).sum())
    each = np.where(m, 1.0, -1.0) * _centred(gap[:, None], m)[:, 0] / np.sqrt(size * (size - 1.0))
    total = unit_sums(each, np.arange(m.size) if item is None else item[finite])
    error = np.sqrt(_of_units(total, m.size))
    return MeanError(float(gap[m].mean() - gap[~m].mean()), float(error), fewest - 1.0, m.size)
