"""The odds-shifted view: what a model would show at another accuracy, its confidence moved along.

Weighting right answers by t/a and wrong ones by (1 - t)/(1 - a) brings a model of accuracy a to
accuracy t. A calibrated model stays calibrated only if its log-odds move by logit t - logit a, as
Bayes' rule says. The distribution-aligned view of the literature leaves the confidences where
they are, and so makes every calibrated model of another accuracy look miscalibrated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import special

from calibrant.comparison.ece_interval import ece_estimate
from calibrant.core.arrays import Floats

# Equal-mass bins on the confidences as stated, the same in every view.
MASS_BINS = 10
# A confidence of exactly 0 or 1 has no finite odds; inside the shift alone it is moved this far.
CLIP = 0.005
TARGETS = ("weakest", "mean", "strongest")


@dataclass(frozen=True, slots=True)
class OutcomeSums:
    """Sums per bin over right and over wrong answers, (2, bins, 1 + resamples); wrong first.

    `count` sums the answers, `stated` their (shifted) confidence c, `slope` c (1 - c): how fast c
    moves with its log-odds.
    """

    count: Floats
    stated: Floats
    slope: Floats


@dataclass(frozen=True)
class ViewStatistics:
    """What one view shows of one model.

    `seen` (bins,) and `drawn` (bins, resamples) are residuals of the data and of the resamples:
    share of the bin times its gap, whose absolute sum is the error. `squares` is the plug-in
    squared error in the data and in every resample, `debiased` the one of the data without the
    part that noise adds, `excess` by how much the resamples overstate the variance of the squared
    error. Resamples are kept in single precision: thousands of pairs are held at a time.
    """

    seen: Floats
    drawn: npt.NDArray[np.float32]
    squares: npt.NDArray[np.float32]
    debiased: float
    excess: float

    @property
    def error(self) -> Floats:
        """Calibration error in the data and in every resample."""
        noisy = np.abs(self.drawn).sum(axis=0, dtype=np.float64)
        return np.append(np.abs(self.seen).sum(), noisy)

    @property
    def residuals(self) -> Floats:
        """(bins, 1 + resamples) residuals, the data first."""
        return np.hstack([self.seen[:, None], self.drawn])

    @cached_property
    def range_90(self) -> tuple[float, float]:
        """90 % interval of the error; views that several pairs share work it out once."""
        found = ece_estimate(self.residuals, 0, level=0.9)
        return found.low, found.high


def log_odds(share: npt.ArrayLike) -> Floats:
    """Return logit(share): minus infinity at 0, infinity at 1.

    Examples
    --------
    >>> log_odds([0.0, 0.5, 1.0]).tolist()
    [-inf, 0.0, inf]
    """
    return np.asarray(special.logit(np.asarray(share, dtype=np.float64)))


def shift_confidence(confidence: Floats, shift: float) -> Floats:
    """Return confidences whose log-odds are moved by `shift`; without a shift they are untouched.

    Examples
    --------
    >>> shift_confidence(np.array([0.5, 1.0]), float(log_odds(0.75))).round(3).tolist()
    [0.75, 0.998]
    """
    if shift == 0:
        return confidence
    inside = np.clip(confidence, CLIP, 1 - CLIP)
    return np.asarray(special.expit(special.logit(inside) + shift))


def target_accuracies(first: Floats, second: Floats) -> dict[str, Floats]:
    """Return the common accuracies of two models: the lower, their mean, the higher."""
    return {
        "weakest": np.minimum(first, second),
        "mean": (first + second) / 2,
        "strongest": np.maximum(first, second),
    }


def odds_view(
    sums: OutcomeSums, accuracy: Floats, target: Floats | None = None, shift: float = 0.0
) -> ViewStatistics:
    """Return residuals and errors of a model at a target accuracy, in data and resamples.

    Parameters
    ----------
    sums
        Sums over the confidences shifted by `shift`.
    accuracy, target
        (1 + resamples,) own and common accuracy; without a target the view is the raw one.
    shift
        Log-odds by which the confidences of the data were moved. Every resample has an accuracy
        of its own and so a shift of its own, to which the confidences are moved linearly.
    """
    total = sums.count.sum(axis=(0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        if target is None:
            up = down = 1 / total
            moved = np.zeros_like(total)
        else:
            up, down = target / accuracy / total, (1 - target) / (1 - accuracy) / total
            moved = log_odds(target) - log_odds(accuracy) - shift
        wrong, right = sums.stated + sums.slope * moved
        residuals = up * (right - sums.count[1]) + down * wrong
        shares = up * sums.count[1] + down * sums.count[0]
    return view_statistics(residuals, shares)


def view_statistics(residuals: Floats, shares: Floats) -> ViewStatistics:
    """Return the errors that follow from residuals and shares of bins, (bins, 1 + resamples)."""
    held = shares > 0
    squares = (np.square(residuals) / np.where(held, shares, 1.0)).sum(axis=0, where=held)
    squares[~np.isfinite(residuals).all(axis=0)] = np.nan
    drawn = residuals[:, 1:][:, np.isfinite(squares[1:])]
    debiased = excess = np.nan
    if drawn.shape[1] > 1 and np.isfinite(squares[0]):
        inside = shares[:, 0] > 0
        ratio = drawn[inside].var(axis=1, ddof=1) / shares[inside, 0]
        debiased = float(squares[0] - ratio.sum())
        excess = float(4 * np.square(ratio).sum())
    return ViewStatistics(
        residuals[:, 0].copy(),
        residuals[:, 1:].astype(np.float32),
        squares.astype(np.float32),
        debiased,
        excess,
    )
