"""Ridge regression, linear and logistic, with a free intercept in the first column."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from calibrant.core.arrays import Floats

_FREE = 1e-6
_STEPS = 50
_FAR, _NEAR = 0.02, 1e-7


def ridge_logistic(
    design: Floats, outcome: Floats, ridge: float, *, gram: Floats | None = None
) -> Floats:
    """Return the coefficients of a logistic regression; the first column is not penalised.

    Parameters
    ----------
    design
        One row per answer; the first column is 1.
    outcome
        0 or 1 per row.
    ridge
        Penalty on the sum of squares, on the scale of the summed log-likelihood.
    gram
        ``design.T @ design``, where it is known already.

    Examples
    --------
    >>> x = np.column_stack([np.ones(4), [-1.0, -1.0, 1.0, 1.0]])
    >>> ridge_logistic(x, np.array([0.0, 0.0, 1.0, 1.0]), 1.0)[1:].round(2).tolist()
    [1.04]
    """
    penalty = np.full(design.shape[1], ridge)
    penalty[0] = _FREE
    beta = np.zeros(design.shape[1])
    # At 0 every row has the weight 1/4.
    curvature = 0.25 * (design.T @ design if gram is None else gram) + np.diag(penalty)
    largest = 0.0
    for _ in range(_STEPS):
        rate = expit(design @ beta)
        if largest > _FAR:
            weight = rate * (1 - rate) + 1e-6
            curvature = (design * weight[:, None]).T @ design + np.diag(penalty)
        # The gradient is exact in each step; a curvature from nearby only costs a further step.
        step = np.linalg.solve(curvature, design.T @ (outcome - rate) - penalty * beta)
        beta = beta + step
        largest = float(np.abs(step).max())
        if largest < _NEAR:
            break
    return beta


def ridge_linear(design: Floats, targets: Floats, ridge: float) -> Floats:
    """Return the coefficients of a linear regression, one column per column of `targets`.

    Examples
    --------
    >>> x = np.column_stack([np.ones(4), [0.0, 1.0, 2.0, 3.0]])
    >>> ridge_linear(x, np.array([[1.0], [3.0], [5.0], [7.0]]), 1e-9).round(3).ravel().tolist()
    [1.0, 2.0]
    """
    gram = design.T @ design
    penalty = np.full(design.shape[1], ridge)
    penalty[0] = _FREE
    gram[np.diag_indices_from(gram)] += penalty
    return np.asarray(np.linalg.solve(gram, design.T @ targets), dtype=np.float64)
