"""Is there structure inside the slices? Neighbours that lean the same way more than chance has it.

A slice may hide gaps of both signs. If it does, rows next to each other lean to the same side.
"""

from __future__ import annotations

import math

import numpy as np

from calibrant.stats.cells import CellTable, ValueSums

# Rows of the smallest block of neighbours.
_FIRST = 4


def structure_z(sums: ValueSums, table: CellTable) -> float:
    """Return the largest z of pair sums over blocks of 4, 8, 16, ... neighbours inside slices.

    Parameters
    ----------
    sums
        Rows by stated value; those of one value stay in one block.
    table
        The cells of these values.

    Examples
    --------
    >>> value = np.linspace(0.4, 1, 4_000, endpoint=False)
    >>> rng = np.random.default_rng(0)
    >>> chances = value + 0.1 * np.where(np.floor(value * 200) % 2, 1, -1)
    >>> right = (rng.random(4_000) < chances).astype(float)
    >>> sums = ValueSums.of_counts(value, np.ones(4_000), right)
    >>> from calibrant.stats.cells import cell_table
    >>> structure_z(sums, cell_table(sums)) > 2
    True
    """
    inside = np.flatnonzero(~table.single[table.place])
    if inside.size == 0:
        return -math.inf
    cell = table.place[inside]
    gap = table.gap[table.place]
    lean = sums.weight * (sums.value - gap) - sums.right
    square = sums.gap_squares(gap)
    held = np.bincount(table.place, sums.rows, table.count)
    # Variance of one row of each cell.
    own = np.bincount(table.place, square, table.count) / np.maximum(held - 1, 1)
    before = np.cumsum(sums.rows[inside]) - sums.rows[inside]
    first = np.flatnonzero(np.append(True, cell[1:] != cell[:-1]))
    before -= before[first][np.cumsum(np.append(False, cell[1:] != cell[:-1]))]
    place, size = before.astype(np.intp) // _FIRST, _FIRST
    lean, square, rows = lean[inside], square[inside], sums.rows[inside]
    best = -math.inf
    while size <= held.max() / 2:
        new = np.append(True, (place[1:] != place[:-1]) | (cell[1:] != cell[:-1]))
        at = np.flatnonzero(new)
        lean, square, rows = (np.add.reduceat(part, at) for part in (lean, square, rows))
        cell, place = cell[at], place[at]
        pairs, variance = rows * (rows - 1), own[cell]
        # Taking the mean of the cell off leaves -1/m of a covariance between its rows.
        lost = float((pairs * variance / held[cell]).sum())
        spread = 2 * float((pairs * variance**2).sum())
        if spread > 0:
            best = max(best, (float((lean**2 - square).sum()) + lost) / math.sqrt(spread))
        place, size = place // 2, 2 * size
    return best
