"""Graded answers, which of them to check, and what the checks say about the grader."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core.arrays import Floats, Indices, Mask
from calibrant.core.errors import InputError
from calibrant.metrics.stats.intervals import normal_quantile
from calibrant.metrics.stats.units import systematic_sample

# Prior of a stratum's error rate: so many checks, of which this share found an error.
PRIOR = 0.3
_LEAST_ERROR, _LEAST_CHECKS = 0.05, 3.0
# Share of the checks that goes by expected error; the rest is spread in proportion.
_BY_ERROR = 0.7
STRATA = 4
# A grade is doubtful where people would not share more than one of so many.
DOUBT = 0.05


@dataclass(frozen=True)
class Graded:
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
            object.__setattr__(self, name, np.asarray(getattr(self, name), kind))
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


@dataclass(frozen=True)
class CheckedGrades:
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


def foreseen_width(graded: Graded, checks: int) -> float:
    """Return how wide the interval of the accuracy will be after so many checks.

    Examples
    --------
    >>> chance = np.repeat([0.98, 0.7, 0.03], [500, 300, 200])
    >>> graded = Graded.of_chances(np.full(1000, 0.8), np.round(chance), chance)
    >>> [round(foreseen_width(graded, checks), 2) for checks in (60, 200)]
    [0.15, 0.09]
    """
    used, error = graded.counts > 0, _expected_errors(graded)
    number = _checks_of_strata(graded, checks)
    share = graded.counts / graded.size
    variance = float((share**2 * error * (1.0 - error) / (number + 1.0))[used].sum())
    noise = float(np.var(graded.chance)) / graded.size
    return 2.0 * normal_quantile(0.95) * math.sqrt(variance + noise)


def choose_checks(graded: Graded, checks: int, rng: np.random.Generator) -> Indices:
    """Return the answers to check: more of those that are likely graded wrong, some of all.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> chance = np.repeat([0.99, 0.7, 0.02], [50, 30, 20])
    >>> graded = Graded(rng.random(100), chance > 0.5, chance, np.abs(chance - 0.5) < 0.4)
    >>> picked = choose_checks(graded, 20, rng)
    >>> len(picked), int((graded.strata[picked] == 3).sum())
    (20, 8)
    """
    number = _checks_of_strata(graded, checks)
    order = np.lexsort((rng.random(graded.size), graded.confidence, graded.strata))
    share = number / np.maximum(graded.counts, 1.0)
    return systematic_sample(share[graded.strata], order, rng)


def _expected_errors(graded: Graded) -> Floats:
    unlikely = np.minimum(graded.chance, 1.0 - graded.chance)
    error = np.bincount(graded.strata, unlikely, STRATA)
    return np.maximum(error / np.maximum(graded.counts, 1.0), _LEAST_ERROR)


def _checks_of_strata(graded: Graded, checks: int) -> Floats:
    """Return how many of each stratum to check, some of each."""
    error, counts = _expected_errors(graded), graded.counts
    size = counts * np.sqrt(error * (1.0 - error))
    share = _BY_ERROR * size / size.sum() + (1.0 - _BY_ERROR) * counts / counts.sum()
    floor = np.minimum(_LEAST_CHECKS, counts)
    number = np.clip(checks * share, floor, counts)
    for _ in range(20):
        free = (number > floor + 1e-9) & (number < counts - 1e-9)
        missing = checks - number.sum()
        if abs(missing) < 1e-6 or not free.any():
            break
        moved = number[free] + missing * share[free] / share[free].sum()
        number[free] = np.clip(moved, floor[free], counts[free])
    return np.asarray(number, dtype=np.float64)
