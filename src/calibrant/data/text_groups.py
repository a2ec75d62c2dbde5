"""Texts of a table as groups: by their first words, their last ones, or most of the rare ones."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from calibrant.core.arrays import Indices, Mask
from calibrant.metrics.stats.repeats import near_equal_texts

_EDGE, _MULTIPLIER = range(5), np.uint64(0x9E3779B97F4A7C15)


class TextWords:
    """The words of texts as numbers, and which texts share some."""

    def __init__(self, column: pl.Series) -> None:
        self._column = column

    @cached_property
    def _words(self) -> tuple[Indices, Indices, Indices]:
        """Return number of each word, where each text starts, and where it ends."""
        words = self._column.fill_null("").str.to_lowercase().str.extract_all(r"\w+")
        lengths = np.maximum(words.list.len().to_numpy().astype(np.intp), 1)
        end = np.cumsum(lengths)
        # A text without words is one empty word.
        return (
            value_codes(words.explode(empty_as_null=True).fill_null("")),
            end - lengths,
            end,
        )

    def first_words(self) -> Indices:
        """Return the group of each text by how it begins."""
        numbers, start, end = self._words
        return _edge_words(numbers, [(start + step, start + step < end) for step in _EDGE])

    def last_words(self) -> Indices:
        """Return the group of each text by how it ends."""
        numbers, start, end = self._words
        return _edge_words(numbers, [(end - 1 - step, end - 1 - step >= start) for step in _EDGE])

    def nearly_equal(self) -> Indices:
        """Return the group of each text by most of its rare words."""
        numbers, start, _ = self._words
        return near_equal_texts(numbers, start)


def _edge_words(numbers: Indices, places: Iterable[tuple[Indices, Mask]]) -> Indices:
    """Return codes of texts by their words at some places, as far as these are inside."""
    key: Any = np.uint64(0)
    for place, inside in places:
        word = np.where(inside, numbers[np.where(inside, place, 0)] + 1, 0)
        key = key * _MULTIPLIER + word.astype(np.uint64)
    return np.unique(key, return_inverse=True)[1].astype(np.intp)


def value_codes(column: pl.Series) -> Indices:
    """Return values as numbers from 0 on; rows without a value are each on their own."""
    texts = column.dtype == pl.String
    if texts:
        column = column.cast(pl.Categorical).to_physical()
    missing: Mask | None = None
    # Looked at only where it matters: each step through a column of a small table takes longer
    # than its rows.
    if column.null_count():
        missing, column = column.is_null().to_numpy(), column.fill_null(0)
    values = column.to_numpy().astype(np.int64)
    least, most = int(values.min()), int(values.max())
    if most - least <= 4 * values.size:
        # A table of all values is quicker than sorting them.
        present = np.zeros(most - least + 1, np.intp)
        present[(values if missing is None else values[~missing]) - least] = 1
        codes = (np.cumsum(present) - 1)[values - least]
    else:
        codes = np.unique(values, return_inverse=True)[1]
    if missing is not None:
        codes[missing] = int(codes.max()) + 1 + np.arange(int(missing.sum()))
    # The numbers of texts depend on what this process read before; the order of the rows does not.
    return _by_appearance(codes) if texts else np.asarray(codes, np.intp)


def _by_appearance(codes: Indices) -> Indices:
    """Return the same groups, numbered as they first appear."""
    first = np.zeros(int(codes.max()) + 1, np.intp)
    first[codes[::-1]] = np.arange(codes.size)[::-1]
    starts = np.zeros(codes.size, np.intp)
    starts[first] = 1
    numbers = np.cumsum(starts) - 1
    return numbers[first[codes]]
