"""The stream of a monitor, batch by batch."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import polars as pl

from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.inputs.objects import as_table, is_row
from calibrant.inputs.streams.row_streams import follow_file, read_stdin
from calibrant.planning.watching.times import days_since_1970, instants
from calibrant.planning.watching.watch import CalibrationWatch, StreamBatch

_STREAM_ROWS = 100
MOST_ROWS = 10**12
# Column that says which rows a policy answers alone.
ALONE = "policy_answers_alone"
_UNITS = {"hour": "1h", "day": "1d", "week": "1w", "month": "1mo"}


def batch_length(every: str | int | None, time: str | None) -> str | int:
    """Return the length of a batch: by default a day where there is a time, else 100 rows."""
    if every is None:
        return "day" if time else _STREAM_ROWS
    return every


def open_stream(
    sources: Any, every: str | int, follow: float | None, stream: str | None
) -> tuple[Any, str | None]:
    """Return the tables, and how messages call them where rows keep coming."""
    rows = _size(every) or _STREAM_ROWS
    if isinstance(sources, Iterator):
        return _gathered(sources, rows), stream
    inputs = [sources] if isinstance(sources, str | Path) else sources
    if not isinstance(inputs, list) or not all(isinstance(part, str | Path) for part in inputs):
        return sources, stream
    if "-" in inputs:
        if len(inputs) > 1:
            raise InputError("standard input (-) is not mixed with files")
        return read_stdin(rows), "standard input"
    if follow is not None:
        if len(inputs) != 1:
            raise InputError(f"one growing file can be followed, got {len(inputs)}")
        return follow_file(Path(inputs[0]), rows, follow), str(inputs[0])
    return sources, stream


def tables_of(sources: Any) -> Iterator[Any]:
    """Yield the tables of a stream one by one; single rows, as dictionaries, are gathered."""
    if isinstance(sources, list | tuple):
        yield from _gathered(sources, MOST_ROWS)
    elif isinstance(sources, Iterator):
        yield from sources
    else:
        yield as_table(sources)


def _gathered(parts: Iterable[Any], most: int) -> Iterator[Any]:
    """Yield tables as they come, and rows in tables of at most so many."""
    rows: list[Any] = []
    for part in parts:
        if not is_row(part):
            yield as_table(part)
            continue
        rows.append(part)
        if len(rows) == most:
            yield as_table(rows)
            rows = []
    if rows:
        yield as_table(rows)


def stream_batches(
    rows: pl.DataFrame,
    time: str | None,
    every: str | int,
    source: str,
    watch: CalibrationWatch,
    *,
    named: bool,
) -> Iterable[StreamBatch]:
    """Yield the batches of a table: so many rows each, or a stretch of time."""
    size = _size(every)
    if time is None:
        step = size or max(1, rows.height)
        offset = watch.taken
        for number, start in enumerate(range(0, rows.height, step), start=offset + 1):
            yield _batch(f"batch {number}", float("nan"), rows.slice(start, step), named=named)
        return
    if time not in rows.columns:
        raise InputError(
            f"there is no column {time!r} for the time", source=source, hint=Hint("set {time}")
        )
    stamped = rows.with_columns(instants(rows[time], source).alias("stream_time"))
    stamped = stamped.sort("stream_time", maintain_order=True)
    if size:
        for start in range(0, stamped.height, size):
            part = stamped.slice(start, size)
            stamp = part["stream_time"][0]
            yield _batch(str(stamp), days_since_1970(stamp), part, named=named)
        return
    unit = _UNITS[str(every)]
    marked = stamped.with_columns(pl.col("stream_time").dt.truncate(unit).alias("stream_batch"))
    for part in marked.partition_by("stream_batch", maintain_order=True):
        stamp = part["stream_batch"][0]
        label = stamp.isoformat(" ", "hours") if every == "hour" else stamp.date().isoformat()
        yield _batch(label, days_since_1970(stamp), part, named=named)


def in_order(batch: StreamBatch, watch: CalibrationWatch, coming: bool, source: str) -> StreamBatch:
    """Return a batch that is not older than the last one.

    Rows that keep coming may come late: they count when they come. Files in the wrong order are
    refused, as a change would seem to begin after its alarm.
    """
    if not batch.time < watch.last_time:
        return batch
    if coming:
        return dataclasses.replace(batch, label=watch.last_label, time=watch.last_time)
    raise InputError(
        f"rows of {batch.label} come after rows of {watch.last_label}, and a change is found in "
        "the order of time alone",
        source=source,
        hint="give the tables in the order of their times",
    )


def _size(every: str | int) -> int | None:
    text = str(every)
    if text.isdigit() and 0 < int(text) <= MOST_ROWS:
        return int(text)
    if text not in _UNITS:
        words = ", ".join(_UNITS)
        raise InputError(
            Hint("{every} is the length of a batch, got {0}", repr(every)),
            hint=Hint("give {0}, or a whole number of rows from 1 on", words),
        )
    return None


def _batch(label: str, days: float, rows: pl.DataFrame, *, named: bool) -> StreamBatch:
    labelled = rows.filter(pl.col("correct").is_not_null())
    return StreamBatch(
        label,
        days,
        labelled["confidence"].cast(pl.Float64).to_numpy(),
        labelled["correct"].cast(pl.Float64).to_numpy(),
        labelled["question_id"].to_numpy() if named else None,
        rows.height - labelled.height,
        labelled[ALONE].to_numpy() if ALONE in labelled.columns else None,
    )
