"""What the confidence leaves over, and whether rows of a group lean together in it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from calibrant.core.arrays import Floats, Indices
from calibrant.metrics.stats.cells import cell_places
from calibrant.metrics.stats.perfect_law import combined_p_value

# Blocks in which an order is tested. They are nested: as strict as 2.5 tests, not 4.
_BLOCKS, _NESTED_TESTS, _BLOCK_ROWS = (8, 16, 32, 64), 2.5, 4
_SKEWED = 1e-3


class CellResiduals(Struct, frozen=True, dict=True):
    """Outcomes without the share of right answers of their cell.

    Confidence minus outcome would lean in every column that follows the confidence along a bent
    curve; these lean only where a column says more than the confidence.

    Parameters
    ----------
    residual
        Outcome minus that share, shape (n,).
    cell
        Cell of each row, see `calibrant.metrics.stats.cells`.
    rows, variance, third
        Rows of each cell, variance and third moment of its residuals.
    """

    residual: Floats
    cell: Indices
    rows: Floats
    variance: Floats
    third: Floats

    @classmethod
    def of_rows(
        cls, confidence: Floats, outcome: Floats, fixed: Iterable[Indices] = ()
    ) -> CellResiduals:
        """Return the residuals of rows, without the means of groups whose part is known."""
        value, place, times = np.unique(confidence, return_inverse=True, return_counts=True)
        cells, count = cell_places(value, times.astype(np.float64))
        cell = cells[place]
        rows = np.bincount(cell, minlength=count).astype(np.float64)
        residual = outcome - (np.bincount(cell, outcome, count) / rows)[cell]
        square = residual * residual
        variance = np.bincount(cell, square, count) / np.maximum(rows - 1, 1)
        third = np.bincount(cell, square * residual) / rows
        whole = cls(residual, cell, rows, variance, third)
        for codes in fixed:
            whole = whole.without(codes)
        return whole

    @cached_property
    def square(self) -> Floats:
        """Squared residuals."""
        return self.residual * self.residual

    @cached_property
    def _moments(self) -> Floats:
        """Of a row of each cell: v, v^2, v^3, m3, m3^2."""
        v, third = self.variance, self.third
        return np.stack([v, v**2, v**3, third, third**2], axis=1)

    @cached_property
    def _row_moments(self) -> Floats:
        """The same of each row, shape (5, n)."""
        return np.ascontiguousarray(self._moments[self.cell].T)

    def without(self, codes: Indices) -> CellResiduals:
        """Return the residuals without the mean of their group."""
        means = np.bincount(codes, self.residual) / np.maximum(np.bincount(codes), 1)
        return replace(self, residual=self.residual - means[codes])

    def sums(self, codes: Indices, count: int) -> tuple[Floats, Floats, Floats, Floats]:
        """Return by group: residuals, squares, moments (5, count), and by what pairs are tied.

        The mean of a cell was taken off: two of its rows are tied by -v/k.
        """
        cells = self.rows.size
        key, tie = codes * cells + self.cell, self.variance / self.rows
        if count * cells <= 4 * codes.size:
            rows = np.bincount(key, minlength=count * cells).astype(np.float64)
            rows = rows.reshape(count, cells)
            moments, tied = (rows @ self._moments).T, (rows * (rows - 1)) @ tie
        else:
            moments = np.stack([np.bincount(codes, x, count) for x in self._row_moments])
            tied = _tied_pairs(key, tie, count)
        residual = np.bincount(codes, self.residual, count).astype(np.float64)
        square = np.bincount(codes, self.square, count).astype(np.float64)
        return residual, square, moments, tied


def _tied_pairs(key: Indices, tie: Floats, count: int) -> Floats:
    """Return by group the sum over its cells of m (m - 1) v / k; most hold no pair."""
    key = np.sort(key)
    start = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
    rows = np.diff(np.append(start, key.size))
    group, cell = np.divmod(key[start[rows > 1]], tie.size)
    rows = rows[rows > 1]
    return np.bincount(group, rows * (rows - 1.0) * tie[cell], count).astype(np.float64)


class GroupTest(Struct, frozen=True):
    """P-value of 'rows of a group are independent', how errors grow, and what groups explain."""

    p_value: float
    inflation: float
    explained: float


def group_test(rows: CellResiduals, codes: Indices, *, even: bool = True) -> GroupTest:
    """Test whether rows of one group lean together, by the sum of products of all their pairs.

    Parameters
    ----------
    rows
        What the confidence leaves over.
    codes
        Group of each row, from 0 on.
    even
        Whether a second sum is joined, in which every group counts the same and not every pair.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> codes = np.arange(1_000) % 20
    >>> chance = np.clip(0.7 + rng.normal(0, 0.1, 20)[codes], 0, 1)
    >>> right = (rng.random(1_000) < chance).astype(float)
    >>> test = group_test(CellResiduals.of_rows(np.full(1_000, 0.7), right), codes)
    >>> test.p_value < 1e-3, test.inflation > 1.2
    (True, True)
    """
    size = np.bincount(codes)
    total, square, (v, v2, v3, m3, m6), tied = rows.sums(codes, size.size)
    whole = float(v.sum())
    if whole <= 0:
        return GroupTest(1.0, 1.0, 0.0)
    pairs = total * total - square + tied
    # Written out: powers of whole arrays take most of the time.
    squares, seconds = v * v, 2 * np.maximum(v * v - v2, 0)
    thirds = 8 * np.maximum(v * (squares - 3 * v2) + 2 * v3, 0) + 4 * (m3 * m3 - m6)
    p_values = [pearson_tail(float(pairs.sum()), float(seconds.sum()), float(thirds.sum()))]
    if even:
        weight = 1 / np.maximum(v, 1e-12)
        square = weight * weight
        sums = (
            float(weight @ pairs),
            float(square @ seconds),
            float((square * weight) @ thirds),
        )
        p_values.append(pearson_tail(*sums))
    inflation = math.sqrt(max(1 + float(pairs.sum()) / whole, 1.0))
    explained = float((pairs / np.maximum(size, 1)).sum()) / whole
    return GroupTest(combined_p_value(p_values), inflation, explained)


def pearson_tail(total: float, variance: float, third: float) -> float:
    """Return the chance of a sum as large, from its variance and third moment (Pearson III).

    Examples
    --------
    >>> round(pearson_tail(1.645, 1.0, 0.0), 3), round(pearson_tail(1.645, 1.0, 1.0), 3)
    (0.05, 0.068)
    """
    # Loaded here: few small tables have columns to search, and scipy takes long to load.
    from scipy import special

    if variance <= 0:
        return 1.0
    z, skewness = total / math.sqrt(variance), third / variance**1.5
    if abs(skewness) < _SKEWED:
        return float(special.ndtr(-z))
    degrees = 8 / skewness**2
    place = degrees + math.sqrt(2 * degrees) * z
    return float(special.chdtrc(degrees, place)) if place > 0 else 1.0


def order_p_value(rows: CellResiduals, place: Indices) -> float:
    """Return the p-value of 'neighbours in this order are independent', from blocks of four sizes.

    Parameters
    ----------
    rows
        What the confidence leaves over.
    place
        Place of each row in the order, from 0 on.
    """
    p_values = [
        group_test(rows, place * blocks // place.size, even=False).p_value
        for blocks in _BLOCKS
        if place.size >= _BLOCK_ROWS * blocks
    ]
    return min(_NESTED_TESTS * min(p_values, default=1.0), 1.0)
