"""A fine grid over confidences: sums per cell, and how far a value from them may be off.

Sums merge exactly, by addition. How far a value from cells may be from that of the rows themselves
is bounded, not guessed.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from scipy.special import digamma

from calibrant.core.arrays import Array, Floats, Ints
from calibrant.core.errors import InputError
from calibrant.core.hints import Hint

if TYPE_CHECKING:
    from calibrant.metrics.blocks.cell_block import CellBlock
    from calibrant.metrics.blocks.families import CurvatureRange

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
# Absolute integrals of the first and second derivative of a Gaussian kernel of width 1.
_FIRST, _SECOND = math.sqrt(2 / math.pi), 4 * math.exp(-0.5) / math.sqrt(2 * math.pi)


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

    def __add__(self, part: CellSums) -> CellSums:
        """Return the sums of the rows of both."""
        names = self.__struct_fields__
        return CellSums(*(getattr(self, name) + getattr(part, name) for name in names))

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


# How far a value from cells may be from that of the rows.


def nothing(block: CellBlock) -> float:  # noqa: ARG001
    """Return 0: counts of right and wrong rows are exact."""
    return 0.0


def of_single(block: CellBlock) -> float:
    """Return how far single precision moves a mean confidence.

    A value within half a unit of a bin edge is taken for the edge.
    """
    return float(block.sums.single[0]) / block.n * 2.0**-25


def of_place(block: CellBlock) -> float:
    """Return the error of sums of confidences: places inside a cell are rounded."""
    return block.width * 2.0**-OFFSET_BITS + of_single(block)


def of_cells(block: CellBlock) -> float:
    """Return how far the error over cells may move because cells of the grid are not cut.

    Rows of a cell of the grid stay together though their values differ. At the edge of a slice,
    or where they are many, they move the error, and what noise adds to it, by twice their share.
    """
    rows, offsets = block.sums.rows, block.sums.offsets
    filled = np.flatnonzero(rows.sum(axis=0))
    rows, offsets = rows[:, filled], offsets[:, filled]
    least, odd = np.divmod(offsets.sum(axis=0), rows.sum(axis=0))
    mixed = (odd != 0) | (rows * least != offsets).any(axis=0)
    place = block.cell_error.table.place
    step = np.append(True, place[1:] != place[:-1])
    edge = step | np.append(step[1:], True)
    return 4 * float(rows.sum(axis=0)[mixed & edge].sum() / rows.sum()) + of_place(block)


def of_bend(block: CellBlock, bend: CurvatureRange) -> float:
    """Return the error of a mean whose second derivative lies between the two of `bend`.

    Only means over rows that change by at most 2 per unit of confidence are so bounded.
    """
    spread = (max(bend[1], 0.0) - min(bend[0], 0.0)) * block.width**2 / 16
    return spread + 2 * of_place(block)


def of_log_loss(block: CellBlock) -> float:
    """Return the error of the log loss: half of what lies between the chord and the curve."""
    slack = float(block.counts @ block.log_losses[2]) / block.n
    return slack + block.grid.coarse * of_single(block)


def of_smooth(block: CellBlock) -> float:
    """Return the error of putting every row at its cell's mean, at the chosen bandwidth.

    The mean of the shift is 0, so that only the second derivative of the kernel acts, on a
    variance of at most w^2/4; the grid of linear pieces of step h adds as much again on w h/4.
    """
    bandwidth = block.grids.bandwidth
    step = 1 / 5120 if bandwidth < 0.01 else 1 / 1000
    variance = block.width**2 / 4
    moved = variance * (_FIRST / bandwidth + _SECOND / (2 * bandwidth**2))
    on_grid = block.width * step * _SECOND / (8 * bandwidth**2)
    return moved + on_grid + of_single(block) * (1 + _FIRST / bandwidth)


def of_area(block: CellBlock) -> float:
    """Return half the share of (right, wrong) pairs that fall into one cell."""
    hits, misses, missing = block.unordered
    pairs = float(hits.sum() * misses.sum())
    return float((hits * missing) @ misses) / (2 * pairs) if pairs else 0.0


def of_precision(block: CellBlock) -> float:
    """Return the most that the order inside cells can move the average precision."""
    hits, misses, missing = block.unordered
    total, mixed = hits.sum(), missing > 0
    if not mixed.any():
        return 0.0
    before, above = (np.cumsum(part) - part for part in (hits, hits + misses))
    hits, misses, before, above = (part[mixed] for part in (hits, misses, before, above))
    value = (before + hits) / (above + hits + misses)
    most = (before + hits) / (above + hits)
    least = (before + 1) / (above + misses + 1)
    share = hits / total
    return float(max(share @ (most - value), share @ (value - least)))


def of_risk(block: CellBlock) -> float:
    """Return the most that the order inside cells can move the area under risk-coverage."""
    hits, misses, missing = block.unordered
    if not missing.any():
        return 0.0
    reached = np.append(0.0, np.cumsum(hits + misses))
    # Among the first places of a cell at most min(hits, misses) errors are misplaced.
    places = np.diff(digamma(reached + 1))
    return float((np.minimum(hits, misses) * missing) @ places) / block.n


def of_discrimination(block: CellBlock) -> float:
    """Return how much better the isotonic fit of the rows may be than that of the cells.

    A rising curve that gains r within a cell of h right and m wrong rows saves at most
    2 r h m / (h + m) over its mean there, and no more than h m / (h + m); all gains sum to 1.
    """
    hits, misses, missing = block.unordered
    mixed = missing > 0
    if not mixed.any():
        return 0.0
    most = hits[mixed] * misses[mixed] / (hits[mixed] + misses[mixed])
    return float(min(2 * most.max(), most.sum())) / block.n


def of_miscalibration(block: CellBlock) -> float:
    """Return the error of MCB: that of the fit, and of putting rows at the mean of their cell.

    What the second moves the Brier score is known up to the spread inside cells, w^2/4: twice the
    covariance of confidence and outcome there.
    """
    right = block.outcome == 1
    away = block.own_mean[right] - block.data.confidence[right]
    joint = 2 * abs(float(block.counts[right] @ away)) / block.n
    return joint + block.width**2 / 4 + 2 * of_place(block) + of_discrimination(block)
