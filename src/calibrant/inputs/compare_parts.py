"""A comparison of a table of any size: questions are dealt into parts that are read one by one.

The pass that checks every row is that of the streamed audit. Then each part reads the rows of its
questions, whatever the model: questions are dealt by a hash of their id, so that both answers to
one question meet. What a part gives does not depend on where or when it is read.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from calibrant.comparison.pipeline import Options, Questions
from calibrant.comparison.questions import deal_blocks, known_models, placed
from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.core.rng import named_stream
from calibrant.inputs.compare_source import CompareSource, ComparisonKey, comparisons
from calibrant.inputs.reading import ReadingOptions
from calibrant.inputs.streams.cell_source import refuse_many_broken, summed_table, sums_coverage
from calibrant.inputs.streams.engines import engine_named
from calibrant.inputs.streams.streaming import Streamed, scan_part
from calibrant.metrics.cell_block import CellBlock
from calibrant.planning import verification_of
from calibrant.records.batches import parquet_files
from calibrant.records.part_sums import Key, PartSums, model_blocks
from calibrant.stats.cell_sums import CellSums

# Rows of a part: its questions are held in memory, and in blocks with their resamples.
PART_ROWS = 2_000_000


@contextmanager
def streamed_source(
    data: str | Path,
    *,
    models: Sequence[str] | None,
    asked: ReadingOptions,
    by: tuple[str, ...],
    settings: Callable[[Mapping[str, Any]], dict[str, Any]],
    options: Options,
    engine: str | None,
    seed: int,
) -> Iterator[CompareSource]:
    """Open a table to be read in parts; text tables are rewritten for as long as it is open.

    Values are those of a comparison in memory, up to rounding and the width of a cell; intervals
    come from other draws of the same bootstrap. The candidate-aligned view is left out.
    """
    runner = engine_named(engine)
    with summed_table(str(data), asked, by, options["bins"], runner) as summed:
        streamed, total = summed.streamed, summed.total
        if streamed.question is None:
            raise InputError(
                "answers to the same question are compared, and there is no column 'question_id'",
                source=str(data),
                hint=Hint("name the column of question ids with {question}"),
            )
        refuse_many_broken(total, asked.on_invalid, str(data))
        parts_of = ((key, _cells(key, total, streamed)) for key in _keys(total))
        found, refused, taken_out = comparisons(parts_of, models, _outcomes, _aligned)
        wanted = [key for key, _, _ in found]
        count = -(-max(total.rows * len(streamed.plan.columns.confidence), 1) // PART_ROWS)
        on_invalid = asked.on_invalid or "missing"
        stated = {"scale": asked.scale, "repeats": False, "on_invalid": on_invalid, "graded": False}
        yield CompareSource(
            summed.head("compare", seed=seed, settings=settings(stated)),
            summed.reading(parts=count),
            wanted,
            PartReader(streamed, count, tuple(wanted), seed),
            count,
            runner.map,
            partial(_verification, total, streamed, options, seed),
            sums_coverage(total, streamed, models),
            total.dropped,
            summed.emptied,
            refused=refused,
            taken_out=taken_out,
        )


def _keys(total: PartSums) -> list[ComparisonKey]:
    groups: dict[str, dict[tuple[str, str], None]] = {}
    for _, method, column, value in sorted(total.blocks):
        own = groups.setdefault(method, {})
        if column:
            own[(column, value)] = None
    return [
        ComparisonKey(method, group) for method, own in groups.items() for group in (None, *own)
    ]


def _outcomes(cells: Mapping[str, CellSums]) -> dict[str, tuple[int, float]]:
    counts = {name: (int(own.rows.sum()), float(own.rows[1].sum())) for name, own in cells.items()}
    return {name: (n, right / n if n else 0.5) for name, (n, right) in sorted(counts.items())}


def _aligned(cells: Mapping[str, CellSums], models: Sequence[str] | None) -> ComparisonKey:
    known = known_models(pl.DataFrame({"model": sorted(cells)}), models)
    return ComparisonKey("", None, tuple(known))


@dataclass(frozen=True)
class PartReader:
    """Reads the questions that are dealt to a part."""

    streamed: Streamed
    parts: int
    comparisons: tuple[ComparisonKey, ...]
    seed: int
    kept: bool = False

    def __call__(self, part: int) -> Iterator[Questions]:
        """Yield the blocks of every comparison in this part."""
        frame = _rows(self.streamed, part, self.parts)
        for number, key in enumerate(self.comparisons):
            own = frame.filter(pl.col("method") == key.method)
            if key.group is not None:
                own = own.filter(pl.col(key.group[0]) == key.group[1])
            own = own.filter(pl.col("model").is_in(list(key.models)))
            if not own.height:
                continue
            _refuse_repeats(own)
            for block, questions in enumerate(deal_blocks(placed(own, key.models))):
                names = ("compare", *key.keys.values(), "part", part, block)
                yield Questions(number, questions, partial(named_stream, self.seed, *names))


def _refuse_repeats(rows: pl.DataFrame) -> None:
    twice = rows.select("question_id", "model").is_duplicated()
    if twice.any():
        row = rows.row(int(twice.arg_max() or 0), named=True)
        raise InputError(
            f"question {row['question_id']!r} has several rows of {row['model']!r}",
            hint="keep one row per question and model",
        )


def _rows(streamed: Streamed, number: int, parts: int) -> pl.DataFrame:
    """Return the sound rows of the questions that are dealt to this part."""
    plan = streamed.plan
    tables = []
    for file in parquet_files(streamed.source):
        lazy = scan_part(file, streamed.source)
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


def _verification(
    total: PartSums,
    streamed: Streamed,
    options: Options,
    seed: int,
    key: ComparisonKey,
    model: str,
) -> dict[str, Any]:
    stream = named_stream(seed, "compare", *key.keys.values(), "verification", model)
    block = CellBlock(
        _cells(key, total, streamed)[model],
        streamed.plan.grid,
        level=options["level"],
        resamples=options["resamples"],
        rng=stream,
    )
    return verification_of(block, rng=stream)


def _cells(key: ComparisonKey, total: PartSums, streamed: Streamed) -> dict[str, CellSums]:
    """Return the cell sums of every model of a comparison."""
    plan = streamed.plan
    if key.group is None:
        whole = model_blocks(total.blocks, plan.by, plan.grid)
        return {model: sums for (model, method), sums in whole.items() if method == key.method}
    found: dict[str, CellSums] = {}
    for name, sums in total.blocks.items():
        wanted: Key = (name[0], key.method, *key.group)
        if name == wanted:
            found[name[0]] = sums
    return found
