"""Why two models differ: shared blind spots, what weights assume, which questions are missing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from scipy import special

from calibrant.comparison.decision import adjusted
from calibrant.comparison.ece_interval import Gap
from calibrant.comparison.intervals import normal_interval
from calibrant.comparison.pipeline import PairViews
from calibrant.comparison.survey import AnswerCounts
from calibrant.core.arrays import Floats
from calibrant.core.estimate import Estimate

_FEWEST_EVENTS = 2
_STRICTER = 0.8


class SharedOutcome(Struct, frozen=True):
    """Each model's mean confidence, and how often it said what, where both have an outcome."""

    n: int
    a: Estimate | None
    histogram_a: list[int]
    b: Estimate | None
    histogram_b: list[int]


def blind_spots(pair: PairViews, means: Sequence[Gap], level: float) -> dict[str, SharedOutcome]:
    """Return each model's confidence where both are right and where both are wrong.

    The mean confidence on questions that both get wrong is over-confidence that neither can be
    excused for by the other's success. `means` are those of the first model where both are wrong
    and right, then of the second.
    """
    shared = {}
    for name, outcome in (("both_right", 1), ("both_wrong", 0)):
        n = round(float(pair.first.halves_n[outcome]))
        observed: list[Any] = []
        for place, views in ((0, pair.first), (2, pair.second)):
            mean = means[place + outcome]
            how = "bootstrap-normal"
            observed.append(normal_interval(mean.value, mean.sd, n, level, how) if n else None)
            observed.append(views.histogram[2 * outcome + 1].astype(int).tolist())
        shared[name] = SharedOutcome(n, *observed)
    return shared


class Exchangeable(Struct, frozen=True):
    """How one model's confidence differs where the other shares its outcome and where not."""

    model: str
    outcome: str
    shared: int
    alone: int
    distance: float | None
    p_value: float | None


def exchangeability(pair: PairViews, models: Sequence[str]) -> list[Exchangeable]:
    """Check what the distribution-aligned view assumes, per model and outcome.

    The weights treat confidence given the outcome as the same on all questions. Here the
    questions where the other model shares the outcome are held against those where it does not:
    a large Kolmogorov-Smirnov distance means that DA and IA may disagree.
    """
    rows = []
    for model, views in ((pair.a, pair.first), (pair.b, pair.second)):
        for outcome, name in ((1, "right"), (0, "wrong")):
            sizes, distance = views.sharing[outcome]
            measurements = None if math.isnan(distance) else distance
            p_value = None if measurements is None else _distance_p(*sizes, measurements)
            rows.append(Exchangeable(models[model], name, *sizes, measurements, p_value))
    return rows


def _distance_p(shared: float, alone: float, distance: float) -> float:
    """Return the p-value of the two-sample Kolmogorov-Smirnov distance (Stephens' correction)."""
    root = math.sqrt(shared * alone / (shared + alone))
    return float(special.kolmogorov(distance * (root + 0.12 + 0.11 / root)))


class MissingRow(Struct):
    """Questions that a model lacks, and how often the others are right there and elsewhere."""

    model: str
    n: int
    missing: int
    others_right_here: float | None
    others_right_missing: float | None
    p_adjusted: float | None = None
    related: bool = False


def missing_questions(
    survey: AnswerCounts, models: Sequence[str], *, level: float = 0.95
) -> list[MissingRow]:
    """Return, per model, the questions that it lacks and whether the others find them harder.

    `p_adjusted` is that of a t-test with one spread for both (questions that are missing by chance
    have the spread of all), by Holm's rule over models, with clusters of questions as units.
    `related` asks for 0.8 of the level: the t law is a little short where few lack.
    """
    rows, p_values = [], []
    for model, name in enumerate(models):
        n, sums = round(float(survey.moments[model, 0])), survey.absent[model]
        here, lacking = (float(part[1] / part[0]) if part[0] else None for part in sums)
        rows.append(MissingRow(name, n, survey.questions - n, here, lacking))
        p_values.append(_equal_means_p(*(sums * survey.unit_share)))
    for row, p in zip(rows, adjusted(p_values), strict=True):
        if not math.isnan(p):
            row.p_adjusted, row.related = p, p <= _STRICTER * (1 - level)
    return rows


def _equal_means_p(has: Floats, lacks: Floats) -> float:
    """Return the two-sided p-value of equal means, from numbers, sums and sums of squares.

    NaN where the smaller part would hold fewer than `_FEWEST_EVENTS` answers of the rarer kind:
    there the law of the mean is far from normal. A spread of each part's own would be 0 where a
    few missing questions happen to be all right, and would prove anything.
    """
    n = has[0] + lacks[0]
    if min(has[0], lacks[0]) < 2:
        return math.nan
    mean, square = (has[1] + lacks[1]) / n, (has[2] + lacks[2]) / n
    if min(has[0], lacks[0]) * min(mean, 1 - mean) < _FEWEST_EVENTS:
        return math.nan
    variance = max(square - mean**2, 0.0) * n / (n - 1)
    if variance == 0:
        return 1.0
    error = math.sqrt(variance * (1 / has[0] + 1 / lacks[0]))
    return float(2 * special.stdtr(n - 2, -abs(has[1] / has[0] - lacks[1] / lacks[0]) / error))
