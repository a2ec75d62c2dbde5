"""The table that rows are summed into: one pass of `bincount` for about a million rows.

A row becomes two numbers, its place in the table (block, outcome, cell) and a weight: 1 plus the
position inside the cell in units of 2^-33. One sum of such floats holds the number of rows before
the point and the sum of their positions behind it, both exactly, while a cell holds at most 8,192
rows; above that they are counted apart. All of it lets go of the interpreter's lock.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.core.arrays import Array, Floats, Indices, Ints
from calibrant.metrics.stats import binning
from calibrant.metrics.stats.binning import width_edges

# Rows that are worked on at a time, so that they stay in the cache of a core.
PIECE = 65_536


# A place is block, outcome and cell, the cell in 16 bits.
CELL_BITS = 16


BLOCK_SIZE = 2 << CELL_BITS


# Confidences are multiplied into units of 2^-39 cells: there the bits down to 2^-20 cells lie
# where a float between 1 and 2 has its units of 2^-33.
SPARE_BITS = 19


FINE_BITS = binning.OFFSET_BITS + SPARE_BITS


POSITION = (1 << FINE_BITS) - (1 << SPARE_BITS)


POSITION_UNIT, BITS_OF_ONE = 2.0**-33, 0x3FF << 52


MOST_MIXED = 8192.0


FEWEST_WAITING, MOST_WAITING, MOST_STEEP = 1 << 19, 1 << 21, 1 << 16


OVERFLOW = 1 << 64


class SumTable:
    """Sums of many blocks, filled batch by batch; blocks are numbered as they first appear.

    Examples
    --------
    >>> from calibrant.metrics.stats.binning import cell_grid
    >>> table = SumTable(cell_grid(15))
    >>> number = table.number(("small",))
    >>> table.add(np.array([0.2, 0.9]), np.array([0, 1]), np.array([number]))
    >>> table.sums()[("small",)].rows.sum(axis=1)
    array([1, 1])
    """

    def __init__(self, grid: binning.CellGrid) -> None:
        self.grid = grid
        self._numbers: dict[tuple[str, ...], int] = {}
        # Rows wait under the codes of their batch; this is the block of every code.
        self._order = np.zeros(0, np.int64)
        self._place = np.empty(FEWEST_WAITING, np.int64)
        self._weight = np.empty(FEWEST_WAITING)
        self._waiting = 0
        self._sums = _MixedSums(grid)
        self._fine = _FinePlaces(grid)
        self._lane = np.empty(PIECE, np.int32)

    def number(self, key: tuple[str, ...]) -> int:
        """Return the number of the block `key`, a new one where it is new."""
        if key not in self._numbers:
            binning.require_few(len(self._numbers) + 1)
            self._numbers[key] = len(self._numbers)
            self._order = np.append(self._order, self._numbers[key])
        return self._numbers[key]

    def add(
        self, confidence: Array, correct: Array, blocks: Array, codes: Array | None = None
    ) -> None:
        """Add checked rows: confidences in [0, 1], outcomes 0 or 1.

        Row i belongs to the block number ``blocks[codes[i]]``; without codes, all to
        ``blocks[0]``.
        """
        looked_up = self._waiting_codes(blocks)
        for start in range(0, confidence.shape[0], PIECE):
            piece = slice(start, start + PIECE)
            lane = self._lane[: confidence[piece].shape[0]]
            if codes is None:
                lane[:] = 0 if looked_up is None else 2 * looked_up[0]
            else:
                numbers = codes[piece] if looked_up is None else looked_up[codes[piece]]
                np.left_shift(numbers, 1, out=lane, casting="unsafe")
            np.add(lane, correct[piece], out=lane, casting="unsafe")
            self._add_piece(confidence[piece], lane)

    def sums(self) -> Mapping[tuple[str, ...], binning.CellSums]:
        """Return the sums by block."""
        self._count()
        totals = self._sums.totals()
        return {
            key: totals.get(number) or binning.CellSums.empty(self.grid)
            for key, number in self._numbers.items()
        }

    def _waiting_codes(self, blocks: Array) -> NDArray[np.int32] | None:
        """Return the code that each of these codes has among waiting rows, None where its own.

        Each row group of a file may number the same texts in its own way. Where many rows wait it
        is cheaper to count them and to take the new numbers than to look up every row.
        """
        if np.array_equal(self._order[: blocks.size], blocks):
            return None
        if self._waiting >= self._order.size * BLOCK_SIZE // 2 or not self._waiting:
            self._count()
            peers = np.setdiff1d(self._order, blocks)
            if peers.size + blocks.size == self._order.size:
                self._order = np.concatenate([blocks.astype(np.int64), peers])
                return None
        return np.argsort(self._order)[blocks].astype(np.int32)

    def _add_piece(self, values: Array, lane: NDArray[np.int32]) -> None:
        size = values.shape[0]
        if self._waiting + size > self._place.size:
            self._count()
        rows = slice(self._waiting, self._waiting + size)
        self._waiting += size
        place, weight = self._place[rows], self._weight[rows].view(np.int64)
        fine = self._fine.of(values)
        np.bitwise_and(fine, POSITION, out=weight)
        np.bitwise_or(weight, BITS_OF_ONE, out=weight)
        np.right_shift(fine, FINE_BITS, out=place)
        if values.dtype != np.float64:
            self._sums.add_single(np.bincount(lane >> 1), self._order)
        np.left_shift(lane, CELL_BITS, out=lane)
        np.add(place, lane, out=place)
        steep = self._fine.steep(place)
        if steep.size:
            self._sums.put_aside(values[steep], place[steep] >> CELL_BITS, self._order)

    def _count(self) -> None:
        """Sum the rows that wait."""
        place, weight = self._place[: self._waiting], self._weight[: self._waiting]
        self._waiting = 0
        if place.size:
            self._sums.add(place, weight, self._order)
        # A pass writes the whole table, so that it pays to wait for more rows than it has places.
        waiting = min(max(2 * self._order.size * BLOCK_SIZE, FEWEST_WAITING), MOST_WAITING)
        if waiting > self._place.size:
            self._place, self._weight = np.empty(waiting, np.int64), np.empty(waiting)


class _FinePlaces:
    """Where confidences lie, in units of 2^-39 cells; bits below 2^-20 cells mean nothing."""

    def __init__(self, grid: binning.CellGrid) -> None:
        self.grid = grid
        self._edges: dict[np.dtype[Any], Array] = {}
        self._product, self._fine = np.empty(PIECE), np.empty(PIECE, np.int64)
        self._flag = np.empty(PIECE, np.bool_)

    def of(self, values: Array) -> Ints:
        """Return the places of at most a piece of values; they hold until the next call."""
        grid, size = self.grid, values.shape[0]
        product, fine = self._product[:size], self._fine[:size]
        np.multiply(values, float(grid.cells << FINE_BITS), out=product, dtype=np.float64)
        np.copyto(fine, product, casting="unsafe")
        # Rounding may carry a value over an edge between bins. Only values this close to one can
        # be wrong; they are compared with the edge itself, in the dtype of the values.
        slack = 2 if values.dtype == np.float64 else 4096
        # The position inside a coarse cell, moved up: close to an edge it is small or overflows.
        inside = product.view(np.uint64)
        np.left_shift(fine.view(np.uint64), np.uint64(64 - grid.shift - FINE_BITS), out=inside)
        low = slack << (64 - grid.shift - binning.OFFSET_BITS)
        high = OVERFLOW - low
        if inside.min(initial=OVERFLOW - 1) < low or inside.max(initial=0) >= high:
            rows = np.flatnonzero((inside < low) | (inside >= high))
            fine[rows] = self._mended(fine[rows] >> SPARE_BITS, values[rows], slack) << SPARE_BITS
        return fine

    def _mended(self, place: Ints, values: Array, slack: int) -> Ints:
        """Return places on the side of the nearest edge on which the values are."""
        if values.dtype not in self._edges:
            self._edges[values.dtype] = width_edges(self.grid.coarse, values.dtype)
        edges, width = self._edges[values.dtype], self.grid.shift + binning.OFFSET_BITS
        edge = (place + slack) >> width
        lower = np.where(values < edges[edge], edge - 1, edge) << width
        return np.asarray(np.clip(place, lower, lower + (1 << width) - 1))

    def steep(self, place: Ints) -> Indices:
        """Return the rows that were nearly certain and wrong.

        Within a block their places follow each other: the last cells of outcome 0, places that no
        row has, and the first cells of outcome 1.
        """
        inside, flag = self._fine[: place.size], self._flag[: place.size]
        first = self.grid.cells - binning.STEEP_CELLS
        np.subtract(place, first, out=inside)
        np.bitwise_and(inside, BLOCK_SIZE - 1, out=inside)
        np.less(inside, (1 << CELL_BITS) + binning.STEEP_CELLS - first, out=flag)
        return np.flatnonzero(flag)


class _MixedSums:
    """Sums by block: rows and positions in one float, taken apart before they could run over."""

    def __init__(self, grid: binning.CellGrid) -> None:
        self.grid = grid
        self._mixed = np.zeros((0, BLOCK_SIZE))
        self._fullest = 0.0
        self._crowded = False
        self._totals: dict[int, binning.CellSums] = {}
        self._steep: list[tuple[Array, Ints]] = []
        self._steep_rows = 0

    def add(self, place: Ints, weight: Floats, order: Ints) -> None:
        """Add rows; `order` gives the block of every code in their places."""
        if not self._crowded:
            mixed = _by_block(place, weight, order)
            fullest = float(mixed.max())
            # Positions may have run over into the number of rows, as they will again.
            self._crowded = fullest >= MOST_MIXED
        if self._crowded:
            positions = _by_block(place, (weight - 1) / POSITION_UNIT, order)
            self._add_sums(_by_block(place, None, order), positions, order)
            return
        if self._fullest + fullest >= MOST_MIXED:
            self._take_apart()
        if order.size > self._mixed.shape[0]:
            more = np.zeros((order.size, BLOCK_SIZE))
            more[: self._mixed.shape[0]] = self._mixed
            self._mixed = more
        for number, part in zip(order.tolist(), mixed, strict=True):
            self._mixed[number] += part
        self._fullest += fullest

    def add_single(self, rows: Ints, order: Ints) -> None:
        """Count rows in single precision, by code."""
        for code in np.flatnonzero(rows).tolist():
            self._total(int(order[code])).single += rows[code]

    def put_aside(self, values: Array, lane: Ints, order: Ints) -> None:
        """Keep rows that were nearly certain and wrong; a lane is twice the code plus outcome."""
        self._steep.append((values.astype(np.float64), 2 * order[lane >> 1] + (lane & 1)))
        self._steep_rows += lane.size
        if self._steep_rows > MOST_STEEP:
            self._add_losses()

    def totals(self) -> dict[int, binning.CellSums]:
        """Return the sums by number of the block; blocks without rows may be missing."""
        self._take_apart()
        self._add_losses()
        return self._totals

    def _total(self, number: int) -> binning.CellSums:
        if number not in self._totals:
            self._totals[number] = binning.CellSums.empty(self.grid)
        return self._totals[number]

    def _take_apart(self) -> None:
        rows = np.floor(self._mixed)
        positions = np.subtract(self._mixed, rows, out=self._mixed)
        np.divide(positions, POSITION_UNIT, out=positions)
        self._add_sums(rows, positions, np.arange(rows.shape[0]))
        self._mixed[:] = 0.0
        self._fullest = 0.0

    def _add_sums(self, rows: Array, positions: Floats, order: Ints) -> None:
        for number, counts, summed in zip(order.tolist(), rows, positions, strict=True):
            total = self._total(number)
            shape = (2, 1 << CELL_BITS)
            total.rows += counts.reshape(shape)[:, : self.grid.stride].astype(np.int64)
            total.offsets += summed.reshape(shape)[:, : self.grid.stride].astype(np.int64)

    def _add_losses(self) -> None:
        """Add the logarithmic loss of the rows put aside."""
        if not self._steep:
            return
        values, lane = map(np.concatenate, zip(*self._steep, strict=True))
        self._steep, self._steep_rows = [], 0
        right = (lane & 1).astype(np.bool_)
        certain = values == np.where(right, 0.0, 1.0)
        with np.errstate(divide="ignore"):
            loss = np.where(right, -np.log(values), -np.log1p(-values))
        loss[certain] = 0.0
        # Whole numbers below 2^53 add up exactly as floats.
        counts = np.bincount(lane, certain)
        losses = np.bincount(lane, np.rint(loss / binning.LOSS_UNIT))
        squares = np.bincount(lane, np.rint(loss**2 / binning.SQUARE_UNIT))
        for number in np.unique(lane).tolist():
            total, outcome = self._total(number >> 1), number & 1
            total.certain[outcome] += int(counts[number])
            total.loss[outcome] += int(losses[number])
            total.squares[outcome] += int(squares[number])


def _by_block(place: Ints, weight: Floats | None, order: Ints) -> Floats:
    """Return the number of rows, or the sum of their weights, a line per code."""
    sums = np.bincount(place, weight, minlength=order.size * BLOCK_SIZE)
    return np.asarray(sums, np.float64).reshape(order.size, BLOCK_SIZE)
