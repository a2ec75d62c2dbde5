"""The rules a row of scores must keep, and what a reader is told of rows that break one."""

from collections.abc import Collection, Mapping
from typing import Any

import polars as pl
from msgspec import Struct

from calibrant.core.errors import (
    InputError,
    OutOfRangeError,
    PossibleReading,
    QuestionError,
)
from calibrant.core.hints import Call, Hint
from calibrant.core.names import data_beside


class Rule(Struct, frozen=True):
    """A rule with the sentence and the hint that a reader sees."""

    name: str
    sentence: str
    hint: str


_DROP = Hint("use {on_invalid} to leave such rows out and have them counted", on_invalid="drop")

PERCENTAGES = Hint("if the column holds percentages, use {scale}", scale="percent")
"""What to do with confidences from 0 to 100."""


def _rule(name: str, entry: Mapping[str, Any]) -> Rule:
    values = dict(entry.get("with", {}))
    if "call" in values:
        values["call"] = Call(values["call"], "TABLE")
    hint = Hint(entry.get("hint", ""), **values)
    return Rule(name, entry["sentence"], hint + _DROP if entry.get("drop", True) else hint)


RULES = {name: _rule(name, entry) for name, entry in data_beside(__file__, "rules.toml").items()}
_BLANK = ("row_empty", "confidence_missing", "confidence_nan", "confidence_minus_one")
MISSING = frozenset([*_BLANK, "answer_missing", "correct_neither"])
"""Rules of rows that say nothing, and not something wrong: they are left out and counted."""
UNSCORED = tuple(name for name in RULES if name.startswith("confidence_"))
"""Rules of rows whose grade counts although their confidence does not."""


NOISE = 1e-9
"""How far rounding alone carries a number beyond its range: such a number is the range's end."""


def at_the_ends(value: pl.Expr) -> pl.Expr:
    """Return confidences, those that lie beside 0 or 1 by rounding alone at that end.

    Examples
    --------
    >>> column = pl.DataFrame({"c": [1 + 1e-12, -1e-12, 1.1]})
    >>> column.select(at_the_ends(pl.col("c")))["c"].to_list()
    [1.0, 0.0, 1.1]
    """
    return pl.when(value.is_between(-NOISE, 1 + NOISE)).then(value.clip(0, 1)).otherwise(value)


def rule_checks(
    non_probability: frozenset[str] = frozenset(), *, graded: bool, labels: bool, answer: bool
) -> dict[str, pl.Expr]:
    """Return, by rule, an expression that says which rows break it; the gravest rules first.

    Parameters
    ----------
    non_probability
        Methods whose score is no probability: their range is not checked.
    graded
        Whether outcomes between 0 and 1 are allowed.
    labels
        Whether an outcome is required in each row.
    answer
        Whether an answer is required in each row.
    """
    confidence, correct, weights = pl.col("confidence"), pl.col("correct"), pl.col("weights")
    bounded = confidence.is_finite()
    if non_probability:
        bounded &= ~pl.col("method").is_in(list(non_probability))
    no_grade = correct.is_null() | correct.is_nan()
    blank = confidence.is_null() & correct.is_null()
    for name in ("confidence", "correct"):
        blank &= pl.col(f"_{name}_text").is_null()
    checks = {
        "row_empty": blank if labels else pl.lit(False),
        "model_missing": _is_blank("model"),
        "method_missing": _is_blank("method"),
        "question_missing": _is_blank("question_id"),
        "confidence_not_number": pl.col("_confidence_text").is_not_null(),
        "confidence_missing": confidence.is_null() & pl.col("_confidence_text").is_null(),
        "confidence_nan": confidence.is_nan(),
        "confidence_infinite": confidence.is_infinite(),
        "confidence_minus_one": bounded & (confidence == -1),
        "confidence_below_0": bounded & (confidence < 0) & (confidence != -1),
        "confidence_above_1": bounded & (confidence > 1),
        "correct_not_number": pl.col("_correct_text").is_not_null(),
        "correct_neither": pl.col("_neither"),
        "correct_missing": (no_grade if labels else correct.is_nan())
        & pl.col("_correct_text").is_null()
        & ~pl.col("_neither"),
        "correct_not_binary": (~correct.is_between(0, 1) if graded else ~correct.is_in([0.0, 1.0]))
        & correct.is_not_nan(),
        "weights_not_number": pl.col("_weights_text").is_not_null(),
        "weights_invalid": (weights.is_null() & pl.col("_weights_text").is_null())
        | ~weights.is_finite()
        | (weights < 0),
    }
    if answer:
        checks["answer_missing"] = pl.col("answer").is_null()
    return {name: broken.fill_null(False) for name, broken in checks.items()}


def broken_masks(frame: pl.DataFrame, **checks: pl.Expr) -> dict[str, pl.Series]:
    """Return, by rule, which rows break it; a row may break several, an empty one that alone."""
    masks = frame.select(**checks)
    empty = masks["row_empty"]
    masks = masks.with_columns(pl.exclude("row_empty") & ~empty)
    return {mask.name: mask for mask in masks if mask.any()}


def _is_blank(column: str) -> pl.Expr:
    return pl.col(column).is_null() | (pl.col(column) == "")


# Rules about single cells: rows that break them may be left out where somebody says so.
_CELLS = frozenset(["confidence_not_number", "correct_not_number"])
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
    targets = ["duplicate_row"] if "duplicate_row" in faults else list(faults)
    first = next(bad.filter(pl.col("rule").is_in(targets)).iter_rows(named=True), None)
    first = bad.row(0, named=True) if first is None else first
    rule = RULES[first["rule"]]
    column = rule.name.split("_")[0]
    display = f"{column} = {'null' if column == 'answer' else _value_shown(column, first)}"
    if column == "duplicate":
        display = ", ".join(f"{key} = {first[key]!r}" for key in ("question_id", "model", "method"))
    text = f"{rule.sentence} ({display}); {bad.height} of {total} rows break a rule: "
    text, where = text + counts_text(counts), {"source": source, "row": first["_row"]}
    if {*faults} <= _CELLS and 2 * bad.height < total:
        without = PossibleReading(f"without {bad.height} of {total} rows", {"on_invalid": "drop"})
        return QuestionError(text, **where, hint=rule.hint, readings=[without])
    if {*faults} == {"duplicate_row"}:
        again = PossibleReading("rows with one id are answers to one question", {"repeats": True})
        return QuestionError(text, **where, hint=rule.hint, readings=[again])
    kind = OutOfRangeError if rule.name in _OUT_OF_RANGE else InputError
    return kind(text, **where, hint=rule.hint)


def _value_shown(column: str, row: Mapping[str, object]) -> str:
    """Return the value as it was given: text that is no number, or the number that was read."""
    value = row.get(f"_{column}_text")
    value = row.get("question_id" if column == "question" else column) if value is None else value
    return repr(value) if isinstance(value, str) else "null" if value is None else str(value)


_NUMBERS = ("confidence", "correct", "weights")


def broken_rows(rows: pl.DataFrame) -> dict[str, pl.Series]:
    """Return, by rule and in order of first appearance, which rows of a part of a table break it.

    Parameters
    ----------
    rows
        Columns confidence and correct; model, method and answer where the table has them.
    """
    labels = [
        pl.col(name).cast(pl.String) if name in rows.columns else pl.lit("one").alias(name)
        for name in ("model", "method")
    ]
    frame = rows.with_columns(
        pl.col("confidence", "correct").cast(pl.Float64),
        *labels,
        *(pl.lit(None, pl.String).alias(f"_{role}_text") for role in _NUMBERS),
        weights=pl.lit(1.0),
        # Ids are looked at where questions are matched; a sum does not need them.
        question_id=pl.lit("row"),
        _neither=pl.lit(False),
    )
    answer = "answer" in rows.columns
    checks = rule_checks(graded=False, labels=True, answer=answer)
    masks = broken_masks(frame, **checks)
    return dict(sorted(masks.items(), key=lambda item: int(item[1].arg_max() or 0)))


def first_broken(name: str, row: Mapping[str, Any], file: str) -> InputError:
    """Return the error that names a row that breaks a rule."""
    rule, column = RULES[name], name.split("_")[0]
    value = row[column] if column in ("confidence", "correct") else None
    visible = "null" if value is None else str(float(value))
    text = f"{rule.sentence} ({column} = {visible})"
    return InputError(text, source=file, row=row["_row"], hint=rule.hint)
