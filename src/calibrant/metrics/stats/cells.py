"""Cells of a confidence scale: values that carry rows stand alone, all others are cut into slices.

Bins of equal width put different stated values together: '0.95 is always right and 1.0 in 95 %'
looks calibrated in 15 bins. A value that many rows state is therefore a cell of its own.
"""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct

from calibrant.core.arrays import Array, Floats, Indices, Mask

# Rows of a value that is a cell of its own: so many, and at least one in so many rows.
OWN_ROWS, OWN_SHARE = 25, 200


# Rows of a slice: so many, and at least one in so many rows.
SLICE_ROWS, MOST_SLICES = 50, 40


# Confidences of one cell that differ by less are one value.
_ONE_VALUE = 1e-12


class ValueSums(Struct, frozen=True):
    """Sums over the rows of each stated value, values rising.

    Parameters
    ----------
    value, rows
        Stated confidences, and how many rows state each.
    weight, right
        Sums of the weights, and of weight times outcome.
    squares, right_squares, outcome_squares
        Sums of the squared weight, of that times the outcome, and times the squared outcome.
    """

    value: Floats
    rows: Floats
    weight: Floats
    right: Floats
    squares: Floats
    right_squares: Floats
    outcome_squares: Floats

    @classmethod
    def of_counts(cls, value: Floats, rows: Floats, right: Floats) -> ValueSums:
        """Return the sums of rows that weigh the same and are right or wrong."""
        return cls(value, rows, rows, right, rows, right, right)

    @classmethod
    def of_rows(
        cls, place: Indices, value: Floats, correct: Array, weights: Array | None
    ) -> ValueSums:
        """Return the sums of rows, each at its place among the values.

        Examples
        --------
        >>> place, value = np.array([0, 1, 1]), np.array([0.5, 0.9])
        >>> ValueSums.of_rows(place, value, np.array([1.0, 0.5, 1.0]), None).right
        array([1. , 1.5])
        """
        y = np.asarray(correct, np.float64)
        heavy = np.ones(y.size) if weights is None else np.asarray(weights, np.float64)
        square = heavy * heavy
        parts = (None, heavy, heavy * y, square, square * y, square * y * y)
        sums = (np.bincount(place, part, value.size).astype(np.float64) for part in parts)
        return cls(value, *sums)

    @property
    def graded(self) -> bool:
        """Whether an outcome lies between right and wrong."""
        return bool((self.right_squares - self.outcome_squares > 1e-12 * self.squares).any())

    def gap_squares(self, gap: Floats) -> Floats:
        """Return the sum over rows of (weight times (confidence - outcome - gap)) squared."""
        deviation = self.value - gap
        total = (
            self.squares * deviation**2 - 2 * deviation * self.right_squares + self.outcome_squares
        )
        return np.maximum(total, 0.0)


def cell_places(value: Floats, rows: Floats) -> tuple[Indices, int]:
    """Return the cell of each value, and the number of cells; slices come after single values.

    Parameters
    ----------
    value
        Distinct confidences, rising.
    rows
        How many rows state each.

    Examples
    --------
    >>> cell_places(np.array([0.2, 0.3, 0.9]), np.array([20.0, 15.0, 65.0]))
    (array([1, 1, 0]), 2)
    """
    total = float(rows.sum())
    single = rows >= max(OWN_ROWS, total / OWN_SHARE)
    place = np.empty(value.size, np.intp)
    count = int(single.sum())
    place[single] = np.arange(count)
    light = np.flatnonzero(~single)
    if light.size == 0:
        return place, count
    light_rows = rows[light]
    remaining = float(light_rows.sum())
    slices = max(1, int(remaining // max(SLICE_ROWS, total / MOST_SLICES)))
    middle = light_rows.cumsum() - light_rows / 2
    part = np.minimum((middle * slices / remaining).astype(np.intp), slices - 1)
    # Slices that hold no row, because equal values stay together, are left out.
    new = np.append(True, part[1:] != part[:-1])
    place[light] = count + np.cumsum(new) - 1
    return place, count + int(new.sum())


class CellTable(Struct, frozen=True):
    """Share, gap and standard errors by cell.

    Parameters
    ----------
    share
        Share of the weight.
    gap
        Mean of confidence minus outcome.
    noise, stray
        Two standard errors of the gap. The first is unbiased and says what noise adds to its
        size: too large, it would explain errors away. The second, of a smoothed share, says how
        far the sum strays: 0 would trust a cell without errors.
    rows
        Rows of equal weight that would tell as much.
    said
        Mean confidence.
    single
        Whether all rows of the cell state one value.
    low, high
        Least and largest value.
    place
        Cell of each value.
    """

    share: Floats
    gap: Floats
    noise: Floats
    stray: Floats
    rows: Floats
    said: Floats
    single: Mask
    low: Floats
    high: Floats
    place: Indices

    @property
    def count(self) -> int:
        """Number of cells."""
        return int(self.share.size)

    @property
    def slices(self) -> int:
        """Cells that hold several values."""
        return int((~self.single).sum())

    @property
    def total(self) -> float:
        """The calibration error as it looks: sum of shares times sizes of gaps."""
        return float(self.share @ np.abs(self.gap))


def cell_table(sums: ValueSums) -> CellTable:
    """Return the cells of stated values.

    Examples
    --------
    >>> sums = ValueSums.of_counts(
    ...     np.array([0.95, 1.0]), np.array([200.0, 200.0]), np.array([200.0, 190.0])
    ... )
    >>> table = cell_table(sums)
    >>> table.gap.round(3).tolist(), bool(table.single.all())
    ([-0.05, 0.05], True)
    """
    place, count = cell_places(sums.value, sums.rows)

    def by_cell(values: Floats) -> Floats:
        return np.bincount(place, values, count).astype(np.float64)

    weight, right = by_cell(sums.weight), by_cell(sums.right)
    confidence = by_cell(sums.weight * sums.value) / weight
    rate = right / weight
    gap = confidence - rate
    squares = by_cell(sums.squares)
    # Kish: rows of equal weight that would tell as much.
    rows = weight**2 / squares
    spread = by_cell(sums.gap_squares(gap[place])) / squares
    smooth = (rate * rows + 2) / (rows + 4)
    if sums.graded:
        plain = spread
        stray = np.sqrt(np.maximum(spread, 4 / rows**2) / rows)
    else:
        plain = np.minimum(spread, rate * (1 - rate))
        stray = np.sqrt(smooth * (1 - smooth) / rows)
    noise = np.sqrt(np.maximum(plain, 0.0) / np.maximum(rows - 1, 1))
    low, high = np.empty(count), np.empty(count)
    # Values rise: the first one of a cell is its least, the last one its largest.
    low[place[::-1]] = sums.value[::-1]
    high[place] = sums.value
    share, single = weight / weight.sum(), high - low < _ONE_VALUE
    stray = np.maximum(stray, noise)
    return CellTable(share, gap, noise, stray, rows, confidence, single, low, high, place)


# Rows of the smallest window of neighbours, and places at which a larger one may begin.
_FIRST, _STEPS = 4, 16


def structure_z(sums: ValueSums, table: CellTable) -> float:
    """Return the largest z of pair sums over windows of 4, 8, 16, ... neighbours inside slices.

    Windows begin at every row: a pair counts the more the closer it is. Blocks side by side would
    cut a pattern where it happens to lie, and show it less often.

    Parameters
    ----------
    sums
        Rows by stated value; those of one value stay together.
    table
        The cells of these values.

    Examples
    --------
    >>> value = np.linspace(0.4, 1, 4_000, endpoint=False)
    >>> rng = np.random.default_rng(0)
    >>> chances = value + 0.1 * np.where(np.floor(value * 200) % 2, 1, -1)
    >>> right = (rng.random(4_000) < chances).astype(float)
    >>> sums = ValueSums.of_counts(value, np.ones(4_000), right)
    >>> from calibrant.metrics.stats.cells import cell_table
    >>> structure_z(sums, cell_table(sums)) > 2
    True
    """
    inside = np.flatnonzero(~table.single[table.place])
    if inside.size == 0:
        return -math.inf
    cell = table.place[inside]
    gap = table.gap[table.place]
    lean = (sums.weight * (sums.value - gap) - sums.right)[inside]
    square = sums.gap_squares(gap)
    counts = np.bincount(table.place, sums.rows, table.count)
    # Variance of one row of each cell.
    cell_variance = np.bincount(table.place, square, table.count) / np.maximum(counts - 1, 1)
    rows, variance = sums.rows[inside], cell_variance[cell]
    # Taking the mean of the cell off leaves -1/m of a covariance between its rows.
    columns = np.stack([lean, rows, rows * variance / counts[cell], rows * variance**2])
    alone = (float(square[inside].sum()), float(columns[2].sum()), float(columns[3].sum()))
    # Windows of fewer rows than a value has would all hold one value.
    least = max(_FIRST, 1 << int(rows.sum() / rows.size).bit_length() - 1)
    sizes = (least << step for step in range(max(int(counts.max() / 2 / least).bit_length(), 0)))
    return max((_windows_z(columns, cell, size, alone) for size in sizes), default=-math.inf)


def _windows_z(
    columns: Floats, cell: Indices, size: int, alone: tuple[float, float, float]
) -> float:
    """Return the z of pair sums over all windows of `size` rows; none holds rows of two slices.

    `alone`: what rows add to the sums with themselves.
    """
    rows = columns[1]
    step = max(1, size // _STEPS, int(rows.sum() / rows.size))
    width = max(size // step, 1)
    number = np.cumsum(np.append(1, cell[1:] != cell[:-1]))
    place = (np.cumsum(rows) - rows).astype(np.intp) // step + number * width
    lines = [np.bincount(place, column, int(place[-1]) + width + 1) for column in columns]
    tied = float(lines[3] @ lines[1]) - alone[2]
    totals = np.cumsum(lines, axis=1)
    leans, counts, shared, squares = totals[:, width:] - totals[:, :-width]
    pairs = float(squares @ counts) / width - alone[2]
    # Mean square of what a pair counts over its mean; pairs of one place count in full.
    spread = 2 * (tied + (pairs - tied) * (2 * width - 1) / (3 * width))
    if spread <= 0:
        return -math.inf
    excess = float(leans @ leans) / width - alone[0] + float(shared @ counts) / width - alone[1]
    return excess / math.sqrt(spread)
