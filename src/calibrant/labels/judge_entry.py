"""One judge beside people: everything that the document says of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
from msgspec.structs import replace

from calibrant.core.arrays import EstimateEntry, Floats, Mask
from calibrant.data.judge_cells import RatingScale
from calibrant.data.judge_table import JudgeTable
from calibrant.data.mend import RecalibrationMap
from calibrant.findings.documents import labels
from calibrant.labels.labelling.stopping import labels_for_precision
from calibrant.labels.people_ratings import (
    PeoplePool,
    biases,
    contrast,
    lenience,
    people_mean,
    score_map,
)
from calibrant.metrics.stats import judges
from calibrant.metrics.stats.multiplicity import holm
from calibrant.metrics.stats.regressions import Strengths, pair_strengths

_DISAGREEMENTS, _LETTERS = 10, 1_000
# Of more scores than this so many are shown, rounded to so many digits.
_VALUES, _DIGITS = 12, 2
# Of more models than this only the best is compared with each of the others.
_MOST_MODELS = 20
# The half width that more labels are counted for, where nobody names one.
_NARROWER = 0.5


@dataclass(frozen=True)
class JudgeView:
    """A judge's scores with the table they come from.

    Parameters
    ----------
    table
        All judges and people.
    name, score, scale
        This one; a panel of several has no column of its own.
    """

    table: JudgeTable
    name: str
    score: Floats
    scale: RatingScale

    @property
    def same(self) -> bool:
        """Whether people rate on the judge's scale."""
        return self.scale.is_like(self.table.human_scale)

    @property
    def unit(self) -> Floats:
        """Scores between 0 and 1."""
        return self.scale.unit(self.score)

    @cached_property
    def pool(self) -> PeoplePool:
        """Scores and ratings between 0 and 1 as a pool, with models where each row has one."""
        table = self.table
        model = table.sides[:, 0] if table.sides.shape[1] == 1 else None
        people = table.human_scale.unit(judges.row_mean(table.people))
        return PeoplePool(self.unit, people, model, table.item)

    @cached_property
    def strengths(self) -> Strengths | None:
        """Strengths of the models of pairs; None where they are open, or rows have one model."""
        table, pool = self.table, self.pool
        if table.sides.shape[1] < 2:
            return None
        return pair_strengths(table.sides, pool.rate, pool.people, table.item)


def judge_entry(
    view: JudgeView,
    *,
    by: Sequence[str] = (),
    precision: float | None = None,
    cost: float | None = None,
    seed: int = 0,
    about: Mapping[str, Any],
    path: str | None = None,
) -> tuple[labels.JudgeEntry, RecalibrationMap]:
    """Return the entry of one judge, and the map behind it.

    Parameters
    ----------
    view
        The judge beside people.
    by
        Columns whose values get a mean of their own.
    precision
        Half the width that the interval of people's mean should have, in people's units.
    cost
        What one verdict costs.
    seed
        Seed of the map's folds and draws.
    about
        Where the map comes from, for its file.
    path
        Where the map is kept.
    """
    table, pool, scale = view.table, view.pool, view.table.human_scale
    rated, mean = pool.known, _mean(view)
    fitted = score_map(view.unit[rated], pool.people[rated], seed=seed, about=about)
    entry = labels.JudgeEntry(
        judge=view.name,
        n=view.score.size,
        labels=int(rated.sum()),
        scale=labels.JudgeScale(
            kind=table.kind,
            judge=view.scale.ends,
            people=scale.ends,
            words=list(view.scale.words),
            same=view.same,
        ),
        people_mean=mean,
        map=list(_map(view, fitted)),
        bias=list(biases(table, view.score, same=view.same)),
        models=list(_models(view)),
        groups=[group for column in by for group in _groups(view, column)],
        pairs=_pairs(view),
        labels_needed=_labels_needed(mean, view.score.size, precision, scale.span),
        disagreements=list(_disagreements(view)),
        cost=cost,
        path=path,
        **_agreement(view),
    )
    return entry, fitted


def _units(estimate: EstimateEntry, view: JudgeView, *, lead: bool = False) -> EstimateEntry:
    """Return an estimate between 0 and 1 in people's units, its ends on the scale."""
    (value, *ends), scale = estimate.ends, view.table.human_scale
    start, ends = (0.0, ends) if lead else (scale.low, np.clip(ends, 0.0, 1.0).tolist())
    value, low, high = (start + scale.span * part for part in (value, *ends))
    return replace(estimate, value=value, low=low, high=high)


def _mean(view: JudgeView) -> labels.PeopleMean:
    pool = view.pool
    both, alone = people_mean(pool), people_mean(PeoplePool(None, pool.people))
    n, ratio = int(pool.known.sum()), both.error / alone.error
    # Where every row is rated, what the judge is worth is what it would be on others like them.
    rest = 1 / pool.people.size if pool.left else 0.0
    needed = 1 / (ratio**2 * (1 / n - rest) + rest)
    return labels.PeopleMean(
        combined=_units(both.estimate(left=pool.left), view),
        people_only=_units(alone.estimate(left=pool.left), view),
        judge_only=float(view.score.mean()) if view.same else None,
        lenience=_units(lenience(pool).estimate(), view, lead=True),
        width_ratio=ratio,
        labels_saved=max(0, round(needed - n)),
    )


def _agreement(view: JudgeView) -> dict[str, Any]:
    """Return order and kappa, and the same among people with the difference."""
    rated, n = view.pool.known, int(view.pool.known.sum())
    score, people = view.score[rated], view.table.people[rated]
    statistic = judges.same_side if view.table.kind == "pairs" else judges.right_order
    order, peers = judges.agreement(statistic, score, people)
    kappa, kin = judges.agreement(judges.quadratic_kappa, score, people)
    twice = int((np.isfinite(people).sum(axis=1) > 1).sum())
    among = None if peers is None or kin is None else labels.PeopleAgreement(
        count=people.shape[1],
        items=twice,
        order=peers.estimate(twice, judges.SHARE),
        kappa=kin.estimate(twice, judges.KAPPA) if view.same else None,
        order_difference=order.minus(peers).estimate(twice, None),
        kappa_difference=kappa.minus(kin).estimate(twice, None) if view.same else None,
    )  # fmt: skip
    own_kappa = kappa.estimate(n, judges.KAPPA) if view.same else None
    return {"order": order.estimate(n, judges.SHARE), "kappa": own_kappa, "people": among}


def _map(view: JudgeView, fitted: RecalibrationMap) -> Iterator[labels.ScoreMeaning]:
    """Yield what each score means, or each of 12 among many."""
    judge, people, scale = view.unit, view.pool.people, view.table.human_scale
    scores = np.unique(judge)
    if scores.size > _VALUES:
        ranks = np.linspace(0.02, 0.98, _VALUES)
        scores = np.unique(np.round(np.quantile(judge, ranks), _DIGITS))
    finite = np.isfinite(people)
    nearest = np.abs(judge[finite][:, None] - scores).argmin(axis=1)
    for place, score in enumerate(scores.tolist()):
        ratings = people[finite][nearest == place]
        value, (low, high) = fitted.probability(score), fitted.interval(score)
        yield labels.ScoreMeaning(
            score=view.scale.rating(score), value=scale.rating(value), low=scale.rating(low),
            high=scale.rating(high), labels=ratings.size,
            people=scale.rating(float(ratings.mean())) if ratings.size else None,
        )  # fmt: skip


def _models(view: JudgeView) -> Iterator[labels.JudgedModel]:
    """Yield people's mean of each model; of pairs the share that it wins, and its strength."""
    sides, strengths, models = view.table.sides, view.strengths, len(view.table.models)
    for code, name in enumerate(view.table.models):
        beside_mean = np.eye(models)[code] - 1 / models
        strength = strengths.combined(beside_mean).estimate() if strengths else None
        yield _judged(view, name, (sides == code).any(axis=1), sides[:, 0] == code, strength)


def _groups(view: JudgeView, column: str) -> Iterator[labels.JudgedModel]:
    values = view.table.frame[column].cast(pl.String)
    for value in values.drop_nulls().unique().sort().to_list():
        rows = (values == value).fill_null(False).to_numpy()
        yield _judged(view, f"{column} = {value}", rows, rows, None)


def _judged(
    view: JudgeView, name: str, rows: Mask, first: Mask, strength: EstimateEntry | None
) -> labels.JudgedModel:
    mean, rated = contrast(view.pool, [rows], first=first), int((rows & view.pool.known).sum())
    pairs = view.table.kind == "pairs"
    judge = np.where(first, view.unit, 1 - view.unit) if pairs else view.score
    return labels.JudgedModel(
        name=name,
        n=int(rows.sum()),
        labels=rated,
        combined=_units(mean.estimate(), view) if mean else EstimateEntry(n=rated),
        judge_only=float(judge[rows].mean()),
        strength=strength,
    )


def _pairs(view: JudgeView) -> list[labels.JudgedPair]:
    """Return people's preference between each two models, Holm over all of them."""
    models = view.table.models
    result = [(a, b, *lead) for a, b in _compared(view) if (lead := _lead(view, a, b))]
    left_out = len(models) * (len(models) - 1) // 2 - len(result)
    adjusted = holm(np.array([p for *_, p in result] + [1.0] * left_out))
    return [
        labels.JudgedPair(a=models[a], b=models[b], p_adjusted=float(p), **parts)
        for (a, b, parts, _), p in zip(result, adjusted, strict=False)
    ]


def _compared(view: JudgeView) -> Iterator[tuple[int, int]]:
    sides, rate, models = view.table.sides, view.pool.rate, len(view.table.models)
    if models <= _MOST_MODELS:
        yield from combinations(range(models), 2)
        return
    wins = zip(sides.T, (rate, 1 - rate), strict=False)
    total = np.sum([np.bincount(side, part, models) for side, part in wins], axis=0)
    best = int(np.argmax(total / np.maximum(np.bincount(sides.ravel(), minlength=models), 1)))
    yield from ((best, peer) for peer in range(models) if peer != best)


def _lead(view: JudgeView, a: int, b: int) -> tuple[dict[str, Any], float] | None:
    """Return by how much people put one model above another, and the p-value.

    Of pairs that is how much stronger it is, and how often it wins.
    """
    pool, table, strengths = view.pool, view.table, view.strengths
    if strengths is None:
        gap = contrast(pool, [table.sides[:, 0] == code for code in (a, b)], beyond=True)
        if gap is None or table.kind == "pairs":
            return None
        difference = _units(gap.estimate(), view, lead=True)
        return {"difference": difference, "win_rate": None, "strength": None}, gap.p_value
    first = (table.sides == (a, b)).all(axis=1)
    rows = first | (table.sides == (b, a)).all(axis=1)
    wins = contrast(pool, [rows], first=first, beyond=True)
    models = np.eye(len(table.models))
    gap = strengths.combined(models[a] - models[b], int((rows & pool.known).sum()))
    win_rate, strength = wins and _units(wins.estimate(), view), gap.estimate()
    return {"difference": strength, "win_rate": win_rate, "strength": strength}, gap.p_value


def _labels_needed(
    mean: labels.PeopleMean, items: int, precision: float | None, span: float
) -> labels.LabelsNeeded | None:
    """Return how many labels make the interval as narrow as asked, by default half as wide."""
    _, low, high = mean.combined.ends
    half = (high - low) / 2
    if half <= 0:
        return None
    target = precision or float(f"{_NARROWER * half:.1g}")
    whole = labels_for_precision(int(mean.combined.n or 0), items, half / span, target / span)
    return labels.LabelsNeeded(precision=target, labels=whole)


def _disagreements(view: JudgeView) -> Iterator[labels.Disagreement]:
    """Yield the ratings that surprise most, given the judge's scores of the others."""
    table, pool, scale = view.table, view.pool, view.table.human_scale
    surprise = np.where(pool.known, np.abs(pool.people - pool.rate), -1.0)
    names = (table.columns.question, table.columns.model, table.columns.answer)
    for row in np.argsort(-surprise, kind="stable")[: min(_DISAGREEMENTS, pool.known.sum())]:
        cells = table.frame.row(int(row), named=True)
        texts = (None if (cell := cells.get(name or "")) is None else str(cell)[:_LETTERS]
                 for name in names)  # fmt: skip
        yield labels.Disagreement(
            row=int(table.rows[row]),
            judge=float(view.score[row]),
            people=scale.rating(float(pool.people[row])),
            expected=scale.rating(float(pool.rate[row])),
            **dict(zip(("question", "model", "text"), texts, strict=True)),
        )
