"""A streamed table: its columns, what is summed of it, and what names it in a document."""

from __future__ import annotations

import hashlib
import math
import os
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

from calibrant.core.errors import InputError, error_source
from calibrant.core.hints import Hint
from calibrant.data import batches
from calibrant.data.formats import file_format, is_url
from calibrant.data.part_sums import SumPlan
from calibrant.data.reading import FRACTION, PERCENT, Reading
from calibrant.data.reading.roles import Roles, require_column, resolve_roles
from calibrant.data.sources.options import ReadingOptions
from calibrant.data.streams.engines import LocalEngine
from calibrant.metrics.blocks.grid import cell_grid

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
        peek, sample = partial(_peeked, source), partial(_sampled, source)
        roles = resolve_roles(names, columns, peek, sample, optional=sure)
        _refuse_other_readings(asked, roles)
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
    if answer is not None and _never_null(answer, files):
        answer = None
    read = batches.BatchColumns(tuple(roles["confidence"]), roles["correct"][0], labels, answer)
    guessed = asked.scale is None and _in_percent(source, read, files)
    percent, on_invalid = guessed or asked.scale == PERCENT, asked.on_invalid or "missing"
    plan = SumPlan(read, cell_grid(bins), model, method, by, percent, on_invalid)
    by_role = {role: ",".join(choice) for role, choice in roles.columns.items() if choice}
    text = PERCENT if percent else FRACTION
    modes = (*roles.guessed, *(["scale"] if guessed else []))
    return Streamed(source, plan, question, Reading(by_role, modes, text, same=roles.same))


def _refuse_other_readings(request: ReadingOptions, roles: Roles) -> None:
    """Refuse what sums of parts do not know: other scales and words, columns that are made."""
    scale, right = request.scale or roles.scale, request.right or roles.right
    if scale not in (None, FRACTION, PERCENT) or right is not None or roles.derived is not None:
        rule = "the table needs a reading that a streamed audit has not: {0}"
        what = (right and f"the words for right, {right}") or scale or "an outcome made of columns"
        hint = "write the table with a confidence between 0 and 1 and an outcome of 0 or 1"
        raise InputError(Hint(rule, what), hint=hint)


def _sampled(source: str) -> Any:
    """Read some rows of a table with all columns."""
    from calibrant.data.tables import LOOKED_AT, scan_table, some_rows

    if is_url(source):
        return _rows_behind(source, None, LOOKED_AT)
    return some_rows(scan_table(source), source)


_FILES = 20
"""Files behind an address that a sample is read from; each is fetched."""


def _rows_behind(source: str, names: Sequence[str] | None, most: int | None) -> pl.DataFrame:
    """Return rows of the files behind an address, which fsspec opens and polars may not.

    Parameters
    ----------
    source
        The address.
    names
        Columns; None for all.
    most
        About how many rows of a few files; None for all rows of all files.
    """
    files = batches.parquet_files(source)
    files = files if most is None else files[:: -(-len(files) // _FILES)]
    rows = None if most is None else -(-most // len(files))
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


def _peeked(source: str, names: Sequence[str]) -> Any:
    """Read some columns of a table whose names leave a doubt."""
    from calibrant.data.tables import read_table

    if is_url(source):
        return _rows_behind(source, names, None)
    return read_table(source, columns=list(names))


def _in_percent(source: str, columns: batches.BatchColumns, files: list[str]) -> bool:
    """Return whether the confidences are percentages, by the first rows that have some."""
    if all(_within(-math.inf, name, files[0]) for name in columns.confidence):
        return False
    for part in batches.table_parts(source, columns)[:1]:
        rows = batches.first_rows(part.file, columns.confidence, _FIRST_ROWS)
        for values in pl.DataFrame(rows):
            # NaN is above every number here.
            if values.dtype.is_numeric() and values.is_between(1, math.inf, closed="right").any():
                return _looks_like_percent(values)
    return False


def _looks_like_percent(values: pl.Series) -> bool:
    from calibrant.data.reading.typed import read_confidence

    table = pl.DataFrame({"confidence": values.cast(pl.Float64), "model": "", "method": ""})
    _, scale, _ = read_confidence(table, None, ())
    return scale == PERCENT


def _never_null(column: str, files: list[str]) -> bool:
    """Return whether the files' own statistics say that the column has no missing value."""
    groups = _statistics(column, files)
    return all(group and group.has_null_count and not group.null_count for group in groups)


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
        from calibrant.data.sources.provenance import input_files

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
