"""The columns of a table under the names of their roles: one row per answer and confidence."""

from collections.abc import Sequence

import polars as pl
from msgspec import structs

from calibrant.data import score_table, tables
from calibrant.data.reading.roles import BESIDE, ROLES, Roles, require_column

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
    used = {by_name[0] for role, by_name in roles.columns.items() if len(by_name) == 1}
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
