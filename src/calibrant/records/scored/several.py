"""Several scores tables as one: whose rows are whose, and which of them are one question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import polars as pl

from calibrant.core.errors import InputError
from calibrant.records.reading import joined_readings
from calibrant.records.rules import RULES
from calibrant.records.scored.table import Scores

_KEYS = ["model", "method", "question_id"]


def named_model(scores: Scores, name: str) -> Scores:
    """Return a table that has no model column as that of a model, with the rows it lost."""
    return _with_columns(scores, model=pl.lit(name))


def joined_scores(parts: Sequence[Scores], source: str, *, repeats: bool) -> Scores:
    """Return tables that were read one after the other as one.

    Row numbers that stand for missing ids mean the same question in every table only where all
    tables are equally long and none holds another's model and method. Else each has its own.

    Parameters
    ----------
    parts
        The tables, each with its source.
    source
        What they are called together.
    repeats
        Several rows of one question are repeated answers, not an error.
    """
    numbered = ["question_id" in part.assumed for part in parts]
    paired = all(numbered) and _row_by_row(parts)
    if any(numbered) and not paired:
        parts = [
            _with_columns(part, question_id=pl.lit(f"{part.source}:") + pl.col("question_id"))
            if alone
            else part
            for part, alone in zip(parts, numbered, strict=True)
        ]
    frame = _stacked(part.frame for part in parts)
    if "weights" in frame.columns:
        # Every row of a table without weights counts once.
        frame = frame.with_columns(pl.col("weights").fill_null(1.0))
    if not repeats and frame.select(pl.struct(_KEYS).is_duplicated().any()).item():
        again = frame.filter(pl.struct(_KEYS).is_duplicated()).row(0, named=True)
        raise InputError(
            f"two tables hold the same question, model and method: {[again[key] for key in _KEYS]}",
            source=source,
            hint=RULES["duplicate_row"].hint,
        )
    return Scores(
        frame,
        source,
        _summed(part.dropped for part in parts),
        _named_rows(parts),
        _stacked(part.rejected for part in parts),
        assumed=("question_id",) if all(numbered) and not paired else (),
        reading=joined_readings([part.reading for part in parts]),
        unscored=_stacked(part.unscored for part in parts),
        weightless=_stacked(part.weightless for part in parts),
        paired_by_row=paired,
        likely_weights=next((part.likely_weights for part in parts if part.likely_weights), None),
    )


def _with_columns(scores: Scores, **columns: pl.Expr) -> Scores:
    """Return the table with columns in place of others; a part without rows may have none."""
    return scores.each(lambda part: part.with_columns(**columns) if part.width else part)


def _row_by_row(parts: Sequence[Scores]) -> bool:
    """Say whether row 1 of each table may be one question, and so on."""
    rows = {part.frame.height + part.rejected.height + part.weightless.height for part in parts}
    held = [pair for part in parts for pair in part.frame.select(_KEYS[:2]).unique().iter_rows()]
    return len(rows) == 1 and len(set(held)) == len(held)


def _stacked(tables: Iterable[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(list(tables), how="diagonal_relaxed")


def _summed(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in counts:
        for rule, count in part.items():
            total[rule] = total.get(rule, 0) + count
    return total


def _named_rows(parts: Sequence[Scores]) -> dict[str, list[str]]:
    """Return the rows that break each rule, by the table that they stand in."""
    rows: dict[str, list[str]] = {}
    for part in parts:
        for rule, numbers in part.dropped_rows.items():
            rows.setdefault(rule, []).extend(f"{part.source}:{number}" for number in numbers)
    return rows
