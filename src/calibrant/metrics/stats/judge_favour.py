"""Does a judge favour some rows: more than the quality that people see explains?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from calibrant.core.arrays import Floats, Indices, Mask
from calibrant.metrics.stats.people_agreement import row_mean

# Rows that two people rated, on each side, from which on a claim is made.
FEWEST_A_SIDE = 15
# A group's spread is pulled towards that of all rows by so many rows: equal scores are no proof.
_PULL = 5.0


@dataclass(frozen=True, slots=True)
class Favour:
    """How far a judge's scores of some rows lie above others of the same quality.

    Parameters
    ----------
    value, low, high
        In the judge's own units.
    p_value
        Of no favour; NaN where there are too few rows.
    labels
        Rows that two people rated.
    """

    value: float
    low: float
    high: float
    p_value: float
    labels: int


def favour(judge: Floats, people: Floats, chosen: Mask) -> Favour | None:
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
    Favour or None
        None where either side has fewer than 15 rows, or people do not agree at all.

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
    variance = float(each @ each) + _missing_spread(error, each, m)
    df = max(min(_df(each), n - 2.0, 2.0 * min(inside, n - inside)), 3.0)
    spread = float(np.sqrt(variance))
    reach = float(stdtrit(df, 0.975)) * spread
    p = float(2 * stdtr(df, -abs(value) / spread)) if spread > 0 else 1.0
    return Favour(value, value - reach, value + reach, p, n)


def _slope(s: Floats, people: Floats, group: Indices) -> tuple[float, Floats]:
    """Return the judge's points per point of quality, and each row's influence on it."""
    score = _centred(s[:, None], group)[:, 0]
    ratings = _centred(people, group)
    count = np.isfinite(ratings).sum(axis=1)
    known_values = np.nan_to_num(ratings)
    total = known_values.sum(axis=1)
    # Over pairs of people: no rating meets itself, so that errors of one person cancel.
    shared = (total**2 - (known_values**2).sum(axis=1)) / (count * (count - 1))
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


def _missing_spread(error: Floats, each: Floats, m: Mask) -> float:
    """Return what the smaller side's variance lacks against a mixture with that of all rows."""
    small = m if m.sum() <= (~m).sum() else ~m
    rows, part = int(small.sum()), error[small]
    mixed = (float(part @ part) + _PULL * float(error.var())) / (rows - 1 + _PULL)
    return max(mixed / rows - float((each[small] ** 2).sum()), 0.0)


def _df(each: Floats) -> float:
    share = float((each**4).sum()) / float((each**2).sum()) ** 2 if each.any() else 1.0
    return 2.0 / max(share - 1.0 / each.size, 1e-9)


def lead_beyond_people(judge: Floats, people: Floats, chosen: Mask) -> Favour | None:
    """Return how much larger the lead of the chosen rows is than by people, on one scale.

    That is no favour yet: one rating each cannot tell a judge's favour from people's errors.
    """
    y = row_mean(people)
    finite = np.isfinite(y)
    d, m = (judge - y)[finite], chosen[finite]
    if min(m.sum(), (~m).sum()) < FEWEST_A_SIDE:
        return None
    a, b = d[m], d[~m]
    value = float(a.mean() - b.mean())
    parts = a.var(ddof=1) / a.size, b.var(ddof=1) / b.size
    reach = float(stdtrit(min(a.size, b.size) - 1, 0.975) * np.sqrt(sum(parts)))
    return Favour(value, value - reach, value + reach, np.nan, int(finite.sum()))
