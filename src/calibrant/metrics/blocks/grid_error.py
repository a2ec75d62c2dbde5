"""How far a value from cells may be from that of the rows themselves: bounded, not guessed."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import digamma

from calibrant.metrics.blocks.cell_sums import OFFSET_BITS

if TYPE_CHECKING:
    from calibrant.metrics.blocks.cell_block import CellBlock
    from calibrant.metrics.blocks.families import CurvatureRange

# Absolute integrals of the first and second derivative of a Gaussian kernel of width 1.
_FIRST, _SECOND = math.sqrt(2 / math.pi), 4 * math.exp(-0.5) / math.sqrt(2 * math.pi)


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


def middle_of_bend(block: CellBlock, bend: CurvatureRange) -> float:
    """Return the middle of what the spread inside a cell may add to a mean of this curvature.

    The variance of the confidences in a cell is at most a quarter of its squared width.
    """
    return (min(bend[0], 0.0) + max(bend[1], 0.0)) * block.width**2 / 16


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
