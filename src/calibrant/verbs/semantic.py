"""The Sem-ECE part of an audit: from draws with a meaning and a grade."""

from __future__ import annotations

from functools import partial
from typing import Any

import polars as pl

from calibrant.core.rng import named_stream
from calibrant.inputs.engines import engine_named

__all__ = ["semantic_blocks"]

_ANSWERS_SHOWN = 5


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
