"""A streamed table: its columns, its name in a document, and which rows of it hang together."""

from __future__ import annotations

import hashlib
import math
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl
from msgspec.structs import asdict, replace

from calibrant.core.errors import InputError, error_source
from calibrant.core.hints import Hint
from calibrant.data import batches, load_scores
from calibrant.data.formats import file_format, is_url
from calibrant.data.groupings import block_dependence
from calibrant.data.part_sums import SumPlan
from calibrant.data.reading import FRACTION, PERCENT, Reading
from calibrant.data.reading.roles import RoleSearch, require_column
from calibrant.data.sources.engines import LocalEngine
from calibrant.data.sources.options import ReadingOptions
from calibrant.metrics.blocks.grid import cell_grid
from calibrant.metrics.stats.dependence import Dependence

_FIRST_ROWS = 131_072
"""Rows whose confidences say whether they are percentages."""


@dataclass(frozen=True, slots=True)
class Streamed:
    """A table to stream: where it is, its columns, and the column of question ids if any."""

    source: str
    plan: SumPlan
    question: str | None
    reading: Reading


@contextmanager
def as_parquet(source: str, asked: ReadingOptions, by: tuple[str, ...]) -> Iterator[str]:
    """Yield the table as parquet: itself, or a text table rewritten to a temporary file.

    Names of models, methods and groups stay as they are written in it.
    """
    path = Path(source)
    if is_url(source) or not path.is_file() or file_format(path) == "parquet":
        yield source
        return
    if file_format(path) == "json":
        raise InputError("a json array cannot be streamed", source=source, hint="save it as jsonl")
    from calibrant.data.tables import UNREADABLE, scan_table, unreadable

    with tempfile.TemporaryDirectory(prefix="calibrant-") as folder:
        copy = Path(folder) / "table.parquet"
        try:
            names = (asked.model, asked.method, asked.question)
            table = scan_table(path, names=[name for name in names if name], groups=by)
            table.sink_parquet(copy, compression="lz4")
        except UNREADABLE as error:
            raise unreadable(error, source) from None
        yield str(copy)


def sum_plan(source: str, asked: ReadingOptions, *, bins: int, by: tuple[str, ...]) -> Streamed:
    """Find the columns of a table and return what is to be summed."""
    files = batches.parquet_files(source)
    names = batches.named_columns(files, source)
    columns = {**asked.columns, "question_id": asked.question}
    columns |= {"scale": asked.scale, "right": asked.right}
    sure = ("correct",) if "correct" in names and _within(0, "correct", files[0]) else ()
    with error_source(source):
        loader = partial(_some_rows, source)
        roles = RoleSearch(names, columns, loader, loader, sure).roles()
        # What sums of parts do not know: other scales and words, columns that are made.
        scale, right = asked.scale or roles.scale, asked.right or roles.right
        if scale not in (None, FRACTION, PERCENT) or right is not None or roles.derived is not None:
            rule = "the table needs a reading that a streamed audit has not: {0}"
            words = right and f"the words for right, {right}"
            what = words or scale or "an outcome made of columns"
            hint = "write the table with a confidence between 0 and 1 and an outcome of 0 or 1"
            raise InputError(Hint(rule, what), hint=hint)
    for name in by:
        require_column(name, names, source, role="by")
    if roles.models:
        rule = f"models stand side by side ({', '.join(roles.models)}), which cannot be streamed"
        raise InputError(rule, source=source, hint="save one row per question and model")
    if "weights" in names:
        rule = "the table has a column 'weights', which a streamed audit cannot use"
        hint = Hint("leave out {engine} to work in memory, or rename the column")
        raise InputError(rule, source=source, hint=hint)
    model, method, question, answer = (
        ",".join(roles[role]) or None for role in ("model", "method", "question_id", "answer")
    )
    labels = tuple(dict.fromkeys(name for name in (model, method, *by) if name is not None))
    if answer is not None:
        # The files' own statistics say whether the column has a missing value.
        groups = _statistics(answer, files)
        if all(group and group.has_null_count and not group.null_count for group in groups):
            answer = None
    read = batches.BatchColumns(tuple(roles["confidence"]), roles["correct"][0], labels, answer)
    guessed = asked.scale is None and _in_percent(source, read, files)
    percent, on_invalid = guessed or asked.scale == PERCENT, asked.on_invalid or "missing"
    plan = SumPlan(read, cell_grid(bins), model, method, by, percent, on_invalid)
    by_role = {role: ",".join(choice) for role, choice in roles.columns.items() if choice}
    text = PERCENT if percent else FRACTION
    modes = (*roles.guessed, *(["scale"] if guessed else []))
    return Streamed(source, plan, question, Reading(by_role, modes, text, same=roles.same))


_FILES = 20
"""Files behind an address that a sample is read from; each is fetched."""


def _some_rows(source: str, names: Sequence[str] | None = None) -> pl.DataFrame:
    """Return some rows with all columns, or some columns with all rows."""
    from calibrant.data.tables import LOOKED_AT, read_table, scan_table, some_rows

    if not is_url(source) and names is None:
        return some_rows(scan_table(source), source)
    if not is_url(source):
        return read_table(source, columns=list(names or ()))
    # Files behind an address are opened by fsspec: polars may not.
    files, rows = batches.parquet_files(source), None
    if names is None:
        files = files[:: -(-len(files) // _FILES)]
        rows = -(-LOOKED_AT // len(files))
    frames = []
    for file in files:
        shared = batches.partition_of(file, source)
        stored = None if names is None else [name for name in names if name not in shared]
        frame = pl.DataFrame(batches.first_rows(file, stored, rows))
        partition = {
            name: pl.lit(shared[name]) for name in shared if names is None or name in names
        }
        frames.append(frame.with_columns(**partition))
    return pl.concat(frames, how="diagonal_relaxed")


def scan_part(file: str, source: str) -> pl.LazyFrame:
    """Return the rows of one file, with the columns that its folders name."""
    partition = {name: pl.lit(value) for name, value in batches.partition_of(file, source).items()}
    return pl.scan_parquet(file, hive_partitioning=False).with_columns(**partition)


def _in_percent(source: str, columns: batches.BatchColumns, files: list[str]) -> bool:
    """Return whether the confidences are percentages, by the first rows that have some."""
    if all(_within(-math.inf, name, files[0]) for name in columns.confidence):
        return False
    for part in batches.table_parts(source, columns)[:1]:
        rows = batches.first_rows(part.file, columns.confidence, _FIRST_ROWS)
        for values in pl.DataFrame(rows):
            # NaN is above every number here.
            if values.dtype.is_numeric() and values.is_between(1, math.inf, closed="right").any():
                from calibrant.data.reading.scales import read_confidence

                table = {"confidence": values.cast(pl.Float64), "model": "", "method": ""}
                return read_confidence(pl.DataFrame(table), None, ())[1] == PERCENT
    return False


def _within(low: float, column: str, file: str) -> bool:
    """Return whether the file's own statistics say that all values are from `low` to 1."""
    groups = list(_statistics(column, [file]))
    ends = [end for g in groups for end in ((g.min, g.max) if g and g.has_min_max else (None,))]
    return bool(ends) and all(isinstance(end, float | int) and low <= end <= 1 for end in ends)


def _statistics(column: str, files: list[str]) -> Iterator[Any]:
    """Yield what the files themselves say about each row group of a column."""
    for file in files:
        with batches.opened_file(file) as source:
            metadata = source.metadata
        for group in map(metadata.row_group, range(metadata.num_row_groups)):
            parts = map(group.column, range(group.num_columns))
            yield from (part.statistics for part in parts if part.path_in_schema == column)


# A parquet file ends with its footer, the length of that in four bytes, and four letters.
_END = 8


def streamed_input(
    shown: str, source: str, parts: Sequence[batches.FilePart]
) -> list[dict[str, Any]]:
    """Return what names the input of a streamed document: files with the SHA-256 of their footers.

    Hashing a large table would take longer than auditing it. The footer holds the schema, and for
    every row group and column the number of rows, the place and size of its bytes and, where the
    writer gave them, the least and the largest value: a file that was written again with other
    rows has another footer, but a byte that was changed in place has not.

    Parameters
    ----------
    shown
        The table as it was given.
    source
        What was read: the same, or its copy as a parquet file where it is a table of text. That
        is read to the end for the copy, so that it is hashed whole.
    parts
        The parts of the table, which know the rows of each file.
    """
    if source != shown:
        from calibrant.data.sources.input import input_files

        return input_files(shown)
    rows: Counter[str] = Counter()
    for part in parts:
        rows[part.file] += part.rows
    return list(LocalEngine().map(partial(_facts, rows=rows), batches.parquet_files(source)))


def _facts(file: str, rows: Counter[str]) -> dict[str, Any]:
    try:
        with batches.opened_bytes(file) as source:
            size = source.seek(0, os.SEEK_END)
            source.seek(size - _END)
            footer = int.from_bytes(source.read(4), "little") + _END
            source.seek(size - footer)
            digest = hashlib.sha256(source.read(footer)).hexdigest()
    except OSError as error:
        raise InputError(f"the footer cannot be read: {error}", source=file) from None
    return {"path": file, "bytes": size, "rows": rows[file], "footer_sha256": digest}


# Rows that are looked at, in stretches: neighbours of a sorted table stay beside each other, and
# five of them cost a tenth of an audit of 10,000,000 rows, 64 would cost a third.
_LOOKED_AT, _LEAST_STRETCH, _STRETCHES = 30_000, 2_000, 5
# With so many rows of a group the stretches saw it: in the whole table it has more of them.
_SEEN = 5
_WHOLE = ("model", "method")


Dependences: TypeAlias = dict[tuple[str, ...], Dependence]
"""What hangs together by model, method and perhaps a column of groups."""


def stream_search(
    streamed: Streamed, request: ReadingOptions, rows: int, by: Sequence[str]
) -> Dependences:
    """Search stretches of a table that is read in parts for rows that hang together.

    Parameters
    ----------
    streamed
        The table and its columns.
    request
        How it is read.
    rows
        Rows of the whole table.
    by
        Columns whose values are audited one by one.
    """
    dependences: Dependences = {}
    # An address is read once: stretches of it would be read again.
    if is_url(streamed.source):
        return dependences
    frame = _stretches(streamed, rows)
    how = {**asdict(request), "scale": streamed.reading.scale, "on_invalid": "drop"}
    try:
        scores = load_scores(frame, **how, others=True)
    except InputError:
        # What a few rows break is told where all are read.
        return dependences
    share = max(rows / frame.height, 1.0)
    for block in scores.blocks():
        result = block_dependence(scores, block)
        if result is not None:
            key = block.keys["model"], block.keys["method"]
            dependences[key] = _of_all_rows(result, share, frame.height)
            for column in {*by} & result.columns:
                # What is said of one topic is not said of others: topics are no clusters in it.
                beyond = block_dependence(scores, block, (column,)) or result
                dependences[*key, column] = _of_all_rows(beyond, share, frame.height)
    return dependences


def dependence_of(dependences: Dependences, keys: Mapping[str, str]) -> Dependence | None:
    """Return what hangs together of a model and method, or of a group of its rows."""
    model, method, *columns = (name if name not in _WHOLE else key for name, key in keys.items())
    whole = dependences.get((model, method))
    return dependences.get((model, method, *columns), whole)


def _of_all_rows(result: Dependence, share: float, looked_at: int) -> Dependence:
    """Return what stretches of a table say of all its rows: groups seen well have more there."""
    growth = [
        replace(groups, inflation=math.sqrt(1 + (groups.inflation**2 - 1) * share))
        if groups.grouping.codes.size >= _SEEN * groups.count
        else groups
        for groups in result.groups
    ]
    return replace(result, groups=tuple(growth), looked_at=looked_at)


def _stretches(streamed: Streamed, rows: int) -> pl.DataFrame:
    """Return evenly spread stretches of a table with all its columns that may hold groups."""
    files = batches.parquet_files(streamed.source)
    stretches = max(min(rows // _LEAST_STRETCH, _STRETCHES), 1)
    length = max(min(_LOOKED_AT, rows) // stretches, 1)
    targets = {number * (rows // stretches) for number in range(stretches)}
    parts, first = [], 0
    for file in files:
        scan = scan_part(file, streamed.source)
        kinds = scan.collect_schema()
        names = [name for name, kind in kinds.items() if not kind.is_nested()]
        count = int(scan.select(pl.len()).collect().item())
        for start in sorted(place for place in targets if first <= place < first + count):
            # Cut first: columns are read to the end where they are chosen before.
            parts.append(scan.slice(start - first, length).select(names))
        first += count
    return pl.concat(pl.collect_all(parts), how="diagonal_relaxed")
