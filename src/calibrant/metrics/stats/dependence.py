"""Do rows hang together? Groupings and orders, tested by what the confidence leaves over."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from calibrant.core.arrays import Floats, Indices
from calibrant.metrics.stats.cells import cell_places
from calibrant.metrics.stats.clusters import FEWEST
from calibrant.metrics.stats.perfect_law import combined_p_value

GroupingKind: TypeAlias = Literal["column", "part", "text", "day", "order"]

# The chance that anything fires among independent rows; groupings have two thirds of it.
LEVEL = 0.03
_GROUPINGS_LEVEL, _ORDERS_LEVEL = LEVEL * 2 / 3, LEVEL / 3
# Blocks in which an order is tested. They are nested: as strict as 2.5 tests, not 4.
_BLOCKS, _NESTED_TESTS, _BLOCK_ROWS = (8, 16, 32, 64), 2.5, 4
# Blocks of an order that are clusters once it fires: neighbours hang together over longer.
_ORDER_CLUSTERS = 6
# Fewer groups, or one with more of the rows, do not tell of others like them.
FEW_GROUPS, LARGE_SHARE = 8, 0.4
# A grouping has one pair to so many rows or more, and no group that is nearly all there is.
_PAIRS_PER_ROW, _MOST_SHARE = 0.01, 0.95
# Large groups that explain so much of the outcomes tell these in other words (a verdict, a grade).
_OUTCOME_SHARE, _LARGE_GROUP = 0.4, 25
_SKEWED = 1e-3


class Grouping(Struct, frozen=True):
    """A way to put rows together.

    Parameters
    ----------
    kind
        A whole ``column``, a ``part`` of its ids, what its texts share, its ``day``, or an
        ``order`` of the rows.
    column
        The column; None for the order in which rows stand.
    words
        What the rows of a group share, as a sentence names it.
    codes
        Group of each row, from 0 on; of an order the place of each row.
    """

    kind: GroupingKind
    column: str | None
    words: str
    codes: Indices


class DependentGroups(Struct, frozen=True):
    """A grouping whose rows are right and wrong together.

    Parameters
    ----------
    grouping
        Its codes are clusters, those of an order too.
    p_value
        Of 'rows of a group are independent'.
    inflation
        By how much the standard error of the mean gap grows.
    count, largest
        Number of groups, and share of the rows in the largest.
    """

    grouping: Grouping
    p_value: float
    inflation: float
    count: int
    largest: float

    @property
    def few(self) -> bool:
        """Whether these groups say little of others like them."""
        return self.count < FEW_GROUPS or self.largest > LARGE_SHARE


class Dependence(Struct, frozen=True):
    """What a search for rows that hang together came to.

    Parameters
    ----------
    groups
        At most two groupings, the one that widens intervals most first; none where rows look
        independent.
    tested
        Kinds of all groupings and orders that were tested.
    looked_at
        Rows that were looked at; None for all.
    """

    groups: tuple[DependentGroups, ...] = ()
    tested: tuple[GroupingKind, ...] = ()
    looked_at: int | None = None

    def of_rows(self, rows: Indices) -> Dependence:
        """Return the same for some of the rows; what was tested stays."""
        part = tuple(
            _dependent(
                replace(
                    each.grouping,
                    codes=np.unique(each.grouping.codes[rows], return_inverse=True)[1],
                ),
                each.p_value,
                each.inflation,
            )
            for each in self.groups
        )
        return replace(self, groups=part)

    @property
    def enough(self) -> Indices | None:
        """Groups of the rows, widest first, that are enough to speak of others; else None."""
        codes = (each.grouping.codes for each in self.groups if each.count >= FEWEST)
        return next(codes, None)

    @property
    def inflation(self) -> float:
        """By how much the standard error of a mean grows; 1 for independent rows."""
        return max((each.inflation for each in self.groups), default=1.0)

    @property
    def few(self) -> bool:
        """Whether 'calibrated' and promises are withheld: there are too few groups."""
        return any(each.few for each in self.groups)


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
    def of_rows(cls, confidence: Floats, outcome: Floats) -> CellResiduals:
        """Return the residuals of rows."""
        value, place, times = np.unique(confidence, return_inverse=True, return_counts=True)
        cells, count = cell_places(value, times.astype(np.float64))
        cell = cells[place]
        rows = np.bincount(cell, minlength=count).astype(np.float64)
        residual = outcome - (np.bincount(cell, outcome, count) / rows)[cell]
        square = residual * residual
        variance = np.bincount(cell, square, count) / np.maximum(rows - 1, 1)
        return cls(residual, cell, rows, variance, np.bincount(cell, square * residual) / rows)

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
        sums = float(weight @ pairs), float(square @ seconds), float((square * weight) @ thirds)
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


def search_groups(
    confidence: Floats,
    outcome: Floats,
    groupings: Iterable[Grouping],
    *,
    known: Sequence[Indices] = (),
    share: float = 1.0,
) -> Dependence:
    """Search groupings and orders for rows that are right and wrong together.

    Of those that fire the one that widens intervals most is taken; its means are taken off, and
    the search goes on once more.

    Parameters
    ----------
    confidence, outcome
        Of each row; grades between 0 and 1 are outcomes too.
    groupings
        Those that may tell something; such as have hardly a pair of rows are passed over.
    known
        Groups that are meant, not others like them: their means are taken off.
    share
        Part of the level that this search has.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> customer = rng.integers(0, 30, 2_000)
    >>> said = rng.uniform(0.5, 0.9, 2_000)
    >>> right = rng.random(2_000) < said + rng.normal(0, 0.1, 30)[customer]
    >>> columns = [Grouping("column", "customer", "customer", customer)]
    >>> search = search_groups(said, right.astype(float), columns)
    >>> search.groups[0].grouping.words, search.few
    ('customer', False)
    """
    able = [each for each in groupings if each.kind == "order" or _has_pairs(each.codes)]
    tested = tuple(each.kind for each in able)
    rows = CellResiduals.of_rows(confidence, outcome)
    for codes in known:
        rows = rows.without(codes)
    groups: list[DependentGroups] = []
    while able and len(groups) < 2:
        firing = _firing(rows, able, share)
        if not firing:
            break
        widest = max(firing, key=lambda each: each.inflation)
        groups.append(widest)
        rows = rows.without(widest.grouping.codes)
        # Once a grouping is known, only the order in which rows stand is worth a second look.
        ordered = widest.grouping.kind == "order"
        able = [
            each
            for each in able
            if each.words != widest.grouping.words
            and (each.kind != "order" or (each.column is None and not ordered))
        ]
    return Dependence(tuple(groups), tested)


def _has_pairs(codes: Indices) -> bool:
    size = np.bincount(codes)
    pairs = float(size @ (size - 1.0)) / 2
    several = int((size > 1).sum()) > 1
    return (
        several and pairs >= _PAIRS_PER_ROW * codes.size and size.max() < _MOST_SHARE * codes.size
    )


def _firing(rows: CellResiduals, able: Sequence[Grouping], share: float) -> list[DependentGroups]:
    """Return those that fire at their part of the level."""
    orders = [each for each in able if each.kind == "order"]
    peers = [each for each in able if each.kind != "order"]
    firing = []
    for each in peers:
        test = group_test(rows, each.codes)
        large = each.codes.size >= _LARGE_GROUP * (int(each.codes.max()) + 1)
        if test.p_value * len(peers) <= share * _GROUPINGS_LEVEL and not (
            large and test.explained > _OUTCOME_SHARE
        ):
            firing.append(_dependent(each, test.p_value, test.inflation))
    for each in orders:
        p_value = order_p_value(rows, each.codes)
        if p_value * len(orders) <= share * _ORDERS_LEVEL:
            codes = each.codes * _ORDER_CLUSTERS // each.codes.size
            test = group_test(rows, codes, even=False)
            firing.append(_dependent(replace(each, codes=codes), p_value, test.inflation))
    return firing


def _dependent(grouping: Grouping, p_value: float, inflation: float) -> DependentGroups:
    size = np.bincount(grouping.codes)
    largest = float(size.max()) / grouping.codes.size
    return DependentGroups(grouping, p_value, inflation, int((size > 0).sum()), largest)


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
