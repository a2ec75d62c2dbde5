"""Sums of rows over a fine grid of cells: they merge exactly, by addition."""

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

    def places(self, values: Array) -> Ints:
        """Return where values lie, in units of 2^-20 cells.

        Rounding may carry a product over an edge between bins: each value is put on the side of the
        nearest edge on which it is, in the precision of the values.
        """
        exact, width = values.astype(np.float64, copy=False), 1 << (self.shift + OFFSET_BITS)
        edge = np.rint(exact * self.coarse)
        edge -= values < (edge / self.coarse).astype(values.dtype, copy=False)
        edge *= width
        place = np.maximum(np.floor(exact * (self.cells << OFFSET_BITS)), edge)
        edge += width - 1
        return np.minimum(place, edge, out=place).astype(np.int64)

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

    def __add__(self, other: CellSums) -> CellSums:
        """Return the sums of the rows of both."""
        names = self.__struct_fields__
        return CellSums(*(getattr(self, name) + getattr(other, name) for name in names))

    def confidence_sums(self, grid: CellGrid) -> Floats:
        """Return the sum of confidences per outcome and cell."""
        place = np.arange(grid.stride)
        return (self.rows * place + self.offsets * 2.0**-OFFSET_BITS) / grid.cells


def cell_sums(confidence: Array, correct: Array, grid: CellGrid) -> CellSums:
    """Return the sums of checked rows: confidences in [0, 1], outcomes 0 or 1.

    Examples
    --------
    >>> cell_sums(np.array([0.2, 0.9]), np.array([0, 1]), cell_grid(15)).rows.sum(axis=1)
    array([1, 1])
    """
    place = grid.places(confidence)
    cell = (place >> OFFSET_BITS) + np.multiply(correct, grid.stride, dtype=np.int64)
    place &= (1 << OFFSET_BITS) - 1
    rows = np.bincount(cell, minlength=2 * grid.stride)
    # Whole numbers below 2^53 add up exactly as floats.
    offsets = np.bincount(cell, place, 2 * grid.stride).astype(np.int64)
    single = rows.sum(keepdims=True) * (confidence.dtype == np.float32)
    # The last cells of outcome 0 and the first of outcome 1 follow each other.
    first, end = grid.cells - STEEP_CELLS, grid.stride + STEEP_CELLS
    steep = np.flatnonzero((cell >= first) & (cell < end))
    losses = _steep_losses(confidence[steep].astype(np.float64), correct[steep] == 1)
    return CellSums(rows.reshape(2, -1), offsets.reshape(2, -1), *losses, single)


def _steep_losses(confidence: Floats, right: Array) -> tuple[Ints, Ints, Ints]:
    """Return by outcome the logarithmic loss, its square, and how many were certain and wrong."""
    with np.errstate(divide="ignore"):
        loss = np.where(right, -np.log(confidence), -np.log1p(-confidence))
    certain = np.isinf(loss)
    loss[certain] = 0.0
    columns = np.rint(loss / LOSS_UNIT), np.rint(loss**2 / SQUARE_UNIT), certain
    losses, squares, wrong = (np.bincount(right, each, 2).astype(np.int64) for each in columns)
    return losses, squares, wrong
