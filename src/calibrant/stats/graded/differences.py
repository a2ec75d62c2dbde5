"""Two models on the same questions: whose answers are right more often, from grades and checks."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Floats, Indices
from calibrant.stats.graded.checks import PRIOR, Graded, allocate
from calibrant.stats.graded.means import GradedEstimate
from calibrant.stats.systematic import systematic_sample

_DRAWS, _PAIR_STRATA = 1000, 8
_LEAST_CHECKS, _LEAST_ERROR = 2.0, 0.05
# Which of the two is right: only the second, both or none, only the first.
_STEPS = np.array([-1.0, 0.0, 1.0])


def choose_pairs(
    first: Graded, second: Graded, questions: int, rng: np.random.Generator
) -> Indices:
    """Return the questions of which both answers are to be checked."""
    place = _pair_strata(first, second)
    counts = np.bincount(place, minlength=_PAIR_STRATA).astype(np.float64)
    q, r = np.asarray(first.chance), np.asarray(second.chance)
    variance = np.bincount(place, q * (1 - q) + r * (1 - r), _PAIR_STRATA) / np.maximum(counts, 1)
    variance = np.maximum(variance, 2 * _LEAST_ERROR * (1 - _LEAST_ERROR))
    number = allocate(counts, np.sqrt(variance), questions, _LEAST_CHECKS)
    order = np.lexsort((rng.random(first.size), first.c - second.c, place))
    return systematic_sample((number / np.maximum(counts, 1))[place], order, rng)


def graded_difference(
    first: Graded,
    second: Graded,
    rows: Indices,
    labels: tuple[npt.ArrayLike, npt.ArrayLike],
    rng: np.random.Generator,
    level: float = 0.95,
) -> GradedEstimate:
    """Return accuracy of the first minus accuracy of the second, both answers checked.

    Parameters
    ----------
    first, second
        Grades of both models on the same questions, in the same order.
    rows
        Questions that were checked.
    labels
        What people say about the first and the second model's answers to them.
    rng, level
        Randomness and level of the interval.
    """
    place, size = _pair_strata(first, second), first.size
    share = np.bincount(place, minlength=_PAIR_STRATA) / size
    told = np.asarray(labels[0], np.float64) - np.asarray(labels[1], np.float64)
    as_graded = (np.arange(_PAIR_STRATA) >> 1 & 1) - (np.arange(_PAIR_STRATA) & 1)
    drawn, value, variance = np.zeros(_DRAWS), 0.0, 0.0
    expected: Floats = np.zeros(_PAIR_STRATA)
    for each in np.flatnonzero(share):
        counts = (told[place[rows] == each][:, None] == _STEPS).sum(axis=0).astype(np.float64)
        prior = np.full(3, PRIOR / 2)
        prior[as_graded[each] + 1] = 1.0 - PRIOR
        shares = rng.dirichlet(counts + prior, size=_DRAWS)
        drawn += share[each] * (shares @ _STEPS)
        variance += float(np.var(share[each] * (shares @ _STEPS)))
        expected[each] = (counts + prior) @ _STEPS / (counts.sum() + 1.0)
        seen = counts @ _STEPS / counts.sum() if counts.sum() else as_graded[each]
        value += float(share[each] * seen)
    noise = float(expected[place].var()) / size
    drawn += math.sqrt(noise) * rng.normal(size=_DRAWS)
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return GradedEstimate(
        value,
        min(float(low), value),
        max(float(high), value),
        float((first.g - second.g).mean()),
        variance / (variance + noise) if variance + noise else 0.0,
        2 * len(rows),
    )


def _pair_strata(first: Graded, second: Graded) -> Indices:
    doubt = np.asarray(first.doubtful) | np.asarray(second.doubtful)
    return np.asarray(4 * doubt + 2 * first.g + second.g, dtype=np.intp)
