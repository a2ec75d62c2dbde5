"""What people would say of everything, from a judge of all items and people on some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import chdtrc, erfc, stdtr, stdtrit

from calibrant.core.arrays import Floats, Indices, Mask
from calibrant.core.estimate import Estimate
from calibrant.labels.labelling.pools import LabelPool, cross_fitted, features
from calibrant.metrics.stats.people_agreement import kurtosis_df

# Labels of each model from which on the model itself helps to predict what people say.
_LABELS_A_MODEL = 25
_PSEUDO = 2.0
# A model's spread is pulled towards that of all labels by so many labels.
_PULL = 5.0


@dataclass(frozen=True, slots=True)
class MeanError:
    """A mean, or a difference of means, with its standard error and degrees of freedom."""

    value: float
    error: float
    df: float

    def estimate(self, n: int, *, left: float = 1.0) -> Estimate:
        """Return it with its 95 % interval, where a share `left` of the items has no rating."""
        reach = float(stdtrit(self.df, 0.975)) * self.error * max(left, 0.0) ** 0.5
        return Estimate(self.value, self.value - reach, self.value + reach, n=n, interval="t")

    @property
    def p_value(self) -> float:
        """Of a value of 0."""
        return float(2 * stdtr(self.df, -abs(self.value) / self.error)) if self.error > 0 else 1.0


@dataclass(frozen=True)
class PeoplePool:
    """All items with a judge's scores, a random choice of them with people's.

    Parameters
    ----------
    judge
        Scores in [0, 1], shape (N,); None for what people alone show.
    people
        Mean of the ratings in [0, 1], NaN where there is none, shape (N,).
    model
        Code of each item's model, shape (N,), or None.
    """

    judge: Floats | None
    people: Floats
    model: Indices | None = None

    @cached_property
    def known(self) -> Mask:
        """Which items have a rating."""
        return np.isfinite(self.people)

    @property
    def left(self) -> float:
        """Share of the items without a rating."""
        return 1.0 - float(self.known.mean())

    @cached_property
    def rate(self) -> Floats:
        """A predicted rating of every item; an item's own rating is not in its own."""
        lab = np.flatnonzero(self.known)
        pool = LabelPool(np.full(self.people.size, 0.5), self.people, self._side())
        return cross_fitted(features(pool), lab, self.people[lab], np.ones(lab.size))

    def _side(self) -> Floats | None:
        if self.judge is None:
            return None
        if self.model is None:
            return self.judge[:, None]
        count = np.bincount(self.model[self.known], minlength=int(self.model.max()) + 1)
        if count.size < 2 or count.min() < _LABELS_A_MODEL:
            return self.judge[:, None]
        return np.column_stack([self.judge, np.eye(count.size)[self.model]])


def people_mean(pool: PeoplePool) -> MeanError:
    """Return the mean that people would give all items.

    A regression on the judge predicts every item; what it misses is estimated from the labels and
    added, so that the labels alone decide the value, however bad the judge is.

    Notes
    -----
    Two labels of ordinary size, and two of the largest size that such ratings have, are added to
    the variance: a handful that agree is no certainty. The degrees of freedom follow from the
    kurtosis of what the regression missed.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> people = rng.integers(0, 2, 2000).astype(float)
    >>> judge = np.where(rng.random(2000) < 0.9, people, 1 - people)
    >>> known = np.where(np.arange(2000) < 100, people, np.nan)
    >>> with_judge, alone = (people_mean(PeoplePool(s, known)) for s in (judge, None))
    >>> bool(with_judge.error < 0.7 * alone.error)
    True
    """
    y, rate = pool.people[pool.known], pool.rate
    n = float(y.size)
    residual = y - rate[pool.known]
    square = (residual - residual.mean()) ** 2
    own = (square.sum() * n / max(n - 1, 1) + _PSEUDO * square.mean()) / n**2 * n / (n + _PSEUDO)
    spread = (float(((y - y.mean()) ** 2).sum()) + 0.25) / (n + 1)
    unseen = 0.5 / (n * (n + 1)) * min(1.0, 4 * spread)
    value = min(max(float(rate.mean() + residual.mean()), 0.0), 1.0)
    return MeanError(value, float(np.sqrt(own + unseen)), kurtosis_df(residual - residual.mean()))


def lenience(pool: PeoplePool) -> MeanError:
    """Return the judge's mean minus people's, for items like these and not for these alone.

    Scores and ratings are on one scale.
    """
    assert pool.judge is not None
    mean, items = people_mean(pool), pool.people.size
    companion = float((pool.judge - pool.rate).var()) / items
    error = float(np.sqrt(mean.error**2 + companion))
    return MeanError(float(pool.judge.mean()) - mean.value, error, mean.df)


def contrast(
    people: Floats,
    rate: Floats,
    parts: Sequence[Mask],
    item: Indices,
    *,
    beyond: bool = False,
) -> MeanError | None:
    """Return the mean that people would give some items, or the first part's lead over another.

    Parameters
    ----------
    people, rate
        Ratings in [0, 1], NaN where there is none, and predicted ones, as a `PeoplePool` has them.
    parts
        Items of one model, or of two.
    item
        What items are about: two answers to one question are rated alike.
    beyond
        For items like these, and not for these alone.

    Returns
    -------
    MeanError or None
        None where a part has fewer than two labels.
    """
    finite = np.isfinite(people)
    residual = np.where(finite, people - rate, 0.0)
    pooled, value, added, smallest = float(residual[finite].var()), 0.0, 0.0, np.inf
    influence = np.zeros(residual.size)
    for sign, rows in zip((1.0, -1.0), parts, strict=False):
        lab = rows & finite
        n, whole = float(lab.sum()), float(rows.sum())
        if n < 2:
            return None
        remaining = 1.0 if beyond else 1.0 - n / whole
        mean = float(residual[lab].mean())
        value += sign * (float(rate[rows].mean()) + mean)
        each = (residual[lab] - mean) / n * np.sqrt(n / (n - 1.0) * remaining)
        influence[lab] += sign * each
        if beyond:
            influence[rows] += sign * (rate[rows] - rate[rows].mean()) / whole
        own = float(each @ each) * n
        mixed = (own * (n - 1) + _PULL * pooled * remaining) / (n - 1 + _PULL)
        added += max(mixed - own, 0.0) / n
        smallest = min(smallest, n)
    each = np.bincount(item, influence)[np.unique(item[finite & (influence != 0.0)])]
    df = max(min(kurtosis_df(each), 2.0 * smallest + _PULL), 3.0) if each.size else 3.0
    total = np.bincount(item, influence)
    return MeanError(value, float(np.sqrt(total @ total + added)), df)


def choice_p_value(pool: PeoplePool) -> float:
    """Return the p-value of 'the rated items are a random choice', as far as one can see.

    By the ranks of the judge's scores, and by the models that were rated; the smaller one, doubled.
    """
    known_values = pool.known
    n, remainder = int(known_values.sum()), int((~known_values).sum())
    if pool.judge is None or not remainder:
        return 1.0
    _, place, count = np.unique(pool.judge, return_inverse=True, return_counts=True)
    rank = (np.cumsum(count) - (count - 1) / 2)[place]
    error = float(np.sqrt(rank.var(ddof=1) * n * remainder / known_values.size))
    shift = float(rank[known_values].sum() - n * rank.mean())
    p_rank = float(erfc(abs(shift) / error / 2**0.5)) if error > 0 else 1.0
    p_model = 1.0
    if pool.model is not None:
        rows = np.bincount(pool.model).astype(np.float64)
        rated = np.bincount(pool.model[known_values], minlength=rows.size)
        share = n / known_values.size
        square = ((rated - share * rows) ** 2 / (rows * share * (1 - share))).sum()
        p_model = float(chdtrc(max(rows.size - 1, 1), square)) if rows.size > 1 else 1.0
    return min(1.0, 2 * min(p_rank, p_model))
