"""Discrimination: does a higher confidence go with right answers? AUROC and AUPRC."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from calibrant.metrics.inputs import Checked, check, is_graded, undefined
from calibrant.stats import ranking


def auroc(confidence: ArrayLike, correct: ArrayLike, *, weights: ArrayLike | None = None) -> float:
    """Return the area under the ROC curve, in [0, 1]; 1 is best, 0.5 is chance.

    The probability that a right answer has the higher confidence than a wrong one; ties count
    one half. Any finite score will do, it need not be a probability.

    Parameters
    ----------
    confidence
        Finite scores, shape (n,).
    correct
        Outcomes, shape (n,). A grade between 0 and 1 counts as that share of a right answer and
        the rest of a wrong one.
    weights
        A weight of 2 counts as two equal rows.

    Returns
    -------
    float
        NaN with `UndefinedMetricWarning` where all outcomes are equal.

    References
    ----------
    Hanley, McNeil (1982), 'The meaning and use of the area under a ROC curve'.

    Examples
    --------
    >>> auroc([0.9, 0.8, 0.3, 0.3], [1, 0, 1, 0])
    0.625
    """
    data = check(confidence, correct, weights, probability=False).present()
    if _one_class(data):
        return undefined("auroc", "it needs right and wrong answers, all are the same")
    if data.weights is None and not is_graded(data.correct):
        positive = data.correct.astype(np.bool_, copy=False)
        return ranking.area_by_merge(data.confidence, positive)
    return ranking.area_under_curve(ranking.Ranked.of(*data))[0]


def auprc(confidence: ArrayLike, correct: ArrayLike, *, weights: ArrayLike | None = None) -> float:
    """Return the average precision of right answers, in [0, 1]; 1 is best, accuracy is chance.

    The mean, over right answers, of the precision among all answers at least as confident.

    Parameters
    ----------
    confidence
        Finite scores, shape (n,).
    correct
        Outcomes, shape (n,). A grade between 0 and 1 counts as that share of a right answer and
        the rest of a wrong one.
    weights
        A weight of 2 counts as two equal rows.

    Returns
    -------
    float
        NaN with `UndefinedMetricWarning` where no answer is right.

    Examples
    --------
    >>> auprc([0.9, 0.8, 0.3], [1, 0, 1])
    0.833...
    """
    data = check(confidence, correct, weights, probability=False).present()
    if not data.correct.any():
        return undefined("auprc", "no answer is right")
    return ranking.average_precision(ranking.Ranked.of(*data))[0]


def _one_class(data: Checked) -> bool:
    return bool(np.minimum.reduce(data.correct) == np.maximum.reduce(data.correct))
