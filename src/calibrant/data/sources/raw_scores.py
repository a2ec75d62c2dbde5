"""Scores outside [0, 1]: no probabilities, but what a recalibration can make some of."""

from typing import Any

import polars as pl

from calibrant.core.errors import InputError, OutOfRangeError
from calibrant.core.hints import Hint
from calibrant.data import scan_table, source_name
from calibrant.data.sources.reading import ReadingOptions
from calibrant.data.tables import collect, column_names

# Calibrators that take any number; the others need a confidence to start from.
ANY_SCORE = ("platt", "isotonic")
_REFUSAL = -1.0
# Squares of larger scores are beyond what a computer holds.
_LARGEST = 1e100


def scores_outside(data: Any, asked: ReadingOptions, recalibrate: str) -> dict[str, int]:
    """Return how many scores of each method lie outside [0, 1]; methods without any are absent.

    A lone -1 among confidences is a code for a refusal and no score: it does not count, and the
    rule against it stays.

    Examples
    --------
    >>> table = {"confidence": [-1.0, 0.2, 7.5], "correct": [0, 1, 1]}
    >>> scores_outside(table, ReadingOptions(), "platt")
    {'confidence': 1}
    """
    outside: dict[str, int] = {}
    for source in data if isinstance(data, list | tuple) else [data]:
        names = column_names(scan_table(source), source)
        columns = _columns(asked.confidence, names)
        for column in columns:
            for name, count in _counts(source, names, column, asked, several=len(columns) > 1):
                outside[name] = outside.get(name, 0) + count
    if outside and recalibrate not in ANY_SCORE:
        name, count = next(iter(outside.items()))
        raise InputError(
            f"{recalibrate} calibration takes confidences in [0, 1], and {count:,} of {name} lie "
            "outside",
            source=source_name(data),
            hint=Hint("{recalibrate} takes any score", recalibrate=" or ".join(ANY_SCORE)),
        )
    return outside


def _columns(confidence: str | None, names: list[str]) -> list[str]:
    request = confidence or "confidence"
    parts = [request] if request in names else [part.strip() for part in request.split(",")]
    # What is not there is the reader's to refuse, by name.
    return [part for part in parts if part in names]


def _counts(
    source: Any, names: list[str], column: str, request: ReadingOptions, *, several: bool
) -> list[tuple[str, int]]:
    key = request.method or "method"
    name = pl.col(key).cast(pl.String) if key in names else pl.lit(column)
    if key in names and several:
        name = pl.concat_str([name, pl.lit(column)], separator=":")
    value = pl.col(column).cast(pl.String).str.strip_chars().cast(pl.Float64, strict=False)
    most = 100 if request.scale == "percent" else 1
    outside = value.is_finite() & ~value.is_between(0, most) & (value != _REFUSAL)
    numbers = scan_table(source).with_row_index("row", offset=1).select("row", value.alias("value"))
    far = numbers.filter(pl.col("value").is_finite() & (pl.col("value").abs() > _LARGEST)).head(1)
    for row, number in collect(far, source).iter_rows():
        rule = f"a score must lie within -1e100 and 1e100 ({column} = {number})"
        hint = "mend the value, or leave the row out"
        raise InputError(rule, source=source_name(source), row=row, hint=hint)
    table = scan_table(source).select(name.alias("name"), outside.alias("outside"))
    counts = table.filter("outside").group_by("name", maintain_order=True).len()
    return list(collect(counts, source).iter_rows())


def with_way_out(error: InputError) -> InputError:
    """Return the error of a score outside [0, 1] with what to do where it is meant as a score."""
    if not isinstance(error, OutOfRangeError):
        return error
    advice = "if it is a score and no probability, use {recalibrate}, which makes it one"
    mode = Hint(advice, recalibrate="platt")
    hint = error.hint + "; " + mode if error.hint else mode
    return InputError(error.rule, source=error.source, row=error.row, hint=hint)
