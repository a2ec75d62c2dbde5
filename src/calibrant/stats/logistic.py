"""A small weighted logistic regression."""

from __future__ import annotations

import numpy as np
from scipy import special

from calibrant.core.arrays import Floats


def logistic_fit(features: Floats, y: Floats, w: Floats, penalty: float) -> tuple[float, Floats]:
    """Return intercept and slopes of a weighted logistic regression with a small ridge.

    Newton steps with halving on standardised columns; the ridge is per row, on all
    coefficients, so that outcomes without variation have a finite fit too.
    """
    centre = np.average(features, axis=0, weights=w)
    scale = np.sqrt(np.average((features - centre) ** 2, axis=0, weights=w))
    scale = np.where(scale > 0, scale, 1.0)
    design = np.column_stack([np.ones(len(y)), (features - centre) / scale])
    total = w.sum()
    beta = np.zeros(design.shape[1])

    def loss(at: Floats) -> float:
        eta = design @ at
        return float(w @ (np.logaddexp(0, eta) - y * eta) / total + penalty / 2 * (at @ at))

    current = loss(beta)
    for _ in range(100):
        rate = special.expit(design @ beta)
        gradient = design.T @ (w * (rate - y)) / total + penalty * beta
        curvature = (design * (w * rate * (1 - rate))[:, None]).T @ design / total
        step = np.linalg.solve(curvature + penalty * np.eye(beta.size), gradient)
        size = 1.0
        while size > 1e-8 and loss(beta - size * step) > current:
            size /= 2
        beta = beta - size * step
        improved = loss(beta)
        if current - improved <= 1e-14:
            break
        current = improved
    slopes = beta[1:] / scale
    return float(beta[0] - slopes @ centre), slopes
