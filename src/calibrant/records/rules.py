"""The rules a row of scores must keep, each with a name, a reason and a way out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from calibrant.core.calls import Call
from calibrant.core.hints import Hint


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule with the sentence and the hint that a reader sees."""

    name: str
    sentence: str
    hint: str


_DROP = Hint("use {on_invalid} to leave such rows out and have them counted", on_invalid="drop")

PERCENTAGES = Hint("if the column holds percentages, use {scale}", scale="percent")
"""What to do with confidences from 0 to 100."""
_ALL = (
    Rule("row_empty", "the row has neither a confidence nor an outcome", _DROP),
    Rule("model_missing", "the row names no model", Hint("fill the model in, or ") + _DROP),
    Rule(
        "method_missing",
        "the row names no confidence method",
        Hint("fill the method in, or ") + _DROP,
    ),
    Rule("question_missing", "the row has no question id", Hint("fill the id in, or ") + _DROP),
    Rule(
        "confidence_not_number",
        "the confidence must be a number",
        Hint("if words stand for numbers, use {scale}; or ", scale="low=0.3,high=0.9") + _DROP,
    ),
    Rule("confidence_missing", "the confidence is missing", _DROP),
    Rule("confidence_nan", "the confidence is NaN", _DROP),
    Rule("confidence_infinite", "the confidence is infinite", _DROP),
    Rule(
        "confidence_minus_one",
        "the confidence is -1, which usually codes a refusal or a parse failure",
        _DROP,
    ),
    Rule("confidence_below_0", "the confidence must be at least 0", _DROP),
    Rule(
        "confidence_above_1",
        "the confidence must be at most 1",
        PERCENTAGES + "; otherwise " + _DROP,
    ),
    Rule(
        "correct_not_number",
        "the outcome must be 0, 1, true or false",
        Hint("say which words mean right with {right}; or ", right="good,fine") + _DROP,
    ),
    Rule(
        "correct_missing",
        "the outcome is missing",
        Hint(
            "rows that have one may differ from those that have none: label a drawn part with "
            "`{call}` and audit the table again; only where chance decided which rows have an "
            "outcome, use {on_invalid} to leave the others out and have them counted",
            call=Call("label serve", "TABLE"),
            on_invalid="drop",
        ),
    ),
    Rule(
        "correct_not_binary",
        "the outcome must be 0 or 1",
        Hint(
            "if grades between 0 and 1 are meant, audit and compare take {graded}; otherwise ",
            graded=True,
        )
        + _DROP,
    ),
    Rule(
        "answer_missing",
        "there is no answer: a question that was not attempted is not a wrong answer",
        _DROP,
    ),
    Rule(
        "repeated_row",
        "the row stands in the table several times and counts once",
        Hint("if they are different questions, name their ids with {question}"),
    ),
    Rule("weights_not_number", "the weight must be a number", _DROP),
    Rule("weights_invalid", "the weight must be finite and not negative", _DROP),
    Rule(
        "duplicate_row",
        "the question appears more than once for this model and method",
        Hint(
            "name all columns that make up the id ({question}); if the rows are repeated answers "
            "to one question, use {repeats}",
            question="id,prompt",
            repeats=True,
        ),
    ),
)
RULES = {rule.name: rule for rule in _ALL}

MISSING = frozenset(
    {"row_empty", "confidence_missing", "confidence_nan", "confidence_minus_one", "answer_missing"}
)
"""Rules of rows that say nothing, and not something wrong: they are left out and counted."""
UNSCORED = tuple(rule.name for rule in _ALL if rule.name.startswith("confidence_"))
"""Rules of rows whose grade counts although their confidence does not."""


def rule_checks(
    *, non_probability: frozenset[str], graded: bool, labels: bool, answer: bool
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
        "correct_missing": (no_grade if labels else correct.is_nan())
        & pl.col("_correct_text").is_null(),
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


def broken_rule(checks: Mapping[str, pl.Expr]) -> pl.Expr:
    """Return an expression with the name of the first rule that each row breaks, or null."""
    return pl.coalesce([pl.when(broken).then(pl.lit(name)) for name, broken in checks.items()])


def _is_blank(column: str) -> pl.Expr:
    return pl.col(column).is_null() | (pl.col(column) == "")
