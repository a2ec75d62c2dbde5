"""Units: the things that were sampled, for example questions with many rows each."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.core import InputError

__all__ = ["Units", "unit_codes", "unit_sums"]

Array: TypeAlias = NDArray[Any]
FloatArray: TypeAlias = NDArray[np.float64]


class Units:
    """Rows and the units they belong to; `codes` is None where every row is its own unit."""

    __slots__ = ("codes", "count", "rows")

    def __init__(self, codes: NDArray[np.intp] | None, count: int, rows: int) -> None:
        self.codes = codes
        self.count = count
        self.rows = rows


def unit_codes(units: ArrayLike | None, rows: int) -> Units:
    """Return the rows' unit numbers, strings in order of first appearance, integers rising.

    Examples
    --------
    >>> unit_codes(["b", "a", "b"], 3).codes.tolist()
    [0, 1, 0]
    >>> unit_codes([3, 1, 2], 3).codes is None
    True
    """
    if units is None:
        return Units(None, rows, rows)
    values = np.asarray(units)
    if values.shape != (rows,):
        raise InputError(f"units have one value per row, got {values.size} for {rows} rows")
    if values.dtype.kind in "biu":
        known, codes = np.unique(values, return_inverse=True)
        count = int(known.size)
    else:
        # A dictionary numbers strings several times faster than sorting them.
        table: dict[Any, int] = {}
        codes = np.fromiter(
            (table.setdefault(value, len(table)) for value in values.tolist()), np.intp, rows
        )
        count = len(table)
    return Units(None if count == rows else codes.astype(np.intp, copy=False), count, rows)


def unit_sums(values: FloatArray, units: Units) -> FloatArray:
    """Return the sum of `values` in each unit."""
    if units.codes is None:
        return values
    return np.bincount(units.codes, values, units.count).astype(np.float64, copy=False)
