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

__all__ = ["MOST_BLOCKS", "CellGrid", "CellSums", "SumTable", "cell_grid", "require_few"]

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
PIECE = 32_768
# A place in the table is block, outcome and cell, the cell in 16 bits.
LANE_BITS = 16
# Confidences are multiplied into units of 2^-39 cells: their bits from 2^-20 on are then where the
# fraction of a float between 1 and 2 has its units of 2^-33.
SPARE_BITS = 19
FINE_BITS = OFFSET_BITS + SPARE_BITS
POSITION = (1 << FINE_BITS) - (1 << SPARE_BITS)
POSITION_UNIT, BITS_OF_ONE = 2.0**-33, 0x3FF << 52
# Positions of so many rows stay below one; more would be counted as rows.
MOST_MIXED = 8192.0
FEWEST_WAITING, MOST_WAITING, MOST_STEEP = 1 << 19, 1 << 21, 1 << 16
FULL = (1 << 64) - 1
# A block of sums takes up to 4 MB; so many stay near 1 GB with two threads.
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


def require_few(blocks: int) -> None:
    """Raise where there are more blocks than a streamed audit has memory for."""
    if blocks > MOST_BLOCKS:
        raise InputError(
            f"there are more than {MOST_BLOCKS} blocks (models x methods x groups), and each "
            "takes 4 MB in a streamed audit",
            hint="leave out a --by column with many values, or audit the models apart",
        )


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
    """Sums of many blocks, filled batch by batch; blocks are numbered as they first appear.

    Rows wait as (place in the table, weight) until there are enough for one pass of `bincount`.
    A weight is 1 plus the position inside the cell in units of 2^-33, so that one sum of floats
    holds the number of rows before the point and their positions behind it, both exactly.
    """

    def __init__(self, grid: CellGrid) -> None:
        self.grid = grid
        self._numbers: dict[tuple[str, ...], int] = {}
        self._place = np.empty(FEWEST_WAITING, np.int64)
        self._weight = np.empty(FEWEST_WAITING)
        self._waiting = 0
        self._mixed = np.zeros(0)
        self._fullest = 0.0
        self._totals: dict[int, CellSums] = {}
        self._steep: list[tuple[FloatArray, IntArray]] = []
        self._edges: dict[np.dtype[Any], Array] = {}
        self._room = _Room()

    def number(self, key: tuple[str, ...]) -> int:
        """Return the number of the block `key`, a new one where it is new."""
        known = self._numbers.get(key)
        if known is not None:
            return known
        require_few(len(self._numbers) + 1)
        self._numbers[key] = len(self._numbers)
        return self._numbers[key]

    def add(
        self, confidence: Array, correct: Array, blocks: Array, codes: Array | None = None
    ) -> None:
        """Add checked rows: confidences in [0, 1], outcomes 0 or 1.

        Row i belongs to the block number ``blocks[codes[i]]``; without codes, all to
        ``blocks[0]``.
        """
        numbers = blocks.astype(np.int32)
        # Codes often number the blocks already; then no table is looked up.
        same = bool((numbers == np.arange(numbers.size)).all())
        for start in range(0, confidence.shape[0], PIECE):
            piece = slice(start, start + PIECE)
            lane = self._room.lane[: confidence[piece].shape[0]]
            if codes is None:
                lane[:] = numbers[0]
            elif same:
                np.copyto(lane, codes[piece], casting="unsafe")
            else:
                np.take(numbers, codes[piece], out=lane, mode="clip")
            np.left_shift(lane, 1, out=lane)
            np.add(lane, correct[piece], out=lane, casting="unsafe")
            self._add_piece(confidence[piece], lane)

    def sums(self) -> Mapping[tuple[str, ...], CellSums]:
        """Return the sums by block."""
        self._count()
        self._unmix()
        self._add_losses()
        return {key: self._total(number) for key, number in self._numbers.items()}

    def _total(self, number: int) -> CellSums:
        if number not in self._totals:
            self._totals[number] = CellSums.empty(self.grid)
        return self._totals[number]

    def _add_piece(self, values: Array, lane: NDArray[np.int32]) -> None:
        size = values.shape[0]
        if self._waiting + size > self._place.size:
            self._count()
        rows = slice(self._waiting, self._waiting + size)
        self._waiting += size
        place, weight = self._place[rows], self._weight[rows].view(np.int64)
        fine = self._fine(values)
        np.bitwise_and(fine, POSITION, out=weight)
        np.bitwise_or(weight, BITS_OF_ONE, out=weight)
        np.right_shift(fine, FINE_BITS, out=place)
        if values.dtype != np.float64:
            for number, found in enumerate(np.bincount(lane >> 1)):
                if found:
                    self._total(number).single += found
        np.left_shift(lane, LANE_BITS, out=lane)
        np.add(place, lane, out=place)
        self._keep_steep(values, place)

    def _fine(self, values: Array) -> IntArray:
        """Return where values lie, in units of 2^-39 cells; what is below 2^-20 means nothing."""
        grid, size = self.grid, values.shape[0]
        product, fine = self._room.product[:size], self._room.fine[:size]
        np.multiply(values, float(grid.cells << FINE_BITS), out=product, dtype=np.float64)
        np.copyto(fine, product, casting="unsafe")
        # Rounding may carry a value over an edge between bins. Only values this close to one can
        # be wrong; they are compared with the edge itself, in the dtype of the values.
        slack = 2 if values.dtype == np.float64 else 4096
        width = grid.shift + FINE_BITS
        # The position inside a coarse cell, moved up: near an edge it is near 0 or overflow.
        inside = product.view(np.uint64)
        np.left_shift(fine.view(np.uint64), np.uint64(64 - width), out=inside)
        margin = slack << (64 - grid.shift - OFFSET_BITS)
        if inside.min(initial=FULL) >= margin and inside.max(initial=0) < FULL + 1 - margin:
            return fine
        rows = np.flatnonzero((inside < margin) | (inside >= FULL + 1 - margin))
        close, edges = values[rows], self._edges_of(values.dtype)
        place, width = fine[rows] >> SPARE_BITS, grid.shift + OFFSET_BITS
        edge = (place + slack) >> width
        lower = np.where(close < edges[edge], edge - 1, edge) << width
        fine[rows] = np.clip(place, lower, lower + (1 << width) - 1) << SPARE_BITS
        return fine

    def _edges_of(self, dtype: np.dtype[Any]) -> Array:
        if dtype not in self._edges:
            self._edges[dtype] = width_edges(self.grid.coarse, dtype)
        return self._edges[dtype]

    def _keep_steep(self, values: Array, place: IntArray) -> None:
        """Put aside rows that were nearly certain and wrong.

        Within a block these places follow each other: the last cells of outcome 0, places that
        no row has, and the first cells of outcome 1.
        """
        size = place.shape[0]
        inside, flag = self._room.fine[:size], self._room.flag[:size]
        first = self.grid.cells - STEEP_CELLS
        np.subtract(place, first, out=inside)
        np.bitwise_and(inside, (2 << LANE_BITS) - 1, out=inside)
        np.less(inside, (1 << LANE_BITS) + STEEP_CELLS - first, out=flag)
        rows = np.flatnonzero(flag)
        if rows.size:
            self._steep.append((values[rows].astype(np.float64), place[rows] >> LANE_BITS))

    def _add_losses(self) -> None:
        """Add the logarithmic loss of the rows put aside."""
        if not self._steep:
            return
        given = np.concatenate([values for values, _ in self._steep])
        lane = np.concatenate([lanes for _, lanes in self._steep])
        self._steep.clear()
        right = (lane & 1).astype(np.bool_)
        certain = given == np.where(right, 0.0, 1.0)
        with np.errstate(divide="ignore"):
            loss = np.where(right, -np.log(given), -np.log1p(-given))
        loss[certain] = 0.0
        # Whole numbers below 2^53 add up exactly as floats.
        counts = np.bincount(lane, certain)
        losses = np.bincount(lane, np.rint(loss / LOSS_UNIT))
        squares = np.bincount(lane, np.rint(loss**2 / SQUARE_UNIT))
        for number in np.unique(lane).tolist():
            total, outcome = self._total(number >> 1), number & 1
            total.certain[outcome] += int(counts[number])
            total.loss[outcome] += int(losses[number])
            total.squares[outcome] += int(squares[number])

    def _count(self) -> None:
        """Sum the rows that wait."""
        place, weight = self._place[: self._waiting], self._weight[: self._waiting]
        room = len(self._numbers) << (LANE_BITS + 1)
        self._waiting = 0
        if sum(lane.size for _, lane in self._steep) > MOST_STEEP:
            self._add_losses()
        if place.size:
            mixed: FloatArray = np.asarray(np.bincount(place, weight, minlength=room), np.float64)
            fullest = float(mixed.max())
            if fullest >= MOST_MIXED:
                # Here positions may have run over into the number of rows: count these apart.
                positions = np.bincount(place, (weight - 1) / POSITION_UNIT, minlength=room)
                self._add_sums(np.bincount(place, minlength=room), positions.astype(np.int64))
            else:
                self._mix(mixed, fullest)
        # A pass writes the whole table, so that it pays to wait for more rows than it has places.
        waiting = min(max(2 * room, FEWEST_WAITING), MOST_WAITING)
        if waiting > self._place.size:
            self._place, self._weight = np.empty(waiting, np.int64), np.empty(waiting)

    def _mix(self, mixed: FloatArray, fullest: float) -> None:
        if self._fullest + fullest >= MOST_MIXED:
            self._unmix()
        if mixed.size > self._mixed.size:
            mixed[: self._mixed.size] += self._mixed
            self._mixed = mixed
        else:
            self._mixed += mixed
        self._fullest += fullest

    def _unmix(self) -> None:
        """Take numbers of rows and sums of positions apart."""
        rows = np.floor(self._mixed)
        np.subtract(self._mixed, rows, out=self._mixed)
        np.divide(self._mixed, POSITION_UNIT, out=self._mixed)
        self._add_sums(rows.astype(np.int64), self._mixed.astype(np.int64))
        self._mixed[:] = 0.0
        self._fullest = 0.0

    def _add_sums(self, rows: IntArray, positions: IntArray) -> None:
        shape = (-1, 2, 1 << LANE_BITS)
        pairs = zip(rows.reshape(shape), positions.reshape(shape), strict=True)
        for number, (counted, summed) in enumerate(pairs):
            total = self._total(number)
            total.rows += counted[:, : self.grid.stride]
            total.offsets += summed[:, : self.grid.stride]


class _Room:
    """Buffers of one piece each, made once per table."""

    def __init__(self) -> None:
        self.fine, self.product = np.empty(PIECE, np.int64), np.empty(PIECE)
        self.lane, self.flag = np.empty(PIECE, np.int32), np.empty(PIECE, np.bool_)
