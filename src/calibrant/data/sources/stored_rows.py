"""All columns of all rows by their places: in memory, or in the parts of a file."""

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import polars as pl

# More rows of one part are chosen from the whole part, fewer are read one by one.
_MANY = 200


class StoredRows:
    """Rows that are read where they are asked for.

    Parameters
    ----------
    parts
        Parts in the order of places.
    heights
        Rows of each part.

    Examples
    --------
    >>> parts = [pl.LazyFrame({"a": [1, 2]}), pl.LazyFrame({"a": [3, 4, 5]})]
    >>> StoredRows(parts, [2, 3]).at([4, 0])["a"].to_list()
    [5, 1]
    """

    def __init__(self, parts: Sequence[pl.LazyFrame], heights: Sequence[int]) -> None:
        self._parts = parts
        self._starts = [0, *accumulate(heights)]

    def at(self, places: Sequence[int]) -> pl.DataFrame:
        """Return the rows at these places, in their order."""
        request = np.asarray(places)
        inverse = np.searchsorted(self._starts, request, side="right") - 1
        lazy, order = list[pl.LazyFrame](), list[np.ndarray]()
        for number in np.unique(inverse):
            positions = np.flatnonzero(inverse == number)
            part, offsets = self._parts[number], request[positions] - self._starts[number]
            if positions.size > _MANY:
                lazy.append(part.select(pl.all().gather(offsets)))
            else:
                lazy += [part.slice(offset, 1) for offset in offsets]
            order.append(positions)
        rows = pl.concat(pl.collect_all(lazy))
        return rows[np.argsort(np.concatenate(order))]

    def stretch(self, start: int, size: int) -> pl.LazyFrame:
        """Return rows that follow each other, within one part: fewer than asked at its end."""
        number = int(np.searchsorted(self._starts, start, side="right")) - 1
        return self._parts[number].slice(start - self._starts[number], size)

    def whole(self, *columns: str) -> pl.DataFrame:
        """Return all rows, with some columns or all."""
        target_names = columns or (pl.all(),)
        return pl.concat(pl.collect_all(part.select(target_names) for part in self._parts))
