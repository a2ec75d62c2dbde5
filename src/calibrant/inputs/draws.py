"""Draws with a meaning and a grade, from a study, a log or a table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from calibrant.inputs.logs import ForeignTables
from calibrant.records import Study, read_table, scan_table
from calibrant.records.tables import column_names

__all__ = ["draws_with_classes", "question_texts"]

_TEXT_COLUMNS = ("text", "question_text", "question", "prompt")


def draws_with_classes(data: Any) -> pl.DataFrame | None:
    """Return one row per draw (question_id, model, class_id, correct), or None without draws.

    `data` is a study that holds draws and semantics, a foreign log, or a table with a column
    ``class_id``.
    """
    if isinstance(data, str | Path) and Study.is_study(data):
        study = Study(data)
        if not (study.has("draws") and study.has("semantics")):
            return None
        key = ["question_id", "model", "purpose", "draw"]
        semantics = study.read("semantics")
        draws = study.read("draws").select(*key, "answer")
        return semantics.join(draws, on=key, how="left").filter(pl.col("purpose") == "answer")
    if isinstance(data, ForeignTables):
        return data.draws_with_classes()
    if isinstance(data, list | tuple):
        return None
    names = column_names(scan_table(data), data)
    if "class_id" not in names or "question_id" not in names:
        return None
    table = read_table(data)
    if "model" not in names:
        table = table.with_columns(model=pl.lit("model"))
    return table.with_columns(pl.col("question_id", "model").cast(pl.String))


def question_texts(data: Any, draws: pl.DataFrame) -> pl.DataFrame | None:
    """Return the questions' texts (question_id, text) where the data has them."""
    if isinstance(data, ForeignTables):
        found = data.questions
    elif isinstance(data, str | Path) and Study.is_study(data):
        if not Study(data).has("questions"):
            return None
        found = Study(data).read("questions")
    else:
        found = draws
    column = next((name for name in _TEXT_COLUMNS if name in found.columns), None)
    if column is None:
        return None
    pair = pl.col("question_id").cast(pl.String), pl.col(column).cast(pl.String).alias("text")
    return found.select(pair).unique("question_id", keep="first", maintain_order=True)
