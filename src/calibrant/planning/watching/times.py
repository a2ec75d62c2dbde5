"""Times of a stream: text, dates or seconds, all as instants in UTC."""

from __future__ import annotations

import datetime as dt

import polars as pl

from calibrant.core.errors import InputError

__all__ = ["days_since_1970", "instants"]


def instants(column: pl.Series, source: str) -> pl.Series:
    """Return a column of times as instants in UTC."""
    if column.dtype == pl.String:
        parsed = pl.Series([_instant(text) for text in column], dtype=pl.Datetime("us", "UTC"))
    elif column.dtype.is_numeric():
        parsed = (column.cast(pl.Float64) * 1e6).cast(pl.Int64).cast(pl.Datetime("us", "UTC"))
    elif column.dtype == pl.Date:
        parsed = column.cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
    elif isinstance(column.dtype, pl.Datetime) and column.dtype.time_zone is None:
        parsed = column.dt.cast_time_unit("us").dt.replace_time_zone("UTC")
    else:
        parsed = column.cast(pl.Datetime("us", "UTC"), strict=False)
    if parsed.null_count():
        row = int(parsed.is_null().arg_max() or 0)
        raise InputError(
            f"a time is written like 2026-01-31 or 2026-01-31T12:00:00Z, or as seconds since "
            f"1970, got {column[row]!r}",
            source=source,
            row=row + 1,
        )
    return parsed


def _instant(text: str | None) -> dt.datetime | None:
    """Return an ISO date or time as an instant; without a zone it is taken as UTC."""
    try:
        found = dt.datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return found.astimezone(dt.UTC) if found.tzinfo else found.replace(tzinfo=dt.UTC)


def days_since_1970(stamp: dt.datetime) -> float:
    """Return an instant as days since 1970-01-01."""
    return stamp.timestamp() / 86_400.0
