"""The binned estimator of the grouping loss (2023), kept to show what honest trees gain."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core.arrays import Floats, Ints
from calibrant.core.rng import named_stream
from calibrant.epistemic.trees.honest import regions
from calibrant.epistemic.trees.parts import SHARES, fit_recalibrator, three_parts
from calibrant.epistemic.trees.tree import grow_tree
from calibrant.records.features import FeatureEncoder, as_frame, checked_pair


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
    value_: float = field(init=False)

    def fit(self, features: Any, confidence: ArrayLike, correct: ArrayLike) -> BinnedGroupingLoss:
        """Estimate the loss on one split, the first one of `TreeGroupingLoss` with this seed."""
        frame = as_frame(features)
        f, y = checked_pair(confidence, correct, frame)
        calibration, fitting, evaluation = three_parts(
            y,
            named_stream(self.seed, "grouping loss", 0),
            shares=SHARES,
            min_samples_leaf=self.min_samples_leaf,
        )
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
        tree = grow_tree(
            matrix[shape], y[shape], min_samples_leaf=self.min_samples_leaf, seed=self.seed
        )
        leaf = tree.apply(matrix[rows])
        known = leaf >= 0
        moments = regions(leaf[known], y[rows][known], tree.n_leaves)
        used = moments.n > 1
        n_j, mean, variance = moments.n[used], moments.mean[used], moments.variance[used]
        if not used.any():
            return -induced
        share = n_j / n_j.sum()
        between = float(share @ (mean - share @ mean) ** 2)
        bias = float(share @ (variance / n_j)) - float(np.var(y[rows], ddof=1)) / len(rows)
        return between - bias - induced
