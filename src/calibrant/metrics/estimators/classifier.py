"""A classifier whose probabilities are recalibrated on predictions it did not train on."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from calibrant.core import InputError
from calibrant.core.registry import did_you_mean
from calibrant.metrics.estimators.base import Calibrator
from calibrant.metrics.recalibration import CALIBRATORS


class CalibratedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Fit a classifier on all rows, and its calibrator on cross-validated probabilities.

    What `sklearn.calibration.CalibratedClassifierCV` does with ``ensemble=False``, with any of
    calibrant's calibrators. With more than two classes each class has a calibrator of its own,
    and the probabilities of a row are divided by their sum.

    Parameters
    ----------
    estimator
        A classifier with `predict_proba`; None is logistic regression.
    method
        Name of a calibrator (temperature, platt, beta, isotonic, histogram) or an unfitted one.
    cv
        Folds, or any splitter of scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> X, y = make_classification(400, random_state=0)
    >>> CalibratedClassifier(GaussianNB(), method="beta").fit(X, y).predict_proba(X).shape
    (400, 2)
    """

    def __init__(
        self, estimator: Any = None, *, method: str | Calibrator = "platt", cv: Any = 5
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.cv = cv

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the classifier and one calibrator per class."""
        X, y = validate_data(self, X, y, accept_sparse=True, ensure_all_finite=False)
        check_classification_targets(y)
        calibrator = self._calibrator()
        self.classes_, codes = np.unique(y, return_inverse=True)
        if self.classes_.size < 2:
            raise InputError("the outcomes have one class only; a classifier needs at least two")
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X)
        base = LogisticRegression() if self.estimator is None else self.estimator
        given = {} if weights is None else {"sample_weight": weights}
        probabilities = cross_val_predict(
            clone(base), X, y, cv=self.cv, method="predict_proba", params=given
        )
        self.estimator_ = clone(base).fit(X, y, **given)
        columns = [1] if self.classes_.size == 2 else range(self.classes_.size)
        self.calibrators_ = [
            calibrator.fresh().fit(probabilities[:, column], codes == column, weights=weights)
            for column in columns
        ]
        return self

    def _calibrator(self) -> Calibrator:
        if isinstance(self.method, Calibrator):
            return self.method.fresh()
        if self.method not in CALIBRATORS:
            raise InputError(
                f"there is no calibrator {self.method!r}",
                hint=did_you_mean(str(self.method), list(CALIBRATORS)),
            )
        return CALIBRATORS[self.method]()

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return a probability per class; rows sum to 1."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=True, ensure_all_finite=False, reset=False)
        raw = self.estimator_.predict_proba(X)
        if len(self.calibrators_) == 1:
            return self.calibrators_[0].predict_proba(raw[:, 1])
        found = np.column_stack(
            [fitted.predict(raw[:, column]) for column, fitted in enumerate(self.calibrators_)]
        )
        total = found.sum(axis=1, keepdims=True)
        # Where every class got 0 nothing is known, and all classes are equally likely.
        even = np.full_like(found, 1 / found.shape[1])
        np.divide(found, total, out=even, where=total > 0)
        return even

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row."""
        chosen = self.predict_proba(X).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[chosen]
        return labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
