"""From a part of a table to its sums: rows are checked rule by rule, then counted in cells."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import islice
from operator import or_
from typing import TypeAlias

import numpy as np
import polars as pl
from msgspec import Struct, field

from calibrant.core.arrays import Indices
from calibrant.data import rules
from calibrant.data.batches import BatchColumns, FilePart, label_column, read_part
from calibrant.metrics.blocks.grid import CellGrid, CellSums, cell_sums, require_few

# (model, method, column, value); column and value are empty where there are no groups.
Key: TypeAlias = tuple[str, ...]
ROWS_NAMED = 10


class SumPlan(Struct, frozen=True):
    """What is to be summed: columns by role, the groups, and what to do with broken rows."""

    columns: BatchColumns
    grid: CellGrid
    model: str | None = None
    method: str | None = None
    by: tuple[str, ...] = ()
    percent: bool = False
    on_invalid: str = "missing"


class PartSums(Struct):
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

    def add(self, part: PartSums) -> None:
        """Take in the sums of the part that follows."""
        self.rows += part.rows
        self.models_with_dropped_rows |= part.models_with_dropped_rows
        for key, sums in part.blocks.items():
            self.add_block(key, sums)
        for key, counts in part.unscored.items():
            self.unscored[key] = self.unscored.get(key, 0) + counts
        for rule, count in part.dropped.items():
            self.leave_out(rule, count, part.dropped_rows[rule])

    def add_block(self, key: Key, sums: CellSums) -> None:
        """Take in further sums of a block."""
        if key not in self.blocks:
            require_few(len(self.blocks) + 1)
        self.blocks[key] = self.blocks[key] + sums if key in self.blocks else sums

    def leave_out(self, rule: str, count: int, rows: Iterable[str]) -> None:
        """Count rows that break a rule, and name the first few of them."""
        self.dropped[rule] = self.dropped.get(rule, 0) + count
        names = self.dropped_rows.setdefault(rule, [])
        names += islice(rows, ROWS_NAMED - len(names))


def sum_part(part: FilePart, plan: SumPlan) -> PartSums:
    """Read, check and sum one part; what it gives does not depend on where or when that is done."""
    out = PartSums()
    for batch in read_part(part, plan.columns):
        out.rows += batch.height
        for name in plan.columns.confidence:
            rows = _scored(batch, name, plan)
            if not rows.select(_sound(rows.columns).all()).item():
                rows = rows.with_columns(rules.at_the_ends(pl.col("confidence")))
                rows = rows.with_row_index("_row", part.first_row + out.rows - batch.height)
                sound = _sound(rows.columns)
                _leave_out(rows.filter(~sound), name, part, plan, out)
                rows = rows.filter(sound)
            for key, block in _blocks(rows, name, plan):
                values = block["confidence"].to_numpy(), block["correct"].to_numpy()
                out.add_block(key, cell_sums(*values, plan.grid))
    return out


def _scored(batch: pl.DataFrame, name: str, plan: SumPlan) -> pl.DataFrame:
    """Return the rows of a batch under one of its columns of confidences."""
    single = batch.schema[name] == pl.Float32
    confidence = pl.col(name).cast(pl.Float32 if single else pl.Float64)
    confidence = confidence / 100 if plan.percent else confidence
    correct = pl.col(plan.columns.correct)
    if batch.schema[plan.columns.correct] == pl.Boolean:
        correct = correct.cast(pl.Int8)
    labels = {"model": plan.model, "method": plan.method}
    labels |= {f"by {column}": column for column in plan.by}
    columns = {role: pl.col(label_column(column)) for role, column in labels.items() if column}
    if plan.columns.answer is not None:
        columns["answer"] = pl.col(plan.columns.answer)
    return batch.select(confidence=confidence, correct=correct, **columns)


def _sound(columns: Sequence[str]) -> pl.Expr:
    """Return an expression that holds for the rows that keep all rules, cheaper than these."""
    sound = pl.col("confidence").is_between(0, 1) & pl.col("correct").is_in([0, 1])
    for name in {"model", "method"} & {*columns}:
        sound &= pl.col(name) != ""
    if "answer" in columns:
        sound &= pl.col("answer").is_not_null()
    return sound.fill_null(False)


def _blocks(rows: pl.DataFrame, name: str, plan: SumPlan) -> Iterator[tuple[Key, pl.DataFrame]]:
    """Yield the rows of every model and method, or of each of their groups; no empty ones."""
    for column in plan.by or ("",):
        labels = [role for role in ("model", "method", f"by {column}") if role in rows.columns]
        block = rows.select("confidence", "correct", *labels)
        parts = block.partition_by(labels, as_dict=True) if labels else {(): block}
        for values, part in parts.items():
            # A missing group reads None, as in a table.
            texts = {role: str(value) for role, value in zip(labels, values, strict=True)}
            method = texts.get("method", name)
            if plan.method is not None and len(plan.columns.confidence) > 1:
                method = f"{method}:{name}"
            if part.height:
                group = texts.get(f"by {column}", "")
                yield (texts.get("model", "model"), method, column, group), part


def _leave_out(rows: pl.DataFrame, name: str, part: FilePart, plan: SumPlan, out: PartSums) -> None:
    """Count rows that break a rule, or raise at the first that must not."""
    broken = rules.broken_rows(rows)
    # A part knows no shares of all rows.
    few = (*rules.MISSING, *rules.UNSCORED, "correct_missing")
    allowed = {"error": (), "missing": few, "drop": (*rules.RULES,)}[plan.on_invalid]
    for rule, mask in broken.items():
        if rule not in allowed:
            raise rules.first_broken(rule, rows.filter(mask).row(0, named=True), part.file)
    for rule, mask in broken.items():
        places = rows["_row"].filter(mask)
        out.leave_out(rule, places.len(), (f"{part.file}:{row}" for row in places))
    models = rows["model"].unique().to_list() if plan.model is not None else ["model"]
    out.models_with_dropped_rows.update(model for model in models if model)
    masks = (mask for rule, mask in broken.items() if rule not in rules.UNSCORED)
    graded = ~reduce(or_, masks, pl.repeat(False, rows.height, eager=True))
    for key, block in _blocks(rows.filter(graded), name, plan):
        counts = np.bincount(block["correct"].to_numpy().astype(np.intp), minlength=2)
        out.unscored[key] = out.unscored.get(key, 0) + counts


def model_blocks(
    blocks: Mapping[Key, CellSums], by: tuple[str, ...]
) -> dict[tuple[str, str], CellSums]:
    """Return the sums per (model, method) in order of their names, all groups together."""
    column = by[0] if by else ""
    out: dict[tuple[str, str], CellSums] = {}
    for (model, method, name, _), sums in sorted(blocks.items(), key=lambda item: item[0]):
        if name == column:
            key = model, method
            out[key] = out[key] + sums if key in out else sums
    return out
