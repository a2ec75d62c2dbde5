"""The scores table: one row per question, model and method, checked rule by rule."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from calibrant.core.error_source import error_source
from calibrant.core.errors import InputError
from calibrant.records.columns import guessed_column, joined_id, with_fields
from calibrant.records.file_models import models_by_file
from calibrant.records.roles import ROLES, require_column, resolve_roles
from calibrant.records.row_errors import counts_text, row_error
from calibrant.records.rules import PERCENTAGES, broken_rule
from calibrant.records.scored.several import joined_scores, named_model
from calibrant.records.scored.table import ScoreBlock, Scores
from calibrant.records.scored.weights import split_weightless
from calibrant.records.tables import collect, column_names, scan_table, source_name

__all__ = ["ScoreBlock", "Scores", "load_scores"]

_MISSING_TEXT = ["", "na", "n/a", "nan", "null", "none"]
_ROWS_NAMED = 10
_NO_TEXT = pl.lit(None, pl.String)


def load_scores(
    source: Any,
    *,
    confidence: str | None = None,
    correct: str | None = None,
    model: str | None = None,
    method: str | None = None,
    question: str | None = None,
    answer: str | None = None,
    weights: str | None = None,
    on_invalid: str = "error",
    labels: str = "required",
    graded: bool = False,
    scale: str = "fraction",
    repeats: bool = False,
    non_probability: Collection[str] = (),
    features: Sequence[str] | None = None,
    by: Sequence[str] = (),
) -> Scores:
    """Read and check a scores table.

    Parameters
    ----------
    source
        Path, dataframe or mapping of columns; or a list of them, read one after the other. Where
        a file of a list has no model column, its name is the model.
    confidence, correct, model, method, question, answer, weights
        Column names. Default: the names of the scores schema. `question` may name several
        columns, separated by commas, that make up the id together; `confidence` may name
        several columns, each of which becomes a method.
    on_invalid
        ``"error"`` stops at the first row that breaks a rule; ``"drop"`` leaves such rows out
        and counts them.
    labels
        ``"required"``, or ``"optional"`` where rows without an outcome are wanted (labelling).
    graded
        Allow outcomes between 0 and 1.
    scale
        ``"fraction"``, or ``"percent"`` to divide the confidence by 100.
    repeats
        Several rows of one question are repeated answers, not an error.
    non_probability
        Methods whose score is not a probability: their range is not checked.
    features
        Further columns to keep; None keeps all.
    by
        Those of them whose values name groups: in a text table `1.1` and `1.10` are two.

    Examples
    --------
    >>> table = {"confidence": [0.9, 0.4, 1.7], "correct": [1, 0, 1]}
    >>> load_scores(table, on_invalid="drop").dropped
    {'confidence_above_1': 1}
    >>> load_scores(table)
    Traceback (most recent call last):
    ...
    calibrant.core.errors.OutOfRangeError: a table in memory, row 3: the confidence must be at \
most 1 (confidence = 1.7); 1 of 3 rows break a rule: confidence_above_1 1
      -> if the column holds percentages, divide it by 100, or use scale="percent" with audit \
and compare; otherwise use on_invalid="drop" to leave such rows out and have them counted
    """
    _check_choice("on_invalid", on_invalid, ("error", "drop"))
    _check_choice("labels", labels, ("required", "optional"))
    _check_choice("scale", scale, ("fraction", "percent"))
    options = {name: value for name, value in locals().items() if name != "source"}
    if isinstance(source, list | tuple):
        return _load_many(source, options)
    name = source_name(source)
    lazy = scan_table(source, names=_named_columns(model, method, question), groups=by)
    asked = (confidence, correct, model, method, question, answer, weights, *(features or ()))
    lazy = with_fields(lazy, asked)
    names = column_names(lazy, source)
    with error_source(name):
        roles = resolve_roles(
            names,
            None,
            confidence=confidence,
            correct=correct,
            question_id=question,
            model=model,
            method=method,
            answer=answer,
            weights=weights,
        )
    frame = collect(_select(lazy, names, roles, features, name), source)
    if frame.height == 0:
        raise InputError("the table has no rows", source=name)
    frame = _typed(frame, scale)
    checked = _checked(
        frame,
        name,
        on_invalid=on_invalid,
        repeats=repeats or not roles["question_id"],
        rule=broken_rule(
            non_probability=frozenset(non_probability),
            graded=graded,
            labels=labels == "required",
            answer=bool(roles["answer"]),
        ),
    )
    assumed = tuple(role for role in ("question_id", "model", "method") if not roles[role])
    given = {"confidence": confidence, "correct": correct, "model": model}
    guessed = {
        role: roles[role][0]
        for role, name in given.items()
        if name is None and roles[role] not in ([], [role])
    }
    unused = [column for column in names if column not in (*(features or ()), *by)]
    likely = None if roles["weights"] else guessed_column("weights", unused)
    return replace(checked, assumed=assumed, guessed=guessed, likely_weights=likely)


def _load_many(sources: Sequence[Any], options: Mapping[str, Any]) -> Scores:
    if not sources:
        raise InputError("at least one table is needed")
    models = models_by_file(sources)
    if len(sources) == 1:
        return _named(load_scores(sources[0], **options), models[0])
    parts = []
    for number, (source, model) in enumerate(zip(sources, models, strict=True), start=1):
        # A table in memory has no name: which of them it is must be said all the same.
        name = source if isinstance(source, str | Path) else f"table {number} of {len(sources)}"
        with error_source(str(name)):
            part = _named(load_scores(source, **options), model)
        parts.append(replace(part, source=str(name)))
    return joined_scores(parts, source_name(sources), repeats=options["repeats"])


def _named(scores: Scores, model: str | None) -> Scores:
    if model is None or "model" not in scores.assumed:
        return scores
    return named_model(scores, model)


def _named_columns(*wanted: str | None) -> list[str]:
    """Return the columns that are asked for: a list of them, or one whose name has a comma."""
    return [name for text in wanted if text for name in (text, *map(str.strip, text.split(",")))]


def _check_choice(option: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise InputError(f"{option} must be one of {', '.join(choices)}, got {value!r}")


def _select(
    lazy: pl.LazyFrame,
    names: list[str],
    roles: Mapping[str, list[str]],
    features: Sequence[str] | None,
    source: str,
) -> pl.LazyFrame:
    """Select the roles under their own names, the features beside them, rows numbered from 1."""
    used = {columns[0] for role, columns in roles.items() if len(columns) == 1}
    used.update(roles["confidence"])
    if features is None:
        features = [name for name in names if name not in used and name not in ROLES]
    extra = [
        require_column(name, names, source, role="a group or a feature")
        for name in dict.fromkeys(features)
        if name not in ROLES
    ]
    row = pl.col("_row")
    columns = [
        row.cast(pl.Int64),
        pl.col(roles["correct"][0]).alias("correct"),
        (joined_id(ids) if (ids := roles["question_id"]) else row.cast(pl.String)).alias(
            "question_id"
        ),
        (pl.col(roles["model"][0]).cast(pl.String) if roles["model"] else pl.lit("model")).alias(
            "model"
        ),
        *(pl.col(roles[role][0]).alias(role) for role in ("answer", "weights") if roles[role]),
        *(pl.col(name) for name in extra),
    ]
    lazy = lazy.with_row_index("_row", offset=1)
    many = len(roles["confidence"]) > 1
    return pl.concat(
        [lazy.select(*columns, *_scored(name, roles, many=many)) for name in roles["confidence"]]
    )


def _scored(column: str, roles: Mapping[str, list[str]], *, many: bool) -> list[pl.Expr]:
    named = pl.col(roles["method"][0]).cast(pl.String()) if roles["method"] else pl.lit(column)
    if roles["method"] and many:
        named = pl.concat_str([named, pl.lit(column)], separator=":")
    return [pl.col(column).alias("confidence"), named.alias("method")]


def _typed(frame: pl.DataFrame, scale: str) -> pl.DataFrame:
    """Read numbers, remembering the text of cells that hold none."""
    frame = _number(frame, "confidence", keep_single=True)
    if scale == "percent":
        frame = frame.with_columns(pl.col("confidence") / 100)
    frame = _number(frame, "correct", flags=True)
    if "weights" not in frame.columns:
        return frame.with_columns(weights=pl.lit(1.0), _weights_text=_NO_TEXT, _weighted=False)
    return _number(frame, "weights").with_columns(_weighted=pl.lit(True))


def _number(
    frame: pl.DataFrame, column: str, *, flags: bool = False, keep_single: bool = False
) -> pl.DataFrame:
    mark, dtype = f"_{column}_text", frame.schema[column]
    if dtype == pl.String or isinstance(dtype, pl.Categorical | pl.Enum):
        text = pl.col(column).cast(pl.String).str.strip_chars()
        lowered = text.str.to_lowercase()
        number = text.cast(pl.Float64, strict=False)
        if flags:
            word = lowered.replace_strict({"true": 1.0, "false": 0.0}, default=None)
            number = pl.coalesce(word, number)
        missing = lowered.is_in(_MISSING_TEXT) | text.is_null()
        value = pl.when(~missing).then(number).alias(column)
        return frame.with_columns(
            value, pl.when(~missing & number.is_null()).then(text).alias(mark)
        )
    if not (dtype.is_numeric() or dtype in (pl.Boolean, pl.Null)):
        raise InputError(f"the column for {column} must hold numbers, it holds {dtype}")
    # Single precision is kept: binning knows that 0.7 stored in 32 bits was meant as 0.7.
    keep = keep_single and dtype == pl.Float32
    number = pl.col(column) if keep else pl.col(column).cast(pl.Float64)
    return frame.with_columns(number, _NO_TEXT.alias(mark))


def _checked(
    frame: pl.DataFrame, source: str, *, on_invalid: str, repeats: bool, rule: pl.Expr
) -> Scores:
    frame = frame.with_columns(rule.alias("rule"))
    if not repeats:
        frame = frame.with_columns(_with_duplicates())
    bad = frame.filter(pl.col("rule").is_not_null())
    if bad.height == 0:
        return _clean(frame, source)
    if on_invalid == "error" or bad["rule"].eq("duplicate_row").any():
        raise row_error(bad, source, total=frame.height)
    kept = frame.filter(pl.col("rule").is_null())
    if kept.height == 0:
        above = bad["rule"].eq("confidence_above_1").all()
        raise InputError(
            f"no row keeps the rules: {counts_text(bad)}",
            source=source,
            hint=PERCENTAGES if above else "check the columns",
        )
    counts = dict(bad["rule"].value_counts(sort=True, name="n").iter_rows())
    rows = {
        name: bad.filter(pl.col("rule") == name)["_row"].head(_ROWS_NAMED).to_list()
        for name in counts
    }
    found = _clean(kept, source)
    return replace(found, dropped=counts, dropped_rows=rows, rejected=_rejected(bad))


def _rejected(bad: pl.DataFrame) -> pl.DataFrame:
    """Return the rows that are left out; a cell that is no number stays as it was written."""
    written = [
        pl.col(f"_{role}_text").alias(f"{role}_text")
        for role in ("confidence", "correct", "weights")
        if bad[f"_{role}_text"].is_not_null().any()
    ]
    hidden = [name for name in bad.columns if name.startswith("_") and name != "_row"]
    return bad.with_columns(written).drop(hidden).rename({"_row": "row"})


def _with_duplicates() -> pl.Expr:
    """Mark second and later valid rows of a question; choosing one of them would be a guess."""
    valid = pl.col("rule").is_null()
    seen = valid.cast(pl.Int64).cum_sum().over("model", "method", "question_id")
    return pl.when(valid & (seen > 1)).then(pl.lit("duplicate_row")).otherwise("rule").alias("rule")


def _clean(frame: pl.DataFrame, source: str) -> Scores:
    weighted = bool(frame["_weighted"].any())
    hidden = [name for name in frame.columns if name.startswith("_") or name == "rule"]
    clean = frame.drop(hidden if weighted else [*hidden, "weights"])
    if not weighted:
        return Scores(clean, source)
    kept, weightless = split_weightless(clean)
    return Scores(kept, source, weightless=weightless)
