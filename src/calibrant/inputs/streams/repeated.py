"""Rows of one question depend on each other: a streamed audit must not take them as draws."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.inputs.streams.streaming import Streamed
from calibrant.records.batches import parquet_files, partition_of
from calibrant.records.formats import is_url

if TYPE_CHECKING:
    import polars as pl

# Rows per question above which they are repeated; a few that will be dropped do not count.
SURELY_REPEATED = 1.05
LOOKED_AT = 2_000_000


def refuse_repeats(streamed: Streamed, rows: int) -> None:
    """Raise where a model has several rows for one question.

    Of a large table one question in so many is looked at, with all its rows: a table without
    repeats is then never taken for one, as it could be by a sketch of the number of questions.

    Parameters
    ----------
    streamed
        The table and its columns.
    rows
        Rows of the table.
    """
    if streamed.question is None or is_url(streamed.source):
        return
    share = -(-rows // LOOKED_AT)
    keys = [name for name in (streamed.plan.model, streamed.plan.method) if name is not None]
    tables = [
        _questions(file, streamed.source, streamed.question, keys, share)
        for file in parquet_files(streamed.source)
    ]
    if any(table is None for table in tables):
        return
    import polars as pl

    counted = (
        pl.concat([table for table in tables if table is not None])
        .group_by("_all", *keys)
        .agg(pl.len().alias("_rows"), pl.col("_question").n_unique().alias("_questions"))
        .filter(pl.col("_rows") > SURELY_REPEATED * pl.col("_questions"))
        .collect(engine="streaming")
    )
    if counted.height:
        many, questions = counted.sort("_rows").select("_rows", "_questions").row(-1)
        part = "" if share == 1 else f" (one question in {share:,} was looked at)"
        raise InputError(
            f"a model has {many:,} rows for {questions:,} questions{part}: rows of one question "
            "depend on each other, and a streamed audit takes every row as a draw of its own",
            source=streamed.source,
            hint=Hint(
                "keep one row per question, or use {repeats} without {engine}, in memory",
                repeats=True,
            ),
        )


def _questions(
    file: str, source: str, question: str, keys: list[str], share: int
) -> pl.LazyFrame | None:
    """Return the rows of one question in `share`; None where the file has no questions."""
    import polars as pl

    known = partition_of(file, source)
    scan = pl.scan_parquet(file, hive_partitioning=False).with_columns(
        **{name: pl.lit(value) for name, value in known.items()}
    )
    if question not in scan.collect_schema().names():
        return None
    ids = pl.col(question).cast(pl.String)
    return scan.filter(ids.hash(0) % share == 0).select(
        pl.lit("").alias("_all"),
        ids.alias("_question"),
        *(pl.col(key).cast(pl.String) for key in keys),
    )
