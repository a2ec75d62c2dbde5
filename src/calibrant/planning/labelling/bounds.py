"""Bounds for the binned calibration error from gaps per bin and their standard errors."""

from __future__ import annotations

import numpy as np

from calibrant.core.arrays import Floats
from calibrant.stats.error_bound import claim_holds, ece_interval, ece_upper, excess

__all__ = [
    "claim_holds",
    "ece_interval",
    "ece_upper",
    "excess",
    "flat_z",
    "information",
    "mixture_z",
]


# Twice the normal tail at 2.054 is 4 %: a point below the 5 % that is promised, because the
# variances are estimated.
_FLAT = 2.054


def information(labels: Floats | float, items: float) -> Floats:
    """Return the labels of an endless pool that are worth `labels` of a pool of `items`.

    Examples
    --------
    >>> information(500, 1000).item()
    1000.0
    """
    left = np.maximum(1.0 - np.asarray(labels, dtype=np.float64) / items, 1e-9)
    return np.asarray(labels / left, dtype=np.float64)


def flat_z(labels: Floats | float, budget: float, items: float = np.inf) -> Floats:
    """Return the one-sided quantile that holds at every label up to a budget.

    Examples
    --------
    >>> flat_z(1000.0, 1000).round(2).item(), flat_z(250.0, 1000).round(2).item()
    (2.05, 4.11)
    """
    last = information(min(budget, 0.98 * items), items)
    return np.asarray(_FLAT * np.sqrt(last / information(labels, items)), dtype=np.float64)


def mixture_z(
    labels: Floats | float, items: float = np.inf, *, best_at: float = 500.0, alpha: float = 0.08
) -> Floats:
    """Return the quantile that holds at every label for ever; alpha 0.08 is 4 % on one side.

    Examples
    --------
    >>> mixture_z(500.0).round(2).item()
    2.85
    """
    t = information(labels, items)
    cost = -2 * np.log(alpha)
    rho = (cost + np.log(cost + 1)) / best_at
    return np.asarray(
        np.sqrt(2 * (t * rho + 1) / (t * rho) * np.log(np.sqrt(t * rho + 1) / alpha)),
        dtype=np.float64,
    )
