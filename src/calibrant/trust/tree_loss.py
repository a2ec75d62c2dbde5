"""The grouping loss of the literature: by honest trees, and by bins of confidence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import ArrayLike
from scipy.special import ndtri

from calibrant.core.arrays import Estimate, Floats, Ints, named_stream
from calibrant.core.errors import InputError
from calibrant.data.features import FeatureEncoder, as_frame, checked_pair
from calibrant.metrics.recalibration.base import Calibrator
from calibrant.trust.honest_trees import HonestTree, PartitionLoss, leave_one_out_products, regions
from calibrant.trust.residual_models import (
    SHARES,
    ResidualModel,
    fit_recalibrator,
    residual_model,
    three_parts,
)
from calibrant.trust.trees import grow_tree

# Ints (or units) that must draw the regions before an upper end is claimed. The raised end held
# the truth in 75 to 93 % of data sets with 80 to 200 of them, in 93 to 96 % with 280.
FEWEST_FITTING = 270


class LossPart(Struct, frozen=True):
    """A part of the Brier score on one split, with its sampling variance."""

    value: float
    variance: float

    @classmethod
    def of(cls, values: Floats) -> LossPart:
        """Return the mean of one value per row."""
        return cls(float(values.mean()), float(values.var(ddof=1) / len(values)))


class SplitFit(Struct, frozen=True):
    """What one split gave: the fitted pieces and the terms of the decomposition.

    `gain` is how much more of the loss the tree caught than one drawn on half of the fitting
    rows, on the same evaluation rows; 0 for models other than trees. `fitted` is the number of
    rows, or of their units, that drew the regions; `left` is the Brier score after recalibration;
    `covariance` is that of calibration and grouping.
    """

    recalibrator: Calibrator
    model: ResidualModel
    evaluation: Ints
    fitted: int
    brier: LossPart
    left: LossPart
    calibration: LossPart
    grouping: PartitionLoss
    covariance: float
    gain: LossPart


class BrierDecomposition(Struct, frozen=True):
    """Brier score = calibration + grouping + rest, each averaged over the splits.

    Calibration and grouping are lower bounds of the true losses; the rest holds what is
    aleatoric and what neither bound caught.
    """

    brier: Estimate
    calibration: Estimate
    grouping: Estimate
    epistemic: Estimate
    rest: Estimate


@dataclass(kw_only=True, eq=False, repr=False)
class TreeGroupingLoss:
    """Estimate the grouping loss as in the paper; `GroupingLoss` is the one to trust.

    The grouping loss is E[(f* - c(f))^2], the squared error that recalibration cannot mend, in
    units of the Brier score: 0 is best, 0.01 means that the truth is off by about 0.1. The
    estimate is a debiased lower bound; it can be slightly negative where there is nothing to
    find, and approaches the truth from below as rows and regions grow. An error of the
    recalibration is caught as well: with a copy of the confidence as only feature it can claim a
    loss that is not there.

    Parameters
    ----------
    recalibration
        ``"platt"`` (on logits), ``"isotonic"``, ``"beta"`` or ``"temperature"``.
    model
        ``"tree"`` (honest tree), ``"forest"`` or ``"boosting"``; ``"shrunk"`` is the tree with
        shrunk leaf means, which changes predictions but not this loss.
    shares
        Shares of the calibration, fitting and evaluation part.
    repeats
        Number of random splits that are averaged.
    min_samples_leaf
        Rows that a leaf must have.
    level
        Coverage of the intervals.
    seed
        Seed of the splits.

    Attributes
    ----------
    value_ : float
        The estimate, averaged over the splits.
    interval_ : tuple of float
        Its interval: that of a single split around the average, so rather too wide. The lower
        end holds whatever the features; the upper end is raised by what the tree gained when its
        rows were doubled, which about makes up for what it misses as long as few features act.
        Where `too_few_` is true it is the Brier score that recalibration leaves.
    gain_ : float
        What doubling the rows that draw the regions added to the estimate.
    still_rising_ : bool
        Whether that gain stands out from its noise. Then the truth is likely above `value_`, and
        may be above the upper end.
    too_few_ : bool
        Whether fewer than 270 rows (or units) drew the regions, which is fewer than 675 in all
        with the shares as they are. How much a tree misses cannot be told from so few. The lower
        end holds all the same; the upper one is then the Brier score after recalibration, which
        no grouping loss exceeds.
    spread_ : float
        Standard deviation of the estimate over the splits.
    decomposition_ : BrierDecomposition
        The whole Brier score in parts.
    fits_ : list of SplitFit
        The pieces of each split.

    References
    ----------
    Melo, Varoquaux and Le Morvan, Epistemic uncertainty quantification to improve decisions
    from black-box models; Kull and Flach 2015 (decomposition).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.integers(0, 2, size=4000)
    >>> y = rng.random(4000) < np.where(x == 1, 0.8, 0.2)
    >>> loss = TreeGroupingLoss().fit({"x": x}, np.full(4000, 0.5), y)
    >>> 0.07 < loss.interval_[0] < 0.09 < loss.interval_[1] < 0.11
    True
    """

    recalibration: str = "platt"
    model: str = "tree"
    shares: Sequence[float] = SHARES
    repeats: int = 5
    min_samples_leaf: int = 15
    level: float = 0.95
    seed: int = 0

    def fit(
        self, features: Any, confidence: ArrayLike, correct: ArrayLike, *, units: Ints | None = None
    ) -> TreeGroupingLoss:
        """Estimate the loss; rows of one unit (question) are never split over parts."""
        if self.repeats < 1:
            raise InputError(f"repeats must be at least 1, got {self.repeats}")
        frame = as_frame(features)
        f, y = checked_pair(confidence, correct, frame)
        self.fits_ = [self._fit_split(frame, f, y, units, turn) for turn in range(self.repeats)]
        self._summarise()
        return self

    def _fit_split(
        self, frame: pl.DataFrame, f: Floats, y: Floats, units: Ints | None, turn: int
    ) -> SplitFit:
        rng, least = named_stream(self.seed, "grouping loss", turn), self.min_samples_leaf
        calibration, fitting, evaluation = three_parts(
            y, rng, shares=self.shares, min_samples_leaf=least, units=units
        )
        recalibrator = fit_recalibrator(self.recalibration, f[calibration], y[calibration])
        c = recalibrator.transform(f)
        residual = y - c

        def fitted(rows: Ints) -> ResidualModel:
            model = residual_model(self.model, min_samples_leaf=least, seed=self.seed + turn)
            model.fit_parts(frame[rows], residual[rows], frame[evaluation], residual[evaluation])
            return model

        model = fitted(fitting)
        half = fitted(fitting[::2]) if isinstance(model, HonestTree) else None
        fe, ce, ye = f[evaluation], c[evaluation], y[evaluation]
        squares, left = (fe - ye) ** 2, (ce - ye) ** 2
        covariance, gain = 0.0, LossPart(0.0, 0.0)
        if isinstance(model, HonestTree) and isinstance(half, HonestTree):
            rows = frame[evaluation]
            pull, of_half = (_pulls(tree, rows, ye - ce) for tree in (model, half))
            covariance = float(np.cov(squares - left, pull)[0, 1] / len(evaluation))
            more = model.loss_.value - half.loss_.value
            gain = LossPart(more, LossPart.of(pull - of_half).variance)
        return SplitFit(
            recalibrator,
            model,
            evaluation,
            fitted=len(fitting) if units is None else len(np.unique(units[fitting])),
            brier=LossPart.of(squares),
            left=LossPart.of(left),
            # What recalibration saves on rows it was not fitted on. The true one would save exactly
            # the calibration loss, any other less: a lower bound, as honest as the grouping loss.
            calibration=LossPart.of(squares - left),
            grouping=model.loss_,
            covariance=covariance,
            gain=gain,
        )

    def _summarise(self) -> None:
        fits = self.fits_
        grouping = self._raised(self._mean([fit.grouping for fit in fits]))
        epistemic, remainder = [], []
        for fit in fits:
            of_both = fit.calibration.variance + fit.grouping.variance
            pair = fit.calibration.value + fit.grouping.value
            epistemic.append(LossPart(pair, of_both + 2 * max(fit.covariance, 0.0)))
            remainder.append(LossPart(fit.brier.value - pair, fit.brier.variance + of_both))
        self.decomposition_ = BrierDecomposition(
            self._mean([fit.brier for fit in fits]),
            self._mean([fit.calibration for fit in fits]),
            grouping,
            self._mean(epistemic),
            self._mean(remainder),
        )
        self.estimate_ = grouping
        self.value_, self.interval_ = grouping.value, (grouping.low, grouping.high)
        values = [fit.grouping.value for fit in fits]
        self.spread_ = float(np.std(values, ddof=1)) if len(fits) > 1 else math.nan

    def _mean(self, terms: Sequence[LossPart | PartitionLoss]) -> Estimate:
        """Return the mean of a term over the splits."""
        value = float(np.mean([term.value for term in terms]))
        half = self._quantile * math.sqrt(float(np.mean([term.variance for term in terms])))
        n, level = len(self.fits_[0].evaluation), self.level
        return Estimate(value, value - half, value + half, n=n, level=level, interval="normal")

    @property
    def _quantile(self) -> float:
        return float(ndtri(0.5 + self.level / 2))

    def _raised(self, grouping: Estimate) -> Estimate:
        """Return the estimate with its upper end raised by the last gain.

        A tree misses less the more rows draw it. Where what it misses halves as its rows double,
        the last doubling gained as much as is still missed. Too few rows cannot tell.
        """
        variance = float(np.mean([fit.grouping.variance for fit in self.fits_]))
        noise = float(np.mean([fit.gain.variance for fit in self.fits_]))
        self.gain_ = float(np.mean([fit.gain.value for fit in self.fits_]))
        self.still_rising_ = self.gain_ > math.sqrt(noise)
        high = grouping.value + max(self.gain_, 0.0) + self._quantile * math.sqrt(variance + noise)
        self.too_few_ = min(fit.fitted for fit in self.fits_) < FEWEST_FITTING
        if self.too_few_:
            high = max(high, self._mean([fit.left for fit in self.fits_]).high)
        return replace(grouping, high=high)


def _pulls(model: HonestTree, rows: pl.DataFrame, residual: Floats) -> Floats:
    """Return the pull of each evaluation row on the loss that the tree catches."""
    leaves = model._evaluation_leaves(rows)
    return leave_one_out_products(leaves + 1, residual, model.tree_.n_leaves + 1)


@dataclass(kw_only=True, eq=False, repr=False)
class BinnedGroupingLoss:
    """Estimate the grouping loss within bins of confidence.

    In each bin of equal width a tree splits the fitting rows by outcome; on the evaluation rows
    the variance of the regions' rates is debiased, and the variance of the recalibrated
    confidence within the bin is taken off, since binning alone makes rates differ.

    Parameters
    ----------
    bins
        Number of bins.
    recalibration, min_samples_leaf, seed
        As in `TreeGroupingLoss`; the same rows play the same parts.

    References
    ----------
    Perez-Lebel, Le Morvan and Varoquaux, Beyond calibration: estimating the grouping loss of
    modern neural networks, 2023.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.integers(0, 2, size=4000)
    >>> y = rng.random(4000) < np.where(x == 1, 0.8, 0.2)
    >>> value = BinnedGroupingLoss().fit({"x": x}, np.full(4000, 0.5), y).value_
    >>> 0.07 < value < 0.11
    True
    """

    bins: int = 15
    recalibration: str = "platt"
    min_samples_leaf: int = 15
    seed: int = 0

    def fit(self, features: Any, confidence: ArrayLike, correct: ArrayLike) -> BinnedGroupingLoss:
        """Estimate the loss on one split, the first one of `TreeGroupingLoss` with this seed."""
        frame = as_frame(features)
        f, y = checked_pair(confidence, correct, frame)
        rng, least = named_stream(self.seed, "grouping loss", 0), self.min_samples_leaf
        calibration, fitting, evaluation = three_parts(y, rng, min_samples_leaf=least)
        c = fit_recalibrator(self.recalibration, f[calibration], y[calibration]).transform(f)
        # Categories are ranked by their outcomes: those of the judged rows must not enter.
        encoder = FeatureEncoder(unseen="calibration").fit(frame[fitting], y[fitting])
        matrix = encoder.transform(frame)
        bin_of = np.minimum((f * self.bins).astype(np.int64), self.bins - 1)
        total = 0.0
        for number in range(self.bins):
            shape = fitting[bin_of[fitting] == number]
            rows = evaluation[bin_of[evaluation] == number]
            if len(rows) > 1:
                total += len(rows) * self._bin(matrix, y, c, shape, rows)
        self.value_ = total / len(evaluation)
        return self

    def _bin(self, matrix: Floats, y: Floats, c: Floats, shape: Ints, rows: Ints) -> float:
        induced = float(np.var(c[rows]))
        if len(shape) < 2 * self.min_samples_leaf:
            return -induced
        least = self.min_samples_leaf
        tree = grow_tree(matrix[shape], y[shape], min_samples_leaf=least, seed=self.seed)
        leaf = tree.apply(matrix[rows])
        in_leaf = leaf >= 0
        moments = regions(leaf[in_leaf], y[rows][in_leaf], tree.n_leaves)
        used = moments.n > 1
        n_j, mean, variance = moments.n[used], moments.mean[used], moments.variance[used]
        if not used.any():
            return -induced
        share = n_j / n_j.sum()
        between = float(share @ (mean - share @ mean) ** 2)
        bias = float(share @ (variance / n_j)) - float(np.var(y[rows], ddof=1)) / len(rows)
        return between - bias - induced
