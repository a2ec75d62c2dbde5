"""What a reader is told about rows that break a rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from calibrant.core.errors import InputError, OutOfRangeError
from calibrant.records.rules import RULES

_OUT_OF_RANGE = ("confidence_below_0", "confidence_above_1")


def counts_text(bad: pl.DataFrame) -> str:
    """Return how many rows break which rule, most first."""
    counts = bad["rule"].value_counts(sort=True, name="n").iter_rows()
    return ", ".join(f"{name} {n}" for name, n in counts)


def row_error(bad: pl.DataFrame, source: str, *, total: int) -> InputError:
    """Return the error that names the first broken row; a repeated question goes first.

    Parameters
    ----------
    bad
        The rows that break a rule, with the columns ``rule`` and ``_row``.
    source
        What messages call the table.
    total
        Rows of the whole table.
    """
    duplicates = bad.filter(pl.col("rule") == "duplicate_row")
    first = (duplicates if duplicates.height else bad).row(0, named=True)
    rule = RULES[first["rule"]]
    column = rule.name.split("_")[0]
    shown = {
        "duplicate": f"question_id = {first['question_id']!r}, model = {first['model']!r}, "
        f"method = {first['method']!r}",
        "answer": "answer = null",
    }.get(column) or f"{column} = {_value_shown(column, first)}"
    kind = OutOfRangeError if rule.name in _OUT_OF_RANGE else InputError
    return kind(
        f"{rule.sentence} ({shown}); {bad.height} of {total} rows break a rule: {counts_text(bad)}",
        source=source,
        row=first["_row"],
        hint=rule.hint,
    )


def _value_shown(column: str, row: Mapping[str, Any]) -> str:
    """Return the value as it was given: text that is no number, or the number that was read."""
    value = row.get(f"_{column}_text")
    value = row.get("question_id" if column == "question" else column) if value is None else value
    return repr(value) if isinstance(value, str) else "null" if value is None else str(value)
