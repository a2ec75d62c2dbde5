"""From a part of a table to its sums: rows are checked rule by rule, then counted in cells."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Any, TypeAlias

import numpy as np

from calibrant.core.arrays import Array, Indices
from calibrant.core.errors import InputError
from calibrant.data.batches import (
    Batch,
    BatchColumns,
    FilePart,
    ScoredRows,
    number_array,
    read_part,
)
from calibrant.metrics.stats.binning import CellGrid, CellSums, require_few
from calibrant.metrics.stats.sum_table import SumTable

# (model, method, column, value); column and value are empty where there are no groups.
Key: TypeAlias = tuple[str, ...]
Blocks: TypeAlias = tuple[Array | None, Array]
ROWS_NAMED = 10
_BITS_OF_ONE: dict[Any, tuple[Any, int]] = {
    np.dtype(np.float64): (np.uint64, 0x3FF0_0000_0000_0000),
    np.dtype(np.float32): (np.uint32, 0x3F80_0000),
}


@dataclass(frozen=True, slots=True)
class SumPlan:
    """What is to be summed: columns by role, the groups, and what to do with broken rows."""

    columns: BatchColumns
    grid: CellGrid
    model: str | None = None
    method: str | None = None
    by: tuple[str, ...] = ()
    percent: bool = False
    on_invalid: str = "missing"


@dataclass(slots=True)
class PartSums:
    """Sums by block, and the rows that were left out by rule; they merge by addition.

    `models_with_dropped_rows` holds the models that rows were left out of, `unscored` counts rows
    by block that are graded and have no confidence: wrong and right ones.
    """

    blocks: dict[Key, CellSums] = field(default_factory=dict)
    rows: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    dropped_rows: dict[str, list[str]] = field(default_factory=dict)
    models_with_dropped_rows: set[str] = field(default_factory=set)
    unscored: dict[Key, Indices] = field(default_factory=dict)

    def add(self, other: PartSums) -> None:
        """Take in the sums of the part that follows."""
        self.add_blocks(other.blocks)
        self.rows += other.rows
        self.models_with_dropped_rows |= other.models_with_dropped_rows
        for key, counts in other.unscored.items():
            self.unscored[key] = self.unscored.get(key, 0) + counts
        for rule, count in other.dropped.items():
            self.leave_out(rule, count, other.dropped_rows[rule])

    def leave_out(self, rule: str, count: int, rows: Iterable[str]) -> None:
        """Count rows that break a rule, and name the first few of them."""
        self.dropped[rule] = self.dropped.get(rule, 0) + count
        names = self.dropped_rows.setdefault(rule, [])
        names += islice(rows, ROWS_NAMED - len(names))

    def add_blocks(self, blocks: Mapping[Key, CellSums]) -> None:
        """Take in further sums by block."""
        for key, sums in blocks.items():
            if key in self.blocks:
                self.blocks[key].add(sums)
            else:
                require_few(len(self.blocks) + 1)
                # What comes from another process cannot be written to.
                self.blocks[key] = sums.copy()


def sum_part(part: FilePart, plan: SumPlan) -> PartSums:
    """Read, check and sum one part."""
    table = SumTable(plan.grid)
    out = _read_into(table, part, plan)
    out.blocks = _held(table)
    return out


class ThreadSums:
    """Sums parts in threads of this process: each thread fills one table for all of its parts.

    Calling it gives what `sum_part` gives, without the blocks; `blocks` gives these at the end.
    """

    def __init__(self, plan: SumPlan) -> None:
        self.plan = plan
        self._own = threading.local()
        self._tables: list[SumTable] = []

    def __call__(self, part: FilePart) -> PartSums:
        """Read, check and sum one part."""
        if not hasattr(self._own, "table"):
            self._own.table = SumTable(self.plan.grid)
            self._tables.append(self._own.table)
        return _read_into(self._own.table, part, self.plan)

    def blocks(self) -> dict[Key, CellSums]:
        """Return the sums by block of all threads."""
        total = PartSums()
        for table in self._tables:
            total.add_blocks(_held(table))
        return total.blocks


def _read_into(table: SumTable, part: FilePart, plan: SumPlan) -> PartSums:
    out = PartSums()
    for batch in read_part(part, plan.columns):
        out.rows += batch.rows
        for name in plan.columns.confidence:
            confidence = _numbers(batch.confidence[name], name, part)
            correct = _numbers(batch.correct, plan.columns.correct, part)
            confidence = confidence / 100 if plan.percent else confidence
            _add(ScoredRows(batch, name, confidence, correct), part, plan, table, out)
    return out


def _held(table: SumTable) -> dict[Key, CellSums]:
    # A dictionary may name a model that none of these rows is of.
    return {key: sums for key, sums in table.sums().items() if sums.rows.any()}


def _add(rows: ScoredRows, part: FilePart, plan: SumPlan, table: SumTable, out: PartSums) -> None:
    batch, confidence, correct = rows.batch, rows.confidence, rows.correct
    missing = batch.confidence[rows.name].null_count or batch.correct.null_count
    unanswered = batch.answer is not None and batch.answer.null_count
    labels = [batch.labels[column][1] for column in (plan.model, plan.method) if column]
    sound = all(map(all, labels)) and not missing and not unanswered
    if not _in_range(confidence):
        confidence = _at_the_ends(confidence)
        rows = ScoredRows(batch, rows.name, confidence, correct)
        sound = sound and _in_range(confidence)
    sound = sound and _binary(correct)
    keep = None if sound else _kept(rows, part, plan, out)
    for column in plan.by or ("",):
        codes, lookup = _blocks(rows, column, plan, table)
        if keep is None:
            table.add(confidence, correct, lookup, codes)
        elif keep.any():
            choice = None if codes is None else codes[keep]
            table.add(confidence[keep], correct[keep], lookup, choice)


def _numbers(column: Any, name: str, part: FilePart) -> Array:
    """Return a column as numpy numbers; what is no number is refused with its type."""
    import pyarrow.types as kinds

    kind = column.type
    numeric = kinds.is_floating(kind) or kinds.is_integer(kind) or kinds.is_boolean(kind)
    if not numeric:
        raise InputError(
            f"a streamed audit reads numbers, the column {name!r} holds {kind}",
            source=part.file,
            hint="store confidence and outcome as numbers, or audit a table that fits in memory",
        )
    values = number_array(column)
    return values.astype(np.float64) if values.dtype == np.float16 else values


def _in_range(values: Array) -> bool:
    """Return whether all values are in [0, 1]; the bits of such numbers are ordered like them."""
    bits = _BITS_OF_ONE.get(values.dtype)
    if bits is not None and np.maximum.reduce(values.view(bits[0]), initial=0) <= bits[1]:
        return True
    return bool(((values >= 0) & (values <= 1)).all())


def _at_the_ends(values: Array) -> Array:
    """Return confidences, those that lie beside 0 or 1 by rounding alone at that end."""
    from calibrant.data.rules import NOISE

    companion = (values >= -NOISE) & (values <= 1 + NOISE)
    return np.where(companion, np.clip(values, 0, 1), values)


def _binary(values: Array) -> bool:
    if values.dtype == np.bool_:
        return True
    if values.dtype.kind in "iu":
        # Read without a sign, a negative number is a large one.
        unsigned = values.view(np.dtype(f"u{values.dtype.itemsize}"))
        return bool(np.maximum.reduce(unsigned, initial=0) <= 1)
    return bool(((values == 0) | (values == 1)).all())


def _blocks(rows: ScoredRows, column: str, plan: SumPlan, table: SumTable) -> Blocks:
    """Return a code per row (or None where all rows share one) and the block of every code."""
    codes, keys, every = _keys(rows, column, plan)
    if every:
        return codes, np.array([table.number(key) for key in keys])
    assert codes is not None
    present = np.flatnonzero(np.bincount(codes, minlength=len(keys)))
    lookup = np.zeros(len(keys), np.intp)
    lookup[present] = [table.number(keys[code]) for code in present]
    return codes, lookup


def _keys(rows: ScoredRows, column: str, plan: SumPlan) -> tuple[Array | None, list[Key], bool]:
    """Return a code per row, or None where all share one, all keys, and whether each occurs."""
    batch, name = rows.batch, rows.name
    labels = [_label(batch, plan.model, "model"), _label(batch, plan.method, name)]
    if plan.method is not None and len(plan.columns.confidence) > 1:
        codes, values = labels[1]
        labels[1] = (codes, [f"{value}:{name}" for value in values])
    labels.append(_label(batch, column or None, ""))
    keys = [(*key[:2], column, key[2]) for key in product(*(values for _, values in labels))]
    coded = [codes for codes, _ in labels if codes is not None]
    if len(coded) < 2:
        return (coded[0] if coded else None), keys, True
    # Codes of several columns are joined to one, like digits; not every combination occurs.
    joined = np.zeros(batch.rows, np.intp)
    for codes, values in labels:
        joined *= len(values)
        if codes is not None:
            joined += codes
    return joined, keys, False


def _count_unscored(subset: Indices, rows: ScoredRows, plan: SumPlan, out: PartSums) -> None:
    """Count rows that are graded and have no confidence, wrong and right ones, by block."""
    outcome = rows.correct[subset].astype(np.intp)
    for column in plan.by or ("",):
        codes, keys, _ = _keys(rows, column, plan)
        place = np.zeros(subset.size, np.intp) if codes is None else codes[subset]
        counts = np.bincount(2 * place + outcome, minlength=2 * len(keys)).reshape(-1, 2)
        for code in np.flatnonzero(counts.any(axis=1)):
            out.unscored[keys[code]] = out.unscored.get(keys[code], 0) + counts[code]


def _label(batch: Batch, column: str | None, fixed: str) -> tuple[Array | None, list[str]]:
    """Return codes and texts; a missing group reads ``None``, as in a table."""
    codes, values = (None, [fixed]) if column is None else batch.labels[column]
    return codes, ["None" if value is None else value for value in values]


def _kept(rows: ScoredRows, part: FilePart, plan: SumPlan, out: PartSums) -> Array:
    """Return which rows keep the rules, or raise at the first one that does not."""
    from calibrant.data.rules import UNSCORED, broken_rows, first_broken, may_be_left_out

    batch, broken = rows.batch, broken_rows(rows, model=plan.model, method=plan.method)
    allowed = may_be_left_out(plan.on_invalid)
    faults = {rule: places for rule, places in broken.items() if rule not in allowed}
    if faults:
        raise first_broken(rows, faults, part.file)
    keep = np.ones(batch.rows, np.bool_)
    for rule, places in broken.items():
        keep[places] = False
        names = (f"{part.file}:{batch.first_row + int(place)}" for place in places)
        out.leave_out(rule, places.size, names)
    unscored = ~keep
    for rule, places in broken.items():
        unscored[places] &= rule in UNSCORED
    _count_unscored(np.flatnonzero(unscored), rows, plan, out)
    codes, models = (None, ["model"]) if plan.model is None else batch.labels[plan.model]
    left_out = models if codes is None else [models[code] for code in np.unique(codes[~keep])]
    out.models_with_dropped_rows.update(model for model in left_out if model)
    return keep


def model_blocks(
    blocks: Mapping[Key, CellSums], by: tuple[str, ...], grid: CellGrid
) -> dict[tuple[str, str], CellSums]:
    """Return the sums per (model, method) in order of their names, all groups together."""
    column = by[0] if by else ""
    out: dict[tuple[str, str], CellSums] = {}
    for (model, method, name, _), sums in sorted(blocks.items(), key=lambda item: item[0]):
        if name == column:
            out.setdefault((model, method), CellSums.empty(grid)).add(sums)
    return out
