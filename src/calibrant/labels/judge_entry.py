"""One judge beside people: everything that the document says of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
from msgspec.structs import replace

from calibrant.core.arrays import EstimateEntry, Floats, Mask
from calibrant.data.judge_shape import side_columns
from calibrant.data.judge_table import JudgeTable, RatingScale
from calibrant.data.reading.names import columns_called
from calibrant.data.recalibration_map import RecalibrationMap
from calibrant.findings.documents import labels
from calibrant.labels import judge_leans, people_ratings
from calibrant.labels.labelling.stopping import labels_for_precision
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
    def pool(self) -> people_ratings.PeoplePool:
        """Scores and ratings between 0 and 1 as a pool, with models where each row has one."""
        table = self.table
        model = table.sides[:, 0] if table.sides.shape[1] == 1 else None
        people = table.human_scale.unit(judges.row_mean(table.people))
        return people_ratings.PeoplePool(self.unit, people, model, table.item)

    @cached_property
    def strengths(self) -> Strengths | None:
        """Strengths of the models of pairs; None where they are open, or rows have one model."""
        table, pool = self.table, self.pool
        if table.sides.shape[1] < 2:
            return None
        return pair_strengths(table.sides, pool.rate, pool.people, table.item)


def judge_entry(
    view: JudgeView, options: Mapping[str, Any], origin: Mapping[str, Any]
) -> tuple[labels.JudgeEntry, RecalibrationMap]:
    """Return the entry of one judge, and the map behind it.

    Parameters
    ----------
    view
        The judge beside people.
    options
        Those of the verb that bear on one judge: ``by``, ``precision``, ``cost``, ``seed`` and
        ``save``.
    origin
        Where the ratings come from, for the map's file.
    """
    table, pool, rated, mean = view.table, view.pool, view.pool.known, _mean(view)
    judge, people = ([scale.low, scale.high] for scale in (view.scale, table.human_scale))
    fitted_on = {**origin, "judge_scale": judge, "people_scale": people}
    # A judge scores answers of every model: its column alone is the name of the map.
    about = {"model": "", "method": view.name, "fitted_on": {**fitted_on, "labels_by": "people"}}
    fitted = people_ratings.score_map(
        view.unit[rated], pool.people[rated], seed=options.get("seed", 0), about=about
    )
    words, costs, path = list(view.scale.words), options.get("cost") or {}, options.get("save")
    # The price of a panel is the sum of its members'.
    members = [view.name] if view.name in table.scores else [*table.scores]
    entry = labels.JudgeEntry(
        judge=view.name,
        n=view.score.size,
        labels=int(rated.sum()),
        scale=labels.JudgeScale(
            kind=table.kind,
            judge=judge,
            people=people,
            words=words,
            same=view.same,
            people_words=list(table.human_scale.words),
        ),
        people_mean=mean,
        map=list(_map(view, fitted)),
        bias=list(judge_leans.biases(table, view.score, same=view.same)),
        models=list(_models(view)),
        groups=[
            _judged(view, name, rows, rows)
            for column in options.get("by", ())
            for name, rows in judge_leans.named_values(table.frame[column].cast(pl.String))
        ],
        pairs=_pairs(view),
        labels_needed=_labels_needed(view, mean.combined, options.get("precision")),
        disagreements=list(_disagreements(view, fitted)),
        cost=sum(costs[name] for name in members) if {*members} <= costs.keys() else None,
        path=None if path is None else str(path),
        **_agreement(view),
    )
    return entry, fitted


def _units(estimate: EstimateEntry, view: JudgeView, *, lead: bool = False) -> EstimateEntry:
    """Return an estimate between 0 and 1 in people's units, its ends on the scale."""
    parts, scale = estimate.ends, view.table.human_scale
    start, parts = (0.0, parts) if lead else (scale.low, np.clip(parts, 0.0, 1.0).tolist())
    value, low, high = (start + scale.span * part for part in parts)
    return replace(estimate, value=value, low=low, high=high)


def _mean(view: JudgeView) -> labels.PeopleMean:
    pool, left = view.pool, 1.0 - float(view.pool.known.mean())
    both = people_ratings.people_mean(pool)
    alone = people_ratings.people_mean(people_ratings.PeoplePool(None, pool.people, item=pool.item))
    n, ratio = int(pool.known.sum()), both.error / alone.error
    # Where every row is rated, what the judge is worth is what it would be on others like them.
    rest = 1 / pool.people.size if left else 0.0
    needed = 1 / (ratio**2 * (1 / n - rest) + rest)
    y, held = pool.people[pool.known], people_ratings.held
    return labels.PeopleMean(
        combined=_units(held(both.estimate(left=left), y, left), view),
        people_only=_units(held(alone.estimate(left=left), y, left), view),
        judge_only=float(view.score.mean()) if view.same else None,
        lenience=_units(people_ratings.lenience(pool), view, lead=True),
        width_ratio=ratio,
        labels_saved=max(0, round(needed - n)),
    )


def _agreement(view: JudgeView) -> dict[str, Any]:
    """Return order and kappa, and the same among people with the difference."""
    table, known, is_pairs = view.table, view.pool.known, view.table.kind == "pairs"
    score, people, item = view.score[known], table.people[known], table.item[known]
    people = people_ratings.independent(people)
    twice = np.isfinite(people).sum(axis=1) > 1
    kinds = {"order": (judges.same_side if is_pairs else judges.right_order, judges.SHARE)}
    if view.same:
        kinds["kappa"] = judges.quadratic_kappa, judges.KAPPA
    own: dict[str, Any] = {"kappa": None}
    among: dict[str, Any] = {"kappa": None, "kappa_difference": None}
    for name, (statistic, span) in kinds.items():
        own[name] = judges.agreement_estimate(statistic(score, people), people, span, item)
        if twice.sum() > 1:
            parts, of = (
                judges.agreement(statistic, score, people),
                (people[twice], span, item[twice]),
            )
            among[name] = judges.agreement_estimate(parts[1], *of)
            among[f"{name}_difference"] = judges.difference_estimate(parts, *of)
    agreements = {"count": people.shape[1], "items": int(twice.sum()), **among}
    return {**own, "people": labels.PeopleAgreement(**agreements) if twice.sum() > 1 else None}


def _map(view: JudgeView, fitted: RecalibrationMap) -> Iterator[labels.ScoreMeaning]:
    """Yield what each score means, or each of 12 among many."""
    judge, people, scale = view.unit, view.pool.people, view.table.human_scale
    scores = np.unique(judge)
    if scores.size > _VALUES:
        ranks = np.linspace(0.02, 0.98, _VALUES)
        scores = np.unique(np.round(np.quantile(judge, ranks), _DIGITS))
    nearest = np.abs(judge[:, None] - scores).argmin(axis=1)
    for place, score in enumerate(scores.tolist()):
        ratings = people[(nearest == place) & view.pool.known]
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
        model = _judged(view, name, (sides == code).any(axis=1), sides[:, 0] == code)
        strength = strengths.combined(beside_mean).estimate() if strengths else None
        yield replace(model, strength=strength)


def _judged(view: JudgeView, name: str, rows: Mask, first: Mask) -> labels.JudgedModel:
    mean, is_pairs = people_ratings.part_mean(view.pool, rows, first), view.table.kind == "pairs"
    judge = np.where(first, view.unit, 1 - view.unit) if is_pairs else view.score
    pool, scale = view.pool, view.table.human_scale
    people = np.where(first, pool.people, 1 - pool.people) if is_pairs else pool.people
    rated = people[rows & pool.known]
    return labels.JudgedModel(
        name=name, n=int(rows.sum()), labels=rated.size, strength=None,
        combined=mean if mean.value is None else _units(mean, view),
        judge_only=float(judge[rows].mean()),
        people_only=scale.rating(float(rated.mean())) if rated.size else None,
    )  # fmt: skip


def _pairs(view: JudgeView) -> list[labels.JudgedPair]:
    """Return people's preference between each two models, Holm over all of them."""
    sides, rate, models = view.table.sides, view.pool.rate, len(view.table.models)
    pairs = list(combinations(range(models), 2))
    if models > _MOST_MODELS:
        wins = zip(sides.T, (rate, 1 - rate), strict=False)
        total = np.sum([np.bincount(side, part, models) for side, part in wins], axis=0)
        count = np.bincount(sides.ravel(), minlength=models)
        best = int(np.argmax(total / np.maximum(count, 1)))
        pairs = [(best, peer) for peer in range(models) if peer != best]
    leads = [lead for a, b in pairs if (lead := _lead(view, a, b))]
    left_out = models * (models - 1) // 2 - len(leads)
    adjusted = holm(np.array([lead.p_adjusted for lead in leads] + [1.0] * left_out))
    return [replace(lead, p_adjusted=float(p)) for lead, p in zip(leads, adjusted, strict=False)]


def _lead(view: JudgeView, a: int, b: int) -> labels.JudgedPair | None:
    """Return by how much people put one model above another, its p-value not yet corrected.

    Of pairs that is how much stronger it is, and how often it wins.
    """
    pool, table, strengths = view.pool, view.table, view.strengths
    win_rate = strength = None
    if strengths is None:
        sides = [table.sides[:, 0] == code for code in (a, b)]
        gap = people_ratings.contrast(pool, sides, beyond=True)
        if gap is None or table.kind == "pairs":
            return None
        difference = _units(gap.estimate(), view, lead=True)
    else:
        first = (table.sides == (a, b)).all(axis=1)
        rows = first | (table.sides == (b, a)).all(axis=1)
        wins = people_ratings.contrast(pool, [rows], first=first, beyond=True)
        models = np.eye(len(table.models))
        gap = strengths.combined(models[a] - models[b], int((rows & pool.known).sum()))
        win_rate = _units(wins.estimate(), view) if wins else None
        strength = difference = gap.estimate()
    return labels.JudgedPair(
        a=table.models[a], b=table.models[b], difference=difference, win_rate=win_rate,
        strength=strength, p_adjusted=gap.p_value,
    )  # fmt: skip


def _labels_needed(
    view: JudgeView, mean: EstimateEntry, precision: float | None
) -> labels.LabelsNeeded | None:
    """Return how many labels make the interval as narrow as asked, by default half as wide."""
    _, low, high = mean.ends
    if (half := (high - low) / 2) <= 0:
        return None
    target, span = precision or float(f"{_NARROWER * half:.1g}"), view.table.human_scale.span
    whole = labels_for_precision(int(mean.n or 0), view.score.size, half / span, target / span)
    return labels.LabelsNeeded(precision=target, labels=whole)


def _disagreements(view: JudgeView, fitted: RecalibrationMap) -> Iterator[labels.Disagreement]:
    """Yield the ratings that surprise most, given what people usually say at the judge's score.

    On one scale they are also away from the score itself.
    """
    table, pool, scale = view.table, view.pool, view.table.human_scale
    usual = fitted.probabilities(view.unit)
    surprise = np.abs(pool.people - usual)
    if view.same:
        surprise = np.minimum(surprise, np.abs(pool.people - view.unit))
    surprise = np.where(pool.known & (surprise > 0), surprise, 0.0)
    columns, frame = table.columns, table.frame
    texts = columns_called("question_text", frame.columns)
    # A prompt that is the same for many rows is that of the judge.
    texts = [name for name in texts if frame[name].n_unique() > frame.height // 10]
    names = {
        "question": next(iter(texts), columns.question),
        "model": columns.model,
        "text": columns.answer,
    }
    sides = side_columns(frame, frame.columns, texts=True) if table.kind == "pairs" else None
    for row in np.argsort(-surprise, kind="stable")[: min(_DISAGREEMENTS, (surprise > 0).sum())]:
        cells = {role: name and frame[int(row), name] for role, name in names.items()}
        if sides:
            both = zip("AB", (frame[int(row), side] for side in sides), strict=True)
            cells["text"] = "\n\n".join(f"{side}: {str(cell)[:_LETTERS]}" for side, cell in both)
        yield labels.Disagreement(
            row=int(table.rows[row]),
            judge=float(view.score[row]),
            people=scale.rating(float(pool.people[row])),
            expected=scale.rating(float(usual[row])),
            **{k: None if cell is None else str(cell)[: 2 * _LETTERS] for k, cell in cells.items()},
        )
