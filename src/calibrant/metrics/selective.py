"""Selective answering: how the risk falls when only the most confident answers are kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core import InputError
from calibrant.metrics.inputs import check
from calibrant.stats import ranking
from calibrant.stats.binning import FloatArray

__all__ = ["accuracy_at_coverage", "aurc", "e_aurc"]


def aurc(confidence: ArrayLike, correct: ArrayLike, *, weights: ArrayLike | None = None) -> float:
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
    return ranking.average_risk_value(*data, data.total)


def e_aurc(confidence: ArrayLike, correct: ArrayLike, *, weights: ArrayLike | None = None) -> float:
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
    value = ranking.average_risk_value(*data, data.total)
    best = ranking.average_risk_value(data.correct, data.correct, data.weights, data.total)
    return max(value - best, 0.0)


def accuracy_at_coverage(
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    coverage: float = 0.8,
    weights: ArrayLike | None = None,
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
    ranked = ranking.Ranked.of(*data)
    kept: FloatArray = np.clip(
        coverage * ranked.total - (np.cumsum(ranked.weight) - ranked.weight), 0.0, ranked.weight
    )
    return float(kept @ (ranked.outcome / ranked.weight) / kept.sum())
