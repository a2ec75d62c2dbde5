"""Why two models differ: shared blind spots, what weights assume, which questions are missing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from scipy import special

from calibrant.comparison.ece_interval import Gap
from calibrant.comparison.intervals import normal_interval
from calibrant.comparison.pipeline import PairViews
from calibrant.comparison.survey import Survey
from calibrant.core.arrays import Floats
from calibrant.stats.multiplicity import holm

_FEWEST_EVENTS = 2
_STRICTER = 0.8


def blind_spots(pair: PairViews, means: Sequence[Gap], *, level: float = 0.95) -> dict[str, Any]:
    """Return each model's confidence where both are right and where both are wrong.

    The mean confidence on questions that both get wrong is over-confidence that neither can be
    excused for by the other's success. `means` are those of the first model where both are wrong
    and right, then of the second.
    """
    found: dict[str, Any] = {}
    for name, outcome in (("both_right", 1), ("both_wrong", 0)):
        n = round(float(pair.first.halves_n[outcome]))
        entry: dict[str, Any] = {"n": n}
        for place, key, views in ((0, "a", pair.first), (2, "b", pair.second)):
            mean = means[place + outcome]
            how = "bootstrap-normal"
            entry[key] = normal_interval(mean.value, mean.sd, n, level, how) if n else None
            shared = views.histogram[2 * outcome + 1]
            entry[f"histogram_{key}"] = shared.astype(int).tolist()
        found[name] = entry
    return found


def exchangeability(pair: PairViews, models: Sequence[str]) -> list[dict[str, Any]]:
    """Check what the distribution-aligned view assumes, per model and outcome.

    The weights treat confidence given the outcome as the same on all questions. Here the
    questions where the other model shares the outcome are held against those where it does not:
    a large Kolmogorov-Smirnov distance means that DA and IA may disagree.
    """
    rows = []
    for model, views in ((pair.a, pair.first), (pair.b, pair.second)):
        for outcome, name in ((1, "right"), (0, "wrong")):
            seen = views.sharing[outcome]
            defined = not math.isnan(seen["distance"])
            rows.append(
                {
                    "model": models[model],
                    "outcome": name,
                    "shared": seen["shared"],
                    "alone": seen["alone"],
                    "distance": seen["distance"] if defined else None,
                    "p_value": _distance_p(**seen) if defined else None,
                }
            )
    return rows


def _distance_p(shared: float, alone: float, distance: float) -> float:
    """Return the p-value of the two-sample Kolmogorov-Smirnov distance (Stephens' correction)."""
    root = math.sqrt(shared * alone / (shared + alone))
    return float(special.kolmogorov(distance * (root + 0.12 + 0.11 / root)))


def missing_questions(
    survey: Survey, models: Sequence[str], *, level: float = 0.95
) -> list[dict[str, Any]]:
    """Return, per model, the questions that it lacks and whether the others find them harder.

    `difference` is how often the other models are right on the questions that this one lacks,
    minus how often on those that it has; `p_adjusted` is that of a t-test with one spread for
    both (questions that are missing by chance have the spread of all), by Holm's rule over
    models, with clusters of questions as units. `related` asks for 0.8 of the level: the t law is
    a little short where few lack.
    """
    rows: list[dict[str, Any]] = []
    for model, name in enumerate(models):
        has, lacks = survey.absent[model]
        entry: dict[str, Any] = {
            "model": name,
            "n": round(float(survey.moments[model, 0])),
            "missing": survey.questions - round(float(survey.moments[model, 0])),
            "others_right_here": has[1] / has[0] if has[0] else None,
            "others_right_missing": lacks[1] / lacks[0] if lacks[0] else None,
            "p_adjusted": None,
        }
        entry["_p"] = _equal_means_p(has * survey.unit_share, lacks * survey.unit_share)
        rows.append(entry)
    tested = [row for row in rows if not math.isnan(row["_p"])]
    for row, p in zip(tested, holm([row["_p"] for row in tested]), strict=True):
        row["p_adjusted"] = float(p)
    for row in rows:
        row.pop("_p")
        row["related"] = row["p_adjusted"] is not None and row["p_adjusted"] <= _STRICTER * (
            1 - level
        )
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
