"""Graded answers and checks of them: calibration error, accuracy, differences, AUROC."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct
from msgspec.structs import force_setattr
from numpy.typing import ArrayLike

from calibrant.core.arrays import Floats, Indices, Mask
from calibrant.core.errors import InputError
from calibrant.metrics.stats.error_bounds import ece_interval, ece_upper
from calibrant.metrics.stats.intervals import normal_quantile

# Prior of a stratum's error rate: so many checks, of which this share found an error.
PRIOR = 0.3
STRATA = 4
# A grade is doubtful where people would not share more than one of so many.
DOUBT = 0.05


class Graded(Struct, frozen=True, dict=True):
    """Graded answers of one model.

    Parameters
    ----------
    confidence
        The model's confidence in each answer.
    grade
        1 for right, 0 for wrong, as the grader sees it.
    chance
        The grader's own chance that the answer is right.
    doubtful
        Whether the grader doubts the grade.

    Examples
    --------
    >>> graded = Graded([0.9, 0.6], [1, 0], [0.99, 0.3], [False, True])
    >>> graded.strata.tolist()
    [2, 1]
    """

    confidence: Floats
    grade: Floats
    chance: Floats
    doubtful: Mask

    def __post_init__(self) -> None:
        kinds = {"confidence": float, "grade": float, "chance": float, "doubtful": bool}
        for name, kind in kinds.items():
            force_setattr(self, name, np.asarray(getattr(self, name), kind))
        sizes = {getattr(self, name).size for name in kinds}
        if len(sizes) != 1 or sizes == {0}:
            raise InputError(
                "each graded answer needs a confidence, a grade, a chance and a flag for doubt"
            )

    @classmethod
    def of_chances(cls, confidence: Floats, grade: Floats, chance: Floats) -> Graded:
        """Return graded answers of which those are doubtful whose chance leaves the grade open."""
        return cls(confidence, grade, chance, np.abs(grade - chance) > DOUBT)

    @property
    def size(self) -> int:
        """Number of answers."""
        return self.grade.size

    @property
    def doubtful_share(self) -> float:
        """Share of the grades that the grader doubts."""
        return float(self.doubtful.mean())

    @cached_property
    def strata(self) -> Indices:
        """Grade and doubt together: four kinds of answers that are checked apart."""
        return (2 * self.grade + self.doubtful).astype(np.intp)

    @cached_property
    def counts(self) -> Floats:
        """Answers of each stratum."""
        return np.bincount(self.strata, minlength=STRATA).astype(np.float64)


class CheckedGrades(Struct, frozen=True, dict=True):
    """What people said about some of the answers.

    Parameters
    ----------
    graded
        All graded answers.
    rows
        Places of the checked ones.
    labels
        1 where people call the answer right, else 0.
    """

    graded: Graded
    rows: Indices
    labels: ArrayLike

    @cached_property
    def y(self) -> Floats:
        """Labels of the checked answers."""
        return np.asarray(self.labels, dtype=np.float64)

    @cached_property
    def wrong(self) -> Mask:
        """Whether the grade of each checked answer is wrong."""
        return np.asarray(self.y != self.graded.grade[self.rows])

    @cached_property
    def strata(self) -> Indices:
        """Stratum of each checked answer."""
        return np.asarray(self.graded.strata[self.rows])

    @cached_property
    def checks(self) -> Floats:
        """Checks of each stratum."""
        return np.bincount(self.strata, minlength=STRATA).astype(np.float64)

    @cached_property
    def errors(self) -> Floats:
        """Wrong grades found in each stratum."""
        return np.bincount(self.strata[self.wrong], minlength=STRATA).astype(np.float64)

    @cached_property
    def weights(self) -> Floats:
        """How many answers each checked one stands for."""
        each = self.graded.counts / np.maximum(self.checks, 1.0)
        return np.asarray(each[self.strata], dtype=np.float64)

    def rates(self) -> Floats:
        """Return the error rate of each stratum, never 0 and never 1."""
        return np.asarray((self.errors + PRIOR) / (self.checks + 1.0), dtype=np.float64)

    def chance_right(self) -> Floats:
        """Return the chance that each answer is right, given its grade and the checks."""
        rate = self.rates()[self.graded.strata]
        return np.where(self.graded.grade == 1, 1.0 - rate, rate)

    def drawn_rates(self, draws: int, rng: np.random.Generator) -> Floats:
        """Return error rates of the strata, one row for each draw of what is not known."""
        correct = self.checks - self.errors
        return rng.beta(self.errors + PRIOR, correct + 1.0 - PRIOR, size=(draws, STRATA))


_DRAWS = 1000
# Right answers that were graded wrong add to accuracy, wrong ones graded right take off.
_SIGNS = np.array([1.0, 1.0, -1.0, -1.0])


class GradedEstimate(Struct, frozen=True):
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
        remainder = 0.25 - (1.0 - self.from_grading)
        if remainder <= 0.0:
            return math.inf
        return round(self.checks * self.from_grading / remainder, 6)


def graded_accuracy(
    checked: CheckedGrades, rng: np.random.Generator, level: float = 0.95
) -> GradedEstimate:
    """Return the share of right answers in the population, from grades and checks.

    The printed value goes from the graded towards the corrected one as far as the checks bear:
    a nearly unbiased grader beats few checks.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random(2000) < 0.6
    >>> grade = np.where(rng.random(2000) < 0.1, 1, truth)
    >>> graded = Graded(rng.random(2000), grade, np.where(grade == 1, 0.9, 0.1), grade == 1)
    >>> rows = rng.permutation(2000)[:200]
    >>> found = graded_accuracy(CheckedGrades(graded, rows, truth[rows]), rng)
    >>> found.low < 0.6 < found.high, round(found.as_graded, 2)
    (True, 0.64)
    """
    return _corrected([(checked, 1.0)], checked.graded.grade, checked.chance_right(), rng, level)


def graded_gap(
    checked: CheckedGrades, rng: np.random.Generator, level: float = 0.95
) -> GradedEstimate:
    """Return mean confidence minus accuracy in the population: above 0 is over-confident."""
    confidence, grade = checked.graded.confidence, checked.graded.grade
    gaps = confidence - grade, confidence - checked.chance_right()
    return _corrected([(checked, -1.0)], *gaps, rng, level)


def graded_difference(
    first: CheckedGrades, second: CheckedGrades, rng: np.random.Generator
) -> GradedEstimate:
    """Return accuracy of the first minus accuracy of the second, on the same questions in order.

    Each model has checks of its own; no rate of errors is shared between them.
    """
    step = first.chance_right() - second.chance_right()
    graded = first.graded.grade - second.graded.grade
    return _corrected([(first, 1.0), (second, -1.0)], graded, step, rng, 0.95)


def _corrected(
    parts: Sequence[tuple[CheckedGrades, float]],
    grades: Floats,
    chance: Floats,
    rng: np.random.Generator,
    level: float,
) -> GradedEstimate:
    """Correct a sum of graded accuracies, each with its sign, by the errors that checks found.

    `grades` and `chance` are that sum in each answer: as graded, and what the checks expect.
    """
    as_graded, noise = float(grades.mean()), float(np.var(chance)) / chance.size
    draws = np.full(_DRAWS, as_graded)
    correction, variance = 0.0, 0.0
    for checked, sign in parts:
        used = checked.graded.counts > 0
        share = (sign * checked.graded.counts / checked.graded.size * _SIGNS)[used]
        rate, checks = checked.rates()[used], checked.checks[used]
        draws = draws + checked.drawn_rates(_DRAWS, rng)[:, used] @ share
        correction += float(share @ (checked.errors[used] / np.maximum(checks, 1.0)))
        variance += float((share**2 * rate * (1 - rate) / (checks + 1.0)).sum())
    draws = draws + math.sqrt(noise) * rng.normal(size=_DRAWS)
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2]).tolist()
    total = correction**2 + variance
    value = as_graded + (correction * correction**2 / total if total else 0.0)
    from_grading = variance / (variance + noise) if variance + noise else 0.0
    rows = sum(len(checked.rows) for checked, _ in parts)
    return GradedEstimate(value, min(low, value), max(high, value), as_graded, from_grading, rows)


# Checks of the spread that is expected or ordinary, added to those that were made.
_ADDED = 2.0


def graded_auroc(checked: CheckedGrades, level: float = 0.95) -> GradedEstimate:
    """Return the chance that a right answer has more confidence than a wrong one."""
    graded, place = checked.graded, checked.strata
    right = checked.chance_right()
    area, slope, influence = soft_area(graded.confidence, right)
    weight, missed = checked.weights, checked.y - right[checked.rows]
    step = slope[checked.rows] * missed
    value = area + float((weight * step).sum())
    size, checks, rate = graded.counts, checked.checks, checked.rates()
    steepness = size * np.bincount(graded.strata, slope**2, STRATA)
    expected = steepness * rate * (1 - rate) / (checks + 1.0)
    mean = np.bincount(place, weight * step, STRATA) / np.maximum(size, 1.0)
    squares = np.bincount(place, (weight * (step - mean[place])) ** 2, STRATA)
    spread = squares * checks / np.maximum(checks - 1.0, 1.0)
    grading = float(((checks * spread + _ADDED * expected) / (checks + _ADDED))[size > 0].sum())
    noise = float(influence.var()) / graded.size
    reach = normal_quantile(level) * math.sqrt(grading + noise)
    value = min(max(value, 0.0), 1.0)
    low, high = max(value - reach, 0.0), min(value + reach, 1.0)
    as_graded, *_ = soft_area(graded.confidence, graded.grade)
    from_grading = grading / (grading + noise) if grading + noise else 0.0
    return GradedEstimate(value, low, high, as_graded, from_grading, len(checked.rows))


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


# Variance of a cell without any check: nothing is known about it.
_UNKNOWN = 0.25


def graded_error(checked: CheckedGrades, cell: Indices, level: float = 0.95) -> GradedEstimate:
    """Return the calibration error over cells, ``sum w |confidence - accuracy|``.

    Parameters
    ----------
    checked
        Grades and checks.
    cell
        Cell of each answer, from 0; `cells_for` says how many the checks can carry.
    level
        Of the interval.
    """
    gap, variance, share, pool = cell_gaps(checked, cell)
    z, one_sided = normal_quantile(level), normal_quantile(2 * level - 1)
    error = np.sqrt(variance)
    value, low, high = ece_interval(gap, error, share, z)
    upper = ece_upper(gap, error, share, z if low > 0 else one_sided, 0.0)
    graded = checked.graded
    plain = np.bincount(cell, graded.confidence - graded.grade, share.size) / graded.size
    total = float((share**2 * variance).sum())
    high, as_graded = max(value, min(1.0, high, upper)), float(np.abs(plain).sum())
    from_grading = 1.0 - float((share**2 * pool).sum()) / total if total else 0.0
    return GradedEstimate(value, low, high, as_graded, from_grading, len(checked.rows))


def cell_gaps(checked: CheckedGrades, cell: Indices) -> tuple[Floats, Floats, Floats, Floats]:
    """Return gap, variance, share and variance without grading error of each cell.

    Rates of the strata predict; what they miss is corrected within each cell, since errors of
    the grader follow the confidence.
    """
    graded, weight = checked.graded, checked.weights
    cells = int(cell.max()) + 1
    where = cell[checked.rows]
    size = np.bincount(cell, minlength=cells).astype(np.float64)
    number = np.bincount(where, minlength=cells).astype(np.float64)
    mass = np.maximum(np.bincount(where, weight, cells), 1e-12)
    # The chance that each checked answer is right, by the other checks alone.
    place = checked.strata
    rate = (checked.errors[place] - checked.wrong + PRIOR) / checked.checks[place]
    missed = checked.y - np.where(graded.grade[checked.rows] == 1, 1.0 - rate, rate)
    shift = np.bincount(where, weight * missed, cells) / mass
    # The spread of a check, no smaller than if one more error had been found.
    around = missed - np.average(missed, weights=weight)
    rate = (checked.errors + 1.0) / (checked.checks + 2.0)
    least = (rate * (1.0 - rate))[place]
    usual = max(float((weight**2 * around**2).mean()), float((weight**2 * least).mean()))
    squares = np.bincount(where, (weight * (missed - shift[where])) ** 2, cells)
    spread = squares * number / np.maximum(number - 1.0, 1.0) + _ADDED * usual
    variance = spread / mass**2 * number / (number + _ADDED)
    remainder = graded.confidence - checked.chance_right()
    mean = np.bincount(cell, remainder, cells) / np.maximum(size, 1.0)
    squares = np.bincount(cell, (remainder - mean[cell]) ** 2, cells)
    pool = squares / np.maximum(size, 1.0) / np.maximum(size - 1.0, 1.0)
    observed = number > 0
    gap: Floats = np.where(observed, mean - shift, mean)
    return gap, np.where(observed, variance, _UNKNOWN) + pool, size / graded.size, pool
