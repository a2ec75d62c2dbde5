"""Small regressions: isotonic, logistic with a ridge, Bradley and Terry's strengths."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from scipy import special
from scipy.special import expit

from calibrant.core.arrays import Floats, Indices
from calibrant.metrics.stats.intervals import MeanError

# Curves of real answers take 4 to 15 passes over what is left; a long rise before a fall takes one
# for each of its values.
_MOST_PASSES = 40


def rising_fit(values: Floats, weights: Floats) -> tuple[Floats, Indices]:
    """Return the rising fit to values, and where its blocks begin.

    Examples
    --------
    >>> fitted, starts = rising_fit(np.array([1.0, 3.0, 2.0]), np.ones(3))
    >>> fitted.tolist(), starts.tolist()
    ([1.0, 2.5, 2.5], [0, 1])
    """
    means, starts = _pooled(values, weights)
    return np.repeat(means, np.diff(starts, append=values.size)), starts


def _pooled(values: Floats, weights: Floats) -> tuple[Floats, Indices]:
    """Return the means of the blocks of the rising fit, and where they begin."""
    means, mass, total = values, weights, values * weights
    starts = np.arange(values.size)
    for _ in range(_MOST_PASSES):
        rises = np.flatnonzero(np.append(means[:1] > -np.inf, means[1:] > means[:-1]))
        if rises.size == means.size:
            return means, starts
        # Each block takes all that follow it without rising: any order of pooling ends alike.
        total, mass = np.add.reduceat(total, rises), np.add.reduceat(mass, rises)
        means, starts = total / mass, starts[rises]
    # Loaded here: it takes a third of a second, a hundred times what the passes take.
    from scipy.optimize import isotonic_regression

    fit = isotonic_regression(values, weights=weights)
    starts = np.asarray(fit.blocks[:-1])
    return fit.x[starts], starts


def isotonic_fit(weight: Floats, outcome: Floats) -> Floats:
    """Return the rising fit to outcome/weight; cells without weight take a neighbour's value."""
    filled = weight > 0
    if filled.all():
        return rising_fit(outcome / weight, weight)[0]
    fitted, _ = rising_fit(outcome[filled] / weight[filled], weight[filled])
    return np.asarray(fitted[np.clip(np.cumsum(filled) - 1, 0, None)])


def isotonic_fits(weight: Floats, outcomes: Floats) -> Floats:
    """Return the rising fit to every row of `outcomes`.

    One regression serves all rows: rates of later rows are lifted above all earlier ones, so that
    no block of equal fits can reach across.

    Parameters
    ----------
    weight
        Above 0, shape (k,), or one that stretches to that of `outcomes`.
    outcomes
        Sums of outcomes between 0 and 1, shape (..., k).

    Examples
    --------
    >>> isotonic_fits(np.ones(3), np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 1.0]])).tolist()
    [[0.0, 0.5, 0.5], [0.5, 0.5, 1.0]]
    """
    above = 2.0 * np.arange(outcomes.size // outcomes.shape[-1])
    lifted = (outcomes / weight + above.reshape(*outcomes.shape[:-1], 1)).ravel()
    weights = np.broadcast_to(weight, outcomes.shape).ravel()
    first = weight.flat[0]
    alike = bool((weight == first).all())
    _, starts = _pooled(lifted, weights)
    lengths = np.diff(starts, append=lifted.size)
    mass = lengths * first if alike else np.add.reduceat(weights, starts)
    # From the sums themselves: lifted rates have lost their last digits.
    means = np.add.reduceat(outcomes.ravel(), starts) / mass
    return np.repeat(means, lengths).reshape(outcomes.shape)


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


_PAIR_RIDGE = 1e-9
# A model that always wins has no finite strength: log odds beyond this are said to be open.
_FARTHEST = 15.0


class Strengths(Struct, frozen=True):
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

    def combined(self, weight: Floats, n: int | None = None) -> MeanError:
        """Return a sum of strengths, each times its weight, which `n` labels are about."""
        square = float(weight @ self.covariance @ weight)
        return MeanError(float(weight @ self.value), max(square, 0.0) ** 0.5, self.df, n)


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
    models, finite = int(sides.max()) + 1, np.isfinite(wins)
    each = np.eye(models)[:, 1:]
    x = each[sides[:, 0]] - each[sides[:, 1]]
    miss = np.where(finite, wins - rate, 0.0) / finite.mean()
    beta = ridge_logistic(x, rate + miss, np.full(models - 1, _PAIR_RIDGE))
    if np.abs(beta).max() > _FARTHEST:
        return None
    p = expit(x @ beta)
    bread = np.linalg.inv((x * (p * (1 - p))[:, None]).T @ x + _PAIR_RIDGE * np.eye(models - 1))
    by_unit = np.zeros((int(unit.max()) + 1, models - 1))
    np.add.at(by_unit, unit, x * (rate + miss - p)[:, None])
    used = np.unique(unit[finite]).size
    growth = used / max(used - (models - 1), 1)
    covariance = np.pad(bread @ (by_unit.T @ by_unit) @ bread * growth, (1, 0))
    return Strengths(np.append(0.0, beta), covariance, max(used - 1.0, 1.0))
