"""Rows that keep coming: standard input, or a file that grows."""

import io
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import polars as pl
from polars.exceptions import PolarsError

from calibrant.core.errors import InputError, error_source
from calibrant.data.formats import separator_of
from calibrant.data.text_tables import check_names, name_columns

_POLL_SECONDS = 0.2


def read_stdin(rows: int) -> Iterator[pl.DataFrame]:
    """Yield tables of `rows` rows from CSV or JSON lines on standard input."""
    yield from _tables(_decoded(sys.stdin, "standard input"), rows, "standard input")


def _decoded(lines: Iterable[str], source: str) -> Iterator[str]:
    """Yield the lines; bytes that are no text are refused with the line they follow."""
    number = 0
    try:
        for line in lines:
            number += 1
            yield line
    except UnicodeDecodeError:
        raise InputError(
            f"line {number + 1} or one soon after it is no UTF-8 text",
            source=source,
            hint="a stream is CSV or JSON lines in UTF-8; parquet and gzip are read as whole files",
        ) from None


def follow_file(path: Path, rows: int, idle_seconds: float) -> Iterator[pl.DataFrame]:
    """Yield tables of new rows as a CSV or JSON-lines file grows, until it rests for a while."""
    if not path.is_file():
        raise InputError("there is no such file", source=str(path))
    yield from _tables(_decoded(_growing_lines(path, idle_seconds), str(path)), rows, str(path))


def _growing_lines(path: Path, idle_seconds: float) -> Iterator[str]:
    with path.open(encoding="utf-8") as file:
        waited, half = 0.0, ""
        while waited < idle_seconds:
            line = file.readline()
            if line.endswith("\n"):
                yield half + line
                waited, half = 0.0, ""
            else:
                # A line may be caught while it is being written: keep what is there.
                half += line
                time.sleep(_POLL_SECONDS)
                waited += _POLL_SECONDS
        if half:
            yield half


def _tables(lines: Iterable[str], rows: int, source: str) -> Iterator[pl.DataFrame]:
    header: str | None = None
    batch: list[str] = []
    for line in lines:
        if not line.strip():
            continue
        if header is None and not line.lstrip().startswith("{"):
            header = line
            continue
        header = header or ""
        batch.append(line)
        if len(batch) >= rows:
            yield _parse(header, batch, source)
            batch = []
    if batch:
        yield _parse(header or "", batch, source)


def _parse(header: str, lines: list[str], source: str) -> pl.DataFrame:
    text = (header + "".join(lines)).encode()
    try:
        if header:
            mark = separator_of(header)
            with error_source(source):
                check_names(header.encode(), mark)
            columns = [name.strip().strip('"') for name in header.split(mark)]
            # A batch has few rows: what looks like a number in one is a name in the next.
            names = dict.fromkeys(name_columns(columns), pl.String())
            return pl.read_csv(
                io.BytesIO(text), separator=mark, infer_schema_length=None, schema_overrides=names
            )
        return pl.read_ndjson(io.BytesIO(text), infer_schema_length=None)
    except PolarsError as error:
        raise InputError(f"the rows cannot be read: {error}", source=source) from None
