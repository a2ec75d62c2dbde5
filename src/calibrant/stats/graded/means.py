"""Accuracy, its gap to confidence, differences of models and AUROC, from grades and checks."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibrant.core.arrays import Floats
from calibrant.stats.graded.checks import STRATA, Checked
from calibrant.stats.intervals import normal_quantile

_DRAWS = 1000
# Right answers that were graded wrong add to accuracy, wrong ones graded right take off.
_SIGNS = np.array([1.0, 1.0, -1.0, -1.0])


@dataclass(frozen=True, slots=True)
class GradedEstimate:
    """A value with its interval, and what the grades alone would say.

    Parameters
    ----------
    value, low, high
        The estimate about the truth.
    as_graded
        The same number with grades taken as truth.
    from_grading
        Share of the variance that comes from not knowing the grader's errors.
    checks
        Checked answers behind it.
    """

    value: float
    low: float
    high: float
    as_graded: float
    from_grading: float
    checks: int

    def width_at(self, checks: float) -> float:
        """Return how wide the interval would be with so many checks.

        Examples
        --------
        >>> round(GradedEstimate(0.6, 0.5, 0.7, 0.6, 0.75, 50).width_at(200), 3)
        0.132
        """
        share = self.from_grading * self.checks / checks + 1.0 - self.from_grading
        return (self.high - self.low) * math.sqrt(share)

    @property
    def checks_to_halve(self) -> float:
        """Checks that halve the interval; infinite where checks alone cannot.

        Examples
        --------
        >>> GradedEstimate(0.6, 0.5, 0.7, 0.6, 0.9, 50).checks_to_halve
        300.0
        """
        rest = 0.25 - (1.0 - self.from_grading)
        if rest <= 0.0:
            return math.inf
        return round(self.checks * self.from_grading / rest, 6)


def graded_accuracy(
    checked: Checked, rng: np.random.Generator, level: float = 0.95
) -> GradedEstimate:
    """Return the share of right answers in the population, from grades and checks.

    The printed value goes from the graded towards the corrected one as far as the checks bear:
    a nearly unbiased grader beats few checks.

    Examples
    --------
    >>> from calibrant.stats.graded.checks import Graded
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(2000) < 0.6
    >>> grade = np.where(rng.random(2000) < 0.1, 1, truth)
    >>> graded = Graded(rng.random(2000), grade, np.where(grade == 1, 0.9, 0.1), grade == 1)
    >>> rows = rng.permutation(2000)[:200]
    >>> found = graded_accuracy(Checked(graded, rows, truth[rows]), rng)
    >>> found.low < 0.6 < found.high, round(found.as_graded, 2)
    (True, 0.64)
    """
    graded = checked.graded
    noise = float(np.var(checked.chance_right())) / graded.size
    return _corrected([(checked, 1.0)], float(graded.g.mean()), noise, rng, level)


def graded_gap(checked: Checked, rng: np.random.Generator, level: float = 0.95) -> GradedEstimate:
    """Return mean confidence minus accuracy in the population: above 0 is over-confident."""
    graded = checked.graded
    noise = float(np.var(graded.c - checked.chance_right())) / graded.size
    return _corrected([(checked, -1.0)], float((graded.c - graded.g).mean()), noise, rng, level)


def graded_difference(
    first: Checked, second: Checked, rng: np.random.Generator, level: float = 0.95
) -> GradedEstimate:
    """Return accuracy of the first minus accuracy of the second, on the same questions in order.

    Each model has checks of its own; no rate of errors is shared between them.
    """
    step = first.chance_right() - second.chance_right()
    noise = float(np.var(step)) / first.graded.size
    as_graded = float((first.graded.g - second.graded.g).mean())
    return _corrected([(first, 1.0), (second, -1.0)], as_graded, noise, rng, level)


def _corrected(
    parts: Sequence[tuple[Checked, float]],
    as_graded: float,
    noise: float,
    rng: np.random.Generator,
    level: float,
) -> GradedEstimate:
    """Correct a sum of graded accuracies, each with its sign, by the errors that checks found."""
    drawn = np.full(_DRAWS, as_graded)
    correction, variance = 0.0, 0.0
    for checked, sign in parts:
        used = checked.graded.counts > 0
        share = (sign * checked.graded.counts / checked.graded.size * _SIGNS)[used]
        rate, checks = checked.rates()[used], checked.checks[used]
        drawn = drawn + checked.drawn_rates(_DRAWS, rng)[:, used] @ share
        correction += float(share @ (checked.errors[used] / np.maximum(checks, 1.0)))
        variance += float((share**2 * rate * (1 - rate) / (checks + 1.0)).sum())
    drawn = drawn + math.sqrt(noise) * rng.normal(size=_DRAWS)
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    total = correction**2 + variance
    value = as_graded + (correction * correction**2 / total if total else 0.0)
    return GradedEstimate(
        value,
        min(float(low), value),
        max(float(high), value),
        as_graded,
        variance / (variance + noise) if variance + noise else 0.0,
        sum(len(checked.rows) for checked, _ in parts),
    )


# Checks of the spread that the model expects, added to those that were made.
_ADDED = 2.0


def graded_auroc(checked: Checked, level: float = 0.95) -> GradedEstimate:
    """Return the chance that a right answer has more confidence than a wrong one."""
    graded, place = checked.graded, checked.strata
    right = checked.chance_right()
    area, slope, influence = soft_area(graded.c, right)
    weight, missed = checked.weights, checked.y - right[checked.rows]
    step = slope[checked.rows] * missed
    value = area + float((weight * step).sum())
    size, checks, rate = graded.counts, checked.checks, checked.rates()
    steepness = size * np.bincount(graded.strata, slope**2, STRATA)
    expected = steepness * rate * (1 - rate) / (checks + 1.0)
    mean = np.bincount(place, weight * step, STRATA) / np.maximum(size, 1.0)
    squares = np.bincount(place, (weight * (step - mean[place])) ** 2, STRATA)
    found = squares * checks / np.maximum(checks - 1.0, 1.0)
    grading = float(((checks * found + _ADDED * expected) / (checks + _ADDED))[size > 0].sum())
    noise = float(influence.var()) / graded.size
    reach = normal_quantile(level) * math.sqrt(grading + noise)
    value = min(max(value, 0.0), 1.0)
    return GradedEstimate(
        value,
        max(value - reach, 0.0),
        min(value + reach, 1.0),
        soft_area(graded.c, graded.g)[0],
        grading / (grading + noise) if grading + noise else 0.0,
        len(checked.rows),
    )


def soft_area(confidence: Floats, right: Floats) -> tuple[float, Floats, Floats]:
    """Return the area where each answer is right with a chance, its slope in each, its influence.

    Examples
    --------
    >>> area, _, _ = soft_area(np.array([0.1, 0.4, 0.8]), np.array([0.0, 1.0, 1.0]))
    >>> area
    1.0
    """
    size = confidence.size
    order = np.argsort(confidence, kind="stable")
    sorted_c, chance = confidence[order], right[order]
    first = np.searchsorted(sorted_c, sorted_c, "left")
    last = np.searchsorted(sorted_c, sorted_c, "right")
    rights = np.concatenate([[0.0], np.cumsum(chance)])
    wrongs = np.concatenate([[0.0], np.cumsum(1.0 - chance)])
    if rights[-1] == 0.0 or wrongs[-1] == 0.0:
        return math.nan, np.full(size, math.nan), np.full(size, math.nan)
    below = (wrongs[first] + wrongs[last]) / 2 / wrongs[-1]
    above = 1.0 - (rights[first] + rights[last]) / 2 / rights[-1]
    area = float((chance * below).sum() / rights[-1])
    if_right = (below - area) * size / rights[-1]
    if_wrong = (above - area) * size / wrongs[-1]
    slope, influence = np.empty(size), np.empty(size)
    slope[order] = (if_right - if_wrong) / size
    influence[order] = chance * if_right + (1.0 - chance) * if_wrong
    return area, slope, influence
