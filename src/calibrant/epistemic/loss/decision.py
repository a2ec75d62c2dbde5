"""Decisions under a cost matrix and the risk of deciding by a confidence that is off."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Floats
from calibrant.core.errors import InputError


@dataclass(frozen=True, slots=True)
class CostMatrix:
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

    def to_dict(self) -> dict[str, float]:
        """Return the four costs."""
        return {"c00": self.c00, "c01": self.c01, "c10": self.c10, "c11": self.c11}

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


def expected_cost(decision: npt.ArrayLike, probability: npt.ArrayLike, costs: CostMatrix) -> Floats:
    """Return the expected cost of each decision where the outcome is 1 with `probability`."""
    one = np.asarray(decision, dtype=bool)
    p = np.asarray(probability, dtype=np.float64)
    result: Floats = np.where(
        one, costs.c10 * (1 - p) + costs.c11 * p, costs.c00 * (1 - p) + costs.c01 * p
    )
    return result


def pointwise_risk(
    probability: npt.ArrayLike,
    confidence: npt.ArrayLike,
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
    at = costs.threshold if threshold is None else threshold
    p = np.asarray(probability, dtype=np.float64)
    differ = (p >= costs.threshold) != (np.asarray(confidence, dtype=np.float64) >= at)
    risk: Floats = np.where(differ, costs.scale * np.abs(p - costs.threshold), 0.0)
    return risk


def calibration_risk(
    calibrated: npt.ArrayLike,
    confidence: npt.ArrayLike,
    costs: CostMatrix,
    *,
    threshold: float | None = None,
) -> Floats:
    """Return the risk that recalibration alone shows: `pointwise_risk` with residual 0."""
    return pointwise_risk(calibrated, confidence, costs, threshold=threshold)


def grouping_risk(calibrated: npt.ArrayLike, residual: npt.ArrayLike, costs: CostMatrix) -> Floats:
    """Return the risk that is left after recalibration: c(f) + r against c(f), both at t*."""
    base = np.asarray(calibrated, dtype=np.float64)
    return pointwise_risk(base + np.asarray(residual, dtype=np.float64), base, costs)
