"""Isotonic regression of outcomes on confidences, from rows or from sums over cells."""

import numpy as np

from calibrant.core.arrays import Array, Floats, Indices
from calibrant.metrics.stats.ranking import DistinctSums, sums_in_order

# Curves of real answers take 4 to 15 passes over what is left; a long rise before a fall takes one
# for each of its values.
_MOST_PASSES = 40


def pooled_sums(
    confidence: Array, correct: Array, weights: Array | None
) -> tuple[DistinctSums, float, float]:
    """Return the blocks of the isotonic fit, and the sums of w c^2 and of w c y over all rows.

    Pooling what violates the order piece by piece and then the pieces gives the same blocks as
    pooling all at once, so that only the blocks are ever held. A block's confidence is its mean.

    Examples
    --------
    >>> blocks, *_ = pooled_sums(np.array([0.1, 0.4, 0.6, 0.9]), np.array([0, 1, 0, 1]), None)
    >>> blocks.weight.tolist(), blocks.outcome.tolist()
    ([1.0, 2.0, 1.0], [0.0, 1.0, 1.0])
    """
    squares = products = 0.0
    parts = []
    for sums in sums_in_order(confidence, correct, weights):
        squares += float(sums.weight @ sums.confidence**2)
        products += float(sums.confidence @ sums.outcome)
        parts.append(_blocks(sums.confidence * sums.weight, sums.weight, sums.outcome))
    mass, weight, outcome = _blocks(*map(np.concatenate, zip(*parts, strict=True)))
    return DistinctSums(mass / weight, weight, outcome), squares, products


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


def _blocks(*sums: Floats) -> list[Floats]:
    """Return the sums (of confidence, weight, outcome) over the blocks of the isotonic fit."""
    _, weight, outcome = sums
    _, starts = _pooled(outcome / weight, weight)
    return [np.add.reduceat(column, starts) for column in sums]


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
