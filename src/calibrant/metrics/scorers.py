"""For scikit-learn: metrics as scorers, a calibrated classifier, a reliability diagram."""

from typing import Any, Self

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from calibrant.core.arrays import Array, Floats, MaybeArray
from calibrant.core.errors import InputError
from calibrant.core.names import optional_import
from calibrant.metrics.binned import ReliabilityBins, reliability_bins
from calibrant.metrics.recalibration.base import Calibrator, score_column
from calibrant.metrics.recalibration.calibrators import calibrator_from_dict
from calibrant.metrics.registry import METRICS


class ConfidenceScorer(Struct, frozen=True):
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
        choice = probabilities.argmax(axis=1)
        confidence = probabilities[np.arange(len(choice)), choice]
        correct = (estimator.classes_[choice] == np.asarray(y)).astype(float)
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
    by_name = {}
    for name, metric in METRICS.items():
        if metric.better == "low":
            by_name[f"neg_{name}"] = ConfidenceScorer(name, -1)
        elif metric.better != "zero":
            by_name[name] = ConfidenceScorer(name, 1)
    return by_name


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

    def fit(self, X: Any, y: ArrayLike, sample_weight: MaybeArray = None) -> Self:
        """Fit the classifier and one calibrator per class."""
        X, y = validate_data(self, X, y, accept_sparse=True, ensure_all_finite=False)
        check_classification_targets(y)
        calibrator = self.method
        if not isinstance(calibrator, Calibrator):
            calibrator = calibrator_from_dict({"calibrator": calibrator})
        self.classes_, codes = np.unique(y, return_inverse=True)
        if self.classes_.size < 2:
            raise InputError("the outcomes have one class only; a classifier needs at least two")
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, X)
        base = LogisticRegression() if self.estimator is None else self.estimator
        values = {} if weights is None else {"sample_weight": weights}
        probabilities = cross_val_predict(
            clone(base), X, y, cv=self.cv, method="predict_proba", params=values
        )
        self.estimator_ = clone(base).fit(X, y, **values)
        columns = [1] if self.classes_.size == 2 else range(self.classes_.size)
        self.calibrators_ = [
            calibrator.fresh().fit(probabilities[:, column], codes == column, weights=weights)
            for column in columns
        ]
        return self

    def predict_proba(self, X: Any) -> Floats:
        """Return a probability per class; rows sum to 1."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse=True, ensure_all_finite=False, reset=False)
        raw = self.estimator_.predict_proba(X)
        if len(self.calibrators_) == 1:
            return self.calibrators_[0].predict_proba(raw[:, 1])
        columns = [fitted.predict(raw[:, k]) for k, fitted in enumerate(self.calibrators_)]
        each = np.column_stack(columns)
        total = each.sum(axis=1, keepdims=True)
        # Where every class got 0 nothing is known, and all classes are equally likely.
        even = np.full_like(each, 1 / each.shape[1])
        np.divide(each, total, out=even, where=total > 0)
        return even

    def predict(self, X: Any) -> Array:
        """Return the most probable class of each row."""
        choice = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[choice])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class ReliabilityDisplay:
    """A reliability diagram: the share of right answers in each bin of confidence.

    Unlike `sklearn.calibration.CalibrationDisplay` it draws the interval of each bin and the
    band where a calibrated model would lie with this number of rows.

    Parameters
    ----------
    bins
        What `reliability_bins` returned.
    name
        Name in the legend.

    Examples
    --------
    >>> display = ReliabilityDisplay.from_predictions([0, 1, 1, 0], [0.2, 0.9, 0.8, 0.3], n_bins=2)
    >>> display.bins.rate.tolist()
    [0.0, 1.0]
    """

    def __init__(self, bins: ReliabilityBins, *, name: str | None = None) -> None:
        self.bins = bins
        self.name = name

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        n_bins: int = 15,
        strategy: str = "width",
        pos_label: Any = None,
        sample_weight: MaybeArray = None,
        name: str | None = None,
        plot: bool = False,
        ax: Any = None,
    ) -> Self:
        """Return the display of outcomes and probabilities.

        Parameters
        ----------
        y_true
            Outcomes: 0 and 1, or two labels of which `pos_label` is the positive one.
        y_prob
            Probabilities of the positive class, shape (n,), (n, 1) or (n, 2).
        n_bins, strategy
            As for `reliability_bins`; ``uniform`` and ``quantile`` are taken for ``width`` and
            ``mass``.
        pos_label
            The positive label where the outcomes are not 0 and 1.
        sample_weight
            Weight of each row.
        name, ax
            Name in the legend; axes to draw on.
        plot
            Whether to draw at once; giving `ax` draws too.
        """
        outcomes = np.asarray(y_true)
        if pos_label is not None:
            outcomes = outcomes == pos_label
        elif outcomes.dtype.kind not in "buif":
            raise InputError(
                f"the outcomes are labels such as {outcomes[0]!r}", hint="name one as pos_label"
            )
        words = {"uniform": "width", "quantile": "mass"}
        score, strategy = score_column(y_prob), words.get(strategy, strategy)
        bins = reliability_bins(
            score, outcomes, bins=n_bins, strategy=strategy, weights=sample_weight
        )
        display = cls(bins, name=name)
        return display.plot(ax=ax) if plot or ax is not None else display

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: ArrayLike, **options: Any) -> Self:
        """Return the display of a binary classifier with `predict_proba`."""
        classes = np.asarray(estimator.classes_)
        if classes.size != 2:
            raise InputError(f"a reliability diagram takes two classes, got {classes.size}")
        options = {"pos_label": classes[1], "name": type(estimator).__name__, **options}
        return cls.from_predictions(y, estimator.predict_proba(X)[:, 1], **options)

    def plot(self, ax: Any = None, *, name: str | None = None, **line: Any) -> Self:
        """Draw on `ax` or on new axes; afterwards `ax_` and `figure_` hold them."""
        if ax is None:
            plt = optional_import(
                "matplotlib.pyplot", extra="plot", purpose="drawing a ReliabilityDisplay"
            )
            _, ax = plt.subplots()
        bins = self.bins
        ax.plot([0, 1], [0, 1], ":", color="0.4", label="calibrated")
        ax.fill_between(bins.confidence, bins.band_low, bins.band_high, color="0.4", alpha=0.15)
        reach = [np.maximum(bins.rate - bins.low, 0), np.maximum(bins.high - bins.rate, 0)]
        label = name or self.name
        (self.line_, *_) = ax.errorbar(
            bins.confidence, bins.rate, yerr=reach, **{"fmt": "o-", "label": label, **line}
        )
        ax.set(xlabel="Mean confidence", ylabel="Share of right answers", aspect="equal")
        ax.set(xlim=(0, 1), ylim=(0, 1))
        if label:
            ax.legend(loc="upper left")
        self.ax_, self.figure_ = ax, ax.figure
        return self
