"""What a reader is told about rows that break a rule."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import polars as pl

from calibrant.core.errors import InputError, OutOfRangeError
from calibrant.records.rules import RULES

_OUT_OF_RANGE = ("confidence_below_0", "confidence_above_1")


def counts_text(counts: Mapping[str, int]) -> str:
    """Return how many rows break which rule, most first."""
    return ", ".join(f"{name} {n}" for name, n in counts.items())


def row_error(
    bad: pl.DataFrame,
    source: str,
    *,
    faults: Collection[str],
    counts: Mapping[str, int],
    total: int,
) -> InputError:
    """Return the error that names the first broken row; a repeated question goes first.

    Parameters
    ----------
    bad
        The rows that break a rule, with the columns ``rule`` and ``_row``.
    source
        What messages call the table.
    faults
        The rules that must not be broken.
    counts
        Rows by rule.
    total
        Rows of the whole table.
    """
    wanted = ["duplicate_row"] if "duplicate_row" in faults else list(faults)
    first = next(bad.filter(pl.col("rule").is_in(wanted)).iter_rows(named=True), None)
    first = bad.row(0, named=True) if first is None else first
    rule = RULES[first["rule"]]
    column = rule.name.split("_")[0]
    shown = {
        "duplicate": f"question_id = {first['question_id']!r}, model = {first['model']!r}, "
        f"method = {first['method']!r}",
        "answer": "answer = null",
    }.get(column) or f"{column} = {_value_shown(column, first)}"
    kind = OutOfRangeError if rule.name in _OUT_OF_RANGE else InputError
    return kind(
        f"{rule.sentence} ({shown}); {bad.height} of {total} rows break a rule: "
        f"{counts_text(counts)}",
        source=source,
        row=first["_row"],
        hint=rule.hint,
    )


def _value_shown(column: str, row: Mapping[str, Any]) -> str:
    """Return the value as it was given: text that is no number, or the number that was read."""
    value = row.get(f"_{column}_text")
    value = row.get("question_id" if column == "question" else column) if value is None else value
    return repr(value) if isinstance(value, str) else "null" if value is None else str(value)
