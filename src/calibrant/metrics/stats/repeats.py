"""Rows that stand in a table several times, where no id says so: all of them, or some."""

import math
from typing import NamedTuple

import numpy as np

from calibrant.core.arrays import Array

# Fewer rows are repeated by chance too often.
LEAST_ROWS = 40
_CHANCE = 1e-3
_MOST_TIMES = 50
# Values on this grid are round: many rows share them.
_ROUND = 200
_LEAST_ODD = 20
_TWENTIETHS = 20
# So many pairs of unequal outcome must be expected for their absence to tell.
_LEAST_UNEQUAL = 7


class Repeats(NamedTuple):
    """How often every row stands there, and which rows are the second or a later one of several."""

    times: int
    again: Array


def find_repeats(confidence: Array, correct: Array) -> Repeats | None:
    """Return which rows are repeated, or None where that may be chance.

    Two signs are looked for. The counts of equal rows have a common divisor: of `d` different rows
    all counts are multiples of k with a chance of about k^-d. Or more confidences with many
    decimals have a twin than their resolution explains, and twins have the same outcome: scores of
    coarse numbers, such as shares of 7 draws, have twins of both outcomes. Rows that are repeated
    among round values alone, and not all of them, are not found.

    Parameters
    ----------
    confidence, correct
        One value per row.

    Examples
    --------
    >>> said = np.linspace(0.3, 0.9, 50)
    >>> find_repeats(np.tile(said, 3), np.ones(150)).times
    3
    >>> find_repeats(said, np.ones(50)) is None
    True
    """
    if confidence.size < LEAST_ROWS:
        return None
    # Without counts `np.unique` would load the module of masked arrays.
    outcomes = np.unique(correct, return_counts=True)[0]
    counts = np.concatenate(
        [np.unique(confidence[correct == y], return_counts=True)[1] for y in outcomes]
    )
    times = int(np.gcd.reduce(counts))
    if times > 1 and _by_chance(counts.size) <= _CHANCE:
        return Repeats(times, _place(confidence, correct) % times > 0)
    odd = np.abs(confidence * _ROUND - np.rint(confidence * _ROUND)) > 1e-6
    if _has_twins(np.asarray(confidence[odd], np.float64), correct[odd]):
        return Repeats(2, odd & (_place(confidence, correct) > 0))
    return None


def _place(confidence: Array, correct: Array) -> Array:
    """Return which of its equals a row is, in the order of the table, counted from 0."""
    rows = np.stack([confidence, correct], axis=1).astype(np.float64)
    order = np.lexsort((rows[:, 1], rows[:, 0]))
    new = np.ones(order.size, np.bool_)
    new[1:] = (np.diff(rows[order], axis=0) != 0).any(axis=1)
    place = np.empty(order.size, np.intp)
    # The sort is stable.
    place[order] = np.arange(order.size) - np.flatnonzero(new)[np.cumsum(new) - 1]
    return place


def _by_chance(different: int) -> float:
    return math.fsum(float(times) ** -different for times in range(2, _MOST_TIMES))


def _has_twins(values: Array, correct: Array) -> bool:
    """Return whether more values have a twin, of equal outcome, than chance explains."""
    if values.size < _LEAST_ODD:
        return False
    digits = next((d for d in range(2, 13) if np.abs(values.round(d) - values).max() < 1e-12), 12)
    part = np.clip((values * _TWENTIETHS).astype(np.intp), 0, _TWENTIETHS - 1)
    rows = np.bincount(part, minlength=_TWENTIETHS)
    near = rows / values.size * np.maximum(rows - 1, 0) * 10.0**-digits * _TWENTIETHS
    expected = 1 - math.exp(-float(near.sum()))
    _, first, place, counts = np.unique(
        values, return_index=True, return_inverse=True, return_counts=True
    )
    share = float((counts[place] > 1).mean())
    reach = 5 * math.sqrt(expected * (1 - expected) / values.size)
    if share <= expected + reach + 0.02:
        return False
    rate = (np.bincount(part, correct, _TWENTIETHS) / np.maximum(rows, 1))[part[first]]
    right = np.bincount(place, correct) / counts
    unequal = float(((right > 0) & (right < 1)).sum())
    by_chance = float((1 - rate**counts - (1 - rate) ** counts).sum())
    return by_chance >= _LEAST_UNEQUAL and unequal <= by_chance / 10
