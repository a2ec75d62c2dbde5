"""A comparison of a table of any size: questions are dealt into parts that are read one by one.

The pass that checks every row is that of the streamed audit. Then each part reads the rows of its
questions, whatever the model: questions are dealt by a hash of their id, so that both answers to
one question meet. What a part gives does not depend on where or when it is read.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import polars as pl
from msgspec import Struct

from calibrant.comparison.pipeline import Questions
from calibrant.comparison.questions import deal_blocks, known_models, placed
from calibrant.comparison.source import CompareSource, ComparisonKey, ComparisonRequest, comparisons
from calibrant.core.arrays import named_stream
from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.data.batches import parquet_files
from calibrant.data.part_sums import PartSums
from calibrant.data.sources.cell_source import SummedTable, summed_table
from calibrant.data.sources.engines import engine_named
from calibrant.data.sources.streaming import Streamed, scan_part
from calibrant.findings.verification import VerificationBlock, verification_of
from calibrant.metrics.blocks.cell_block import CellBlock
from calibrant.metrics.blocks.grid import CellSums

# Rows of a part: its questions are held in memory, and in blocks with their resamples.
PART_ROWS = 2_000_000


@contextmanager
def streamed_source(data: str | Path, wanted: ComparisonRequest) -> Iterator[CompareSource]:
    """Open a table to be read in parts; text tables are rewritten for as long as it is open.

    Values are those of a comparison in memory, up to rounding and the width of a cell; intervals
    come from other draws of the same bootstrap. The candidate-aligned view is left out.
    """
    runner, request, options = engine_named(wanted.engine), wanted.asked, wanted.options
    with summed_table(str(data), request, wanted.by, options["bins"], runner) as summed:
        streamed, total = summed.streamed, summed.total
        if streamed.question is None:
            rule = "answers to the same question are compared, and there is no column 'question_id'"
            hint = Hint("name the column of question ids with {question}")
            raise InputError(rule, source=str(data), hint=hint)
        summed.refuse_many_broken(request.on_invalid)
        parts_of = ((key, _cells(key, summed)) for key in _keys(total))
        sorted_out = comparisons(parts_of, wanted.models, _outcomes, _aligned)
        count = -(-max(total.rows * len(streamed.plan.columns.confidence), 1) // PART_ROWS)
        on_invalid = request.on_invalid or "missing"
        confidence = {
            "scale": request.scale,
            "repeats": False,
            "on_invalid": on_invalid,
            "graded": False,
        }
        yield CompareSource(
            summed.head("compare", seed=wanted.seed, settings=wanted.settings(confidence)),
            summed.reading(parts=count),
            sorted_out,
            PartReader(streamed, count, tuple(sorted_out.wholes), wanted.seed),
            count,
            runner.map,
            partial(_verification, summed, wanted),
            summed.coverage(wanted.models),
            total.dropped,
            summed.emptied,
        )


def _keys(total: PartSums) -> list[ComparisonKey]:
    groups: dict[str, dict[tuple[str, str], None]] = {}
    for _, method, column, value in sorted(total.blocks):
        pairs = groups.setdefault(method, {})
        if column:
            pairs[(column, value)] = None
    return [
        ComparisonKey(method, group) for method, pairs in groups.items() for group in (None, *pairs)
    ]


def _outcomes(cells: Mapping[str, CellSums]) -> dict[str, tuple[int, float]]:
    counts = {name: (int(own.rows.sum()), float(own.rows[1].sum())) for name, own in cells.items()}
    return {name: (n, right / n if n else 0.5) for name, (n, right) in sorted(counts.items())}


def _aligned(cells: Mapping[str, CellSums], models: Sequence[str] | None) -> ComparisonKey:
    names = known_models(pl.DataFrame({"model": sorted(cells)}), models)
    return ComparisonKey("", None, tuple(names))


class PartReader(Struct, frozen=True):
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
            rows = frame.filter(pl.col("method") == key.method)
            if key.group is not None:
                rows = rows.filter(pl.col(key.group[0]) == key.group[1])
            rows = rows.filter(pl.col("model").is_in(list(key.models)))
            if not rows.height:
                continue
            _refuse_repeats(rows)
            for block, questions in enumerate(deal_blocks(placed(rows, key.models))):
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
        sound = [(question.hash(0) % parts == number) | question.is_null()]
        sound += [_named(name) for name in (plan.model, plan.method) if name is not None]
        if plan.columns.answer is not None:
            sound.append(pl.col(plan.columns.answer).is_not_null())
        tables += [
            lazy.filter(sound).select(
                question.alias("question_id"),
                _label(plan.model, "model").alias("model"),
                _label(plan.method, name).alias("method"),
                (pl.col(name).cast(pl.Float64) / (100 if plan.percent else 1)).alias("confidence"),
                pl.col(plan.columns.correct).cast(pl.Float64).alias("correct"),
                *(_label(column, "").alias(column) for column in plan.by),
            )
            for name in plan.columns.confidence
        ]
    graded = (pl.col("correct") == 0) | (pl.col("correct") == 1)
    rows = pl.concat(tables).filter(pl.col("confidence").is_between(0, 1), graded)
    frame = rows.collect(engine="streaming")
    if frame["question_id"].null_count():
        raise InputError("a question has no id", source=streamed.source)
    # The order in which threads hand over rows must not show.
    return frame.sort("method", "question_id", "model")


def _label(column: str | None, fixed: str) -> pl.Expr:
    return pl.lit(fixed) if column is None else pl.col(column).cast(pl.String).fill_null("None")


def _named(column: str) -> pl.Expr:
    return pl.col(column).cast(pl.String).fill_null("") != ""


def _verification(
    summed: SummedTable, target: ComparisonRequest, key: ComparisonKey, model: str
) -> VerificationBlock:
    stream = named_stream(target.seed, "compare", *key.keys.values(), "verification", model)
    sums, grid = _cells(key, summed)[model], summed.streamed.plan.grid
    level, resamples = target.options["level"], target.options["resamples"]
    block = CellBlock(sums, grid, level=level, resamples=resamples, rng=stream)
    return verification_of(block, rng=stream)


def _cells(key: ComparisonKey, summed: SummedTable) -> dict[str, CellSums]:
    """Return the cell sums of every model of a comparison."""
    if key.group is None:
        return {model: sums for (model, method), sums in summed.whole if method == key.method}
    part = (key.method, *key.group)
    return {name[0]: sums for name, sums in summed.total.blocks.items() if name[1:] == part}
