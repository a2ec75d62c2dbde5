"""Every metric as a scikit-learn scorer: how well a classifier knows when it is right.

The confidence is the largest predicted probability, and it is right where that class is the true
one. As everywhere in scikit-learn a higher score is better, so errors and losses are negated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.core.errors import InputError
from calibrant.metrics.registry import METRICS


@dataclass(frozen=True, slots=True)
class ConfidenceScorer:
    """A callable ``scorer(estimator, X, y)`` for `cross_val_score`, grid searches and the like.

    Parameters
    ----------
    name
        Name of the metric in `calibrant.metrics.METRICS`.
    sign
        -1 where lower is better.
    """

    name: str
    sign: int

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the signed metric of the estimator's confidence on (X, y)."""
        if not hasattr(estimator, "predict_proba"):
            raise InputError(
                f"{self.name} needs probabilities, {type(estimator).__name__} has no predict_proba",
                hint="wrap it in sklearn.calibration.CalibratedClassifierCV",
            )
        probabilities = np.asarray(estimator.predict_proba(X))
        chosen = probabilities.argmax(axis=1)
        confidence = probabilities[np.arange(len(chosen)), chosen]
        correct = (estimator.classes_[chosen] == np.asarray(y)).astype(float)
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
        return self.sign * METRICS[self.name](confidence, correct, weights=weights)


def scorers() -> dict[str, ConfidenceScorer]:
    """Return a scorer per metric; errors and losses are called ``neg_<name>``.

    The gap between confidence and accuracy has none: neither more nor less of it is better.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> X, y = make_classification(300, random_state=0)
    >>> scores = cross_val_score(LogisticRegression(), X, y, scoring=scorers()["neg_brier"])
    >>> bool((scores < 0).all())
    True
    """
    found = {}
    for name, metric in METRICS.items():
        if metric.better == "low":
            found[f"neg_{name}"] = ConfidenceScorer(name, -1)
        elif metric.better != "zero":
            found[name] = ConfidenceScorer(name, 1)
    return found
