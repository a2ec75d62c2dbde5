"""The rows of a scores table under the names of their roles, and those that repeat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import polars as pl
from msgspec import structs

from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.data import score_table, tables
from calibrant.data.reading.candidates import Peek
from calibrant.data.reading.roles import BESIDE, ROLES, Roles, require_column
from calibrant.data.score_table import Scores
from calibrant.metrics.stats.repeats import find_repeats

FIELD = "field"
"""Column that names the fields of a unit, which stand side by side in the table."""
# Columns of a checked table that are no features of it.
_OWN = (*(role for role in ROLES if role != "cluster"), score_table.CLUSTER)


def fields_of_units(frame: pl.DataFrame, roles: Roles, unit: str) -> tuple[pl.DataFrame, Roles]:
    """Return columns beside each other as the fields of units, where a unit has one row."""
    if frame.select("_place", score_table.CLUSTER).is_duplicated().any():
        return frame, roles
    field = pl.col("model").alias(FIELD)
    ids = pl.concat_str("question_id", "model", separator=" / ").alias("question_id")
    frame = frame.with_columns(field, ids, pl.lit("model").alias("model"))
    note = f"Each {unit} has {len(roles.models)} fields: {', '.join(roles.models)}."
    return frame, structs.replace(roles, models=(), notes=(*roles.notes, note))


def named_columns(*wanted: str | None) -> list[str]:
    """Return the columns that are asked for: a list of them, or one whose name has a comma."""
    return [name for text in wanted if text for name in (text, *map(str.strip, text.split(",")))]


def select_columns(
    lazy: pl.LazyFrame,
    names: list[str],
    roles: Roles,
    features: Sequence[str] | None,
    *,
    others: bool,
) -> pl.LazyFrame:
    """Select the roles under their own names, the features beside them, rows numbered from 1."""
    used = {by_name[0] for by_name in roles.columns.values() if len(by_name) == 1}
    used -= set(roles["cluster"])
    used.update(roles["confidence"], *(roles[role] for role in BESIDE))
    if features is None or others:
        remainder = [name for name in names if name not in used and name not in _OWN]
        features = [*(features or ()), *remainder]
    extra = [name for name in dict.fromkeys(features) if name not in _OWN]
    for name in extra:
        require_column(name, names, role="a group or a feature")
    row, ids = pl.col("_row"), roles["question_id"]
    clusters = (pl.col(name).cast(pl.String).fill_null("") for name in roles["cluster"])
    columns = [
        row.cast(pl.Int64),
        (tables.joined_id(ids) if ids else row.cast(pl.String)).alias("question_id"),
        *(pl.col(name).alias("weights") for name in roles["weights"]),
        *(cluster.alias(score_table.CLUSTER) for cluster in clusters),
        *map(pl.col, extra),
    ]
    lazy = lazy.with_row_index("_row", offset=1)
    places = range(len(roles["confidence"]))
    parts = [lazy.select(*columns, *_scored(place, roles)) for place in places]
    # One confidence may hold whole numbers and another shares.
    return pl.concat(parts, how="vertical_relaxed")


def _scored(place: int, roles: Roles) -> list[pl.Expr]:
    """Return what belongs to one of the confidences: its model, method, outcome and answer."""
    column, several = roles["confidence"][place], len(roles["confidence"]) > 1
    model = pl.lit(roles.models[place] if roles.models else "model")
    if roles["model"]:
        model = pl.col(roles["model"][0]).cast(pl.String)
    method = pl.lit("confidence" if roles.models else column)
    if roles["method"]:
        method = pl.col(roles["method"][0]).cast(pl.String())
        method = pl.concat_str([method, pl.lit(column)], separator=":") if several else method
    companion = {role: roles[role][place % len(roles[role])] for role in BESIDE if roles[role]}
    return [
        pl.col(column).alias("confidence"),
        pl.lit(place).alias("_place"),
        model.alias("model"),
        method.alias("method"),
        *(pl.col(name).alias(role) for role, name in companion.items()),
        *([] if "correct" in companion else [pl.lit(None).alias("correct")]),
    ]


_KEYS = ["model", "method"]
RULE = "repeated_row"
# A text that stands in more rows than this is no question: the same prompt is put to all rows.
_MOST_ROWS, _LEAST_QUESTIONS = 20, 10
# Of a table with more rows so many are looked up first: where one in fifty has a twin, all of them
# are unique with a chance of 1e-35.
_MANY_ROWS, _LOOKED_AT = 100_000, 4_000


def rows_per_text(frame: pl.DataFrame) -> float | None:
    """Return how many rows the texts of questions have, or None where they name no questions.

    Examples
    --------
    >>> table = pl.DataFrame({"model": "m", "method": "p", "question_id": ["a", "b"] * 20})
    >>> rows_per_text(table) is None
    True
    """
    counts = frame.group_by(_KEYS).agg(
        pl.len().alias("rows"), pl.col("question_id").n_unique().alias("texts")
    )
    most = counts.select((pl.col("rows") / pl.col("texts")).max()).item()
    if most == 1:
        return 1.0
    fewest = counts["texts"].min()
    names = most <= _MOST_ROWS and isinstance(fewest, int) and fewest >= _LEAST_QUESTIONS
    return float(most) if names and not frame["question_id"].null_count() else None


def counted_once(scores: Scores) -> Scores:
    """Return a table without ids with each row once, where rows stand in it several times."""
    rows = scores.frame.select(*_KEYS, "confidence", "correct")
    if rows.height > _MANY_ROWS:
        # Where rows from all over a large table stand there once, nearly all do.
        subset = rows.gather_every(rows.height // _LOOKED_AT)
        alike = rows.filter(pl.col("confidence").is_in(subset["confidence"].implode()))
        if not alike.is_duplicated().any():
            return scores
    again = np.zeros(rows.height, np.bool_)
    rows = rows.with_row_index("_at")
    for part in rows.partition_by(_KEYS):
        repeated = find_repeats(part["confidence"].to_numpy(), part["correct"].to_numpy())
        if repeated is not None:
            again[part["_at"].to_numpy()[repeated.again]] = True
    if not again.any():
        return scores
    gone = int(again.sum())
    text = f"{again.size:,} rows are {again.size - gone:,} different ones, some of them several "
    text += "times: each counts once."
    rejected = scores.frame.filter(pl.Series(again)).with_columns(rule=pl.lit(RULE))
    first = rejected["question_id"].head(10).cast(pl.Int64).to_list()
    return replace(
        scores,
        frame=scores.frame.filter(pl.Series(~again)),
        dropped={**scores.dropped, RULE: gone},
        dropped_rows={**scores.dropped_rows, RULE: first},
        rejected=pl.concat([scores.rejected, rejected], how="diagonal_relaxed"),
        reading=structs.replace(scores.reading, repeats=text),
    )


def answers_told_apart(
    frame: pl.DataFrame, roles: Roles, runs: Sequence[str], peek: Peek, *, repeats: bool
) -> tuple[pl.DataFrame, Roles, str | None]:
    """Find which rows answer one question; the last value says what tells it, if anything does."""
    text = roles.text
    several = 1.0 if text is None else rows_per_text(frame)
    if several is None:
        roles.columns["question_id"] = []
        frame = frame.with_columns(question_id=pl.col("_row").cast(pl.String))
        return frame, structs.replace(roles, guessed=roles.guessed[:-1]), None
    if several > 1:
        return frame, roles, f"Rows with the same {text} are repeated answers to one question."
    if not runs:
        return frame, roles, None
    ids = bool(roles["question_id"])
    frame, note = heed_runs(frame, peek(runs), ids=ids, repeats=repeats)
    return frame, roles, note


def heed_runs(
    frame: pl.DataFrame, runs: pl.DataFrame, *, ids: bool, repeats: bool
) -> tuple[pl.DataFrame, str | None]:
    """Ask what rows are that differ by their run, seed or prompt: they are never pooled silently.

    Without ids, rows in the same place of each run are answers to one question where repeated
    answers were told of.

    Parameters
    ----------
    frame
        The rows, for each confidence once.
    runs
        Columns that tell runs apart.
    ids
        Whether rows name their question.
    repeats
        Whether repeated answers were told of.
    """
    keys = [*_KEYS, *(["question_id"] if ids else [])]
    all_runs = pl.concat([runs] * (frame.height // runs.height))
    for name in runs.columns:
        rows = frame.select(keys).with_columns(_run=all_runs[name])
        number, sizes = rows["_run"].n_unique(), rows.group_by(*_KEYS, "_run").len()["len"]
        if number < 2 or sizes.n_unique() > 1 or sizes[0] == 1:
            continue
        if ids and not (rows.select(keys).is_duplicated().any() and rows.is_unique().all()):
            continue
        if not repeats:
            kind = "of each question" if ids else f"in each of {sizes[0]:,} places"
            hint = Hint(
                "if they are repeated answers to one question, use {repeats}; for a verdict of "
                "each, use {method}",
                repeats=True,
                method=name,
            )
            raise InputError(f"the column {name!r} tells {number} rows {kind} apart", hint=hint)
        if not ids:
            place = rows.select(pl.int_range(pl.len()).over(*_KEYS, "_run").cast(pl.String))
            note = f"Rows in the same place of each {name} are repeated answers to one question."
            return frame.with_columns(place.to_series().alias("question_id")), note
    return frame, None
