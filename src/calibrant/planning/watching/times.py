"""Times of a stream: text, dates or seconds, all as instants in UTC."""

from __future__ import annotations

import datetime as dt

import polars as pl

from calibrant.core.errors import InputError

_UTC = pl.Datetime("us", "UTC")
# From the first day of the year 1 to the last microsecond of the year 9999, as Python counts them.
_FIRST, _LAST = -62_135_596_800_000_000, 253_402_300_799_999_999
# Seconds of the years 1970 to 9999 end here; numbers beyond count smaller parts of a second.
_MOST_SECONDS = _LAST / 1e6


def instants(column: pl.Series, source: str) -> pl.Series:
    """Return a column of times as instants in UTC."""
    count = _microseconds(column)
    parsed = count.set(~count.is_between(_FIRST, _LAST), None).cast(_UTC)
    if parsed.null_count():
        row = int(parsed.is_null().arg_max() or 0)
        # Python has no name for a year above 9999.
        is_date = column.dtype == pl.Date or isinstance(column.dtype, pl.Datetime)
        found = (column.cast(pl.String) if is_date else column)[row]
        finer = isinstance(found, int | float) and abs(found) > _MOST_SECONDS
        raise InputError(
            f"a time is written like 2026-01-31 or 2026-01-31T12:00:00Z, or as seconds since "
            f"1970, got {found!r}",
            source=source,
            row=row + 1,
            hint="turn milliseconds or nanoseconds into seconds" if finer else None,
        )
    return parsed


def _microseconds(column: pl.Series) -> pl.Series:
    """Return times as microseconds since 1970; what is no time is null."""
    kind = column.dtype
    if kind == pl.String or isinstance(kind, pl.Categorical | pl.Enum):
        instant = pl.Series([_instant(text) for text in column.cast(pl.String)], dtype=_UTC)
    elif kind.is_numeric():
        return (column.cast(pl.Float64) * 1e6).cast(pl.Int64, strict=False)
    elif kind == pl.Date or (isinstance(kind, pl.Datetime) and kind.time_zone is None):
        instant = column.cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
    elif isinstance(kind, pl.Datetime):
        instant = column.cast(_UTC, strict=False)
    else:
        # A time of day, a duration or a flag is no instant.
        instant = pl.Series([None] * column.len(), dtype=_UTC)
    return instant.to_physical()


def _instant(text: str | None) -> dt.datetime | None:
    """Return an ISO date or time as an instant; without a zone it is taken as UTC."""
    try:
        found = dt.datetime.fromisoformat(text or "")
        return found.astimezone(dt.UTC) if found.tzinfo else found.replace(tzinfo=dt.UTC)
    except (ValueError, OverflowError):
        # The first hours of the year 1 may lie before it, in UTC.
        return None


def days_since_1970(stamp: dt.datetime) -> float:
    """Return an instant as days since 1970-01-01."""
    return stamp.timestamp() / 86_400.0
