"""The Sem-ECE part of an audit: from draws with a meaning and a grade."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from calibrant.core.rng import named_stream
from calibrant.inputs.engines import engine_named
from calibrant.inputs.logs import ForeignTables
from calibrant.records import Study, read_table, scan_table
from calibrant.records.tables import column_names

__all__ = ["draws_with_classes", "question_texts", "semantic_blocks"]

_ANSWERS_SHOWN = 5
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


def semantic_blocks(
    draws: pl.DataFrame,
    *,
    level: float,
    resamples: int,
    seed: int,
    engine: str | None = None,
    texts: pl.DataFrame | None = None,
) -> list[dict[str, Any]]:
    """Return a Sem-ECE block per model; models are independent, an engine may share them out."""
    models = draws.partition_by("model", maintain_order=True)
    one = partial(_semantic_block, level=level, resamples=resamples, seed=seed)
    blocks = list((map if engine is None else engine_named(engine).map)(one, models))
    if texts is not None:
        _show_texts([row for block in blocks for row in block["hardest"]], texts)
    return blocks


def _show_texts(hardest: list[dict[str, Any]], texts: pl.DataFrame) -> None:
    ids = [str(row["question_id"]) for row in hardest]
    known = dict(texts.filter(pl.col("question_id").is_in(ids)).iter_rows())
    for row in hardest:
        row["text"] = known.get(str(row["question_id"]))


def _semantic_block(
    part: pl.DataFrame, *, level: float, resamples: int, seed: int
) -> dict[str, Any]:
    # Loaded here: most audits hold no draws.
    from calibrant.metrics.semantic import sem_ece_block

    model = part["model"][0]
    block = sem_ece_block(
        part["question_id"].to_numpy(),
        part["class_id"].cast(pl.Float64).to_numpy(),
        part["correct"].cast(pl.Float64).to_numpy(),
        level=level,
        resamples=resamples,
        rng=named_stream(seed, "sem_ece", model),
    )
    _show_answers(block["hardest"], part)
    return {"model": model, **block}


def _show_answers(hardest: list[dict[str, Any]], draws: pl.DataFrame) -> None:
    """Put the most frequent answers beside each hard question."""
    if "answer" not in draws.columns:
        return
    ids = [row["question_id"] for row in hardest]
    counted = (
        draws.filter(pl.col("question_id").is_in(ids) & pl.col("answer").is_not_null())
        .group_by("question_id", "class_id", maintain_order=True)
        .agg(
            pl.len().alias("draws"),
            pl.col("answer").mode().sort().first(),
            pl.col("correct").first(),
        )
        .sort("draws", descending=True, maintain_order=True)
    )
    for row in hardest:
        own = counted.filter(pl.col("question_id") == row["question_id"]).head(_ANSWERS_SHOWN)
        row["answers"] = own.select("answer", "draws", "correct").to_dicts()
