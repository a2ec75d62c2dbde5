"""Verdicts on the answers of a pool: a model on its own meanings, and other models as a panel."""

from __future__ import annotations

import polars as pl

_POOL = "p_true_pool"


def verified_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a model's verdicts on meanings that it drew itself: unit, class_id, verdict columns.

    A candidate belongs to the meaning of the draws whose answer is the same text, but for case
    and spaces. Two candidates of one meaning are two rows.
    """
    drawn = (
        frame.filter((pl.col("block") == "samples") & pl.col("class_id").is_not_null())
        .select("unit", "class_id", _plain(pl.coalesce("answer", "text")).alias("key"))
        .unique(["unit", "key"], keep="first", maintain_order=True)
    )
    asked = frame.filter((pl.col("purpose") == _POOL) & pl.col("about").is_not_null())
    return (
        asked.drop("class_id")
        .with_columns(_plain(pl.col("about")).alias("key"))
        .join(drawn, on=["unit", "key"], how="inner", maintain_order="left")
        .sort("unit", "draw", maintain_order=True)
    )


def panel_rows(frame: pl.DataFrame) -> pl.DataFrame:
    """Return the verdicts of other models on each greedy answer: one row per judge and unit."""
    own = frame.filter(pl.col("block") == "greedy").select(
        "unit",
        "question_id",
        pl.col("model").alias("author"),
        _plain(pl.coalesce("answer", "text")).alias("key"),
        _plain(pl.col("text")).alias("whole"),
    )
    asked = (
        frame.filter((pl.col("purpose") == _POOL) & pl.col("about").is_not_null())
        .drop("unit")
        .with_columns(_plain(pl.col("about")).alias("asked"))
    )
    return (
        own.join(asked, on="question_id", how="inner", maintain_order="left")
        .filter(
            (pl.col("author") != pl.col("model"))
            & ((pl.col("asked") == pl.col("key")) | (pl.col("asked") == pl.col("whole")))
        )
        .unique(["unit", "model"], keep="first", maintain_order=True)
        .sort("unit", maintain_order=True)
    )


def _plain(text: pl.Expr) -> pl.Expr:
    return text.str.to_lowercase().str.replace_all(r"\s+", " ").str.strip_chars()
