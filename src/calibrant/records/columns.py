"""Columns made of others: fields of nested ones, and ids of several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import polars as pl


def with_fields(lazy: pl.LazyFrame, wanted: Iterable[str | None]) -> pl.LazyFrame:
    """Add columns for wanted names such as ``classifier.confidence``, fields of nested columns.

    Examples
    --------
    >>> table = pl.LazyFrame({"judge": [{"sure": 0.9}, {"sure": 0.4}]})
    >>> with_fields(table, ["judge.sure", None]).collect()["judge.sure"].to_list()
    [0.9, 0.4]
    """
    names = [part.strip() for text in wanted if text for part in text.split(",")]
    if not any("." in name for name in names):
        return lazy
    schema = lazy.collect_schema()
    added = [_field(name, schema) for name in names if "." in name and name not in schema]
    return lazy.with_columns([expression for expression in added if expression is not None])


def _field(name: str, schema: pl.Schema) -> pl.Expr | None:
    first, *rest = name.split(".")
    kind = schema.get(first)
    expression = pl.col(first)
    for part in rest:
        fields = {field.name: field.dtype for field in getattr(kind, "fields", [])}
        if part not in fields:
            return None
        kind, expression = fields[part], expression.struct.field(part)
    return expression.alias(name)


def joined_id(columns: Sequence[str]) -> pl.Expr:
    r"""Return the id that columns make up together: different values give different ids.

    Examples
    --------
    >>> table = pl.DataFrame({"set": ["a|b", "a", "a"], "number": ["c", "b|c", "b"]})
    >>> table.select(id=joined_id(["set", "number"]))["id"].to_list()
    ['a\\|b|c', 'a|b\\|c', 'a|b']
    """
    parts = [pl.col(name).cast(pl.String) for name in columns]
    if len(parts) == 1:
        return parts[0]
    # The mark between them is escaped within, and so is what escapes it.
    escaped = [part.str.replace_all("\\", "\\\\", literal=True) for part in parts]
    escaped = [part.str.replace_all("|", "\\|", literal=True) for part in escaped]
    return pl.concat_str(escaped, separator="|")
