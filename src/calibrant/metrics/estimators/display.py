"""Reliability diagram in the manner of scikit-learn's displays (needs matplotlib)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core import InputError
from calibrant.core.optional import optional_import
from calibrant.metrics.binned import ReliabilityBins, reliability_bins
from calibrant.metrics.estimators.base import score_column


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
        sample_weight: ArrayLike | None = None,
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
        bins = reliability_bins(
            score_column(y_prob),
            outcomes,
            bins=n_bins,
            strategy=words.get(strategy, strategy),
            weights=sample_weight,
        )
        made = cls(bins, name=name)
        return made.plot(ax=ax) if plot or ax is not None else made

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
