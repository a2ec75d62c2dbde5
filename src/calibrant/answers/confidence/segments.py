"""Reductions over runs of equal unit: the loops that are not written in Python."""

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Floats, Ints, Mask


def count_by(group: Ints, size: int) -> Ints:
    """Return how many rows each group has."""
    return np.bincount(group, minlength=size).astype(np.int64, copy=False)


def sum_by(group: Ints, values: npt.NDArray[np.floating] | Mask, size: int) -> Floats:
    """Return the sum of `values` per group; a NaN makes its group NaN."""
    return np.bincount(group, weights=values, minlength=size).astype(np.float64, copy=False)


def mean_by(group: Ints, values: Floats, size: int) -> Floats:
    """Return the mean per group over values that are known; NaN where none is.

    Examples
    --------
    >>> mean_by(np.array([0, 0, 1]), np.array([0.2, 0.4, np.nan]), 2).round(1).tolist()
    [0.3, nan]
    """
    finite = ~np.isnan(values)
    return ratio(sum_by(group, np.where(finite, values, 0.0), size), sum_by(group, finite, size))


def ratio(above: Array, below: Array) -> Floats:
    """Return the quotient; NaN or infinite, without a warning, where `below` is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        quotient: Floats = above / below
    return quotient


def weighted_mean(group: Ints, values: Floats, weight: Floats, size: int) -> Floats:
    """Return the weighted mean per group; NaN where there is no weight."""
    return ratio(sum_by(group, weight * values, size), sum_by(group, weight, size))


def first_index(group: Ints, mask: Mask, size: int) -> Ints:
    """Return the first row of each group where `mask` holds, -1 where it never does.

    Examples
    --------
    >>> first_index(np.array([0, 0, 1]), np.array([False, True, False]), 2).tolist()
    [1, -1]
    """
    first = np.full(size, -1, dtype=np.int64)
    rows = np.flatnonzero(mask)[::-1]  # written backwards, so the first row is written last
    first[group[rows]] = rows
    return first


def first_argmax(
    values: npt.NDArray[np.floating] | Ints, group: Ints, mask: Mask, size: int
) -> Ints:
    """Return the row of the largest value per group, the first one among equals; -1 for none.

    Examples
    --------
    >>> group = np.array([0, 0, 0, 1])
    >>> first_argmax(np.array([1.0, 3.0, 3.0, 5.0]), group, np.ones(4, bool), 2).tolist()
    [1, 3]
    """
    usable = mask & ~np.isnan(values)
    best = np.full(size, -np.inf)
    np.maximum.at(best, group[usable], values[usable])
    return first_index(group, usable & (values == best[group]), size)


def gather(values: npt.NDArray[np.floating], rows: Ints) -> Floats:
    """Return ``values[rows]`` with NaN where the row is -1.

    Examples
    --------
    >>> gather(np.array([0.5, 1.0]), np.array([1, -1])).tolist()
    [1.0, nan]
    """
    return np.append(values, np.nan)[rows]
