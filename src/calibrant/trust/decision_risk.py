"""Decisions under a cost matrix, and what deciding by a confidence that is off costs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from calibrant.core.arrays import Estimate, Floats, Ints, Mask
from calibrant.core.document import Stored
from calibrant.core.errors import InputError
from calibrant.data.features import as_frame, checked_pair
from calibrant.trust.grouping_loss import CrossFit, cross_fit, fold_of_unit, mean_error
from calibrant.trust.trees import encode


@dataclass(frozen=True, slots=True)
class CostMatrix(Stored):
    """What a decision costs: `c10` is the cost of deciding 1 where the truth is 0, and so on.

    The optimal threshold is t* = (c10 - c00) / S with S = c10 + c01 - c00 - c11, which must be
    positive: a wrong decision costs more than a right one.

    Examples
    --------
    >>> CostMatrix(c10=1, c01=3).threshold
    0.25
    >>> CostMatrix(c10=0, c01=0)
    Traceback (most recent call last):
    ...
    calibrant.core.errors.InputError: the cost matrix must have c10 + c01 - c00 - c11 > 0, got 0
      -> a wrong decision must cost more than a right one; check the order of the costs
    """

    c00: float = 0.0
    c01: float = 1.0
    c10: float = 1.0
    c11: float = 0.0

    def __post_init__(self) -> None:
        if not all(math.isfinite(cost) for cost in (self.c00, self.c01, self.c10, self.c11)):
            raise InputError(f"the costs must be finite numbers, got {self}")
        if self.scale <= 0:
            raise InputError(
                f"the cost matrix must have c10 + c01 - c00 - c11 > 0, got {self.scale:g}",
                hint="a wrong decision must cost more than a right one; check the order of the "
                "costs",
            )

    @property
    def scale(self) -> float:
        """S: what a wrong decision costs beyond a right one, summed over both truths."""
        return self.c10 + self.c01 - self.c00 - self.c11

    @property
    def threshold(self) -> float:
        """The optimal threshold t*; outside [0, 1] where one decision is always right."""
        return (self.c10 - self.c00) / self.scale

    @classmethod
    def of(cls, costs: Any) -> CostMatrix:
        """Return a cost matrix from itself, None (0/1 costs), four names or rows by decision.

        Examples
        --------
        >>> CostMatrix.of([[0, 5], [1, 0]]).c01
        5.0
        """
        if costs is None:
            return cls()
        if isinstance(costs, CostMatrix):
            return costs
        if isinstance(costs, dict):
            unknown = set(costs) - {"c00", "c01", "c10", "c11"}
            if unknown:
                raise InputError(f"costs are named c00, c01, c10 and c11, got {sorted(unknown)}")
            return cls(**{name: float(cost) for name, cost in costs.items()})
        rows = np.asarray(costs, dtype=np.float64)
        if rows.shape != (2, 2):
            raise InputError(
                f"a cost matrix has 2 rows (decision 0, 1) and 2 columns (truth 0, 1), got shape "
                f"{rows.shape}"
            )
        return cls(*(float(cost) for cost in rows.ravel()))

    def spent(self, decision: Mask, correct: Floats) -> Floats:
        """Return what each decision cost, now that the outcome is known."""
        return expected_cost(decision, correct == 1, self)


def expected_cost(decision: ArrayLike, probability: ArrayLike, costs: CostMatrix) -> Floats:
    """Return the expected cost of each decision where the outcome is 1 with `probability`."""
    one = np.asarray(decision, dtype=bool)
    p = np.asarray(probability, dtype=np.float64)
    result: Floats = np.where(
        one, costs.c10 * (1 - p) + costs.c11 * p, costs.c00 * (1 - p) + costs.c01 * p
    )
    return result


def pointwise_risk(
    probability: ArrayLike,
    confidence: ArrayLike,
    costs: CostMatrix,
    *,
    threshold: float | None = None,
) -> Floats:
    """Return the excess cost of deciding by `confidence` at `threshold` instead of by truth.

    S |p - t*| where the decisions of p at t* and of the confidence at the threshold differ, 0
    elsewhere: at least 0, lower is better. With the true probability it is exact; with
    p = c(f) + r the error is at most S times that of r.

    Parameters
    ----------
    probability
        The probability to trust: the truth, or recalibrated confidence plus residual.
    confidence
        The confidence that decides.
    costs
        Cost matrix.
    threshold
        Where the confidence decides 1; None means t*.

    References
    ----------
    Melo, Varoquaux and Le Morvan, Propositions 5 and 6.

    Examples
    --------
    >>> pointwise_risk([0.9, 0.2], [0.4, 0.4], CostMatrix()).tolist()
    [0.8, 0.0]
    """
    place = costs.threshold if threshold is None else threshold
    p = np.asarray(probability, dtype=np.float64)
    differ = (p >= costs.threshold) != (np.asarray(confidence, dtype=np.float64) >= place)
    risk: Floats = np.where(differ, costs.scale * np.abs(p - costs.threshold), 0.0)
    return risk


def calibration_risk(
    calibrated: ArrayLike,
    confidence: ArrayLike,
    costs: CostMatrix,
    *,
    threshold: float | None = None,
) -> Floats:
    """Return the risk that recalibration alone shows: `pointwise_risk` with residual 0."""
    return pointwise_risk(calibrated, confidence, costs, threshold=threshold)


def grouping_risk(calibrated: ArrayLike, residual: ArrayLike, costs: CostMatrix) -> Floats:
    """Return the risk that is left after recalibration: c(f) + r against c(f), both at t*."""
    base = np.asarray(calibrated, dtype=np.float64)
    return pointwise_risk(base + np.asarray(residual, dtype=np.float64), base, costs)


# Savings are skewed where few decisions change: with this the bound stays above the truth in 4 %.
_WIDER = 1.07


@dataclass(kw_only=True, eq=False, repr=False)
class DecisionRisk:
    """Bound what it costs to decide by this confidence instead of by the truth.

    For each row the decision of today is held against the decision by a corrected confidence that
    was learned without that row. What the corrected decisions save is a lower bound of the excess
    risk, since nobody decides better than the truth. There is no upper bound but the cost of
    today's decisions themselves.

    Parameters
    ----------
    costs
        Cost matrix: rows by decision, columns by truth; None means that a wrong decision
        costs 1 and a right one 0.
    threshold
        Where the confidence decides 1; None means the optimal threshold of the costs.
    level
        Level of the one-sided lower bounds.
    seed
        Seed of the folds.

    Attributes
    ----------
    saved_ : Estimate
        Saved per decision: mean, lower bound of the risk, and what today's decisions cost beyond
        decisions that know every outcome.
    recalibrated_ : Estimate
        What recalibration over all rows alone saves, in the same form.
    beyond_ : Estimate
        What the features save beyond recalibration.
    today_ : Estimate
        Mean cost of today's decisions.
    changed_ : float
        Share of decisions that change.

    References
    ----------
    Melo, Varoquaux and Le Morvan, Proposition 5; Elkan 2001 (threshold).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.integers(0, 2, size=4000)
    >>> y = rng.random(4000) < np.where(x == 1, 0.8, 0.4)
    >>> risk = DecisionRisk().fit({"x": x}, np.full(4000, 0.6), y)
    >>> 0.07 < risk.saved_.low < risk.saved_.value < 0.12
    True
    """

    costs: Any = None
    threshold: float | None = None
    level: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        self.costs = CostMatrix.of(self.costs)

    @property
    def at(self) -> float:
        """Where today's decisions are cut."""
        return self.costs.threshold if self.threshold is None else self.threshold

    def fit(
        self, features: Any, confidence: ArrayLike, correct: ArrayLike, *, units: Ints | None = None
    ) -> DecisionRisk:
        """Learn corrected confidences by cross-fitting and measure what they save."""
        frame = as_frame(features)
        f, y = checked_pair(confidence, correct, frame)
        codes = None if units is None else np.unique(units, return_inverse=True)[1]
        fold = fold_of_unit(len(f), codes, self.seed)
        return self.measure(f, y, cross_fit(encode(frame), f, y, fold), codes)

    def measure(
        self, confidence: Floats, correct: Floats, fit: CrossFit, units: Ints | None = None
    ) -> DecisionRisk:
        """Measure the savings of a cross-fit that is there already."""
        costs = self.costs
        today = confidence >= self.at
        cost = self.spent(confidence, correct)
        ceiling = float((cost - costs.spent(correct >= 0.5, correct)).mean())
        saved = self.savings(confidence, correct, fit.corrected)
        plain = self.savings(confidence, correct, fit.recalibrated)
        self.saved_ = self._bounded(saved, ceiling, units)
        self.recalibrated_ = self._bounded(plain, ceiling, units)
        self.beyond_ = self._bounded(saved - plain, ceiling, units)
        mean, half = float(cost.mean()), 1.959964 * mean_error(cost, units)
        self.today_ = Estimate(mean, mean - half, mean + half, n=len(cost), interval="normal")
        self.changed_ = float(((fit.corrected >= costs.threshold) != today).mean())
        return self

    def spent(self, confidence: Floats, correct: Floats) -> Floats:
        """Return what each of today's decisions cost."""
        return np.asarray(self.costs.spent(confidence >= self.at, correct))

    def savings(self, confidence: Floats, correct: Floats, corrected: Floats) -> Floats:
        """Return what each decision saves if it is taken by a corrected confidence."""
        costs = self.costs
        step = (confidence >= self.at).astype(np.float64) - (corrected >= costs.threshold)
        saved: Floats = step * costs.scale * (costs.threshold - correct)
        return saved

    def _bounded(self, values: Floats, ceiling: float, units: Ints | None) -> Estimate:
        mean = float(values.mean())
        low = mean - _WIDER * float(ndtri(self.level)) * mean_error(values, units)
        n, kind = len(values), "one-sided bound and ceiling"
        return Estimate(mean, low, max(ceiling, mean), n=n, level=self.level, interval=kind)
