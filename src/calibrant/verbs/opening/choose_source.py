"""Which way an input goes: as rows in memory, as sums of a large table, or as samples.

Asked of every input: what reads parts is loaded for parquet alone.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.data.formats import file_format, is_fetched, is_study, is_url, require_there

if TYPE_CHECKING:
    from calibrant.answers.graded_samples import SampleRequest
    from calibrant.data.sources.options import AuditOptions, AuditSource

# A parquet table with more rows, and a text table of more bytes, is streamed without being asked.
STREAM_ROWS = 5_000_000
STREAM_BYTES = 512 * 1024**2


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
            rule = "{engine} reads a table once, in parts, and {" + needs + "} needs all of it"
            raise InputError(Hint(rule), hint=Hint("leave out {engine} to work in memory"))
        if path and _holds_draws(str(data)):
            return False
        if not path:
            rule = "{engine} takes one table: a file, a folder or glob of parquet files, or a URL"
            hint = "put the tables of several models into one folder, model=NAME/*.parquet"
            raise InputError(Hint(rule), hint=hint)
        return True
    if path and is_url(str(data)) and not is_fetched(data):
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
        # Parquet files say their columns without a library for tables.
        if not Path(source).is_file() or file_format(Path(source)) == "parquet":
            from calibrant.data.batches import named_columns, parquet_files

            names = named_columns(parquet_files(source), source)
        else:
            from calibrant.data.tables import column_names, scan_table

            names = column_names(scan_table(source), source)
    except (InputError, OSError):
        # What cannot be read is reported where it is read.
        return False
    return "class_id" in names and "confidence" not in names


def is_large(data: Any, *, rows: int | None = None) -> bool:
    """Return whether a local table is too large to be read at once: more than so many rows."""
    if not isinstance(data, str | Path) or find_spec("pyarrow") is None or is_study(data):
        return False
    source, path = str(data), Path(data)
    try:
        if path.is_file() and file_format(path) != "parquet":
            return path.stat().st_size > STREAM_BYTES and file_format(path) in ("csv", "jsonl")
        from calibrant.data.batches import named_columns, number_of_rows, parquet_files

        files = parquet_files(source)
        number = number_of_rows(files) > (rows or STREAM_ROWS)
        return number and "weights" not in named_columns(files, source)
    except (InputError, OSError):
        # What cannot be read is reported where it is read.
        return False


def open_audit(
    data: Any, outcomes: Any, options: AuditOptions, samples: SampleRequest | None = None
) -> AuditSource:
    """Open what an audit was given.

    Parameters
    ----------
    data, outcomes
        As for `audit`.
    options
        The options of `audit`.
    samples
        What was asked for where the data are sampled answers that nobody has graded.
    """
    if isinstance(data, str | Path):
        require_there(data)
    if samples is not None:
        from calibrant.answers.graded_samples import sample_source

        return sample_source(data, options, samples)
    if is_streamed(data, options.engine, options.needs_all_rows):
        from calibrant.data.sources.cell_source import cell_source

        return cell_source(data, options)
    # Both are loaded where they are used: each does without much that the other needs.
    from calibrant.data.sources.row_source import row_source
    from calibrant.verbs.opening.open_input import open_input

    source = open_input(
        data, outcomes, scale=options.table.scale, ranked=True, labels=options.labels
    )
    return row_source(source, options)
