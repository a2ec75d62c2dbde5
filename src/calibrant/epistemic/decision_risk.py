"""The excess risk of deciding by a confidence, per row and on average."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.stats import norm

from calibrant.core.estimate import Estimate
from calibrant.core.rng import named_stream
from calibrant.epistemic.checks import checked_pair
from calibrant.epistemic.decision import CostMatrix, calibration_risk, grouping_risk, pointwise_risk
from calibrant.epistemic.features import as_frame
from calibrant.epistemic.honest import HonestTree
from calibrant.epistemic.recalibrators import fit_recalibrator
from calibrant.epistemic.residuals import ResidualModel, residual_model
from calibrant.epistemic.splits import SHARES, three_parts
from calibrant.metrics.recalibration import Calibrator

__all__ = ["DecisionRisk"]

Floats = npt.NDArray[np.float64]


class DecisionRisk:
    """Estimate what it costs to decide by this confidence instead of by the truth.

    Parameters
    ----------
    costs
        Cost matrix: rows by decision, columns by truth; None means that a wrong decision
        costs 1 and a right one 0.
    threshold
        Where the confidence decides 1; None means the optimal threshold of the costs.
    recalibration, model, shares, splits, min_samples_leaf, max_leaf_nodes, max_depth, seed
        As in `GroupingLoss`.
    level
        Coverage of the intervals.

    Attributes
    ----------
    total_, calibration_, grouping_ : Estimate
        Mean risk per decision: altogether, as far as recalibration shows it, and what is left
        after recalibration. The residuals used for a row come from other rows, but a maximum
        is taken of noisy numbers: with leaves of a few dozen rows these lean far upwards.
    saved_ : Estimate
        Cost per decision that deciding by the corrected confidence saves, measured on
        outcomes that did not enter the correction: no such lean, a lower bound of the risk.

    References
    ----------
    Melo, Varoquaux and Le Morvan, Propositions 5 to 7; Elkan 2001 (threshold).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.integers(0, 2, size=4000)
    >>> y = rng.random(4000) < np.where(x == 1, 0.8, 0.4)
    >>> risk = DecisionRisk().fit({"x": x}, np.full(4000, 0.6), y)
    >>> risk.predict({"x": [0, 1]}, [0.6, 0.6]).round(1).tolist()
    [0.2, 0.0]
    """

    total_: Estimate
    calibration_: Estimate
    grouping_: Estimate
    saved_: Estimate
    recalibrator_: Calibrator
    model_: ResidualModel

    def __init__(
        self,
        *,
        costs: Any = None,
        threshold: float | None = None,
        recalibration: str = "platt",
        model: str = "tree",
        shares: Sequence[float] = SHARES,
        splits: str = "auto",
        min_samples_leaf: int = 15,
        max_leaf_nodes: int | None = None,
        max_depth: int | None = None,
        level: float = 0.95,
        seed: int = 0,
    ) -> None:
        self.costs = CostMatrix.of(costs)
        self.threshold = threshold
        self.recalibration = recalibration
        self.model = model
        self.shares = shares
        self.splits = splits
        self.min_samples_leaf = min_samples_leaf
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.level = level
        self.seed = seed

    def fit(
        self,
        features: Any,
        confidence: npt.ArrayLike,
        correct: npt.ArrayLike,
        *,
        units: npt.NDArray[np.int64] | None = None,
    ) -> DecisionRisk:
        """Fit recalibration and residuals and measure the risks on the evaluation part."""
        frame = as_frame(features)
        f, y = checked_pair(confidence, correct, frame)
        calibration, fitting, evaluation = three_parts(
            y,
            named_stream(self.seed, "grouping loss", 0),
            shares=self.shares,
            min_samples_leaf=self.min_samples_leaf,
            units=units,
        )
        self.recalibrator_ = fit_recalibrator(self.recalibration, f[calibration], y[calibration])
        c = self.recalibrator_.transform(f)
        self.model_ = residual_model(
            self.model,
            splits=self.splits,
            min_samples_leaf=self.min_samples_leaf,
            max_leaf_nodes=self.max_leaf_nodes,
            max_depth=self.max_depth,
            seed=self.seed,
        )
        part = frame[evaluation]
        residual = (y - c)[evaluation]
        self.model_.fit_parts(frame[fitting], (y - c)[fitting], part, residual)
        r = _residuals_from_other_rows(self.model_, part, residual)
        self._measure(f[evaluation], c[evaluation], r, y[evaluation])
        return self

    def _measure(self, f: Floats, c: Floats, r: Floats, y: Floats) -> None:
        costs = self.costs
        at = costs.threshold if self.threshold is None else self.threshold
        self.total_ = self._mean(pointwise_risk(c + r, f, costs, threshold=at))
        self.calibration_ = self._mean(calibration_risk(c, f, costs, threshold=at))
        self.grouping_ = self._mean(grouping_risk(c, r, costs))
        # Where two decisions differ, their costs differ by S (t* - y) or its opposite.
        step = (f >= at).astype(np.float64) - (c + r >= costs.threshold)
        self.saved_ = self._mean(step * costs.scale * (costs.threshold - y))

    def _mean(self, values: Floats) -> Estimate:
        n = len(values)
        half = float(norm.ppf(0.5 + self.level / 2)) * float(np.std(values, ddof=1)) / math.sqrt(n)
        mean = float(np.mean(values))
        return Estimate(mean, mean - half, mean + half, n=n, level=self.level, interval="normal")

    def predict(self, features: Any, confidence: npt.ArrayLike) -> Floats:
        """Return the estimated risk of each decision, at least 0."""
        f = np.asarray(confidence, dtype=np.float64)
        p = self.recalibrator_.transform(f) + self.model_.predict(features)
        return pointwise_risk(p, f, self.costs, threshold=self.threshold)


def _residuals_from_other_rows(
    model: ResidualModel, part: pl.DataFrame, residual: Floats
) -> Floats:
    """Return a residual per evaluation row that its own outcome did not touch.

    A tree fills its leaves from the evaluation part, so each row takes the mean of the other
    rows in its leaf (0 where there are none). Forests and boosting never saw that part.
    """
    if not isinstance(model, HonestTree):
        return model.predict(part)
    leaves = model._evaluation_leaves(part)
    known = leaves >= 0
    count = model.tree_.n_leaves
    n = np.bincount(leaves[known], minlength=count)[leaves]
    total = np.bincount(leaves[known], weights=residual[known], minlength=count)[leaves]
    result = np.zeros(len(residual))
    np.divide(total - residual, n - 1, out=result, where=known & (n > 1))
    return result * model.shrinkage()[leaves] if model.shrink else result
