"""Strengths of models from pairs (Bradley and Terry), by people's standard."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, stdtr, stdtrit

from calibrant.core.arrays import Floats, Indices

_STEPS = 50
# A model that always wins has no finite strength: log odds beyond this are said to be open.
_FARTHEST = 15.0


@dataclass(frozen=True, slots=True)
class Strengths:
    """Log odds of each model against the first, with the covariance of all.

    Parameters
    ----------
    value
        Shape (models,); that of the first is 0.
    covariance
        Shape (models, models).
    df
        Degrees of freedom.
    """

    value: Floats
    covariance: Floats
    df: float

    def difference(self, a: int, b: int) -> tuple[float, float]:
        """Return how much stronger `a` is than `b`, with its standard error."""
        v = self.covariance
        return float(self.value[a] - self.value[b]), float(np.sqrt(v[a, a] + v[b, b] - 2 * v[a, b]))

    def p_value(self, value: float, error: float) -> float:
        """Return the p-value of 'as strong as each other'."""
        return float(2 * stdtr(self.df, -abs(value) / error)) if error > 0 else 1.0

    def half_width(self, error: float, level: float = 0.95) -> float:
        """Return half the width of an interval with this standard error."""
        return float(stdtrit(self.df, (1 + level) / 2)) * error


def pair_strengths(sides: Indices, rate: Floats, wins: Floats, unit: Indices) -> Strengths | None:
    """Return strengths that people would show on pairs like these.

    Parameters
    ----------
    sides
        Codes of both models of each pair, shape (N, 2).
    rate
        Predicted chance that people prefer the first side, made without the pair's own label.
    wins
        1, 0.5 or 0 where people said so, NaN elsewhere.
    unit
        What pairs are about: those of one instruction are not independent.

    Returns
    -------
    Strengths or None
        None where a model has no finite strength.

    Notes
    -----
    The score equation is solved on ``rate + (N / n) (wins - rate)`` (the second part where there
    is a label); the covariance is the sandwich over units.
    """
    models, pairs = int(sides.max()) + 1, len(sides)
    x = np.zeros((pairs, models))
    rows = np.arange(pairs)
    x[rows, sides[:, 0]] += 1.0
    x[rows, sides[:, 1]] -= 1.0
    x = x[:, 1:]
    finite = np.isfinite(wins)
    n = int(finite.sum())
    miss = np.where(finite, wins - rate, 0.0) * pairs / n
    beta = _solved(x, rate + miss)
    if beta is None:
        return None
    p = expit(x @ beta)
    bread = np.linalg.inv((x * (p * (1 - p))[:, None]).T @ x + 1e-9 * np.eye(models - 1))
    by_unit = np.zeros((int(unit.max()) + 1, models - 1))
    np.add.at(by_unit, unit, x * (rate + miss - p)[:, None])
    used = np.unique(unit[finite]).size
    growth = used / max(used - (models - 1), 1)
    covariance = np.zeros((models, models))
    covariance[1:, 1:] = bread @ (by_unit.T @ by_unit) @ bread * growth
    return Strengths(np.append(0.0, beta), covariance, max(used - 1.0, 1.0))


def _solved(x: Floats, y: Floats) -> Floats | None:
    beta = np.zeros(x.shape[1])
    for _ in range(_STEPS):
        p = expit(x @ beta)
        curvature = (x * (p * (1 - p))[:, None]).T @ x + 1e-9 * np.eye(x.shape[1])
        step = np.linalg.solve(curvature, x.T @ (y - p))
        beta = beta + step
        if np.abs(beta).max() > _FARTHEST:
            return None
        if np.abs(step).max() < 1e-9:
            return beta
    return None
