"""What a judge's score means in people's ratings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
from scipy.special import betaincinv, expit, logit

from calibrant.core.arrays import Floats
from calibrant.core.rng import named_stream
from calibrant.data.mend import RecalibrationMap
from calibrant.data.mend.estimator import CERTAINTY, map_of_curve
from calibrant.metrics.recalibration.mend_fit import Labels, fit_curve, fit_value

# Ratings between the ends spread less than yes/no; so much of the spread that they show is counted
# in simulations, and no more labels than ten are made of one.
_SPREAD, _LEAST = 1.6, 0.1
_VALUES, _DIGITS = 12, 2


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
    fitted = map_of_curve(curve, labels, promise=promise, **about)
    return _two_rates(fitted, judge, people) if np.unique(judge).size == 2 else fitted


def dispersion(people: Floats, rate: Floats) -> float:
    """Return the variance of ratings over that of yes/no with these rates.

    Examples
    --------
    >>> round(dispersion(np.array([0.25, 0.5, 0.75] * 20), np.full(60, 0.5)), 2)
    0.29
    """
    display = float(((people - rate) ** 2).sum()) + 0.25
    return float(
        np.clip(_SPREAD * display / (float((rate * (1 - rate)).sum()) + 0.25), _LEAST, 1.0)
    )


def _two_rates(fitted: RecalibrationMap, judge: Floats, people: Floats) -> RecalibrationMap:
    scores = np.unique(judge)
    parts = []
    for score in scores:
        y = people[judge == score]
        n = y.size / min(dispersion(y, np.full(y.size, y.mean())), 1.0)
        yes, no = n * y.mean() + 0.5, n * (1 - y.mean()) + 0.5
        parts.append([yes / (yes + no), *betaincinv(yes, no, [0.025, 0.975])])
    value, low, high = (tuple(logit(np.array(part)).tolist()) for part in zip(*parts, strict=True))
    return msgspec.structs.replace(
        fitted, knots=tuple(scores.tolist()), log_odds=value, low=low, high=high,
        rising=bool(value[1] >= value[0]),
    )  # fmt: skip


def meanings(
    fitted: RecalibrationMap, judge: Floats, people: Floats
) -> Iterator[tuple[float, float, float, float, int, float | None]]:
    """Yield score, value, low, high, labels nearest to it and their mean: all scores or 12."""
    scores = np.unique(judge)
    if scores.size > _VALUES:
        ranks = np.linspace(0.02, 0.98, _VALUES)
        scores = np.unique(np.round(np.quantile(judge, ranks), _DIGITS))
    finite = np.isfinite(people)
    nearest = np.abs(judge[finite][:, None] - scores).argmin(axis=1)
    count = np.bincount(nearest, minlength=scores.size)
    total = np.bincount(nearest, people[finite], scores.size)
    for score, labels, sum_ in zip(scores.tolist(), count.tolist(), total.tolist(), strict=True):
        low, high = fitted.interval(score)
        mean = sum_ / labels if labels else None
        yield score, fitted.probability(score), low, high, labels, mean
