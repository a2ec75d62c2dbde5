"""The base of every recalibration map: plain data, and the contract of scikit-learn."""

from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core import InputError
from calibrant.core.arrays import Array, Floats, Ints, MaybeArray

# Two columns are the probabilities of 'wrong' and 'right'; float32 keeps about 7 digits.
_SUM_TOLERANCE = 1e-5


class Calibrator:
    """A map from scores to probabilities: the constructor stores, `fit` computes.

    Fitted names end in ``_``. `to_dict` gives plain data that `calibrator_from_dict` reads
    again. The class keeps the contract of scikit-learn (`clone`, `get_params`, pipelines, grid
    searches, `cross_val_predict` with ``method="predict_proba"``) without importing it. Two
    things differ, because a calibrator is a map and not a classifier of its own: `predict`
    returns the probability and not the class, and the input has one column. For a classifier
    with calibrated probabilities see `CalibratedClassifier`.
    """

    name: ClassVar[str]
    options: ClassVar[tuple[str, ...]] = ()
    fitted: ClassVar[tuple[str, ...]] = ()

    def fit(
        self,
        confidence: ArrayLike,
        correct: ArrayLike,
        sample_weight: MaybeArray = None,
        *,
        weights: MaybeArray = None,
    ) -> Self:
        """Fit the map.

        Parameters
        ----------
        confidence
            Scores, shape (n,) or (n, 1); or probabilities of 'wrong' and 'right', shape (n, 2).
        correct
            Outcomes: 0, 1 or grades between.
        sample_weight, weights
            A weight of 2 counts as two equal rows. Both names mean the same; give one.
        """
        if sample_weight is not None and weights is not None:
            raise InputError("sample_weight and weights mean the same; give one of them")
        heavy = sample_weight if weights is None else weights
        column = score_column(confidence)
        self._learn(column, correct, heavy)
        return self

    def _learn(self, confidence: ArrayLike, correct: ArrayLike, weights: MaybeArray) -> None:
        raise NotImplementedError

    def predict(self, confidence: ArrayLike) -> Floats:
        """Return the recalibrated probabilities, shape (n,)."""
        if not self.__sklearn_is_fitted__():
            raise not_fitted()(f"{type(self).__name__} is not fitted yet", hint="call fit first")
        values = np.asarray(score_column(confidence), dtype=np.float64)
        if not np.isfinite(values).all():
            raise InputError("confidence is one column of finite numbers")
        return self._map(values)

    def predict_proba(self, confidence: ArrayLike) -> Floats:
        """Return the probabilities of 'wrong' and 'right', shape (n, 2)."""
        right = self.predict(confidence)
        return np.column_stack([1 - right, right])

    def transform(self, confidence: ArrayLike) -> Floats:
        """Return the recalibrated probabilities (the same as `predict`)."""
        return self.predict(confidence)

    def fit_transform(self, confidence: ArrayLike, correct: ArrayLike, **options: Any) -> Floats:
        """Fit, then return the probabilities of the same rows."""
        return self.fit(confidence, correct, **options).predict(confidence)

    def score(
        self, confidence: ArrayLike, correct: ArrayLike, sample_weight: MaybeArray = None
    ) -> float:
        """Return minus the Brier score, so that higher is better as a search expects it."""
        # Loaded here: scoring needs more than a map does.
        from calibrant.metrics.scoring import brier

        return -brier(self.predict(confidence), correct, weights=sample_weight)

    def _map(self, values: Floats) -> Floats:
        raise NotImplementedError

    def fresh(self) -> Self:
        """Return an unfitted calibrator with the same options."""
        return type(self)(**self.get_params())

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        """Return the options of the constructor; `deep` is there for scikit-learn."""
        return {name: getattr(self, name) for name in self.options}

    def set_params(self, **params: Any) -> Self:
        """Set options of the constructor and return the calibrator."""
        for name, value in params.items():
            if name not in self.options:
                names = ", ".join(self.options) or "none"
                raise InputError(f"{type(self).__name__} has no option {name!r}; it has: {names}")
            setattr(self, name, value)
        return self

    @property
    def classes_(self) -> Ints:
        """The two outcomes, wrong and right, in the order of `predict_proba`."""
        if not self.__sklearn_is_fitted__():
            raise AttributeError("classes_ is known after fit")
        return np.array([0, 1])

    def __sklearn_is_fitted__(self) -> bool:
        return all(hasattr(self, name) for name in self.fitted)

    def __sklearn_tags__(self) -> Any:
        # Loaded here: scikit-learn takes longer to load than an audit of a small table.
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            transformer_tags=TransformerTags(),
            classifier_tags=ClassifierTags(multi_class=False),
            # As for IsotonicRegression: one column, never a table of features.
            input_tags=InputTags(one_d_array=True, two_d_array=False),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the options and, where fitted, the fitted values as plain data."""
        plain: dict[str, Any] = {"calibrator": self.name}
        for name in (*self.options, *self.fitted):
            if hasattr(self, name):
                value = getattr(self, name)
                plain[name] = value.tolist() if isinstance(value, np.ndarray) else value
        return plain

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Self:
        """Return the calibrator that `to_dict` described."""
        if data.get("calibrator") != cls.name:
            raise InputError(f"this is no {cls.name} calibrator: {data.get('calibrator')!r}")
        calibrator = cls(**{name: data[name] for name in cls.options if name in data})
        for name in cls.fitted:
            if name in data:
                value = data[name]
                setattr(calibrator, name, np.asarray(value) if isinstance(value, list) else value)
        return calibrator

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.options)
        return f"{type(self).__name__}({options})"


def score_column(confidence: ArrayLike) -> Array:
    """Return the one column of scores in an array of shape (n,), (n, 1) or (n, 2).

    Examples
    --------
    >>> score_column([[0.2, 0.8], [0.4, 0.6]]).tolist()
    [0.8, 0.6]
    """
    if hasattr(confidence, "tocsr"):
        raise InputError("a sparse matrix is no column of confidences", hint="use .toarray()")
    values = np.asarray(confidence)
    if values.ndim == 1:
        return values
    if values.ndim == 2 and values.shape[1] == 1:
        return values[:, 0]
    if values.ndim == 2 and values.shape[1] == 2:
        pairs = values.astype(np.float64)
        if not (np.abs(pairs.sum(axis=1) - 1) <= _SUM_TOLERANCE).all():
            raise InputError(
                "two columns are the probabilities of 'wrong' and 'right' and sum to 1",
                hint="give one column of scores",
            )
        return values[:, 1]
    raise InputError(
        f"confidence has shape (n,), (n, 1) or (n, 2), got {values.shape}",
        hint="a calibrator maps one score; use CalibratedClassifier for features",
    )


@cache
def not_fitted() -> type[InputError]:
    """Return an error that is one of calibrant and one of scikit-learn."""
    from sklearn.exceptions import NotFittedError

    class NotFitted(InputError, NotFittedError):  # type: ignore[misc]
        """The calibrator was asked before it was fitted."""

    return NotFitted
