"""The labels that certify, and the groups that have enough of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from scipy.special import betaincinv

from calibrant.core.arrays import Floats, Ints, Mask
from calibrant.core.errors import InputError
from calibrant.core.estimate import Estimate
from calibrant.findings.documents.decisions import AnsweredGroup, AskedGroup, DecideCost
from calibrant.metrics.stats.intervals import mean_estimate, wilson_estimate
from calibrant.trust.selective.certify import (
    AskingCosts,
    Certified,
    TrafficMix,
    certify,
    cheapest,
    error_curve,
    rows_per_label,
    threshold_grid,
)
from calibrant.trust.traffic_shift import level_texts

# A category with fewer labels is asked, always.
LEAST_LABELS = 15
_FOLDS = 5


@dataclass(frozen=True, slots=True)
class CertifyingLabels:
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
        more: Mapping[str, Any] = {"mix": self.mix, "cluster": self.cluster}
        return certify(self.score, self.wrong, max_error=max_error, delta=delta, **more)

    @property
    def weight(self) -> Floats:
        """How often each label stands for a row of the traffic; 1 without one."""
        if self.mix is None:
            return np.ones(len(self.score))
        sizes = np.bincount(self.group)
        return (np.bincount(self.mix.traffic_group, minlength=len(sizes)) / sizes)[self.group]

    def curve(self, grid: Floats) -> tuple[Floats, Floats]:
        """Return what the labels at each threshold are worth, and errors among them."""
        measure = self.mix.curve if self.mix is not None else error_curve
        rows, errors = measure(self.score, self.wrong, grid)
        if self.cluster is None:
            return rows, errors
        worth = rows_per_label(self.score, self.wrong, self.cluster, grid)
        return rows / worth, errors / worth


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
