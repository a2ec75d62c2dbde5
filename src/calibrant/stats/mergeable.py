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
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.core.errors import InputError
from calibrant.stats.binning import width_edges

__all__ = ["MOST_BLOCKS", "CellGrid", "CellSums", "SumTable", "cell_grid"]

Array: TypeAlias = NDArray[Any]
FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

# Positions inside a cell are kept to 2^-20 of its width, about 1.6e-11 of confidence.
OFFSET_BITS = 20
MOST_CELLS = 65_536
# The verification block works on 60 cells, so the grid nests in these too.
BASE = 60
# Near certainty that proved wrong the logarithm is steep: rows in this many outermost cells add
# their own loss instead of their cell's.
STEEP_CELLS = 64
LOSS_UNIT, SQUARE_UNIT = 2.0**-20, 2.0**-10
# A count and a sum of positions share one 64-bit number while fewer than 2^21 rows are added.
COUNT_SHIFT, MOST_PACKED = 42, 1 << 21
PIECE = 32_768
# A block of sums takes 3 MB; so many stay below 1 GB with two threads.
MOST_BLOCKS = 128


@dataclass(frozen=True, slots=True)
class CellGrid:
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


@dataclass(slots=True)
class CellSums:
    """Sums of one block, first axis by outcome (0, 1); they merge by addition, exactly.

    `rows` and `offsets` run over the cells. `loss` and `squares` sum the logarithmic loss and its
    square over rows in the steep cells, `certain` counts rows that were certain and wrong.
    `single` counts rows in single precision: at a bin edge they are moved onto it.
    """

    rows: IntArray
    offsets: IntArray
    loss: IntArray
    squares: IntArray
    certain: IntArray
    single: IntArray

    @classmethod
    def empty(cls, grid: CellGrid) -> CellSums:
        """Return the sums of no rows."""
        shape = (2, grid.stride)
        small = [np.zeros(size, np.int64) for size in (2, 2, 2, 1)]
        return cls(np.zeros(shape, np.int64), np.zeros(shape, np.int64), *small)

    def copy(self) -> CellSums:
        """Return sums of their own that may be added to."""
        return CellSums(*(getattr(self, name).copy() for name in self.__slots__))

    def add(self, other: CellSums) -> None:
        """Take in the sums of further rows."""
        for name in self.__slots__:
            mine: IntArray = getattr(self, name)
            mine += getattr(other, name)

    def confidence_sums(self, grid: CellGrid) -> FloatArray:
        """Return the sum of confidences per outcome and cell."""
        place = np.arange(grid.stride)
        return (self.rows * place + self.offsets * 2.0**-OFFSET_BITS) / grid.cells


class SumTable:
    """Sums of many blocks, filled batch by batch; blocks are numbered as they first appear."""

    def __init__(self, grid: CellGrid) -> None:
        self.grid = grid
        self._numbers: dict[tuple[str, ...], int] = {}
        self._packed = np.zeros(0, np.int64)
        self._pending = 0
        self._totals: list[CellSums] = []
        self._edges: dict[np.dtype[Any], Array] = {}
        self._room = _Room()

    @property
    def _used(self) -> int:
        return 2 * self.grid.stride * len(self._numbers)

    def number(self, key: tuple[str, ...]) -> int:
        """Return the number of the block `key`, a new one where it is new."""
        known = self._numbers.get(key)
        if known is not None:
            return known
        if len(self._numbers) == MOST_BLOCKS:
            raise InputError(
                f"there are more than {MOST_BLOCKS} blocks (models x methods x groups), and each "
                "takes 3 MB in a streamed audit",
                hint="leave out a --by column with many values, or audit the models apart",
            )
        self._numbers[key] = len(self._numbers)
        self._totals.append(CellSums.empty(self.grid))
        if self._used > self._packed.size:
            # Twice the room, so that many blocks are not copied as many times.
            more = np.zeros(2 * self._used, np.int64)
            more[: self._packed.size] = self._packed
            self._packed = more
        return self._numbers[key]

    def add(
        self, confidence: Array, correct: Array, blocks: Array, codes: Array | None = None
    ) -> None:
        """Add checked rows: confidences in [0, 1], outcomes 0 or 1.

        Row i belongs to the block number ``blocks[codes[i]]``; without codes, all to
        ``blocks[0]``.
        """
        lanes = 2 * blocks.astype(np.int64)
        # Codes often number the blocks already; then no table is looked up.
        same = bool((blocks == np.arange(blocks.size)).all())
        for start in range(0, confidence.shape[0], PIECE):
            piece = slice(start, start + PIECE)
            lane = self._room.lane[: confidence[piece].shape[0]]
            if codes is None:
                lane[:] = lanes[0]
            elif same:
                np.multiply(codes[piece], 2, out=lane, casting="unsafe")
            else:
                np.take(lanes, codes[piece], out=lane, mode="clip")
            np.add(lane, correct[piece], out=lane, casting="unsafe")
            self._add_piece(confidence[piece], correct[piece], lane)

    def sums(self) -> Mapping[tuple[str, ...], CellSums]:
        """Return the sums by block."""
        self._flush()
        return {key: self._totals[number] for key, number in self._numbers.items()}

    def _add_piece(self, values: Array, correct: Array, lane: IntArray) -> None:
        size = values.shape[0]
        if self._pending + size >= MOST_PACKED:
            self._flush()
        self._pending += size
        room = self._room
        place, packed = room.place[:size], room.packed[:size]
        self._place(values, place, packed, room.product[:size], room.flag[:size])
        np.bitwise_and(place, (1 << OFFSET_BITS) - 1, out=packed)
        np.bitwise_or(packed, 1 << COUNT_SHIFT, out=packed)
        np.right_shift(place, OFFSET_BITS, out=place)
        self._add_steep(values, correct, place, lane)
        if values.dtype != np.float64:
            for number, rows in enumerate(np.bincount(lane >> 1)):
                self._totals[number].single += rows
        np.multiply(lane, self.grid.stride, out=lane)
        np.add(place, lane, out=place)
        np.add.at(self._packed, place, packed)

    def _place(
        self, values: Array, place: IntArray, near: IntArray, product: FloatArray, flag: Array
    ) -> None:
        """Write the cell and the position inside it as one whole number of 2^-20 cells."""
        grid = self.grid
        np.multiply(values, float(grid.cells << OFFSET_BITS), out=product, dtype=np.float64)
        np.copyto(place, product, casting="unsafe")
        # Rounding may carry a value over an edge between bins. Only values this close to one can
        # be wrong; they are compared with the edge itself, in the dtype of the values.
        slack = 2 if values.dtype == np.float64 else 4096
        width = grid.shift + OFFSET_BITS
        np.add(place, slack, out=near)
        np.bitwise_and(near, (1 << width) - 1, out=near)
        np.less(near, 2 * slack, out=flag)
        if not flag.any():
            return
        rows = np.flatnonzero(flag)
        close, edges = values[rows], self._edges_of(values.dtype)
        edge = (place[rows] + slack) >> width
        lower = np.where(close < edges[edge], edge - 1, edge) << width
        place[rows] = np.clip(place[rows], lower, lower + (1 << width) - 1)

    def _edges_of(self, dtype: np.dtype[Any]) -> Array:
        if dtype not in self._edges:
            self._edges[dtype] = width_edges(self.grid.coarse, dtype)
        return self._edges[dtype]

    def _add_steep(self, values: Array, correct: Array, cell: IntArray, lane: IntArray) -> None:
        """Add the logarithmic loss of rows that were nearly certain and wrong."""
        size, grid = values.shape[0], self.grid
        miss, flag = self._room.product[:size], self._room.flag[:size]
        np.subtract(values, correct, out=miss, dtype=np.float64)
        np.abs(miss, out=miss)
        np.greater(miss, 1 - (STEEP_CELLS + 1) / grid.cells, out=flag)
        if not flag.any():
            return
        rows = np.flatnonzero(flag)
        right = correct[rows].astype(np.bool_)
        steep = np.where(right, cell[rows] < STEEP_CELLS, cell[rows] >= grid.cells - STEEP_CELLS)
        rows, right = rows[steep], right[steep]
        given = values[rows].astype(np.float64)
        certain = given == np.where(right, 0.0, 1.0)
        with np.errstate(divide="ignore"):
            loss = np.where(right, -np.log(given), -np.log1p(-given))
        loss[certain] = 0.0
        for number, ours in self._lanes(lane[rows]):
            total, outcome = self._totals[number >> 1], number & 1
            total.certain[outcome] += int(certain[ours].sum())
            total.loss[outcome] += int(np.rint(loss[ours] / LOSS_UNIT).astype(np.int64).sum())
            squares = np.rint(loss[ours] ** 2 / SQUARE_UNIT).astype(np.int64)
            total.squares[outcome] += int(squares.sum())

    @staticmethod
    def _lanes(lane: IntArray) -> list[tuple[int, Array]]:
        return [(int(number), lane == number) for number in np.unique(lane)]

    def _flush(self) -> None:
        if not self._pending:
            return
        packed = self._packed[: self._used].reshape(-1, 2, self.grid.stride)
        for total, part in zip(self._totals, packed, strict=True):
            total.rows += part >> COUNT_SHIFT
            total.offsets += part & ((1 << COUNT_SHIFT) - 1)
        packed[:] = 0
        self._pending = 0


class _Room:
    """Buffers of one piece each, made once per table."""

    def __init__(self) -> None:
        self.place, self.packed, self.lane = (np.empty(PIECE, np.int64) for _ in range(3))
        self.product = np.empty(PIECE)
        self.flag = np.empty(PIECE, np.bool_)
