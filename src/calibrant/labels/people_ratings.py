"""What people would say beside a judge: meaning of its scores, their mean, and that of a part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from msgspec import structs
from scipy.special import betaincinv, chdtrc, erfc, expit, logit

from calibrant.core.arrays import EstimateEntry, Floats, Indices, Mask, named_stream
from calibrant.data.mend import CERTAINTY, map_of_curve
from calibrant.data.recalibration_map import RecalibrationMap
from calibrant.findings.claims.margins import fisher_p_value
from calibrant.labels.labelling.pools import LabelPool, cross_fitted, features
from calibrant.metrics.recalibration.mend_fit import Labels, fit_curve, fit_value
from calibrant.metrics.stats import judges
from calibrant.metrics.stats.intervals import MeanError

# Ratings between the ends spread less than yes/no; so much of the spread that they show is counted
# in simulations, and no more labels than ten are made of one.
_SPREAD, _LEAST = 1.6, 0.1


def score_map(
    judge: Floats, people: Floats, *, seed: int = 0, about: Mapping[str, Any]
) -> RecalibrationMap:
    """Return the map from scores to people's mean rating, both in [0, 1], by their labels.

    Two scores have a rate each (Jeffreys); more have a curve, whose labels count by how far
    ratings spread: those of a scale spread less than yes and no.
    """
    # A judge's scale and people's are two: a score is not the better guess where labels are few.
    labels = replace(Labels.of(judge, people), as_stated=0.0)
    first = fit_value(labels)
    spread = dispersion(people, expit(np.interp(judge, first.grid.knots, first.log_odds)))
    labels = replace(labels, dispersion=spread)
    curve = fit_curve(labels, named_stream(seed, "mend", "promise"))
    # The map is the answer here: what it gains over the scores, on another scale, says nothing.
    promise = {"off_by": curve.off_by, "certainty": CERTAINTY}
    fitted, scores = map_of_curve(curve, labels, promise=promise, **about), np.unique(judge)
    if scores.size != 2:
        return fitted
    rates = [_jeffreys(y, y.size / _spread(y)) for y in (people[judge == one] for one in scores)]
    value, low, high = (tuple(part) for part in logit(rates).T.tolist())
    rising, knots = value[1] >= value[0], tuple(scores.tolist())
    return structs.replace(fitted, knots=knots, log_odds=value, low=low, high=high, rising=rising)


def _jeffreys(y: Floats, n: float) -> list[float]:
    """Return a rate with its ends, by labels that count as `n` of yes or no."""
    yes, no = n * y.mean() + 0.5, n * (1 - y.mean()) + 0.5
    return [yes / (yes + no), *betaincinv(yes, no, [0.025, 0.975])]


def _spread(y: Floats) -> float:
    return dispersion(y, np.full(y.size, y.mean()))


def dispersion(people: Floats, rate: Floats) -> float:
    """Return the variance of ratings over that of yes/no with these rates.

    Examples
    --------
    >>> round(dispersion(np.array([0.25, 0.5, 0.75] * 20), np.full(60, 0.5)), 2)
    0.29
    """
    spread, usual = ((people - rate) ** 2).sum(), (rate * (1 - rate)).sum()
    return float(np.clip(_SPREAD * (spread + 0.25) / (usual + 0.25), _LEAST, 1.0))


# Labels of each model from which on the model itself helps to predict what people say.
_LABELS_A_MODEL = 25
_PSEUDO = 2.0
# Who rates by chance seems to be called in once in a thousand tables.
_CALLED_IN = 0.001
# On so many rows that others dispute, who rates alone stands alone at least once.
_DISPUTED = 50
# With fewer ratings off an end of the scale their spread is not known from themselves; the mean of
# all has the judge, and two labels of the largest size, beside them.
_FEW_OFF, _NONE_OFF = 5.0, 1.0


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
    item
        What each row is about: rows of an item are rated alike. None: each of its own.
    """

    judge: Floats | None
    people: Floats
    model: Indices | None = None
    item: Indices | None = None

    @cached_property
    def known(self) -> Mask:
        """Which items have a rating."""
        return np.isfinite(self.people)

    @cached_property
    def unit(self) -> Indices:
        """What each row is about, or the row itself."""
        return np.arange(self.people.size) if self.item is None else self.item

    @cached_property
    def whole(self) -> bool:
        """Whether items were rated as a whole: the other rows of those rated are rated as well."""
        size, rated = np.bincount(self.unit), np.bincount(self.unit, self.known)
        beside = float(rated @ (size - 1))
        return bool(beside and rated @ (rated - 1) > (1 + self.known.mean()) / 2 * beside)

    @cached_property
    def rate(self) -> Floats:
        """A predicted rating of every item; an item's own rating is not in its own."""
        lab, side = np.flatnonzero(self.known), None
        if self.judge is not None:
            side = self.judge[:, None]
            if self.model is not None and self.model.max() > 0:
                each = np.eye(int(self.model.max()) + 1)[self.model]
                if each[lab].sum(axis=0).min() >= _LABELS_A_MODEL:
                    side = np.column_stack([side, each])
        pool = LabelPool(np.full(self.people.size, 0.5), self.people, side)
        return cross_fitted(features(pool), lab, self.people[lab], np.ones(lab.size))


def people_mean(pool: PeoplePool) -> MeanError:
    """Return the mean that people would give all items.

    A regression on the judge predicts every item; what it misses is estimated from the labels and
    added, so that the labels alone decide the value, however bad the judge is.

    Notes
    -----
    Two labels of ordinary size, and two of the largest size that such ratings have, are added to
    the variance: a handful that agree is no certainty. The degrees of freedom follow from the
    kurtosis of what the regression missed. Where whole items were rated, an item is one label.

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
    missed = residual - residual.mean()
    if pool.whole:
        missed = judges.unit_sums(missed, pool.unit[pool.known])
        own = max(own, float(missed @ missed) / n**2 * missed.size / max(missed.size - 1, 1))
    df = judges.kurtosis_df(missed)
    return MeanError(value, float(np.sqrt(own + unseen)), df, y.size)


def lenience(pool: PeoplePool) -> EstimateEntry:
    """Return the judge's mean minus people's, for items like these and not for these alone.

    Scores and ratings are on one scale.
    """
    assert pool.judge is not None
    mean, rows = people_mean(pool), pool.people.size
    beyond: Floats = pool.judge - pool.rate
    error, df = float(np.sqrt(mean.error**2 + beyond.var() / rows)), mean.df
    items = np.unique(pool.unit).size
    if items < rows:
        # Rows of an item hang together, in what the judge says and in what people do.
        missed = (pool.people - pool.rate)[pool.known]
        each = (beyond - beyond.mean()) / rows
        each[pool.known] -= (missed - missed.mean()) / missed.size
        total = judges.unit_sums(each, pool.unit)
        error = max(error, float(np.sqrt(total @ total * items / max(items - 1, 1))))
        rated = np.unique(pool.unit[pool.known]).size
        df = max(min(df, judges.kurtosis_df(total), rated - 1.0), 3.0)
    whole = MeanError(mean.value, error, df, mean.n).estimate()
    people = held(whole, pool.people[pool.known]).turned()
    value, low, high = (float(pool.judge.mean()) + end for end in people.ends)
    return EstimateEntry(value=value, low=low, high=high, n=mean.n)


def part_mean(pool: PeoplePool, rows: Mask, first: Mask | None = None) -> EstimateEntry:
    """Return the mean that people would give some items, with an interval."""
    mean, known = contrast(pool, [rows], first=first), rows & pool.known
    if mean is None:
        return EstimateEntry(n=int(known.sum()))
    people = pool.people if first is None else np.where(first, pool.people, 1 - pool.people)
    n, left = known.sum() / _spread(people[pool.known]), 1 - float(known.sum() / rows.sum())
    return held(mean.estimate(), people[known], left, n, _FEW_OFF)


def held(
    mean: EstimateEntry, y: Floats, left: float = 1.0, n: float = 0.0, few: float = _NONE_OFF
) -> EstimateEntry:
    """Return a mean with an interval that ratings at one end of the scale do not shorten.

    Where fewer than `few` are off it, it holds that of the ratings `y` alone, which count as `n` of
    yes or no, or by how far they spread; a share `left` of the items has none.
    """
    value, low, high = mean.ends
    n = n or y.size / _spread(y)
    if left > 0 and n * min(y.mean(), 1 - y.mean()) < few:
        _, least, most = _jeffreys(y, n / left)
        low, high = min(low, least), max(high, most)
    return EstimateEntry(value=value, low=low, high=high, n=mean.n)


def contrast(
    pool: PeoplePool, parts: Sequence[Mask], *, first: Mask | None = None, beyond: bool = False
) -> MeanError | None:
    """Return the mean that people would give some items, or the first part's lead over another.

    Parameters
    ----------
    pool
        Ratings and the predicted ones.
    parts
        Rows of one part, or of two that are set beside each other.
    first
        Where the first side of a pair is meant; elsewhere it is the second one.
    beyond
        For items like these, and not for these alone.

    Returns
    -------
    MeanError or None
        None where a part has fewer than two labels.
    """
    sides = (pool.people, pool.rate)
    people, rate = (s if first is None else np.where(first, s, 1 - s) for s in sides)
    residual = np.where(pool.known, people - rate, 0.0)
    pooled, value, added = float(residual[pool.known].var()), 0.0, 0.0
    counts = []
    influence = np.zeros(residual.size)
    for sign, rows in zip((1.0, -1.0), parts, strict=False):
        lab = rows & pool.known
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
        added += max(judges.pulled_variance(own * (n - 1), n, pooled * remaining) - own, 0.0) / n
        counts.append(n)
    total = np.bincount(pool.unit, influence)
    each = total[np.unique(pool.unit[pool.known & (influence != 0.0)])]
    df = max(min(judges.kurtosis_df(each), 2.0 * min(counts) + judges.PULL), 3.0)
    return MeanError(value, float(np.sqrt(total @ total + added)), df, int(sum(counts)))


def choice_p_value(pool: PeoplePool) -> float:
    """Return the p-value of 'the rated items are a random choice', as far as one can see.

    By the ranks of the judge's scores, and by the models that were rated; the smaller one, doubled.
    """
    mask = pool.known
    n, remainder = int(mask.sum()), int((~mask).sum())
    if pool.judge is None or not remainder:
        return 1.0
    rank = pl.Series(pool.judge).rank().to_numpy()
    error = float(np.sqrt(rank.var(ddof=1) * n * remainder / mask.size))
    shift = float(rank[mask].sum() - n * rank.mean())
    p_rank = float(erfc(abs(shift) / error / 2**0.5)) if error > 0 else 1.0
    p_model, share = 1.0, n / mask.size
    if pool.model is not None and pool.model.max() > 0:
        rows = np.bincount(pool.model)
        rated = np.bincount(pool.model[mask], minlength=rows.size)
        square = ((rated - share * rows) ** 2 / (rows * share * (1 - share))).sum()
        p_model = float(chdtrc(rows.size - 1, square))
    return min(1.0, 2 * min(p_rank, p_model))


def called_in(people: Floats) -> dict[int, str]:
    """Return the columns that are no independent person's, each with the reason.

    Who rated rows because the others disagree meets disputed rows alone, and would make people seem
    to agree less than they do. A column that never leaves the others' ratings is made of them: a
    majority, a final word.

    Examples
    --------
    >>> first = np.arange(40.0) % 2
    >>> second = np.where(np.arange(40) < 10, 1 - first, first)
    >>> third = np.where(first != second, first, np.nan)
    >>> called_in(np.column_stack([first, second, third]))
    {2: 'rated mostly rows on which the others disagree'}
    """
    finite, reasons = np.isfinite(people), {}
    for person in range(people.shape[1] if people.shape[1] > 2 else 0):
        context = np.delete(np.arange(people.shape[1]), person)
        rows = finite[:, context].sum(axis=1) > 1
        peers, rated, own = (
            people[np.ix_(rows, context)],
            finite[rows, person],
            people[rows, person],
        )
        least, most = np.nanmin(peers, axis=1), np.nanmax(peers, axis=1)
        split = most > least
        yes, no = (np.bincount(rated[part], minlength=2)[::-1] for part in (split, ~split))
        more = yes[0] * no.sum() > no[0] * yes.sum()
        if more and fisher_p_value(*yes, *no) * people.shape[1] < _CALLED_IN:
            reasons[person] = "rated mostly rows on which the others disagree"
        elif yes[0] >= _DISPUTED and not ((own < least) | (own > most)).any():
            reasons[person] = f"never leaves the others' ratings, who disagree on {yes[0]:,} rows"
    return reasons


def independent(people: Floats) -> Floats:
    """Return the columns of those who rated by themselves."""
    return np.delete(people, [*called_in(people)], axis=1)
