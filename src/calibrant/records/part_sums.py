"""From a part of a table to its sums: rows are checked rule by rule, then counted in cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from calibrant.core.errors import InputError
from calibrant.records.batches import Batch, Columns, Part, number_array, read_part
from calibrant.records.rules import RULES, broken_rule
from calibrant.stats.mergeable import CellGrid, CellSums, SumTable

__all__ = ["PartSums", "SumPlan", "model_blocks", "sum_part"]

Array: TypeAlias = NDArray[Any]
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

    columns: Columns
    grid: CellGrid
    model: str | None = None
    method: str | None = None
    by: tuple[str, ...] = ()
    percent: bool = False
    drop: bool = False


@dataclass(slots=True)
class PartSums:
    """Sums by block, and the rows that were left out by rule; they merge by addition."""

    blocks: dict[Key, CellSums] = field(default_factory=dict)
    rows: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    dropped_rows: dict[str, list[str]] = field(default_factory=dict)

    def add(self, other: PartSums) -> None:
        """Take in the sums of the part that follows."""
        for key, sums in other.blocks.items():
            if key in self.blocks:
                self.blocks[key].add(sums)
            else:
                # What comes from another process cannot be written to.
                self.blocks[key] = sums.copy()
        self.rows += other.rows
        for rule, count in other.dropped.items():
            self.dropped[rule] = self.dropped.get(rule, 0) + count
            named = self.dropped_rows.setdefault(rule, [])
            named += other.dropped_rows[rule][: ROWS_NAMED - len(named)]


def sum_part(part: Part, plan: SumPlan) -> PartSums:
    """Read, check and sum one part."""
    table = SumTable(plan.grid)
    out = PartSums()
    for batch in read_part(part, plan.columns):
        out.rows += batch.rows
        for name in plan.columns.confidence:
            _add(batch, name, part, plan, table, out)
    # A dictionary may name a model that none of these rows is of.
    out.blocks = {key: sums for key, sums in table.sums().items() if sums.rows.any()}
    return out


def _add(
    batch: Batch, name: str, part: Part, plan: SumPlan, table: SumTable, out: PartSums
) -> None:
    confidence = _numbers(batch.confidence[name], name, part)
    correct = _numbers(batch.correct, plan.columns.correct, part)
    missing = batch.confidence[name].null_count or batch.correct.null_count
    if plan.percent:
        confidence = confidence / 100
    unanswered = batch.answer is not None and batch.answer.null_count
    sound = not missing and not unanswered and _in_range(confidence) and _binary(correct)
    keep = None if sound else _kept(batch, name, confidence, correct, part, plan, out)
    for column in plan.by or ("",):
        codes, lookup = _blocks(batch, name, column, plan, table)
        if keep is None:
            table.add(confidence, correct, lookup, codes)
        elif keep.any():
            chosen = None if codes is None else codes[keep]
            table.add(confidence[keep], correct[keep], lookup, chosen)


def _numbers(column: Any, name: str, part: Part) -> Array:
    """Return a column as numpy numbers; what is no number is refused with its type."""
    import pyarrow.types as kinds

    kind = column.type
    known = kinds.is_floating(kind) or kinds.is_integer(kind) or kinds.is_boolean(kind)
    if not known:
        raise InputError(
            f"a streamed audit reads numbers, the column {name!r} holds {kind}",
            source=part.file,
            hint="store confidence and outcome as numbers, or audit a table that fits in memory",
        )
    values = number_array(column)
    return values.astype(np.float64) if values.dtype == np.float16 else values


def _in_range(values: Array) -> bool:
    """Return whether all values are in [0, 1]; the bits of such numbers are ordered like them."""
    known = _BITS_OF_ONE.get(values.dtype)
    if known is not None and np.maximum.reduce(values.view(known[0]), initial=0) <= known[1]:
        return True
    return bool(((values >= 0) & (values <= 1)).all())


def _binary(values: Array) -> bool:
    if values.dtype == np.bool_:
        return True
    if values.dtype.kind in "iu":
        # Read without a sign, a negative number is a large one.
        unsigned = values.view(np.dtype(f"u{values.dtype.itemsize}"))
        return bool(np.maximum.reduce(unsigned, initial=0) <= 1)
    return bool(((values == 0) | (values == 1)).all())


def _blocks(batch: Batch, name: str, column: str, plan: SumPlan, table: SumTable) -> Blocks:
    """Return a code per row (or None where all rows share one) and the block of every code."""
    labels = [_label(batch, plan.model, "model"), _label(batch, plan.method, name)]
    if plan.method is not None and len(plan.columns.confidence) > 1:
        codes, values = labels[1]
        labels[1] = (codes, [f"{value}:{name}" for value in values])
    labels.append(_label(batch, column or None, ""))
    keys = [(*key[:2], column, key[2]) for key in product(*(values for _, values in labels))]
    coded = [codes for codes, _ in labels if codes is not None]
    if not coded:
        return None, np.array([table.number(keys[0])])
    if len(coded) == 1:
        return coded[0], np.array([table.number(key) for key in keys])
    # Codes of several columns are joined to one, like digits; not every combination occurs.
    joined = np.zeros(batch.rows, np.intp)
    for codes, values in labels:
        joined *= len(values)
        if codes is not None:
            joined += codes
    present = np.flatnonzero(np.bincount(joined, minlength=len(keys)))
    lookup = np.zeros(len(keys), np.intp)
    lookup[present] = [table.number(keys[code]) for code in present]
    return joined, lookup


def _label(batch: Batch, column: str | None, fixed: str) -> tuple[Array | None, list[str]]:
    return (None, [fixed]) if column is None else batch.labels[column]


def _kept(
    batch: Batch,
    name: str,
    confidence: Array,
    correct: Array,
    part: Part,
    plan: SumPlan,
    out: PartSums,
) -> Array:
    """Return which rows keep the rules, or raise at the first one that does not."""
    frame = pl.DataFrame(
        {
            "confidence": _with_nulls(confidence, batch.confidence[name]),
            "correct": _with_nulls(correct, batch.correct),
            "weights": np.ones(batch.rows),
            "method": [name] * batch.rows,
        }
    ).with_columns(
        pl.lit(False).alias("_confidence_text"),
        pl.lit(False).alias("_correct_text"),
        pl.lit(False).alias("_weights_text"),
    )
    if batch.answer is not None:
        frame = frame.with_columns(answer=pl.Series(~_null(batch.answer)).replace(False, None))
    rule = broken_rule(
        ranking=frozenset(), graded=False, labels=True, answer=batch.answer is not None
    )
    broken = frame.select(rule.alias("rule"))["rule"]
    bad = np.flatnonzero(broken.is_not_null().to_numpy())
    if bad.size and not plan.drop:
        first = int(bad[0])
        rules = RULES[broken[first]]
        column = rules.name.split("_")[0]
        shown = frame[column][first] if column in frame.columns else None
        raise InputError(
            f"{rules.sentence} ({column} = {shown})",
            source=part.file,
            row=batch.first_row + first,
            hint=rules.hint,
        )
    for found in dict.fromkeys(broken[bad.tolist()]):
        rows = np.flatnonzero((broken == found).fill_null(False).to_numpy())
        out.dropped[found] = out.dropped.get(found, 0) + rows.size
        named = out.dropped_rows.setdefault(found, [])
        room = ROWS_NAMED - len(named)
        named += [f"{part.file}:{batch.first_row + int(row)}" for row in rows[:room]]
    return broken.is_null().to_numpy()


def _null(column: Any) -> Array:
    return number_array(column.is_null())


def _with_nulls(values: Array, column: Any) -> pl.Series:
    """Return the numbers with what is missing as null, not as NaN."""
    series = pl.Series(values.astype(np.float64))
    if not column.null_count:
        return series
    empty = pl.Series(_null(column))
    return pl.select(pl.when(~empty).then(series)).to_series()


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
