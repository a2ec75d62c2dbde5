"""What people would say beside a judge: meaning of its scores, their mean, and what it leans to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from msgspec import structs
from scipy.special import bdtr, betaincinv, chdtrc, erfc, expit, logit

from calibrant.core.arrays import EstimateEntry, Floats, Indices, Mask, named_stream
from calibrant.data.judge_table import JudgeTable
from calibrant.data.mend import CERTAINTY, map_of_curve
from calibrant.data.recalibration_map import RecalibrationMap
from calibrant.findings.documents.entries import UNDEFINED
from calibrant.findings.documents.labels import JudgeBias
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
    rates = [_jeffreys(people[judge == score]) for score in scores]
    value, low, high = (tuple(part) for part in logit(rates).T.tolist())
    rising, knots = value[1] >= value[0], tuple(scores.tolist())
    return structs.replace(fitted, knots=knots, log_odds=value, low=low, high=high, rising=rising)


def _jeffreys(y: Floats) -> list[float]:
    """Return a rate with its ends, by labels that count by how far they spread."""
    n = y.size / dispersion(y, np.full(y.size, y.mean()))
    yes, no = n * y.mean() + 0.5, n * (1 - y.mean()) + 0.5
    return [yes / (yes + no), *betaincinv(yes, no, [0.025, 0.975])]


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
    df = judges.kurtosis_df(residual - residual.mean())
    return MeanError(value, float(np.sqrt(own + unseen)), df, y.size)


def lenience(pool: PeoplePool) -> MeanError:
    """Return the judge's mean minus people's, for items like these and not for these alone.

    Scores and ratings are on one scale.
    """
    assert pool.judge is not None
    mean, items = people_mean(pool), pool.people.size
    companion = float((pool.judge - pool.rate).var()) / items
    error = float(np.sqrt(mean.error**2 + companion))
    return MeanError(float(pool.judge.mean()) - mean.value, error, mean.df, mean.n)


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
    item = np.arange(residual.size) if pool.item is None else pool.item
    total = np.bincount(item, influence)
    each = total[np.unique(item[pool.known & (influence != 0.0)])]
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


_LENGTH = re.compile(r"word|length|len$|token|char", re.IGNORECASE)
# A column of more values than this is cut at its median, or counted in words where it is text.
_MOST_VALUES = 12


def biases(table: JudgeTable, score: Floats, *, same: bool) -> Iterator[JudgeBias]:
    """Yield every lean that was tested, shown or not.

    Parameters
    ----------
    table
        Scores and ratings.
    score
        The judge's scores in its own units.
    same
        Whether people rate on the judge's scale.
    """
    if table.kind == "pairs":
        yield from _pair_leans(table, score)
        return
    single = np.isfinite(table.people).sum(axis=1).max() < 2
    for kind, name, choice in _parts(table):
        if lean := judges.favour(score, table.people, choice):
            yield _lean(kind, name, "two people", lean.estimate(), lean.p_value)
        elif same and single and (lead := judges.lead_beyond_people(score, table.people, choice)):
            yield _lean(kind, name, "one person", lead.estimate())
        else:
            yield _lean(kind, name, "too few")


def _parts(table: JudgeTable) -> Iterator[tuple[str, str, Mask]]:
    """Yield models, values of a feature, and the rows above the middle of one with many values."""
    for code, name in enumerate(table.models):
        yield "model", name, table.sides[:, 0] == code
    for column in table.columns.features:
        values, is_number = table.frame[column], table.frame[column].dtype.is_numeric()
        if not is_number and values.drop_nulls().n_unique() <= _MOST_VALUES:
            yield from (("feature", name, rows) for name, rows in named_values(values))
            continue
        size, length = _sizes(values), not is_number or _LENGTH.search(column)
        middle = float(np.nanmedian(size))
        yield "length" if length else "feature", f"{column} above {middle:g}", size > middle


def named_values(column: pl.Series) -> Iterator[tuple[str, Mask]]:
    """Yield the values of a column by name, with the rows of each."""
    for value in column.drop_nulls().unique().sort():
        yield f"{column.name} = {value}", (column == value).fill_null(False).to_numpy()


def _sizes(values: pl.Series) -> Floats:
    """Return numbers, or the number of words of texts."""
    if not values.dtype.is_numeric():
        values = values.cast(pl.String).str.split(" ").list.len()
    return values.cast(pl.Float64).fill_null(np.nan).to_numpy()


def _pair_leans(table: JudgeTable, score: Floats) -> Iterator[JudgeBias]:
    """Yield the lean to a place, and to the longer answer beyond people and beyond chance.

    A judge that is noisy picks less often what people prefer, whatever that is: only beyond
    one half, on the side away from people, is it a lean of its own.
    """
    people = judges.row_mean(table.people)
    if table.swapped is not None:
        change = score - table.swapped
        change = change[np.abs(change) == 1.0]
        n, share = change.size, float((change > 0).mean()) if change.size else 0.5
        reach = 1.96 * ((share * (1 - share) * n + 1.0) / (n + 4.0) / max(n, 1)) ** 0.5
        low, high = max(share - 0.5 - reach, -0.5), min(share - 0.5 + reach, 0.5)
        ends = EstimateEntry(value=share - 0.5, low=low, high=high, n=score.size)
        yield _lean("position", "the first", "both orders", ends, sign_test(change),
                    judge_share=share, flips=n)  # fmt: skip
    elif table.first is not None:
        yield _beside("position", "the first", table.first == 1, score, people)
    if len(table.columns.features) == 2:
        a, b = (_sizes(table.frame[name]) for name in table.columns.features)
        unlike = np.isfinite(a) & np.isfinite(b) & (a != b)
        longer = (a > b)[unlike]
        lean = _beside("length", "the longer", longer, score[unlike], people[unlike])
        sides = np.where(longer, score[unlike], 1 - score[unlike]) - 0.5
        beyond = (lean.value or 0.0) * np.sign(sides).sum() > 0
        yield structs.replace(lean, p=max(lean.p or 0.0, sign_test(sides)) if beyond else 1.0)


def _beside(kind: str, name: str, side: Mask, score: Floats, ratings: Floats) -> JudgeBias:
    """Return how much more often the judge than people picks a side, of the same pairs."""
    judge, people = (np.where(side, part, 1 - part) for part in (score, ratings))
    finite = np.isfinite(people)
    difference = judge[finite] - people[finite]
    n = max(difference.size, 1)
    value = float(difference.sum()) / n
    reach = 1.96 * float(np.sqrt(((difference - value) ** 2).sum() + 1.0)) / n
    ends = EstimateEntry(value=value, low=value - reach, high=value + reach, n=n)
    by_people = float(people[finite].mean()) if finite.any() else None
    return _lean(kind, name, "beside people", ends, sign_test(difference),
                 judge_share=float(judge.mean()), people_share=by_people)  # fmt: skip


def sign_test(values: Floats) -> float:
    """Return the exact two-sided p-value of 'above 0 as often as below'.

    Examples
    --------
    >>> round(sign_test(np.repeat([1.0, -1.0], [32, 13])), 4)
    0.0066
    """
    more, less = int((values > 0).sum()), int((values < 0).sum())
    return min(1.0, 2 * float(bdtr(min(more, less), more + less, 0.5)))


def _lean(
    kind: str, name: str, method: str, ends: EstimateEntry = UNDEFINED, p: float | None = None,
    **shares: Any,
) -> JudgeBias:  # fmt: skip
    return JudgeBias(kind=kind, name=name, value=ends.value, low=ends.low, high=ends.high, p=p,
                     method=method, labels=int(ends.n or 0), **shares)  # fmt: skip
