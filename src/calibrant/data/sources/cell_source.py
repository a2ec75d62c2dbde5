"""A table of any size as blocks of sums: parts are summed by an engine, the sums are merged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from calibrant.core.arrays import Estimate, Indices
from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.data.batches import FilePart, parquet_files, table_parts
from calibrant.data.formats import FEW_BROKEN, FEW_UNGRADED, is_url
from calibrant.data.part_sums import PartSums, SumPlan, model_blocks, sum_part
from calibrant.data.rules import MISSING, RULES, UNSCORED
from calibrant.data.sources import streaming
from calibrant.data.sources.engines import Engine, engine_named
from calibrant.data.sources.input import document_head
from calibrant.data.sources.options import AuditOptions, AuditSource, ReadingOptions, SourceBlock
from calibrant.data.sources.streaming import Dependences, dependence_of, stream_search
from calibrant.metrics.blocks.cell_block import CellBlock
from calibrant.metrics.blocks.grid import CellGrid, CellSums


def cell_source(data: str | Path, options: AuditOptions) -> AuditSource:
    """Sum a table in one pass over its parts; the sums do not depend on the engine.

    Parameters
    ----------
    data
        A parquet file, a folder or glob of them, a URL, or a csv or jsonl file.
    options
        The options of `audit`.
    """
    engine = engine_named(options.engine)
    with summed_table(str(data), options.table, options.by, options.bins, engine) as summed:
        total = summed.total
        if not summed.parts:
            raise InputError("the table has no rows", source=str(data))
        if not total.blocks:
            counts = ", ".join(f"{rule} {count}" for rule, count in total.dropped.items())
            raise InputError(f"no row keeps the rules: {counts}", source=str(data))
        summed.refuse_rankings()
        summed.refuse_many_broken(options.table.on_invalid)
        _refuse_repeats(summed.streamed, total.rows)
        search = stream_search(summed.streamed, options.table, total.rows, options.by)
    return AuditSource(
        summed.head("audit", seed=options.seed, settings=options.settings),
        summed.reading(parts=summed.parts, cells=summed.streamed.plan.grid.cells),
        partial(_blocks, summed, options, search),
        summed.coverage,
        total.dropped,
        total.dropped_rows,
        summed.emptied,
        parallel=True,
    )


@dataclass(frozen=True, slots=True)
class SummedTable:
    """A table with the sums of its parts: its name, how it is read, how many parts there were."""

    shown: str
    streamed: streaming.Streamed
    total: PartSums
    files: list[dict[str, object]]
    parts: int

    def head(self, kind: str, *, seed: int, settings: dict[str, object]) -> dict[str, object]:
        """Return the head of a document."""
        head = document_head(kind, seed=seed, settings=settings, source=self.shown)
        return {**head, "input": self.files}

    def reading(self, **counts: int) -> dict[str, object]:
        """Return how the table was read, with counts of the parts or cells."""
        how = {"way": "streamed", "rows": self.total.rows, **counts}
        return how | self.streamed.reading.to_dict()

    @property
    def emptied(self) -> list[str]:
        """The models of which no row is left."""
        return sorted(self.total.models_with_dropped_rows - {key[0] for key in self.total.blocks})

    @property
    def whole(self) -> Iterable[tuple[tuple[str, str], CellSums]]:
        """The sums of every (model, method), all groups together."""
        return model_blocks(self.total.blocks, self.streamed.plan.by).items()

    def refuse_many_broken(self, on_invalid: str | None) -> None:
        """Refuse a table of which many rows have no outcome or a broken confidence.

        Rows without an outcome may differ from the others; many broken confidences are another
        scale.
        """
        if on_invalid not in (None, "missing") or not self.total.dropped:
            return
        most = {"correct_missing": FEW_UNGRADED, **dict.fromkeys(UNSCORED, FEW_BROKEN)}
        for rule, count in self.total.dropped.items():
            if rule not in MISSING and count > most.get(rule, 1.0) * self.total.rows:
                where, _, row = self.total.dropped_rows[rule][0].rpartition(":")
                text = f"{RULES[rule].sentence}, as in {count:,} of {self.total.rows:,} rows"
                source, hint = where or self.shown, RULES[rule].hint
                raise InputError(text, source=source, row=int(row), hint=hint)

    def refuse_rankings(self) -> None:
        """Refuse methods that rank answers without being a probability."""
        names = {key[1] for key in self.total.blocks} - {"confidence"}
        if not names:
            return
        from calibrant.core.names import ranking_methods

        rankings = sorted(names & ranking_methods())
        if rankings:
            raise InputError(
                f"{rankings[0]} is a score, not a probability, and a streamed audit takes "
                "probabilities",
                source=self.shown,
                hint=Hint("leave its rows out, or audit it in memory, without {engine}"),
            )

    def keyed_sums(self) -> Iterator[tuple[dict[str, str], CellSums]]:
        """Yield the sums of every (model, method), each followed by its groups."""
        for (model, method), sums in self.whole:
            keys = {"model": model, "method": method}
            yield keys, sums
            for column in self.streamed.plan.by:
                for key, part in sorted(self.total.blocks.items(), key=lambda item: item[0]):
                    if key[:3] == (model, method, column):
                        yield {**keys, column: key[3]}, part

    def unscored(self, keys: Mapping[str, str]) -> Indices:
        """Return how many wrong and right answers of a block have no confidence."""
        model, method, *group = keys.values()
        column = [*keys][2] if group else (self.streamed.plan.by or ("",))[0]
        missing = (
            counts
            for key, counts in self.total.unscored.items()
            if key[:3] == (model, method, column) and (not group or key[3] == group[0])
        )
        return np.asarray(np.sum([np.zeros(2, np.intp), *missing], axis=0))

    def coverage(self, only: Sequence[str] | None = None) -> dict[str, Any]:
        """Return what the sums say about the data; which questions are missing they do not know.

        Parameters
        ----------
        only
            Models that are asked about; all where None.
        """
        from calibrant.findings.claims.data import coverage_document, reading_note

        models: list[dict[str, object]] = []
        selection = 0
        for keys, sums in self.keyed_sums():
            if len(keys) > 2 or (only is not None and keys["model"] not in only):
                continue
            n, right = int(sums.rows.sum()), int(sums.rows[1].sum())
            values, selection = int((sums.rows.sum(axis=0) > 0).sum()), selection + n
            accuracy = right / n if n else None
            models.append({**keys, "n": n, "questions": n, "accuracy": accuracy, "values": values})
        for name in self.emptied:
            if only is None or name in only:
                nothing = {"method": "", "n": 0, "questions": 0, "accuracy": None}
                models.append({"model": name, **nothing})
        document = coverage_document(models, rows=selection, rows_read=self.total.rows)
        if self.streamed.reading.sentence is not None:
            document["warnings"].append(reading_note(self.streamed.reading.sentence))
        return document


@contextmanager
def summed_table(
    shown: str, asked: ReadingOptions, by: tuple[str, ...], bins: int, engine: Engine
) -> Iterator[SummedTable]:
    """Sum a table in one pass; a text table is rewritten for as long as it is open."""
    with streaming.as_parquet(shown, asked, by) as source:
        streamed = streaming.sum_plan(source, asked, bins=bins, by=by)
        parts = table_parts(source, streamed.plan.columns)
        files = streaming.streamed_input(shown, source, parts)
        total = sum_table(parts, streamed.plan, engine, shown=shown, read_from=source)
        yield SummedTable(shown, streamed, total, files, len(parts))


def sum_table(
    parts: list[FilePart], plan: SumPlan, engine: Engine, *, shown: str, read_from: str
) -> PartSums:
    """Return the sums of all parts; rows of a rewritten text table are named after the table."""
    total = PartSums()
    try:
        for part in engine.map(partial(sum_part, plan=plan), parts):
            total.add(part)
    except InputError as error:
        source = shown if error.source == read_from else error.source
        raise InputError(error.rule, source=source, row=error.row, hint=error.hint) from None
    if read_from != shown and shown not in read_from:
        total.dropped_rows = {
            rule: [name.replace(read_from, shown, 1) for name in names]
            for rule, names in total.dropped_rows.items()
        }
    return total


def _blocks(
    summed: SummedTable, options: AuditOptions, search: Dependences
) -> Iterator[SourceBlock]:
    from calibrant.findings.claims.margins import Missing

    grid = summed.streamed.plan.grid
    note = (
        f"streamed: every row is one question, and confidences within 1/{grid.cells:,} of "
        "each other are ranked as equal; sketch_error bounds what that can change"
    )
    for keys, sums in summed.keyed_sums():
        make, losses = partial(_block, sums, grid, options), summed.unscored(keys)
        result = partial(dependence_of, search, keys)
        if not losses.any():
            yield SourceBlock(keys, make, (note,), dependence=result)
            continue
        accuracy = partial(_accuracy, sums.rows.sum(axis=1) + losses, options.level)
        missing = Missing(float(losses[1]), float(losses[0]))
        yield SourceBlock(
            keys, make, (note,), missing=missing, accuracy=accuracy, dependence=result
        )


def _accuracy(graded: Indices, level: float) -> Estimate:
    """Return the share of right answers among all that are graded, wrong and right ones."""
    from calibrant.metrics.stats.intervals import wilson_ends

    rows, right = int(graded.sum()), int(graded[1])
    # The variance of right and wrong answers is that of a sample, as everywhere.
    count = rows - 1 if 0 < right < rows else rows
    low, high = wilson_ends(right / rows, max(count, 1), level)
    return Estimate(right / rows, low, high, rows, level, interval="wilson")


def _block(
    sums: CellSums, grid: CellGrid, options: AuditOptions, rng: np.random.Generator
) -> CellBlock:
    return CellBlock(sums, grid, level=options.level, resamples=options.resamples, rng=rng)


# Rows per question above which they are repeated; a few that will be dropped do not count.
SURELY_REPEATED = 1.05
LOOKED_AT = 2_000_000


def _refuse_repeats(streamed: streaming.Streamed, rows: int) -> None:
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
    files = parquet_files(streamed.source)
    scans = [streaming.scan_part(file, streamed.source) for file in files]
    if any(streamed.question not in scan.collect_schema().names() for scan in scans):
        return
    ids = pl.col(streamed.question).cast(pl.String)
    dealt = ids.hash(0) % share == 0
    names = (pl.col(keys).cast(pl.String), ids.alias("_question"), pl.lit("").alias("_all"))
    request = pl.concat(scan.filter(dealt).select(names) for scan in scans)
    questions = pl.col("_question").n_unique()
    counts = request.group_by("_all", *keys).agg(_rows=pl.len(), _questions=questions)
    repeated = counts.filter(pl.col("_rows") > SURELY_REPEATED * pl.col("_questions"))
    tally = repeated.collect(engine="streaming")
    if tally.height:
        number, questions = tally.sort("_rows").select("_rows", "_questions").row(-1)
        part = "" if share == 1 else f" (one question in {share:,} was looked at)"
        raise InputError(
            f"a model has {number:,} rows for {questions:,} questions{part}: rows of one question "
            "depend on each other, and a streamed audit takes every row as a draw of its own",
            source=streamed.source,
            hint=Hint(
                "keep one row per question, or use {repeats} without {engine}, in memory",
                repeats=True,
            ),
        )
