"""Mean costs of a policy: an interval for skewed costs, and what stays inside a budget.

References
----------
Hall 1992 (removing skewness from a mean by a cubic transformation).
"""

from __future__ import annotations

import math

import numpy as np

from calibrant.core.arrays import Floats
from calibrant.core.estimate import Estimate

# Measured on cascades of real models: what is called 95 % needs the quantile of 99 %.
_QUANTILE = 2.575829
_ONE_SIDED = 1.644854
NEXT = 2000
"""Questions ahead for which an interval of the mean cost is meant."""


def cost_estimate(spent: Floats, following: int = NEXT) -> Estimate:
    """Return the mean cost with a 95 % interval for the mean of the next questions.

    A few dear questions make costs skewed, so the upper end lies further away than the lower.

    Examples
    --------
    >>> spent = np.repeat([1.0, 50.0], [95, 5])
    >>> found = cost_estimate(spent)
    >>> round(found.value - found.low, 1) < round(found.high - found.value, 1)
    True
    """
    n, mean = len(spent), float(spent.mean())
    spread = float(spent.std(ddof=1))
    if spread == 0.0:
        return Estimate(mean, mean, mean, n=n, interval="hall")
    skewness = float(((spent - mean) ** 3).mean()) / spread**3
    arm = spread / math.sqrt(n) * math.sqrt(1 + n / following)
    low = mean - arm * _unskewed(_QUANTILE, skewness, n)
    high = mean - arm * _unskewed(-_QUANTILE, skewness, n)
    return Estimate(mean, max(low, 0.0), high, n=n, interval="hall")


def _unskewed(quantile: float, skewness: float, n: int) -> float:
    root = math.sqrt(n)
    if abs(skewness) < 1e-6:
        return quantile
    inside = 1 + skewness * (quantile - skewness / (6 * root)) / root
    return 3 * root / skewness * (float(np.cbrt(inside)) - 1)


def careful_costs(
    spent: Floats, largest: Floats, budget: float, questions: int | None = None
) -> Floats:
    """Return the mean cost of each setting, raised to its upper end against the budget.

    The difference to the budget is taken question by question: a question that is dear for the
    policy is mostly dear for the largest model too.

    Parameters
    ----------
    spent
        What each setting costs, shape (settings, questions).
    largest
        What the largest model costs on the same questions.
    budget
        Share of the largest model's cost.
    questions
        Questions that make the choice, where these are a part of them.
    """
    over = spent - budget * largest
    error = over.std(axis=1, ddof=1) / math.sqrt(questions or spent.shape[1])
    return np.asarray(over.mean(axis=1) + _ONE_SIDED * error + budget * largest.mean())
