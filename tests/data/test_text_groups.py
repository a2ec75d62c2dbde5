"""Words are read from bytes as a reader of letters finds them, and numbers are those of groups."""

import re

import numpy as np
import polars as pl
import pytest

from calibrant.data.groupings import row_groupings
from calibrant.data.texts import TextWords, value_codes
from calibrant.metrics.stats.repeats import near_equal_texts

LONG = "a" * 70
TEXTS = [
    "Hello, World", "hello  world!", "HELLO_WORLD", "", None, "?!", "3 x 4", "Élan — vital",
    "élan vital", "日本 語", "日本語", f"{LONG} b", f"{LONG}c b", "tab\tnew\nline", "a\x00b",
    "don't", "ninechars", "ninecharz", "eightchr", "eightchs",
]  # fmt: skip


def words_of(text):
    return tuple(re.findall(r"\w+", (text or "").lower())) or ("",)


def same(codes, values):
    """Return whether rows are in one group exactly where they have one value."""
    pairs = set(zip(codes.tolist(), values, strict=True))
    return len(pairs) == len({code for code, _ in pairs}) == len({value for _, value in pairs})


@pytest.mark.parametrize("plain", [False, True])
def test_first_and_last_words_are_those_of_letters(plain):
    texts = [text for text in TEXTS for _ in range(2) if not plain or (text or "").isascii()]
    words = TextWords(pl.Series(texts))
    assert same(words.first_words(), [words_of(text)[:5] for text in texts])
    assert same(words.last_words(), [words_of(text)[-5:] for text in texts])


@pytest.mark.parametrize("size", [1, 9_999, 10_000, 25_000])
def test_many_texts_are_read_in_parts(size):
    rng = np.random.default_rng(size)
    drawn = rng.integers(0, 40, (size, 2)).tolist()
    texts = [f"answer {a} of {b}" if a else "" for a, b in drawn]
    assert same(TextWords(pl.Series(texts)).first_words(), texts)


def test_near_equal_texts_are_looked_for_only_where_rare_words_are_shared(monkeypatch):
    rng = np.random.default_rng(1)
    common = 1 / np.arange(1, 5_001)
    words = rng.choice(5_000, (4_000, 12), p=common / common.sum())
    start = np.arange(4_000) * 12
    paired = words.copy()
    paired[1::2] = paired[::2]
    paired[np.arange(4_000), rng.integers(0, 12, 4_000)] = rng.integers(0, 5_000, 4_000)
    joined = near_equal_texts(paired.ravel(), start)
    assert (joined[::2] == joined[1::2]).mean() > 0.8

    def never(*_):
        raise AssertionError("drawn from")

    monkeypatch.setattr("calibrant.metrics.stats.repeats._drawn_words", never)
    assert np.unique(near_equal_texts(words.ravel(), start)).size == 4_000
    with pytest.raises(AssertionError, match="drawn from"):
        near_equal_texts(paired.ravel(), start)


@pytest.mark.parametrize("kind", [pl.String, pl.Int64, pl.Categorical])
def test_codes_are_of_the_rows_and_not_of_what_was_read_before(kind):
    column = pl.Series([7, 3, None, 7, 10**12, 3, None]).cast(pl.String)
    column = column.cast(kind) if kind != pl.Int64 else column.cast(pl.Int64)
    first = value_codes(column.cast(pl.String) if kind == pl.Categorical else column)
    pl.Series(["3", "other", "7"]).cast(pl.Categorical)
    again = value_codes(column.cast(pl.String) if kind == pl.Categorical else column)
    assert first.tolist() == again.tolist() == [0, 1, 2, 0, 3, 1, 4]


def test_times_are_days_and_an_order_whoever_wrote_them():
    """Rows without a time come with the first ones; a sorted column is no order of its own."""
    days = pl.Series(["2026-01-03T09:00", "2026-01-01T10:00", None, "2026-01-03T08:00"] * 30)
    times = days.str.to_datetime("%Y-%m-%dT%H:%M")
    for column in (days, times, times.dt.epoch("s"), times.dt.replace_time_zone("Asia/Tokyo")):
        day, order, _ = row_groupings(pl.DataFrame({"on": column}))
        assert (day.words, order.words) == ("day of on", "order of on")
        assert same(day.codes, [text[:10] if text else k for k, text in enumerate(days)])
        filled = np.array([text or "2026-01-01T10:00" for text in days])
        assert (np.diff(order.codes[np.argsort(filled, kind="stable")]) == 1).all()
        (day, last) = row_groupings(pl.DataFrame({"on": column.sort()}))
        assert (day.kind, last.words) == ("day", "order")
