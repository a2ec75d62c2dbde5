"""Statistics of (confidence, outcome) rows that merge exactly, whatever the order of the parts.

Every row falls into one cell of a fine grid over [0, 1]. A cell keeps two whole numbers per
outcome: how many rows it holds, and the sum of their positions inside it in units of 2^-20 of
its width. Whole numbers add up without rounding, so the parts of a table give the same sums on
one thread, on twenty machines, and after a machine was lost and its parts were read again.

The grid nests in the bins of the calibration error: `coarse` cells (a multiple of the bins and of
60) are placed by the exact rule of edges, and each is halved `shift` times.
"""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct

from calibrant.core.arrays import Array, Floats, Ints
from calibrant.core.errors import InputError
from calibrant.core.hints import Hint

# Positions inside a cell are kept to 2^-20 of its width, about 1.6e-11 of confidence.
OFFSET_BITS = 20
MOST_CELLS = 65_536
# The verification block works on 60 cells, so the grid nests in these too.
BASE = 60
# Near certainty that proved wrong the logarithm is steep: rows in this many outermost cells add
# their own loss instead of their cell's.
STEEP_CELLS = 64
LOSS_UNIT, SQUARE_UNIT = 2.0**-20, 2.0**-10
# A block of sums takes up to 4 MB; so many stay near 1 GB with two threads.
MOST_BLOCKS = 128


class CellGrid(Struct, frozen=True):
    """A fine grid over [0, 1]; a confidence of exactly 1 has a cell of its own, the last."""

    bins: int
    coarse: int
    shift: int

    @property
    def cells(self) -> int:
        """Number of cells of equal width."""
        return self.coarse << self.shift

    @property
    def stride(self) -> int:
        """Number of cells with that of confidence 1."""
        return self.cells + 1

    def by_bin(self, values: Array, bins: int) -> Array:
        """Return the sums over `bins` equal bins of sums per cell (last axis).

        Examples
        --------
        >>> grid = cell_grid(15)
        >>> grid.by_bin(np.ones(grid.stride), 4)
        array([15360., 15360., 15360., 15361.])
        """
        body = values[..., :-1].reshape(*values.shape[:-1], bins, self.cells // bins)
        sums = body.sum(axis=-1)
        sums[..., -1] += values[..., -1]
        return np.asarray(sums)


def cell_grid(bins: int) -> CellGrid:
    """Return the grid for a number of bins.

    Examples
    --------
    >>> cell_grid(15).cells, cell_grid(7).cells
    (61440, 53760)
    """
    coarse = math.lcm(bins, BASE)
    if not bins >= 1 or coarse > MOST_CELLS:
        raise InputError(
            f"a streamed audit takes bins whose common multiple with 60 is at most {MOST_CELLS:,}, "
            f"got {bins!r} (common multiple {coarse:,})",
            hint="take a number such as 10, 15, 20, 100 or 1000",
        )
    return CellGrid(bins, coarse, (MOST_CELLS // coarse).bit_length() - 1)


def require_few(blocks: int) -> None:
    """Raise where there are more blocks than a streamed audit has memory for."""
    if blocks > MOST_BLOCKS:
        raise InputError(
            f"there are more than {MOST_BLOCKS} blocks (models x methods x groups), and each "
            "takes 4 MB in a streamed audit",
            hint=Hint("leave out a column of {by} with many values, or audit the models apart"),
        )


class CellSums(Struct):
    """Sums of one block, first axis by outcome (0, 1); they merge by addition, exactly.

    `rows` and `offsets` run over the cells. `loss` and `squares` sum the logarithmic loss and its
    square over rows in the steep cells, `certain` counts rows that were certain and wrong.
    `single` counts rows in single precision: at a bin edge they are moved onto it.
    """

    rows: Ints
    offsets: Ints
    loss: Ints
    squares: Ints
    certain: Ints
    single: Ints

    @classmethod
    def empty(cls, grid: CellGrid) -> CellSums:
        """Return the sums of no rows."""
        shape = (2, grid.stride)
        small = [np.zeros(size, np.int64) for size in (2, 2, 2, 1)]
        return cls(np.zeros(shape, np.int64), np.zeros(shape, np.int64), *small)

    def copy(self) -> CellSums:
        """Return sums of their own that may be added to."""
        return CellSums(*(getattr(self, name).copy() for name in self.__struct_fields__))

    def add(self, other: CellSums) -> None:
        """Take in the sums of further rows."""
        for name in self.__struct_fields__:
            mine: Ints = getattr(self, name)
            mine += getattr(other, name)

    def confidence_sums(self, grid: CellGrid) -> Floats:
        """Return the sum of confidences per outcome and cell."""
        place = np.arange(grid.stride)
        return (self.rows * place + self.offsets * 2.0**-OFFSET_BITS) / grid.cells
