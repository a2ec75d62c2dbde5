"""The labels that certify: the groups that have enough of them, and how many would be enough."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from msgspec import Struct
from scipy.special import betaincinv, expit

from calibrant.core.arrays import Estimate, Floats, Ints, Mask
from calibrant.core.errors import InputError
from calibrant.findings.documents.decisions import (
    AnsweredGroup,
    AskedGroup,
    DecideCost,
    DecideEntry,
    DecidePromise,
    MoreLabels,
)
from calibrant.metrics.stats.intervals import mean_estimate, wilson_estimate
from calibrant.metrics.stats.regressions import logistic_fit
from calibrant.trust.policy import CONFIDENCE, Score, SelectivePolicy
from calibrant.trust.selective.certify import (
    STARTS,
    AskingCosts,
    Certified,
    TrafficMix,
    certify,
    chance_of_so_few,
    cheapest,
    fewest_rows,
    passed_steps,
    threshold_grid,
    weights_of_steps,
    worth_curve,
)
from calibrant.trust.traffic_shift import Profile, level_texts

# A category with fewer labels is asked, always.
LEAST_LABELS = 15
_FOLDS = 5


class CertifyingLabels(Struct, frozen=True):
    """The labels that certify: score, error and group (a number) of each; the traffic, if any.

    `answerable` is the share of the coming questions that have no category without enough labels;
    `cluster` numbers rows that hang together.
    """

    score: Floats
    wrong: Floats
    group: Ints
    mix: TrafficMix | None = None
    answerable: float = 1.0
    cluster: Ints | None = None

    def of_group(self, number: int) -> CertifyingLabels:
        """Return the labels of one group."""
        inside = self.group == number
        cluster = None if self.cluster is None else self.cluster[inside]
        parts = self.score[inside], self.wrong[inside], self.group[inside]
        return CertifyingLabels(*parts, cluster=cluster)

    def certify(self, max_error: float, delta: float) -> Certified:
        """Return the thresholds that these labels certify."""
        limits: Any = {"max_error": max_error, "delta": delta}
        return certify(self.score, self.wrong, **limits, mix=self.mix, cluster=self.cluster)

    @property
    def weight(self) -> Floats:
        """How often each label stands for a row of the traffic; 1 without one."""
        if self.mix is None:
            return np.ones(len(self.score))
        sizes = np.bincount(self.group)
        return (np.bincount(self.mix.traffic_group, minlength=len(sizes)) / sizes)[self.group]

    def curve(self, grid: Floats) -> tuple[Floats, Floats]:
        """Return what the labels at each threshold are worth, and errors among them."""
        return worth_curve(self.score, self.wrong, grid, self.mix, self.cluster)


def enough_labels(
    frame: pl.DataFrame, groups: pl.Series | None, *, strict: bool = True
) -> dict[str, tuple[str, ...]]:
    """Return by column the categories with at least 15 labels.

    A column without any is refused, or left out where `strict` is False.
    """
    columns = [column for column in frame.get_columns() if not column.dtype.is_numeric()]
    columns += [groups] if groups is not None else []
    categories = {}
    for column in columns:
        counts = level_texts(column).value_counts()
        enough = counts.filter((pl.col("count") >= LEAST_LABELS) & (pl.col(column.name) != ""))
        if enough.height:
            categories[column.name] = tuple(enough[column.name].sort())
        elif strict:
            raise InputError(
                f"no value of {column.name!r} has {LEAST_LABELS} labels; {counts.height} values "
                f"share {len(column)} labels",
                hint="name a coarser column, or label more",
            )
    return categories


def of_known(
    frame: pl.DataFrame, groups: pl.Series | None, categories: Mapping[str, Sequence[str]]
) -> Mask:
    """Return which rows have no category without enough labels."""
    mask = np.ones(frame.height, dtype=bool)
    for name, levels in categories.items():
        column = groups if groups is not None and groups.name == name else frame[name]
        mask &= level_texts(column).is_in(list(levels)).to_numpy()
    return mask


def group_codes(groups: pl.Series | None, rows: Ints, names: Sequence[str]) -> Ints:
    """Return the group of each row as its position in `names`; 0 where there are none."""
    if groups is None:
        return np.zeros(len(rows), dtype=np.int64)
    place = {name: position for position, name in enumerate(names)}
    texts = level_texts(groups).gather(rows)
    return np.array([place[name] for name in texts.to_list()], dtype=np.int64)


def asked_groups(labelled: pl.Series, coming: pl.Series, enough: Sequence[str]) -> list[AskedGroup]:
    """Return the groups without enough labels, most frequent first."""
    labels = dict(level_texts(labelled).value_counts().iter_rows())
    counts = level_texts(coming).value_counts(sort=True).iter_rows()
    return [
        AskedGroup(group=name, n=labels.get(name, 0), share=count / len(coming))
        for name, count in counts
        if name not in enough
    ]


def group_entry(name: str, labels: CertifyingLabels, cut: float) -> AnsweredGroup:
    """Return what is known of one group at its threshold."""
    values = labels.score >= cut
    n = len(values)
    worth, errors = labels.curve(np.array([cut]))
    error = proportions(errors, worth)[0]
    return AnsweredGroup(
        group=name,
        n=n,
        threshold=float(cut) if np.isfinite(cut) else None,
        answered=wilson_estimate(float(values.mean()), n),
        error=error,
        certified=bool(np.isfinite(cut)),
    )


def labelled_policy(
    score: Score,
    threshold: float | None,
    limits: Mapping[str, float],
    share: Estimate,
    error: Estimate,
    confidence: Floats,
    *,
    made: str,
    fitted_on: Mapping[str, Any],
) -> SelectivePolicy:
    """Return a policy that is promised for what is like the labels, all of it together.

    Parameters
    ----------
    score, threshold, made, fitted_on
        As in `SelectivePolicy`.
    limits
        ``max_error`` and ``delta``.
    share, error
        Share of the labels that is answered, and the error among it.
    confidence
        Confidences that later traffic is held against.
    """
    promise = {
        **limits,
        "certified": threshold is not None,
        "for": "labelled",
        "group": None,
        "traffic_rows": None,
        "share_answered": share,
        "error_among_answered": error,
    }
    profile = Profile.of(pl.DataFrame({CONFIDENCE: confidence}))
    return SelectivePolicy(score, threshold, promise, made, share.n, fitted_on, profile)


def decide_entry(model: str, method: str, policy: SelectivePolicy, **more: Any) -> DecideEntry:
    """Return the entry of a document: what a policy promises, of whom, and what else is known."""
    promise = policy.promise
    of_whom = DecidePromise(
        whose=promise["for"],
        group=promise["group"],
        traffic_rows=promise["traffic_rows"],
        asked=more.pop("asked", []),
        groups=more.pop("groups", []),
    )
    return DecideEntry(
        model=model,
        method=method,
        max_error=promise["max_error"],
        delta=promise["delta"],
        certified=bool(promise["certified"]),
        score=policy.score.kind,
        needs=list(policy.needs),
        threshold=policy.threshold,
        promise=of_whom,
        answered=promise["share_answered"],
        error=promise["error_among_answered"],
        **{"labels_needed": None, "more_labels": [], "cost": None, **more},
    )


def proportions(count: Floats, n: Floats) -> list[Estimate]:
    """Return shares with their exact intervals (Clopper and Pearson)."""
    inside = np.maximum(n, 1.0)
    low = np.where(count > 0, betaincinv(np.maximum(count, 1.0), n - count + 1, 0.025), 0.0)
    high = np.where(count < n, betaincinv(count + 1, np.maximum(n - count, 1.0), 0.975), 1.0)
    value = np.where(n > 0, count / inside, np.nan)
    return [
        Estimate(float(place), float(start), float(end), n=int(rows), interval="exact")
        for place, start, end, rows in zip(value, low, high, n, strict=True)
    ]


def cut_above(threshold: float | None) -> float:
    """Return a threshold as a number that a score is held against."""
    return float("inf") if threshold is None else threshold


def cross_fitted_cost(
    labels: CertifyingLabels, costs: AskingCosts, passing: Floats | None, rng: np.random.Generator
) -> DecideCost:
    """Measure costs; the threshold is chosen anew without each fold.

    Parameters
    ----------
    labels, costs
        What certifies, and what a wrong answer and asking cost.
    passing
        The certified thresholds that may be chosen; None for all.
    rng
        Draws the folds; rows of a cluster stay together.
    """
    score, wrong, n = labels.score, labels.wrong, len(labels.score)
    cluster = np.arange(n) if labels.cluster is None else labels.cluster
    fold = (rng.permutation(int(cluster.max()) + 1) % _FOLDS)[cluster]
    answers = np.zeros(n, dtype=bool)
    for number in range(_FOLDS):
        inside, rest = fold == number, fold != number
        grid = threshold_grid(score[rest]) if passing is None else passing
        cut = cheapest(score[rest], wrong[rest], grid, costs) if len(grid) else None
        answers[inside] = score[inside] >= cut_above(cut)
    cost, answering = costs.per_row(answers, wrong), costs.wrong * wrong
    best = answering if answering.mean() < costs.ask else np.full(n, costs.ask)
    return DecideCost(
        costs=costs.to_dict(),
        policy=mean_estimate(cost, labels.cluster),
        always_answer=mean_estimate(answering, labels.cluster),
        always_ask=costs.ask,
        saved=mean_estimate(best - cost, labels.cluster),
    )


_RUNS = 200
_POWER, _LIKELY = 0.8, 0.5
_MOST_LABELS = 10_000_000
_TIMES = (2, 4, 10)
_GRID = 400
# Shares of the most confident labels: one of them must show that a threshold can keep the limit.
_SEEN = (0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0)


class LabelForecast:
    """A world to draw further labels from: the chance of an error by rank, a curve of three terms.

    Parameters
    ----------
    score, wrong
        The labels so far.
    weight
        What each is worth for the traffic that is promised; all alike without one.
    max_error, delta
        What is to be promised.
    worth
        What a row is worth in labels where rows hang together.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> score, wrong = rng.random(300), (rng.random(300) < 0.04).astype(float)
    >>> forecast = LabelForecast(score, wrong, np.ones(300), max_error=0.07, delta=0.1)
    >>> 300 < forecast.labels_needed() < 2000
    True
    """

    def __init__(
        self,
        score: Floats,
        wrong: Floats,
        weight: Floats,
        *,
        max_error: float,
        delta: float,
        worth: float = 1.0,
    ) -> None:
        self.labels, self.max_error, self.delta = len(score), max_error, delta
        _, place, equal = np.unique(-score, return_inverse=True, return_counts=True)
        # Equal scores share the middle of their places.
        rank = ((np.cumsum(equal) - equal / 2) / len(score))[place]
        terms = np.column_stack([rank, rank**2])
        intercept, slopes = logistic_fit(terms, wrong, weight, 1.0 / len(score))
        self._share = (np.arange(_GRID) + 0.5) / _GRID
        rate = expit(intercept + np.column_stack([self._share, self._share**2]) @ slopes)
        self._errors = np.cumsum(rate) / _GRID
        # Uneven weights leave as much knowledge as this share of the labels.
        self._worth = worth * float(weight.sum() ** 2 / (weight @ weight) / len(score))
        # The curve alone dips below the limit in a third of the tables in which nothing keeps it.
        self.can_keep = self._seen(score, wrong, weight)

    def _seen(self, score: Floats, wrong: Floats, weight: Floats) -> bool:
        """Return whether the labels at one of a few shares show that the limit can be kept."""
        order = np.argsort(-score, kind="stable")
        total, bad = np.cumsum(weight[order]), np.cumsum((weight * wrong)[order])
        cut = np.quantile(score, 1 - np.array(_SEEN), method="lower")
        rows = np.searchsorted(-score[order], -cut, side="right")
        worth = rows * self._worth
        chance = chance_of_so_few(bad[rows - 1] / total[rows - 1] * worth, worth, self.max_error)
        return bool((chance <= self.delta).any())

    def _up_to(self, share: Floats) -> Floats:
        """Return the chance that a question is within the share and wrong."""
        ends = np.concatenate([[0.0], self._share + 0.5 / _GRID])
        return np.asarray(np.interp(share, ends, np.concatenate([[0.0], self._errors])))

    def shares(self, labels: int) -> Floats:
        """Return the share that is certified in each of 200 draws of so many labels."""
        rng = np.random.default_rng(labels)
        even = np.arange(1, 101) / 100
        rows, errors = self._draw(rng, even, labels)
        chance = chance_of_so_few(errors, rows, self.max_error)
        able = rows >= fewest_rows(self.max_error, STARTS[0.0] * self.delta)
        brought = self.delta * weights_of_steps(even, able)
        return np.asarray((passed_steps(chance, brought) * even).max(axis=1))

    def _draw(
        self, rng: np.random.Generator, share: Floats, labels: float
    ) -> tuple[Floats, Floats]:
        """Return rows up to each share, and errors among them in every run."""
        rows = np.rint(share * labels * self._worth)
        chance = np.diff(self._up_to(share), prepend=0.0) / np.diff(share, prepend=0.0)
        new = np.diff(rows, prepend=0.0).astype(int)
        draws = rng.binomial(new, np.clip(chance, 0.0, 1.0), (_RUNS, len(new)))
        return rows, draws.cumsum(axis=1).astype(np.float64)

    def labels_needed(self) -> int | None:
        """Return about how many labels certify something in 80 % of draws; None where none do.

        Where no number reaches that, the first that does so in most draws counts.
        """
        if not self.can_keep:
            return None
        labels, likely = self.labels, None
        while labels <= min(_MOST_LABELS, 1000 * self.labels):
            power = float((self.shares(labels) > 0).mean())
            if power >= _POWER:
                return labels
            likely = labels if likely is None and power > _LIKELY else likely
            labels = math.ceil(labels * 1.2)
        return likely

    def more(self) -> list[MoreLabels]:
        """Return the share that 2, 4 and 10 times the labels would likely certify, and the most."""
        forecasts = [
            MoreLabels(labels=n, share=float(np.median(self.shares(n))))
            for n in (times * self.labels for times in _TIMES)
        ]
        rate = self._up_to(self._share) / self._share
        start = int(np.argmax((self.max_error - rate) * np.sqrt(self._share)))
        after = rate[start:] <= self.max_error
        last = len(after) if after.all() else int(np.argmin(after))
        return [*forecasts, MoreLabels(labels=None, share=(start + last) / _GRID if last else 0.0)]
