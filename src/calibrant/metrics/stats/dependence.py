"""Do rows hang together? Groupings and orders, tested by what the confidence leaves over."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from calibrant.core.arrays import Floats, Indices
from calibrant.metrics.stats.clusters import FEWEST, CellResiduals, group_test, order_p_value

GroupingKind: TypeAlias = Literal["column", "unit", "part", "text", "day", "order"]

# The chance that anything fires among independent rows; groupings have two thirds of it.
LEVEL = 0.03
_GROUPINGS_LEVEL, _ORDERS_LEVEL = LEVEL * 2 / 3, LEVEL / 3
# Blocks of an order that are clusters once it fires: neighbours hang together over longer.
_ORDER_CLUSTERS = 6
# Fewer groups, or one with more of the rows, do not tell of others like them.
FEW_GROUPS, LARGE_SHARE = 8, 0.4
# A grouping has one pair to so many rows or more, and no group that is nearly all there is.
_PAIRS_PER_ROW, _MOST_SHARE = 0.01, 0.95
# Large groups that explain so much of the outcomes tell these in other words (a verdict, a grade).
_OUTCOME_SHARE, _LARGE_GROUP = 0.4, 25
# A column with more values, and so many per row, names whom rows come from.
_LEAST_NAMES, _NAMES_SHARE = 10, 0.05
# Of many rows a part is tested first: what is as likely by chance is not tested on all of them.
_HINT = 0.2


class Grouping(Struct, frozen=True):
    """A way to put rows together.

    Parameters
    ----------
    kind
        A whole ``column``, one whose values have one outcome each (``unit``), a ``part`` of its
        ids, what its texts share, its ``day``, or an ``order`` of the rows.
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
    dominant
        A column that names whom rows come from, one of whom has most, whether that shows or not.
    """

    groups: tuple[DependentGroups, ...] = ()
    tested: tuple[GroupingKind, ...] = ()
    looked_at: int | None = None
    dominant: DependentGroups | None = None

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
    def columns(self) -> set[str | None]:
        """Columns of the groupings that were found."""
        return {each.grouping.column for each in self.groups}

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


def search_groups(
    confidence: Floats,
    outcome: Floats,
    groupings: Iterable[Grouping],
    *,
    fixed: Sequence[Indices] = (),
    share: float = 1.0,
    idle: Sequence[GroupingKind] = (),
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
    fixed
        Groups that are meant, not others like them: their means are taken off.
    share
        Part of the level that this search has.
    idle
        Kinds of further groupings of which a part of the rows gave no hint: they count as tested.

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
    tested = (*idle, *(each.kind for each in able))
    dominant = _dominant(able)
    rows = CellResiduals.of_rows(confidence, outcome, fixed)
    groups: list[DependentGroups] = []
    while able and len(groups) < 2:
        firing = _firing(rows, able, share, idle)
        if not firing:
            break
        # Groups that come to nearly the same rows differ in the last digits: the first is meant.
        widest = max(firing, key=lambda each: round(each.inflation, 3))
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
    words = {each.grouping.words for each in groups}
    if dominant is not None and dominant.grouping.words in words:
        dominant = None
    return Dependence(tuple(groups), tested, dominant=dominant)


def _dominant(groupings: Iterable[Grouping]) -> DependentGroups | None:
    """Return the first column of names of which one has too many of the rows; it is not tested."""
    columns = (each for each in groupings if each.kind == "column")
    for groups in (_dependent(each, 1.0, 1.0) for each in columns):
        names = max(_LEAST_NAMES, _NAMES_SHARE * groups.grouping.codes.size)
        if groups.count > names and groups.largest > LARGE_SHARE:
            return groups
    return None


def _has_pairs(codes: Indices, step: float = 1.0) -> bool:
    size = np.bincount(codes)
    pairs = step * float(size @ (size - 1.0)) / 2
    several = int((size > 1).sum()) > 1
    return (
        several and pairs >= _PAIRS_PER_ROW * codes.size and size.max() < _MOST_SHARE * codes.size
    )


def screen_groupings(
    rows: CellResiduals, groupings: Iterable[Grouping], step: float
) -> tuple[set[str], list[GroupingKind]]:
    """Return words of groupings at which a part of the rows hints, and the kinds of all others.

    Parameters
    ----------
    rows
        The part.
    groupings
        Of these rows.
    step
        Of so many rows each is one.
    """
    hints, idle = set(), []
    for each in groupings:
        if each.kind == "order":
            p_value = order_p_value(rows, each.codes)
        elif not _has_pairs(each.codes, step):
            continue
        else:
            p_value = group_test(rows, each.codes).p_value
        if p_value < _HINT:
            hints.add(each.words)
        elif each.column is not None:
            # The order of the rows themselves is tested on all of them.
            idle.append(each.kind)
    return hints, idle


def _firing(
    rows: CellResiduals,
    able: Sequence[Grouping],
    share: float,
    idle: Sequence[GroupingKind],
) -> list[DependentGroups]:
    """Return those that fire at their part of the level."""
    orders = [each for each in able if each.kind == "order"]
    groupings = [each for each in able if each.kind != "order"]
    idle_orders = idle.count("order")
    groupings_level = share * _GROUPINGS_LEVEL / max(len(groupings) + len(idle) - idle_orders, 1)
    orders_level = share * _ORDERS_LEVEL / max(len(orders) + idle_orders, 1)
    firing = []
    for each in groupings:
        test = group_test(rows, each.codes)
        large = each.codes.size >= _LARGE_GROUP * (int(each.codes.max()) + 1)
        if test.p_value <= groupings_level and not (large and test.explained > _OUTCOME_SHARE):
            firing.append(_dependent(each, test.p_value, test.inflation))
    for each in orders:
        p_value = order_p_value(rows, each.codes)
        if p_value <= orders_level:
            codes = each.codes * _ORDER_CLUSTERS // each.codes.size
            test = group_test(rows, codes, even=False)
            firing.append(_dependent(replace(each, codes=codes), p_value, test.inflation))
    return firing


def _dependent(grouping: Grouping, p_value: float, inflation: float) -> DependentGroups:
    size = np.bincount(grouping.codes)
    largest = float(size.max()) / grouping.codes.size
    return DependentGroups(grouping, p_value, inflation, int((size > 0).sum()), largest)
