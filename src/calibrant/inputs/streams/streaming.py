"""Which tables are streamed, and how their columns are found."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.core.registry import did_you_mean
from calibrant.records.batches import Columns, opened_file, parquet_files, partition_of
from calibrant.records.formats import file_format, is_study, is_url
from calibrant.records.part_sums import SumPlan
from calibrant.stats.sums.mergeable import cell_grid

__all__ = ["STREAM_ROWS", "Streamed", "as_parquet", "is_large", "is_streamed", "sum_plan"]

# A parquet table with more rows, and a text table of more bytes, is streamed without being asked.
STREAM_ROWS = 5_000_000
STREAM_BYTES = 512 * 1024**2


@dataclass(frozen=True, slots=True)
class Streamed:
    """A table to stream: where it is, its columns, and the column of question ids if any."""

    source: str
    plan: SumPlan
    question: str | None


def is_streamed(data: Any, engine: str | None, needs: str | None) -> bool:
    """Return whether this input is streamed; an engine that was asked for cannot be ignored.

    Parameters
    ----------
    data
        What is audited.
    engine
        The engine asked for, or None.
    needs
        Option that needs the whole table in memory, or None.
    """
    path = isinstance(data, str | Path)
    if engine is not None:
        if needs is not None:
            raise InputError(
                Hint("{engine} reads a table once, in parts, and {" + needs + "} needs all of it"),
                hint=Hint("leave out {engine} to work in memory"),
            )
        if path and _holds_draws(str(data)):
            return False
        if not path:
            raise InputError(
                Hint(
                    "{engine} takes one table: a file, a folder or glob of parquet files, or a URL"
                ),
                hint="put the tables of several models into one folder, model=NAME/*.parquet",
            )
        return True
    if path and is_url(str(data)):
        if needs is not None:
            rule = "a table behind a URL is streamed, and {" + needs + "} needs all of it"
            raise InputError(Hint(rule))
        return True
    return needs is None and is_large(data)


def _holds_draws(source: str) -> bool:
    """Return whether this is a study or a table of draws: its models are shared out instead."""
    if is_study(source):
        return True
    if is_url(source) or find_spec("pyarrow") is None:
        return False
    try:
        names = _columns(source)
    except (InputError, OSError):
        # What cannot be read is reported where it is read.
        return False
    return "class_id" in names and "confidence" not in names


def _columns(source: str) -> list[str]:
    """Return the names of the columns; parquet files say them without a library for tables."""
    path = Path(source)
    if not path.is_file() or file_format(path) == "parquet":
        return _names(parquet_files(source), source)
    from calibrant.records.tables import column_names, scan_table

    return column_names(scan_table(source), source)


def is_large(data: Any, *, rows: int | None = None) -> bool:
    """Return whether a local table is too large to be read at once: more than so many rows."""
    if not isinstance(data, str | Path) or find_spec("pyarrow") is None or is_study(data):
        return False
    source, path = str(data), Path(data)
    try:
        if path.is_file() and file_format(path) != "parquet":
            return path.stat().st_size > STREAM_BYTES and file_format(path) in ("csv", "jsonl")
        files = parquet_files(source)
        return _rows(files) > (rows or STREAM_ROWS) and "weights" not in _names(files, source)
    except (InputError, OSError):
        # What cannot be read is reported where it is read.
        return False


def _rows(files: list[str]) -> int:
    import pyarrow.parquet as parquet

    return sum(parquet.read_metadata(file).num_rows for file in files)


@contextmanager
def as_parquet(source: str) -> Iterator[str]:
    """Yield the table as parquet: itself, or a text table rewritten to a temporary file."""
    path = Path(source)
    if is_url(source) or not path.is_file() or file_format(path) == "parquet":
        yield source
        return
    kind = file_format(path)
    if kind == "json":
        raise InputError("a json array cannot be streamed", source=source, hint="save it as jsonl")
    import polars as pl
    from polars.exceptions import PolarsError

    from calibrant.records.tables import scan_text_table

    with tempfile.TemporaryDirectory(prefix="calibrant-") as folder:
        copy = Path(folder) / "table.parquet"
        try:
            if kind == "csv":
                table = scan_text_table(path)
            else:
                table = pl.scan_ndjson(path, infer_schema_length=None)
            table.sink_parquet(copy, compression="lz4")
        except PolarsError as error:
            raise InputError(f"the table cannot be read: {error}", source=source) from None
        yield str(copy)


def sum_plan(
    source: str,
    *,
    bins: int,
    by: tuple[str, ...],
    percent: bool,
    drop: bool,
    columns: Mapping[str, str | None],
) -> Streamed:
    """Find the columns of a table and return what is to be summed.

    Parameters
    ----------
    columns
        Column names by role (confidence, correct, model, method, question, answer) or None.
    """
    files = parquet_files(source)
    names = _names(files, source)
    wanted = columns["confidence"] or "confidence"
    chosen = (wanted,) if wanted in names else tuple(part.strip() for part in wanted.split(","))
    for name in chosen:
        _required("confidence", name, names, source)
    for name in by:
        _required("by", name, names, source)
    if "weights" in names:
        raise InputError(
            "the table has a column 'weights', which a streamed audit cannot use",
            source=source,
            hint=Hint("leave out {engine} to work in memory, or rename the column"),
        )
    model, method = (_optional(role, columns[role], names, source) for role in ("model", "method"))
    question, answer = (
        _optional(role, columns[short], names, source)
        for role, short in (("question_id", "question"), ("answer", "answer"))
    )
    labels = tuple(dict.fromkeys(name for name in (model, method, *by) if name is not None))
    read = Columns(
        chosen,
        _required("correct", columns["correct"], names, source),
        labels,
        None if answer is None or _never_null(answer, files) else answer,
    )
    plan = SumPlan(read, cell_grid(bins), model, method, by, percent, drop)
    return Streamed(source, plan, question)


def _names(files: list[str], source: str) -> list[str]:
    with opened_file(files[0]) as opened:
        return [*opened.schema_arrow.names, *partition_of(files[0], source)]


def _required(role: str, name: str | None, names: list[str], source: str) -> str:
    wanted = name or role
    if wanted not in names:
        raise InputError(
            f"there is no column {wanted!r} for {role}",
            source=source,
            hint=did_you_mean(wanted, names),
        )
    return wanted


def _optional(role: str, name: str | None, names: list[str], source: str) -> str | None:
    if name is not None:
        return _required(role, name, names, source)
    return role if role in names else None


def _never_null(column: str, files: list[str]) -> bool:
    """Return whether the files' own statistics say that the column has no missing value."""
    for file in files:
        with opened_file(file) as opened:
            metadata = opened.metadata
        for group in map(metadata.row_group, range(metadata.num_row_groups)):
            parts = map(group.column, range(group.num_columns))
            held = [part.statistics for part in parts if part.path_in_schema == column]
            if not all(found and found.has_null_count and not found.null_count for found in held):
                return False
    return True
