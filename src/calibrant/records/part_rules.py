"""Which rows of a batch keep the rules, where not all of them do.

Apart from the summing, since most tables never come here and polars takes its time to load.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import polars as pl

from calibrant.core.arrays import Array
from calibrant.core.errors import InputError
from calibrant.records.batches import Batch, number_array
from calibrant.records.rules import MISSING, RULES, rule_checks

_NUMBERS = ("confidence", "correct", "weights")


def broken_rows(
    batch: Batch,
    name: str,
    confidence: Array,
    correct: Array,
    *,
    model: str | None,
    method: str | None,
) -> dict[str, Array]:
    """Return, by rule and in order of first appearance, the rows of a batch that break it.

    Parameters
    ----------
    batch
        The batch, for what is missing in it.
    name
        Column of the confidences.
    confidence, correct
        Its numbers; a row that is missing in the batch holds anything.
    model, method
        Columns of their names, or None where all rows share one.
    """
    frame = pl.DataFrame(
        {
            "confidence": _with_nulls(confidence, batch.confidence[name]),
            "correct": _with_nulls(correct, batch.correct),
            "weights": np.ones(batch.rows),
        }
    ).with_columns(
        _names(batch, model).alias("model"),
        _names(batch, method).alias("method"),
        # Ids are looked at where questions are matched; a sum does not need them.
        pl.lit("row").alias("question_id"),
        *(pl.lit(None, pl.String).alias(f"_{role}_text") for role in _NUMBERS),
    )
    if batch.answer is not None:
        frame = frame.with_columns(answer=pl.Series(~_null(batch.answer)).replace(False, None))
    checks = rule_checks(
        non_probability=frozenset(), graded=False, labels=True, answer=batch.answer is not None
    )
    masks = frame.select(**checks)
    empty = masks["row_empty"]
    broken = {
        rule: np.flatnonzero((masks[rule] & (~empty | (rule == "row_empty"))).to_numpy())
        for rule in masks.columns
    }
    held = {rule: rows for rule, rows in broken.items() if rows.size}
    return dict(sorted(held.items(), key=lambda item: int(item[1][0])))


def may_be_left_out(on_invalid: str) -> Collection[str]:
    """Return the rules that rows may break and are then left out; a part knows no shares."""
    ways = {"error": (), "missing": (*MISSING, "correct_missing"), "drop": RULES}
    return ways[on_invalid]


def first_broken(
    batch: Batch, name: str, confidence: Array, correct: Array, broken: dict[str, Array], file: str
) -> InputError:
    """Return the error that names the first row that breaks a rule."""
    found = min(broken, key=lambda rule: int(broken[rule][0]))
    rule, row = RULES[found], int(broken[found][0])
    column = rule.name.split("_")[0]
    columns = {
        "confidence": (confidence, batch.confidence[name]),
        "correct": (correct, batch.correct),
    }
    shown = None
    if column in columns:
        values, stored = columns[column]
        shown = None if stored.null_count and _null(stored)[row] else float(values[row])
    return InputError(
        f"{rule.sentence} ({column} = {'null' if shown is None else shown})",
        source=file,
        row=batch.first_row + row,
        hint=rule.hint,
    )


def _names(batch: Batch, column: str | None) -> pl.Series:
    codes, values = (None, ["given"]) if column is None else batch.labels[column]
    texts = pl.Series(values, dtype=pl.String)
    return texts.gather(np.zeros(batch.rows, np.intp) if codes is None else codes)


def _null(column: Any) -> Array:
    return number_array(column.is_null())


def _with_nulls(values: Array, column: Any) -> pl.Series:
    """Return the numbers with what is missing as null, not as NaN."""
    series = pl.Series(values.astype(np.float64))
    if not column.null_count:
        return series
    empty = pl.Series(_null(column))
    return pl.select(pl.when(~empty).then(series)).to_series()
