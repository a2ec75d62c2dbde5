"""One judge beside people: everything that the document says of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
from msgspec import Struct

from calibrant.core.arrays import Floats, Indices, Mask
from calibrant.core.estimate import Estimate, EstimateEntry
from calibrant.data.judge_cells import RatingScale
from calibrant.data.judge_table import JudgeTable
from calibrant.data.mend import RecalibrationMap
from calibrant.findings.documents.labels import (
    Disagreement,
    JudgedModel,
    JudgedPair,
    JudgeEntry,
    JudgeScale,
    LabelsNeeded,
    PeopleAgreement,
    PeopleMean,
    ScoreMeaning,
)
from calibrant.labels.judge_bias import biases
from calibrant.labels.labelling.stopping import labels_for_precision
from calibrant.labels.people_ratings import (
    PeoplePool,
    contrast,
    lenience,
    meanings,
    people_mean,
    score_map,
)
from calibrant.metrics.stats.judges import (
    KAPPA,
    SHARE,
    among_people,
    quadratic_kappa,
    right_order,
    row_mean,
    same_side,
    with_people,
)
from calibrant.metrics.stats.multiplicity import holm
from calibrant.metrics.stats.regressions import Strengths, pair_strengths

_DISAGREEMENTS, _LETTERS = 10, 1_000
# Of more models than this only the best is compared with each of the others.
_MOST_MODELS = 20
# The half width that more labels are counted for, where nobody names one.
_NARROWER = 0.5


class JudgeView(Struct, frozen=True):
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

    @property
    def rating(self) -> Floats:
        """People's mean rating between 0 and 1, NaN where nobody rated."""
        return self.table.human_scale.unit(row_mean(self.table.people))

    @property
    def pool(self) -> PeoplePool:
        """Scores and ratings as a pool, with models where each row has one."""
        single = self.table.kind != "pairs" and self.table.sides is not None
        model = self.table.sides[:, 0] if single and self.table.sides is not None else None
        return PeoplePool(self.unit, self.rating, model)


def judge_entry(
    view: JudgeView,
    *,
    by: Sequence[str] = (),
    precision: float | None = None,
    cost: float | None = None,
    seed: int = 0,
    about: Mapping[str, Any],
    path: str | None = None,
) -> tuple[JudgeEntry, RecalibrationMap]:
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
    table, pool = view.table, view.pool
    known_values, span = pool.known, table.human_scale.span
    mean = _mean(view, pool)
    fitted = score_map(view.unit[known_values], pool.people[known_values], seed=seed, about=about)
    entry = JudgeEntry(
        judge=view.name,
        n=view.score.size,
        labels=int(known_values.sum()),
        scale=JudgeScale(
            kind=table.kind,
            judge=[view.scale.low, view.scale.high],
            people=[table.human_scale.low, table.human_scale.high],
            words=list(view.scale.words),
            same=view.same,
        ),
        people_mean=mean,
        map=list(_map(view, fitted)),
        bias=list(biases(table, view.name, view.score, same=view.same)),
        models=list(_models(view, pool)),
        groups=[group for column in by for group in _groups(view, pool, column)],
        pairs=_pairs(view, pool),
        labels_needed=_labels_needed(mean, view.score.size, precision, span),
        disagreements=list(_disagreements(view, pool)),
        cost=cost,
        path=path,
        **_agreement(view, known_values),
    )
    return entry, fitted


def _units(estimate: Estimate, scale: RatingScale, *, lead: bool = False) -> EstimateEntry:
    """Return an estimate between 0 and 1 in people's units, its ends on the scale."""
    start = 0.0 if lead else scale.low
    low, high = (
        start + scale.span * end if lead else start + scale.span * min(max(end, 0.0), 1.0)
        for end in (estimate.low, estimate.high)
    )
    return EstimateEntry(value=start + scale.span * estimate.value, low=low, high=high,
                         n=estimate.n)  # fmt: skip


def _mean(view: JudgeView, pool: PeoplePool) -> PeopleMean:
    scale, n = view.table.human_scale, int(pool.known.sum())
    both, alone = people_mean(pool), people_mean(PeoplePool(None, pool.people))
    ratio = both.error / alone.error
    # Where every row is rated, what the judge is worth is what it would be on others like them.
    rest = 1 / pool.people.size if pool.left else 0.0
    needed = 1 / (ratio**2 * (1 / n - rest) + rest)
    return PeopleMean(
        combined=_units(both.estimate(n, left=pool.left), scale),
        people_only=_units(alone.estimate(n, left=pool.left), scale),
        judge_only=float(view.score.mean()) if view.same else None,
        lenience=_units(lenience(pool).estimate(n), scale, lead=True),
        width_ratio=ratio,
        labels_saved=max(0, round(needed - n)),
    )


def _agreement(view: JudgeView, known_values: Mask) -> dict[str, Any]:
    """Return order and kappa, and the same among people with the difference."""
    score, people, n = (
        view.score[known_values],
        view.table.people[known_values],
        int(known_values.sum()),
    )
    ordered = same_side if view.table.kind == "pairs" else right_order
    order = with_people(ordered, score, people)
    kappa = with_people(quadratic_kappa, score, people) if view.same else None
    matches: dict[str, Any] = {
        "order": order.estimate(n, SHARE),
        "kappa": None if kappa is None else kappa.estimate(n, KAPPA),
        "people": None,
    }
    peers = among_people(ordered, people)
    kin = among_people(quadratic_kappa, people)
    if peers is None or kin is None:
        return matches
    twice = int((np.isfinite(people).sum(axis=1) > 1).sum())
    matches["people"] = PeopleAgreement(
        count=people.shape[1],
        items=twice,
        order=peers.estimate(twice, SHARE),
        kappa=None if kappa is None else kin.estimate(twice, KAPPA),
        order_difference=order.minus(peers).estimate(twice, None),
        kappa_difference=None if kappa is None else kappa.minus(kin).estimate(twice, None),
    )
    return matches


def _map(view: JudgeView, fitted: RecalibrationMap) -> Iterator[ScoreMeaning]:
    to, entry = view.table.human_scale, view.scale
    for score, value, low, high, labels, mean in meanings(fitted, view.unit, view.rating):
        ends = (to.low + to.span * part for part in (value, low, high))
        yield ScoreMeaning(
            score=entry.low + entry.span * score, labels=labels,
            people=None if mean is None else to.low + to.span * mean,
            **dict(zip(("value", "low", "high"), ends, strict=True)),
        )  # fmt: skip


def _strengths(view: JudgeView, pool: PeoplePool) -> Strengths | None:
    table = view.table
    if table.kind != "pairs" or table.sides is None:
        return None
    return pair_strengths(table.sides, pool.rate, pool.people, table.item)


def _models(view: JudgeView, pool: PeoplePool) -> Iterator[JudgedModel]:
    """Yield people's mean of each model; of pairs the share that it wins, and its strength."""
    table, strengths = view.table, _strengths(view, pool)
    if table.sides is None:
        return
    for code, name in enumerate(table.models):
        rows = (table.sides == code).any(axis=1)
        first = table.sides[:, 0] == code
        strength = None if strengths is None else _beside_mean(strengths, code)
        yield from _judged(view, pool, name, rows, first, strength)


def _beside_mean(strengths: Strengths, code: int) -> EstimateEntry:
    models = strengths.value.size
    weight = np.full(models, -1.0 / models)
    weight[code] += 1.0
    error = float(np.sqrt(max(weight @ strengths.covariance @ weight, 0.0)))
    reach, value = strengths.half_width(error), float(weight @ strengths.value)
    return EstimateEntry(value=value, low=value - reach, high=value + reach)


def _groups(view: JudgeView, pool: PeoplePool, column: str) -> Iterator[JudgedModel]:
    values = view.table.frame[column].cast(pl.String)
    for value in values.drop_nulls().unique().sort().to_list():
        rows = (values == value).fill_null(False).to_numpy()
        yield from _judged(view, pool, f"{column} = {value}", rows, rows, None)


def _judged(
    view: JudgeView,
    pool: PeoplePool,
    name: str,
    rows: Mask,
    first: Mask,
    strength: EstimateEntry | None,
) -> Iterator[JudgedModel]:
    people, rate, score = (np.where(first, v, 1 - v) for v in (pool.people, pool.rate, view.unit))
    mean = contrast(people, rate, [rows], view.table.item)
    labels = int((rows & pool.known).sum())
    scale = view.table.human_scale
    combined = EstimateEntry(n=labels)
    if mean is not None:
        remaining = mean.estimate(labels)
        combined = _units(remaining, scale)
    judge = score[rows].mean() if view.table.kind == "pairs" else view.score[rows].mean()
    yield JudgedModel(
        name=name, n=int(rows.sum()), labels=labels, combined=combined, judge_only=float(judge),
        strength=strength,
    )  # fmt: skip


def _pairs(view: JudgeView, pool: PeoplePool) -> list[JudgedPair]:
    """Return people's preference between each two models, Holm over all of them."""
    table, models = view.table, len(view.table.models)
    if table.sides is None:
        return []
    strengths, result = _strengths(view, pool), []
    for a, b in _compared(table.sides, pool.rate, models, pairs=table.kind == "pairs"):
        one = _led(view, pool, a, b) if strengths is None else _won(view, pool, a, b, strengths)
        result += [] if one is None else [(a, b, *one)]
    whole = models * (models - 1) // 2
    adjusted = holm(np.array([p for *_, p in result] + [1.0] * (whole - len(result))))
    return [
        JudgedPair(a=table.models[a], b=table.models[b], p_adjusted=float(p), **parts)
        for (a, b, parts, _), p in zip(result, adjusted, strict=False)
    ]


def _compared(
    sides: Indices, rate: Floats, models: int, *, pairs: bool
) -> Iterator[tuple[int, int]]:
    if models <= _MOST_MODELS:
        yield from combinations(range(models), 2)
        return
    total = np.bincount(sides[:, 0], rate, models)
    if pairs:
        total = total + np.bincount(sides[:, 1], 1 - rate, models)
    best = int(np.argmax(total / np.maximum(np.bincount(sides.ravel(), minlength=models), 1)))
    yield from ((best, peer) for peer in range(models) if peer != best)


_Told = tuple[dict[str, Any], float]


def _led(view: JudgeView, pool: PeoplePool, a: int, b: int) -> _Told | None:
    """Return by how much people rate one model above another, and the p-value."""
    if view.table.sides is None or view.table.kind == "pairs":
        return None
    parts = [view.table.sides[:, 0] == code for code in (a, b)]
    gap = contrast(pool.people, pool.rate, parts, view.table.item, beyond=True)
    if gap is None:
        return None
    n = int((pool.known & (parts[0] | parts[1])).sum())
    difference = _units(gap.estimate(n), view.table.human_scale, lead=True)
    return {"difference": difference, "win_rate": None, "strength": None}, gap.p_value


def _won(view: JudgeView, pool: PeoplePool, a: int, b: int, strengths: Strengths) -> _Told:
    """Return how much stronger one model is in pairs, how often it wins, and the p-value."""
    assert view.table.sides is not None
    first = (view.table.sides == (a, b)).all(axis=1)
    rows = first | (view.table.sides == (b, a)).all(axis=1)
    people, rate = (np.where(first, part, 1 - part) for part in (pool.people, pool.rate))
    mean = contrast(people, rate, [rows], view.table.item, beyond=True) if rows.any() else None
    value, error = strengths.difference(a, b)
    reach, n = strengths.half_width(error), int((rows & pool.known).sum())
    strength = EstimateEntry(value=value, low=value - reach, high=value + reach, n=n)
    won = None if mean is None else _units(mean.estimate(n), RatingScale(0.0, 1.0))
    parts = {"difference": strength, "win_rate": won, "strength": strength}
    return parts, strengths.p_value(value, error)


def _labels_needed(
    mean: PeopleMean, items: int, precision: float | None, span: float
) -> LabelsNeeded | None:
    """Return how many labels make the interval as narrow as asked, by default half as wide."""
    _, low, high = mean.combined.ends
    half, made = (high - low) / 2, int(mean.combined.n or 0)
    if half <= 0:
        return None
    targets = precision or float(f"{_NARROWER * half:.1g}")
    labels = labels_for_precision(made, items, half / span, targets / span)
    return LabelsNeeded(precision=targets, labels=labels)


def _disagreements(view: JudgeView, pool: PeoplePool) -> Iterator[Disagreement]:
    """Yield the ratings that surprise most, given the judge's scores of the others."""
    table, scale = view.table, view.table.human_scale
    surprise = np.where(pool.known, np.abs(pool.people - pool.rate), -1.0)
    columns = table.columns
    for row in np.argsort(-surprise, kind="stable")[:_DISAGREEMENTS].tolist():
        if surprise[row] < 0:
            return
        cells = table.frame.row(row, named=True)
        texts = {key: cells.get(name or "") for key, name in
                 (("question", columns.question), ("model", columns.model),
                  ("text", columns.answer))}  # fmt: skip
        yield Disagreement(
            row=int(table.rows[row]),
            judge=float(view.score[row]),
            people=scale.low + scale.span * float(pool.people[row]),
            expected=scale.low + scale.span * float(pool.rate[row]),
            **{k: None if v is None else str(v)[:_LETTERS] for k, v in texts.items()},
        )
