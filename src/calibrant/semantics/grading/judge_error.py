"""What a judge's mistakes do to a graded metric: measured on a labelled sample, then carried on."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.core import Estimate, InputError, named_stream
from calibrant.core.arrays import Floats, Mask
from calibrant.semantics.grading.agreement import cohen_kappa

Metric: TypeAlias = Callable[[Floats, Mask], float]
_LEAST = 30


@dataclass(frozen=True, slots=True)
class JudgeError:
    """How often a grade is wrong, counted on answers that people labelled too.

    Parameters
    ----------
    right_given_correct, correct
        Of the answers graded correct, how many people call right, and how many there are.
    right_given_incorrect, incorrect
        The same for answers graded incorrect.

    Examples
    --------
    >>> error = JudgeError(90, 100, 5, 100)
    >>> round(error.kappa, 2), error.confusion["correct"]
    (0.85, {'right': 90, 'wrong': 10})
    """

    right_given_correct: int
    correct: int
    right_given_incorrect: int
    incorrect: int

    @property
    def confusion(self) -> dict[str, dict[str, int]]:
        """Counts by grade and label."""
        return {
            "correct": {
                "right": self.right_given_correct,
                "wrong": self.correct - self.right_given_correct,
            },
            "incorrect": {
                "right": self.right_given_incorrect,
                "wrong": self.incorrect - self.right_given_incorrect,
            },
        }

    @property
    def kappa(self) -> float:
        """Cohen's kappa of grades and labels."""
        return cohen_kappa([list(row.values()) for row in self.confusion.values()])

    def labels(self, graded: Mask, rng: np.random.Generator) -> Mask:
        """Return labels as people could have given them, one draw of what is not known.

        Both rates are drawn from their posterior (Jeffreys), then each label from its rate.
        """
        after_yes = rng.beta(
            self.right_given_correct + 0.5, self.correct - self.right_given_correct + 0.5
        )
        after_no = rng.beta(
            self.right_given_incorrect + 0.5, self.incorrect - self.right_given_incorrect + 0.5
        )
        return np.asarray(rng.random(graded.size) < np.where(graded, after_yes, after_no))


def judge_error(graded: Sequence[bool | None], labels: Sequence[bool | None]) -> JudgeError:
    """Count a judge's errors on a sample that people labelled.

    The sample must be drawn from the answers that the judge grades, or the rates are those of
    other answers. Rows without a grade or a label are left out.

    Examples
    --------
    >>> found = judge_error([True] * 40 + [False] * 40, [True] * 36 + [False] * 44)
    >>> found.right_given_correct, found.correct, found.right_given_incorrect
    (36, 40, 0)
    """
    if len(graded) != len(labels):
        raise InputError(f"one label per grade is needed, got {len(labels)} and {len(graded)}")
    pairs = [(g, y) for g, y in zip(graded, labels, strict=True) if g is not None and y is not None]
    if len(pairs) < _LEAST:
        raise InputError(
            f"{_LEAST} graded and labelled answers are needed to measure a judge, got {len(pairs)}"
        )
    yes = [y for g, y in pairs if g]
    no = [y for g, y in pairs if not g]
    return JudgeError(sum(map(bool, yes)), len(yes), sum(map(bool, no)), len(no))


def with_judge_error(
    metric: Metric,
    confidence: npt.ArrayLike,
    graded: npt.ArrayLike,
    error: JudgeError,
    *,
    groups: Sequence[Hashable] | None = None,
    resamples: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Estimate:
    """Return a graded metric whose interval also covers the mistakes of the judge.

    Each replicate draws questions again, then the judge's rates, then the labels. The value is
    the mean over drawn labels, so a judge that is too kind no longer flatters the metric.

    Parameters
    ----------
    metric
        Takes confidences and labels and returns a number. Grading errors are taken to depend on
        the grade alone, which is exact for accuracy and for the gap between confidence and
        accuracy; where errors also follow the confidence, metrics of each answer (Brier score,
        calibration error) are only approximated.
    confidence, graded
        One entry per answer; answers without a grade must be left out.
    error
        See `judge_error`.
    groups
        What is drawn again, usually the question; each row where not given.
    resamples, level, seed
        Settings of the bootstrap.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> graded = rng.random(2000) < 0.8
    >>> found = with_judge_error(
    ...     lambda _c, right: float(right.mean()), np.full(2000, 0.8), graded,
    ...     JudgeError(90, 100, 5, 100), resamples=200)
    >>> found.low < 0.9 * 0.8 + 0.05 * 0.2 < found.high
    True
    """
    sure, yes = np.asarray(confidence, dtype=np.float64), np.asarray(graded, dtype=bool)
    if sure.shape != yes.shape or sure.ndim != 1 or not sure.size:
        raise InputError(f"one confidence per grade is needed, got {sure.shape} and {yes.shape}")
    rng = named_stream(seed, "judge error")
    rows = _rows(groups, sure.size)
    values, replicates = [], []
    for _ in range(resamples):
        values.append(metric(sure, error.labels(yes, rng)))
        picked = np.concatenate([rows[i] for i in rng.integers(0, len(rows), len(rows))])
        replicates.append(metric(sure[picked], error.labels(yes[picked], rng)))
    low, high = np.quantile(replicates, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(
        float(np.mean(values)), float(low), float(high), len(rows), level, "bootstrap, judge error"
    )


def _rows(groups: Sequence[Hashable] | None, size: int) -> list[npt.NDArray[Any]]:
    """Return the rows of each group."""
    if groups is None:
        return [np.array([row]) for row in range(size)]
    found: dict[Hashable, list[int]] = {}
    for row, group in enumerate(groups):
        found.setdefault(group, []).append(row)
    return [np.array(rows) for rows in found.values()]
