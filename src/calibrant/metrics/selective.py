"""Selective answering: how the risk falls when only the most confident answers are kept."""

import math
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike

from calibrant.core import InputError
from calibrant.core.arrays import Floats, Indices, MaybeArray
from calibrant.metrics.inputs import check
from calibrant.metrics.stats.intervals import student_share, wilson_interval
from calibrant.metrics.stats.ranking import Ranked, average_risk_value

# Steps of the share answered, and of the threshold itself, that are told apart.
_STEPS = 100
_DIGITS = 6
# A threshold is not rounded further than this.
_NEAR = 0.005


def aurc(confidence: ArrayLike, correct: ArrayLike, *, weights: MaybeArray = None) -> float:
    """Return the area under the risk-coverage curve, in [0, 1]; 0 is best.

    The mean over k = 1..n of the risk (1 minus the mean outcome) among the k most confident
    answers. Equal confidences are taken in random order, in expectation, so the value does not
    depend on the order of rows. Any finite score will do.

    Parameters
    ----------
    confidence
        Finite scores, shape (n,).
    correct
        Outcomes, 0 or 1 or a grade between, shape (n,).
    weights
        A weight of 2 counts as two equal rows.

    References
    ----------
    Geifman, Uziel, El-Yaniv (2019), 'Bias-reduced uncertainty estimation for deep neural
    classifiers'.

    Examples
    --------
    >>> aurc([0.9, 0.8, 0.3], [1, 1, 0])
    0.111...
    """
    data = check(confidence, correct, weights, probability=False).present()
    return average_risk_value(*data, data.total)


def e_aurc(confidence: ArrayLike, correct: ArrayLike, *, weights: MaybeArray = None) -> float:
    """Return the excess of `aurc` over the best order of the same outcomes, >= 0; 0 is best.

    Takes the accuracy out of AURC: only the order of the confidences counts.

    Examples
    --------
    >>> e_aurc([0.9, 0.8, 0.3], [1, 1, 0])
    0.0
    >>> round(e_aurc([0.9, 0.8, 0.3], [0, 1, 1]), 3)
    0.5
    """
    data = check(confidence, correct, weights, probability=False).present()
    value = average_risk_value(*data, data.total)
    best = average_risk_value(data.correct, data.correct, data.weights, data.total)
    return max(value - best, 0.0)


def accuracy_at_coverage(
    confidence: ArrayLike, correct: ArrayLike, *, coverage: float = 0.8, weights: MaybeArray = None
) -> float:
    """Return the mean outcome among the most confident `coverage` of answers, in [0, 1].

    More is better. Answers that share the confidence at the cut count in proportion, so the
    value does not depend on the order of rows.

    Parameters
    ----------
    confidence
        Finite scores, shape (n,).
    correct
        Outcomes, 0 or 1 or a grade between, shape (n,).
    coverage
        Share of answers to keep, in (0, 1].
    weights
        A weight of 2 counts as two equal rows.

    Examples
    --------
    >>> accuracy_at_coverage([0.9, 0.8, 0.3, 0.2], [1, 1, 0, 0], coverage=0.5)
    1.0
    """
    if not 0 < coverage <= 1:
        raise InputError(f"coverage is in (0, 1], got {coverage!r}")
    data = check(confidence, correct, weights, probability=False).present()
    ranking = Ranked.of(*data)
    selection: Floats = np.clip(
        coverage * ranking.total - (np.cumsum(ranking.weight) - ranking.weight), 0.0, ranking.weight
    )
    return float(selection @ (ranking.outcome / ranking.weight) / selection.sum())


class ThresholdCounts(Struct, frozen=True):
    """What happens when only answers of at least a confidence are given, at thresholds that matter.

    Attributes
    ----------
    threshold
        Falling; the last one gives every answer.
    n, wrong
        Rows at or above the threshold, and the wrong ones among them: exact counts. Weights are
        scaled to a mean of 1; a grade between 0 and 1 is that share of a right answer.
    low, high
        Interval of the share of wrong answers among those given.
    """

    threshold: Floats
    n: Floats
    wrong: Floats
    low: Floats
    high: Floats

    def to_dict(self) -> dict[str, list[Any]]:
        """Return columns; counts of whole rows are whole numbers."""
        counts = {name: getattr(self, name) for name in ("n", "wrong")}
        ends = {name: getattr(self, name) for name in ("low", "high")}
        return {
            "threshold": self.threshold.tolist(),
            **{name: _counted(values) for name, values in counts.items()},
            **{name: values.round(_DIGITS).tolist() for name, values in ends.items()},
        }


def _counted(values: Floats) -> list[Any]:
    whole = values.round()
    exact = np.abs(values - whole).max(initial=0.0) < 1e-6
    numbers: list[Any] = (whole.astype(np.int64) if exact else values.round(_DIGITS)).tolist()
    return numbers


def chosen_cuts(score: Floats, mass: Floats) -> Indices:
    """Return the places of thresholds that matter: all, or else every percent of rows and of scale.

    Parameters
    ----------
    score
        Distinct scores, falling.
    mass
        Rows at or above each of them.

    Examples
    --------
    >>> chosen_cuts(np.array([0.9, 0.5, 0.1]), np.array([2.0, 5.0, 6.0])).tolist()
    [0, 1, 2]
    >>> chosen_cuts(np.linspace(1, 0, 5001), np.arange(1.0, 5002)).size < 210
    True
    """
    if score.size <= 2 * _STEPS:
        return np.arange(score.size)
    shares = np.arange(1, _STEPS + 1) / _STEPS
    by_share = np.searchsorted(mass / mass[-1], shares - 1e-12).clip(0, score.size - 1)
    # The last score that is not below a round threshold.
    reached = np.searchsorted(-score, -np.arange(_STEPS + 1) / _STEPS, side="right") - 1
    places = np.sort(np.concatenate([by_share, reached[reached >= 0], [score.size - 1]]))
    return places[np.diff(places, prepend=-1) > 0]


def short_threshold(above: float, at: float) -> float:
    """Return the number with the fewest digits close to `at`, above `above` and at most `at`.

    It keeps the same rows as `at`, when no score lies between the two.

    Examples
    --------
    >>> short_threshold(0.89213, 0.9041), short_threshold(0.70001, 0.70004), short_threshold(0, 0.8)
    (0.9, 0.70004, 0.8)
    """
    above = max(above, at - _NEAR)
    for digits in range(15):
        scale = 10.0**digits
        rounded = math.floor(at * scale) / scale
        if above < rounded <= at:
            return rounded
    return at


class RowUnits(NamedTuple):
    """Rows that are not one independent draw each: share wrong, weight and unit of every row."""

    wrong: Floats
    weight: Floats
    unit: Indices


def threshold_counts(
    ranked: Ranked, at: Floats, below: Floats, *, level: float, rows: int, units: RowUnits | None
) -> ThresholdCounts:
    """Return counts and intervals at the thresholds that matter.

    Parameters
    ----------
    ranked
        Sums at distinct scores, falling.
    at, below
        The largest threshold that keeps the rows of each distinct score, and what thresholds of
        the same effect must exceed.
    level, rows
        Level of the intervals; number of rows.
    units
        Where rows have weights or grades, or questions several rows.
    """
    choice = chosen_cuts(at, np.cumsum(ranked.weight))
    scale = rows / ranked.total
    n = np.cumsum(ranked.weight)[choice] * scale
    wrong = np.cumsum(ranked.weight - ranked.outcome)[choice] * scale
    worth = n
    if units is not None:
        count, equal = _worth(ranked, choice, units)
        shares = np.array([student_share(level, size) for size in equal.tolist()])
        worth = np.maximum(np.minimum(count, n) * shares, 1.0)
    low, high = wilson_interval(np.clip(wrong / n, 0.0, 1.0), worth, level)
    short = map(short_threshold, below[choice].tolist(), at[choice].tolist())
    return ThresholdCounts(np.array(list(short)), n, wrong, low, high)


def _worth(ranking: Ranked, choice: Indices, units: RowUnits) -> tuple[Floats, Floats]:
    """Return how many independent rows the kept ones are worth, and how many equal units.

    The variance of the share of wrong answers is that between units. A row changes the squared
    sums of its unit when its turn comes, so that one pass serves every threshold.
    """
    order = np.lexsort((ranking.group, units.unit))
    first = np.append(True, np.diff(units.unit[order]) != 0)
    start = np.maximum.accumulate(np.where(first, np.arange(order.size), 0))
    missed, missed_before = _running((units.weight * units.wrong)[order], start)
    mass, mass_before = _running(units.weight[order], start)
    place, size = ranking.group[order], ranking.score.size

    def total(after: Floats, before: Floats) -> Floats:
        return np.asarray(np.cumsum(np.bincount(place, after - before, size))[choice])

    of_missed = total(missed * missed, missed_before * missed_before)
    of_both = total(missed * mass, missed_before * mass_before)
    of_mass = total(mass * mass, mass_before * mass_before)
    selection = np.cumsum(np.bincount(place, first, size))[choice]
    whole = np.cumsum(ranking.weight)[choice]
    error = np.cumsum(ranking.weight - ranking.outcome)[choice] / whole
    between = of_missed - 2 * error * of_both + error**2 * of_mass
    equal = whole**2 / of_mass
    variance = between * selection / np.maximum(selection - 1, 1) / whole**2
    plain = error * (1 - error)
    # Where all kept rows are alike there is no variance to see: a unit counts once.
    observed = (variance > 1e-12 * plain) & (plain > 0)
    return np.where(observed, plain / np.where(observed, variance, 1.0), equal), np.maximum(
        equal, 2.0
    )


def _running(values: Floats, start: Indices) -> tuple[Floats, Floats]:
    """Return the sum within its unit up to and including each row, and up to the row before."""
    sums = np.cumsum(values)
    before = sums - values
    base = before[start]
    return sums - base, before - base
