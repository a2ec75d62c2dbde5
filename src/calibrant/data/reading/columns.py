"""What a column holds, looked at once: numbers, words, how many are different."""

from functools import cached_property

import numpy as np
import polars as pl

from calibrant.core.arrays import Floats, Mask
from calibrant.data.reading.cells import Cells, lowered, parse_numbers, word_counts
from calibrant.data.reading.names import NameRoles, name_roles, tokens


class Column:
    """A column of the rows that are looked at.

    Parameters
    ----------
    series
        Its cells.
    """

    def __init__(self, series: pl.Series) -> None:
        self.name, self.series = series.name, series
        self.height = series.len()
        self.roles: NameRoles = name_roles(series.name)

    @cached_property
    def text(self) -> pl.Series:
        """The cells as text, in small letters."""
        return lowered(self.series)

    @cached_property
    def cells(self) -> Cells:
        """The numbers among the cells."""
        if self.series.dtype == pl.Boolean:
            return parse_numbers(self.series.cast(pl.Int8))
        if self.series.dtype.is_nested() or self.series.dtype.is_temporal():
            none = np.zeros(self.height, dtype=bool)
            return Cells(np.full(self.height, np.nan), none, none, none)
        return parse_numbers(self.series)

    @cached_property
    def words(self) -> dict[str, int]:
        """How often each value stands there, if there are few of them."""
        return {} if self.series.dtype.is_nested() else word_counts(self.series)

    @cached_property
    def distinct(self) -> int:
        """How many values are different."""
        return 0 if self.series.dtype.is_nested() else self.text.drop_nulls().n_unique()

    @cached_property
    def known(self) -> Mask:
        """Which cells are numbers."""
        return np.isfinite(self.cells.values)

    @cached_property
    def numbers(self) -> Floats:
        """The numbers alone."""
        return self.cells.values[self.known]

    @cached_property
    def blank(self) -> int:
        """How many cells hold nothing."""
        return int(self.height - self.known.sum() - self.cells.text.sum())

    @property
    def numeric(self) -> bool:
        """Whether at least half of what stands there is numbers."""
        return 0 < self.numbers.size >= 0.5 * (self.height - self.blank)

    @cached_property
    def tokens(self) -> list[str]:
        """The words of its name."""
        return tokens(self.name)
