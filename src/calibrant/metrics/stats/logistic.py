"""Small weighted logistic regressions with a ridge."""

import numpy as np
from scipy import special

from calibrant.core.arrays import Floats

_FREE = 1e-6
_STEPS = 100
_FAR, _NEAR = 0.02, 1e-7
# Rows that are all but certain still bend the cost a little.
_LEAST = 1e-9


def intercept_free(design: Floats, ridge: float, free: float = _FREE) -> Floats:
    """Return the penalty of each column: `ridge`, and next to none on the first, which is 1."""
    return np.concatenate([[free], np.full(design.shape[1] - 1, ridge)])


def ridge_logistic(
    design: Floats,
    outcome: Floats,
    penalty: Floats,
    *,
    weights: Floats | None = None,
    gram: Floats | None = None,
) -> Floats:
    """Return the coefficients of a logistic regression.

    Parameters
    ----------
    design
        One row per answer; the first column is 1.
    outcome
        0 or 1 per row.
    penalty
        Per column, on its square, on the scale of the summed log-likelihood.
    weights
        Of the rows, or None.
    gram
        ``design.T @ design``, where it is known already; without weights.

    Examples
    --------
    >>> x = np.column_stack([np.ones(4), [-1.0, -1.0, 1.0, 1.0]])
    >>> penalty = intercept_free(x, 1.0)
    >>> ridge_logistic(x, np.array([0.0, 0.0, 1.0, 1.0]), penalty)[1:].round(2).tolist()
    [1.04]
    """
    row = np.ones(len(design)) if weights is None else weights
    beta = np.zeros(design.shape[1])

    def cost(at: Floats) -> float:
        odds = design @ at
        return float(row @ (np.logaddexp(0, odds) - outcome * odds) + penalty @ at**2 / 2)

    # At 0 every row has the weight 1/4.
    start = (design * row[:, None]).T @ design if gram is None else gram
    curvature = 0.25 * start + np.diag(penalty)
    largest = 0.0
    for _ in range(_STEPS):
        rate = special.expit(design @ beta)
        if largest > _FAR:
            weight = row * (rate * (1 - rate) + _LEAST)
            curvature = (design * weight[:, None]).T @ design + np.diag(penalty)
        # The gradient is exact in each step; a curvature from nearby only costs a further step.
        gradient = design.T @ (row * (outcome - rate)) - penalty * beta
        step = np.linalg.solve(curvature, gradient)
        largest = float(np.abs(step).max())
        # A long step may lead uphill.
        while largest > 1 and cost(beta + step) > cost(beta):
            step, largest = step / 2, largest / 2
        beta = beta + step
        if largest < _NEAR:
            break
    return beta


def logistic_fit(features: Floats, y: Floats, w: Floats, penalty: float) -> tuple[float, Floats]:
    """Return intercept and slopes of a weighted logistic regression with a small ridge.

    Columns are standardised; the ridge is per row, on all coefficients, so that outcomes without
    variation have a finite fit too.
    """
    centre = np.average(features, axis=0, weights=w)
    scale = np.sqrt(np.average((features - centre) ** 2, axis=0, weights=w))
    scale = np.where(scale > 0, scale, 1.0)
    design = np.column_stack([np.ones(len(y)), (features - centre) / scale])
    beta = ridge_logistic(design, y, np.full(design.shape[1], penalty * w.sum()), weights=w)
    slopes = beta[1:] / scale
    return float(beta[0] - slopes @ centre), slopes
