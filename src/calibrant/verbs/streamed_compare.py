"""A comparison of a table of any size: questions are dealt into parts, whose sums are merged.

The pass that checks every row is that of the streamed audit. Then each part reads the rows of its
questions, whatever the model: questions are dealt by a hash of their id, so that both answers to
one question meet. What a part gives does not depend on where or when it is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
from threadpoolctl import threadpool_limits

import calibrant
from calibrant.comparison.compare import comparison_entries
from calibrant.comparison.merged import (
    BlockSums,
    MergedComparer,
    aligned_blocks,
    block_sums,
    no_sums,
)
from calibrant.comparison.multiplicity import correct_pairs
from calibrant.comparison.resampled import resample_counts
from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.core.registry import did_you_mean
from calibrant.core.rng import named_stream
from calibrant.inputs.cell_source import sum_table
from calibrant.inputs.engines import engine_named
from calibrant.inputs.footers import streamed_input
from calibrant.inputs.settings import table_settings
from calibrant.inputs.streaming import Streamed, staged, sum_plan
from calibrant.metrics.streamed import CellBlock
from calibrant.planning import verification_of
from calibrant.records.batches import parquet_files, partition_of, table_parts
from calibrant.records.part_sums import Key, PartSums, model_blocks
from calibrant.report.result import Result
from calibrant.stats.mergeable import CellSums

__all__ = ["streamed_compare"]

# Rows of a part: its questions are held in memory, and in blocks with their resamples.
PART_ROWS = 2_000_000


@dataclass(frozen=True, slots=True)
class Cut:
    """One comparison: a method, a group of its questions or all of them, and its models."""

    method: str
    group: tuple[str, str] | None
    models: tuple[str, ...]

    @property
    def keys(self) -> dict[str, Any]:
        """How the document names it."""
        return {"method": self.method, "group": None if self.group is None else {**self._named}}

    @property
    def _named(self) -> dict[str, str]:
        return {} if self.group is None else {self.group[0]: self.group[1]}


def streamed_compare(
    data: str | Path,
    *,
    engine: str | None,
    models: Sequence[str] | None,
    columns: Mapping[str, str | None],
    by: tuple[str, ...],
    options: Mapping[str, Any],
    on_invalid: str | None,
    scale: str,
    seed: int,
) -> Result:
    """Compare models under the raw, instance-aligned and distribution-aligned views.

    Values are those of `compare`, up to rounding; intervals come from other draws of the same
    bootstrap. Shared blind spots and the check of exchangeability need all rows and are left out.

    Parameters
    ----------
    data
        A parquet file, a folder or glob of them, or a csv or jsonl file.
    engine, models, by, on_invalid, scale, seed
        As for `compare`.
    columns
        Column names by role, or None for the names of the scores schema.
    options
        bins, target, level, resamples, lipschitz.
    """
    runner = engine_named(engine)
    with staged(str(data)) as source:
        streamed = sum_plan(
            source,
            bins=options["bins"],
            by=by,
            percent=scale == "percent",
            drop=on_invalid == "drop",
            columns=columns,
        )
        if streamed.question is None:
            raise InputError(
                "answers to the same question are compared, and there is no column 'question_id'",
                source=str(data),
                hint=Hint("name the column of question ids with {question}"),
            )
        parts = table_parts(source, streamed.plan.columns)
        files = streamed_input(str(data), source, parts)
        total = sum_table(parts, streamed.plan, runner, shown=str(data), staged=source)
        cuts = _cuts(total, models, str(data))
        count = -(-max(total.rows * len(streamed.plan.columns.confidence), 1) // PART_ROWS)
        one = partial(
            _part_sums,
            streamed=streamed,
            parts=count,
            cuts=cuts,
            bins=options["bins"],
            resamples=options["resamples"],
            seed=seed,
        )
        merged = [no_sums(len(cut.models)) for cut in cuts]
        for found in runner.map(one, range(count)):
            merged = [mine.add(more) for mine, more in zip(merged, found, strict=True)]
    entries = [
        _entries(cut, sums, total, streamed, options, seed)
        for cut, sums in zip(cuts, merged, strict=True)
    ]
    rules = {"on_invalid": on_invalid or "error", "graded": False, "scale": scale}
    settings = {"models": models, "by": list(by), **table_settings({**rules, **columns})}
    head = _head(str(data), files, options, settings, seed)
    multiplicity = correct_pairs(entries, options["level"])
    return Result(head | _document(entries, total, count) | {"multiplicity": multiplicity})


def _head(
    source: str,
    files: list[dict[str, Any]],
    options: Mapping[str, Any],
    settings: Mapping[str, Any],
    seed: int,
) -> dict[str, Any]:
    return {
        "schema": "calibrant.compare/1",
        "version": calibrant.__version__,
        "source": source,
        "input": files,
        "seed": seed,
        "settings": {**options, **settings},
        **options,
    }


def _document(entries: Sequence[Mapping[str, Any]], total: PartSums, parts: int) -> dict[str, Any]:
    return {
        "reading": {"way": "streamed", "rows": total.rows, "parts": parts},
        "dropped": total.dropped,
        "results": [entry for part in entries for entry in part["results"]],
        "pairs": [entry for part in entries for entry in part["pairs"]],
        "summaries": [
            {name: part[name] for name in ("keys", "questions", "left_out", "summary")}
            for part in entries
        ],
        "self_preference": [],
    }


def _cuts(total: PartSums, models: Sequence[str] | None, source: str) -> list[Cut]:
    """Return the comparisons: per method, then per group of it; models in order of their names."""
    known: dict[str, list[str]] = {}
    groups: dict[str, dict[tuple[str, str], None]] = {}
    for model, method, column, value in sorted(total.blocks):
        known.setdefault(method, [])
        if model not in known[method]:
            known[method].append(model)
        if column:
            groups.setdefault(method, {})[(column, value)] = None
    cuts = []
    for method, found in known.items():
        wanted = tuple(dict.fromkeys(found if models is None else models))
        for name in wanted:
            if name not in found:
                raise InputError(
                    f"there is no model {name!r}", source=source, hint=did_you_mean(name, found)
                )
        if len(wanted) < 2:
            raise InputError(
                f"a comparison needs at least two models, got {len(wanted)}: {', '.join(wanted)}",
                source=source,
                hint="give a table with several models",
            )
        cuts += [Cut(method, group, wanted) for group in (None, *groups.get(method, {}))]
    return cuts


def _part_sums(
    number: int,
    *,
    streamed: Streamed,
    parts: int,
    cuts: Sequence[Cut],
    bins: int,
    resamples: int,
    seed: int,
) -> list[BlockSums]:
    """Read the questions of one part and return their sums for every comparison."""
    frame = _rows(streamed, number, parts)
    out = []
    for cut in cuts:
        own = frame.filter(pl.col("method") == cut.method)
        if cut.group is not None:
            own = own.filter(pl.col(cut.group[0]) == cut.group[1])
        left_out, blocks = aligned_blocks(own, cut.models)
        sums = no_sums(len(cut.models), left_out)
        for block, aligned in enumerate(blocks):
            stream = named_stream(
                seed, "compare", cut.method, cut.keys["group"], "part", number, block
            )
            counts = resample_counts(aligned.questions.size, resamples, stream)
            with threadpool_limits(1):
                sums = sums.add(block_sums(aligned, counts, bins=bins))
        out.append(sums)
    return out


def _rows(streamed: Streamed, number: int, parts: int) -> pl.DataFrame:
    """Return the sound rows of the questions that are dealt to this part."""
    plan = streamed.plan
    tables = []
    for file in parquet_files(streamed.source):
        known = partition_of(file, streamed.source)
        lazy = pl.scan_parquet(file, hive_partitioning=False).with_columns(
            **{name: pl.lit(value) for name, value in known.items()}
        )
        question = pl.col(str(streamed.question)).cast(pl.String)
        dealt = lazy.filter((question.hash(0) % parts == number) | question.is_null())
        tables += [
            dealt.select(
                question.alias("question_id"),
                _label(plan.model, "model").alias("model"),
                _label(plan.method, name).alias("method"),
                (pl.col(name).cast(pl.Float64) / (100 if plan.percent else 1)).alias("confidence"),
                pl.col(plan.columns.correct).cast(pl.Float64).alias("correct"),
                *(_label(column, "").alias(column) for column in plan.by),
                _answered(plan.columns.answer).alias("_answered"),
                (_named(plan.model) & _named(plan.method)).alias("_named"),
            )
            for name in plan.columns.confidence
        ]
    frame = (
        pl.concat(tables)
        .filter(
            "_answered",
            "_named",
            pl.col("confidence").is_between(0, 1),
            (pl.col("correct") == 0) | (pl.col("correct") == 1),
        )
        .drop("_answered", "_named")
        .collect(engine="streaming")
    )
    if frame["question_id"].null_count():
        raise InputError("a question has no id", source=streamed.source)
    # The order in which threads hand over rows must not show.
    return frame.sort("method", "question_id", "model")


def _label(column: str | None, fixed: str) -> pl.Expr:
    return pl.lit(fixed) if column is None else pl.col(column).cast(pl.String).fill_null("None")


def _named(column: str | None) -> pl.Expr:
    return pl.lit(True) if column is None else pl.col(column).cast(pl.String).fill_null("") != ""


def _answered(column: str | None) -> pl.Expr:
    return pl.lit(True) if column is None else pl.col(column).is_not_null()


def _entries(
    cut: Cut,
    sums: BlockSums,
    total: PartSums,
    streamed: Streamed,
    options: Mapping[str, Any],
    seed: int,
) -> dict[str, Any]:
    """Return models, pairs and summary of one comparison."""
    place = " / ".join([cut.method, *(() if cut.group is None else cut.group[1:])])
    if not sums.questions:
        raise InputError(
            "the models have no question in common",
            source=place,
            hint=Hint("compare fewer models, or check that {question} names the same ids for all"),
        )
    shared = {name: options[name] for name in ("bins", "target")}
    try:
        comparer = MergedComparer(cut.models, sums, **shared)
        found = comparison_entries(comparer, level=options["level"], lipschitz=options["lipschitz"])
    except InputError as error:
        raise InputError(error.rule, source=place, row=error.row, hint=error.hint) from None
    cells = _cells(cut, total, streamed)
    stream = named_stream(seed, "compare", cut.method, cut.keys["group"])
    for entry in found["results"]:
        block = CellBlock(
            cells[entry["model"]],
            streamed.plan.grid,
            level=options["level"],
            resamples=options["resamples"],
            rng=stream,
        )
        entry["verification"] = verification_of(block, rng=stream)
    for name in ("results", "pairs"):
        found[name] = [{**cut.keys, **entry} for entry in found[name]]
    left_out = {name: int(n) for name, n in zip(cut.models, sums.left_out, strict=True)}
    return {"keys": cut.keys, **found, "left_out": left_out}


def _cells(cut: Cut, total: PartSums, streamed: Streamed) -> dict[str, CellSums]:
    """Return the cell sums of every model of a comparison."""
    plan = streamed.plan
    if cut.group is None:
        whole = model_blocks(total.blocks, plan.by, plan.grid)
        return {model: sums for (model, method), sums in whole.items() if method == cut.method}
    found: dict[str, CellSums] = {}
    for key, sums in total.blocks.items():
        wanted: Key = (key[0], cut.method, *cut.group)
        if key == wanted:
            found[key[0]] = sums
    return found
