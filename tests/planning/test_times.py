"""Times of a stream: read as instants, or refused with their row."""

import datetime as dt

import polars as pl
import pytest

from calibrant.core.errors import InputError
from calibrant.labels.watching.batch import instants

NOON = dt.datetime(2026, 3, 29, 12, tzinfo=dt.UTC)
SECONDS = int(NOON.timestamp())

KNOWN = {
    "text": pl.Series(["2026-03-29T12:00:00Z"]),
    "text of another zone": pl.Series(["2026-03-29T17:30:00+05:30"]),
    "categories": pl.Series(["2026-03-29T12:00:00Z"], dtype=pl.Categorical),
    "seconds": pl.Series([SECONDS]),
    "parts of seconds": pl.Series([float(SECONDS)]),
    "without a zone": pl.Series([NOON.replace(tzinfo=None)]),
    "milliseconds of a clock": pl.Series([NOON]).cast(pl.Datetime("ms", "UTC")),
    "a zone with summer time": pl.Series([NOON]).dt.convert_time_zone("Europe/Berlin"),
}

REFUSED = {
    "milliseconds": pl.Series([SECONDS * 1_000]),
    "microseconds": pl.Series([SECONDS * 1_000_000]),
    "nanoseconds": pl.Series([SECONDS * 1_000_000_000]),
    "beyond all numbers": pl.Series([1e36]),
    "before the year 1": pl.Series([-1e13]),
    "no number": pl.Series([float("nan")]),
    "infinite": pl.Series([float("inf")]),
    "a flag": pl.Series([True]),
    "a time of day": pl.Series([dt.time(5)]),
    "a duration": pl.Series([dt.timedelta(hours=5)]),
    "before the year 1 in UTC": pl.Series(["0001-01-01T00:00:00+14:00"]),
    "after the year 9999 in UTC": pl.Series(["9999-12-31T23:59:59-12:00"]),
    "the year 20983": pl.Series([6 * 10**14]).cast(pl.Datetime("ms")),
    "nothing": pl.Series([None]),
}


@pytest.mark.parametrize("name", KNOWN)
def test_an_instant_is_the_same_however_it_is_written(name):
    assert instants(KNOWN[name], "s.csv").to_list() == [NOON]


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_time_is_refused_with_its_row(name):
    column = REFUSED[name]
    with pytest.raises(InputError, match="row 1: a time is written like 2026-01-31"):
        instants(column, "s.csv")


@pytest.mark.parametrize("unit", [1_000, 1_000_000, 1_000_000_000])
def test_finer_counts_are_told_what_to_do(unit):
    with pytest.raises(InputError, match="into seconds"):
        instants(pl.Series([SECONDS, SECONDS * unit]), "s.csv")


def test_the_ends_of_the_calendar():
    ends = pl.Series(["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"])
    assert [found.year for found in instants(ends, "s.csv")] == [1, 9999]
