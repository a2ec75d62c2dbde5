"""Ver-ECE: calibration of the confidence that a model writes beside each answer."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core.arrays import Estimate, Floats, RngLike
from calibrant.core.errors import InputError
from calibrant.metrics.estimates import metric_estimates


@dataclass(frozen=True, slots=True)
class VerEce:
    """Calibration error of stated confidence.

    `parse_failures` is the share of draws without a readable confidence; `imputed` is the value
    that was put in their place, or None where they were left out.
    """

    ece: Estimate
    confidence: Floats
    accuracy: Floats
    parse_failures: float
    questions_without: int
    imputed: float | None


def ver_ece(
    question_id: ArrayLike,
    stated: ArrayLike,
    correct: ArrayLike,
    *,
    bins: int = 10,
    impute: float | None = None,
    level: float = 0.95,
    resamples: int = 1000,
    rng: RngLike = 0,
) -> VerEce:
    """Return the calibration error of stated confidence, averaged over the draws of a question.

    The mean confidence of a question answers for the mean grade of the same draws: each stated
    confidence is about its own answer.

    Parameters
    ----------
    question_id
        Question of each draw.
    stated
        Confidence in [0, 1]; NaN where none could be read.
    correct
        Grade of each draw's own answer.
    bins, level, resamples, rng
        See `sem_ece`.
    impute
        Value for unreadable confidences (published: 1.0); None leaves those draws out.
    """
    values = np.asarray(stated, dtype=np.float64)
    grades = np.asarray(correct, dtype=np.float64)
    missing = np.isnan(values)
    without = np.flatnonzero(np.isnan(grades))
    if without.size:
        raise InputError("every draw needs a grade", row=int(without[0]) + 1)
    if impute is not None:
        values = np.where(missing, impute, values)
    ids, question = np.unique(np.asarray(question_id), return_inverse=True)
    finite: Any = ~np.isnan(values)
    size = np.bincount(question[finite], minlength=ids.size)
    subset = size > 0
    if not subset.any():
        raise InputError("no draw states a confidence that can be read")
    mean, rate = (
        np.bincount(question[finite], weights=column[finite], minlength=ids.size)[subset]
        / size[subset]
        for column in (values, grades)
    )
    estimates = metric_estimates(
        mean, rate, names=("ece",), bins=bins, level=level, resamples=resamples, rng=rng
    )
    return VerEce(estimates["ece"], mean, rate, float(missing.mean()), int((~subset).sum()), impute)
