"""A pool of answers, some of them labelled: how these were drawn, and what other models say."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import expit, logit

from calibrant.core.arrays import Floats, Indices
from calibrant.core.errors import InputError, UnavailableError
from calibrant.metrics.stats.cells import SLICE_ROWS, cell_places
from calibrant.metrics.stats.regressions import intercept_free, ridge_logistic


@dataclass(frozen=True, slots=True)
class Wave:
    """One draw of items.

    Parameters
    ----------
    size
        Items drawn.
    frame
        Items it was drawn from: those that no earlier wave had drawn.
    uniform
        Whether every item of the frame had the same chance.
    """

    size: int
    frame: int
    uniform: bool = True


@dataclass(frozen=True, slots=True)
class LabelDraws:
    """How items came to be labelled.

    Parameters
    ----------
    wave
        Number of the wave that drew an item, from 1; 0 for items never drawn. Shape (n,).
    pi
        Probability with which its wave drew the item, shape (n,); unused where never drawn.
    waves
        The waves, first to last, over all items (an item may serve several pools).
    labelled
        Labels that came back from each wave so far.
    order
        Place of each item in the order in which labels were made, shape (n,), or None.
    along
        Place of each item on the line along which its wave was spread, NaN where it was not,
        shape (n,), or None.
    """

    wave: Indices
    pi: Floats
    waves: tuple[Wave, ...]
    labelled: tuple[int, ...]
    order: Indices | None = None
    along: Floats | None = None

    def only(self, items: Indices) -> LabelDraws:
        """Return how these items came to be labelled; an item may occur more than once."""
        columns = {name: getattr(self, name) for name in ("wave", "pi", "order", "along")}
        return replace(self, **{k: v[items] for k, v in columns.items() if v is not None})


def pool_cells(confidence: Floats, slices: int = 15) -> Indices:
    """Return the cell of every item, rising: stated values that carry items, slices else.

    They are those of an audit of 50 labels per slice, or of a smaller pool. They stay the same
    while labels come in: bounds that hold after every label need that.

    Examples
    --------
    >>> pool_cells(np.repeat([0.95, 1.0, 0.5, 0.6], [60, 60, 10, 20]))[[0, 60, 120, 149]].tolist()
    [1, 2, 0, 0]
    """
    value, place, rows = np.unique(confidence, return_inverse=True, return_counts=True)
    counts = rows.astype(np.float64) * min(1.0, SLICE_ROWS * slices / confidence.size)
    cell, number = cell_places(value, counts)
    confidences = np.bincount(cell, counts * value, number) / np.bincount(cell, counts, number)
    return np.argsort(np.argsort(confidences, kind="stable"), kind="stable")[cell[place]]


@dataclass(frozen=True)
class LabelPool:
    """Items with known confidence, some of them labelled.

    Parameters
    ----------
    confidence
        Confidences in [0, 1], shape (n,).
    correct
        Outcomes 0 or 1, NaN where there is no label yet, shape (n,).
    side
        Side information that may predict correctness (a cheap judge, the agreement or the
        outcomes of other models), shape (n, k), or None.
    bins
        Slices of the confidences that few items state, at most, see `pool_cells`.
    draws
        How the labelled items were drawn; None for a simple random choice.
    stratum
        A coarser division (the model) over which a draw is spread first, shape (n,), or None.
    """

    confidence: Floats
    correct: Floats
    side: Floats | None = None
    bins: int = 15
    draws: LabelDraws | None = None
    stratum: Indices | None = None

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Which items have a label."""
        return np.isfinite(self.correct)

    @cached_property
    def cell(self) -> Indices:
        """Cell of every item."""
        return pool_cells(self.confidence, self.bins)

    @property
    def cells(self) -> int:
        """Number of cells."""
        return int(self.cell.max()) + 1

    def cell_ends(self) -> list[list[float]]:
        """Return the least and the largest confidence of each cell."""
        ends = np.full((self.cells, 2), [np.inf, -np.inf])
        np.minimum.at(ends[:, 0], self.cell, self.confidence)
        np.maximum.at(ends[:, 1], self.cell, self.confidence)
        pairs: list[list[float]] = ends.tolist()
        return pairs

    @property
    def open(self) -> Indices:
        """Items that no wave has drawn and that have no label."""
        selection = self.labelled
        if self.draws is not None:
            selection = selection | (self.draws.wave > 0)
        return np.flatnonzero(~selection)

    def weights(self) -> Floats:
        """Return how many items of the pool each labelled item stands for, shape (labels,)."""
        lab = np.flatnonzero(self.labelled)
        if self.draws is None:
            return np.full(lab.size, self.confidence.size / max(lab.size, 1))
        weight = design_weights(self.draws)[lab]
        if not (weight > 0).all():
            rule = "an item has a label but was never drawn, so nobody knows how it was chosen"
            row = int(lab[np.argmin(weight > 0)]) + 1
            raise InputError(rule, row=row, hint="keep only labels that calibrant drew")
        return weight


def design_weights(draws: LabelDraws) -> Floats:
    """Return the weight of every item, were it labelled; 0 for items never drawn.

    A wave estimates the pool by itself: items drawn before it count once, its own items count
    ``1 / pi``. The waves' estimates are averaged in proportion to their labels. Waves of equal
    chances that follow each other are one draw. A wave that came back in part counts as a random
    part of itself, because its items are shown in random order.

    Examples
    --------
    >>> draws = LabelDraws(np.array([1, 2, 0, 0]), np.array([0.25, 1 / 3, 0, 0]),
    ...               (Wave(1, 4), Wave(1, 3)), (1, 1))
    >>> design_weights(draws).tolist()
    [2.0, 2.0, 0.0, 0.0]
    """
    groups = _merged(draws.waves)
    labels = np.array([sum(draws.labelled[k] for k in group) for group in groups], dtype=np.float64)
    sample = np.array([sum(draws.waves[k].size for k in group) for group in groups])
    share = labels / max(labels.sum(), 1.0)
    # Share of the waves after each group: there its items are already known.
    later = share.sum() - np.cumsum(share)
    weight = np.zeros(draws.wave.size)
    for number, group in enumerate(groups):
        if labels[number] == 0:
            continue
        inside = np.isin(draws.wave, np.array(group) + 1)
        first = draws.waves[group[0]]
        pi = sample[number] / first.frame if first.uniform else np.where(inside, draws.pi, 1.0)
        returned = sample[number] / labels[number]
        weight = np.where(inside, returned * (share[number] / pi + later[number]), weight)
    return weight


def spread_shares(draws: LabelDraws) -> Floats:
    """Return, for every item, the share of a label's variance that the spread of its draw is about.

    A spread draw takes one item from each stretch of its line, so that only differences inside a
    stretch are left to chance. What came back is a random part of what was drawn, and the pool
    itself is a sample of all answers to come: both keep their full variance. So of a wave that
    drew the share f of the pool and of which the share r came back, the spread is about r (1 - f).

    Examples
    --------
    >>> draws = LabelDraws(np.array([1, 1, 0, 0]), np.full(4, 0.5), (Wave(2, 4),), (1,), None,
    ...               np.array([0.2, 0.7, np.nan, np.nan]))
    >>> spread_shares(draws).tolist()
    [0.25, 0.25, 0.0, 0.0]
    """
    if draws.along is None or not draws.waves:
        return np.zeros(draws.wave.size)
    sample = np.array([wave.size for wave in draws.waves], dtype=np.float64)
    remaining = max(0.0, 1.0 - sample.sum() / draws.waves[0].frame)
    share = remaining * np.minimum(np.array(draws.labelled) / np.maximum(sample, 1.0), 1.0)
    inside = (draws.wave > 0) & np.isfinite(draws.along)
    return np.where(inside, share[np.maximum(draws.wave - 1, 0)], 0.0)


def _merged(waves: tuple[Wave, ...]) -> list[list[int]]:
    groups: list[list[int]] = []
    for k, wave in enumerate(waves):
        if groups and wave.uniform and waves[groups[-1][-1]].uniform:
            groups[-1].append(k)
        else:
            groups.append([k])
    return groups


def peer_agreement(frame: pl.DataFrame) -> pl.Series:
    """Return, for every row, the share of other models that give the same answer, in [0, 1].

    It is no label and no claim: it steers which items to label and takes noise out of the
    estimate, while the labels alone decide its value.

    Parameters
    ----------
    frame
        Columns ``question_id``, ``model``, ``answer``; a missing answer agrees with nobody.

    Examples
    --------
    >>> frame = pl.DataFrame({"question_id": ["q"] * 3, "model": ["a", "b", "c"],
    ...                       "answer": ["X", "x ", "Y"]})
    >>> peer_agreement(frame).to_list()
    [0.5, 0.5, 0.0]
    """
    models = frame["model"].n_unique() if "model" in frame.columns else 0
    if models < 2 or "answer" not in frame.columns:
        raise UnavailableError(
            "peer agreement needs a column `answer` and at least two models on the same questions"
        )
    confidence = pl.col("answer").cast(pl.String).str.strip_chars().str.to_lowercase()
    rows = frame.select("question_id", "model", confidence.alias("said"))
    votes = rows.unique().group_by("question_id", "said").agg(votes=pl.len())
    others = rows.group_by("question_id").agg(others=pl.col("model").n_unique() - 1)
    joined = rows.join(votes, on=["question_id", "said"], how="left", maintain_order="left")
    joined = joined.join(others, on="question_id", how="left", maintain_order="left")
    alone = pl.col("said").is_null() | (pl.col("others") == 0)
    agreed = pl.when(alone).then(0.0).otherwise((pl.col("votes") - 1) / pl.col("others"))
    return joined.select(agreed.fill_null(0.0).alias("peers")).to_series()


_FOLDS = 4
_FEWEST = 8


def features(pool: LabelPool) -> Floats:
    """Return standardised columns: the confidence's log-odds, then each side column.

    A yes/no column enters as it is; a share enters with its square, so that unanimous peers may
    count for more than their number.
    """
    columns = [logit(np.clip(pool.confidence, 0.02, 0.98))]
    if pool.side is not None:
        for values in np.nan_to_num(pool.side, nan=0.5).T:
            columns.append(values)
            if np.unique(values[:10_000]).size > 2:
                columns.append(values**2)
    table = np.column_stack(columns)
    spread = table.std(axis=0)
    return np.asarray((table - table.mean(axis=0)) / np.where(spread > 0, spread, 1.0))


def _fit(x: Floats, y: Floats, weight: Floats) -> Floats:
    """Return intercept and slopes of a weighted logistic ridge of strength 1 on the slopes."""
    design = np.column_stack([np.ones(len(x)), x])
    penalty = intercept_free(design, 1.0, 1e-3)
    return ridge_logistic(design, y, penalty, weights=weight / weight.mean())


def _predict(beta: Floats, x: Floats) -> Floats:
    return np.asarray(expit(beta[0] + x @ beta[1:]), dtype=np.float64)


def first_look(x: Floats, lab: Indices, y: Floats, weight: Floats) -> Floats:
    """Return predicted rates of all items from the labelled ones, to steer the next wave."""
    return _predict(_fit(x[lab], y, weight), x)


def cross_fitted(x: Floats, lab: Indices, y: Floats, weight: Floats) -> Floats:
    """Return a predicted rate of every item; no labelled item's own label goes into its own.

    Folds follow the place of an item in the pool, so that the same labels give the same numbers.
    """
    if lab.size < _FEWEST:
        return np.full(len(x), (float(y.sum()) + 1.0) / (lab.size + 2.0))
    # Multiplying by an odd number spreads neighbours over folds without a seed.
    fold = np.minimum((lab * 2654435761 % 2**32) // (2**32 // _FOLDS), _FOLDS - 1)
    mean, held_out = np.zeros(len(x)), np.zeros(lab.size)
    for k in range(_FOLDS):
        inside = fold == k
        if inside.all():
            fold = np.arange(lab.size) % _FOLDS
            inside = fold == k
        rate = _predict(_fit(x[lab[~inside]], y[~inside], weight[~inside]), x)
        mean += rate
        held_out[inside] = rate[lab[inside]]
    mean /= _FOLDS
    mean[lab] = held_out
    return mean


def share_left(pool: LabelPool) -> float:
    """Return the share of the outcomes' variance that side information leaves, `1 - R^2`.

    Measured on the labelled items with predictions that never saw them. About this share of the
    labels of a design without side information is needed; above 1 it helps nothing.
    """
    lab = np.flatnonzero(pool.labelled)
    y, weight = pool.correct[lab], pool.weights()
    residual = y - cross_fitted(features(pool), lab, y, weight)[lab]
    alone = y - cross_fitted(features(replace(pool, side=None)), lab, y, weight)[lab]
    base = float(weight @ alone**2)
    return float(weight @ residual**2) / base if base > 0 else 1.0
