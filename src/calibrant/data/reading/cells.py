"""Cells as people write them, `~85 %`, `0,85` or words, and a column of them, looked at once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl
from msgspec import Struct

from calibrant.core.arrays import Floats, Mask
from calibrant.data.reading.names import WORDS, NameRoles, name_roles, tokens

MISSING_TEXT = [word.replace("\\n", r"\n") for word in WORDS["cells"]["missing"].split(",")]
REFUSALS = WORDS["cells"]["refusal"].split(",")
_OUTCOMES = WORDS["outcomes"]
RIGHT, WRONG, YES, NO, SURE = (
    frozenset(_OUTCOMES[use].split()) for use in ("right", "wrong", "yes", "no", "sure")
)
NEITHER = frozenset(_OUTCOMES["neither"].split(","))
"""Words that say neither right nor wrong: not attempted, partial, a tie."""
LEVELS = {word: float(x) for x, words in WORDS["levels"].items() for word in words.split(",")}
"""Words for how sure somebody is, with the share that they usually stand for."""
_BLANKS = r"[\s\u00a0\u202f]+"
# Read without its blanks: a label, a word for 'about', the number, and what it is a share of.
_NUMBER = (
    r"^(?:[^0-9:=]{1,40}[:=])?(?:~|≈|about|approx\.?|approximately|around|ca\.?|circa|roughly"
    r"|>=?|<=?|≥|≤|over|under|atleast|atmost)?([+-]?[0-9]*[.,]?[0-9]+(?:e[+-]?[0-9]+)?)"
    r"(%|％|percent|pct|/|outof)?([0-9]+(?:\.[0-9]+)?)?\.?$"
)
_INSIDE = r"^[^0-9]{0,40}?\(?([0-9]+(?:[.,][0-9]+)?)[%％][^0-9]{0,40}$"
Words: TypeAlias = Mapping[str, int]


class Cells(Struct, frozen=True):
    """A column of numbers: their values, which stand as shares, and which are words.

    `marked` cells have a percent sign or say what they are a share of, such as 85/100: they are
    shares already, and no scale touches them. `decorated` are those written with more than that.
    """

    values: Floats
    marked: Mask
    text: Mask
    decorated: Mask


def is_text(dtype: pl.DataType) -> bool:
    """Return whether cells of this type are words or numbers written as text."""
    return dtype == pl.String or isinstance(dtype, pl.Categorical | pl.Enum)


def lowered(cells: pl.Series) -> pl.Series:
    """Return cells as text without blanks around them, in small letters."""
    if cells.dtype.is_float():
        whole = cells.cast(pl.Int64, strict=False)
        if (whole.cast(pl.Float64) == cells).fill_null(True).all():
            cells = whole
    return cells.cast(pl.String).str.strip_chars().str.to_lowercase()


def parse_numbers(column: pl.Series) -> Cells:
    """Read a column of numbers, however they are written.

    Examples
    --------
    >>> cells = parse_numbers(pl.Series(["~85 %", "0,5", "7/10", "high", ""]))
    >>> cells.values.tolist(), cells.marked.tolist(), cells.text.tolist()
    ([0.85, 0.5, 0.7, nan, nan], [True, False, True, False, False], \
[False, False, False, True, False])
    """
    text = lowered(column) if is_text(column.dtype) else column
    plain = text.cast(pl.Float64, strict=text is column)
    odd = text.is_not_null() & plain.is_null()
    if not odd.any():
        none = np.zeros(column.len(), dtype=bool)
        return Cells(plain.to_numpy().astype(float), none, none, none)
    parsed = _parse_odd(text.filter(odd).unique())
    result = pl.DataFrame({"cell": text}).join(parsed, on="cell", how="left", maintain_order="left")
    extra = result["value"].to_numpy().astype(float)
    values = np.where(odd.to_numpy(), extra, plain.to_numpy().astype(float))
    words = odd & ~text.is_in(MISSING_TEXT) & pl.Series(np.isnan(values))
    flags = (result[name].fill_null(False).to_numpy() for name in ("marked", "decorated"))
    missing = text.is_in(MISSING_TEXT).fill_null(False).to_numpy()
    return Cells(np.where(missing, np.nan, values), next(flags), words.to_numpy(), next(flags))


def _parse_odd(cells: pl.Series) -> pl.DataFrame:
    """Return the values of cells that are no plain numbers, by cell; null where there is none."""
    bare = cells.str.replace_all(_BLANKS, "")
    parts = [bare.str.extract(_NUMBER, group) for group in (1, 2, 3)]
    number, entry = (
        part.str.replace(",", ".").cast(pl.Float64, strict=False) for part in parts[::2]
    )
    mark = parts[1].fill_null("")
    inside = bare.str.extract(_INSIDE, 1).str.replace(",", ".").cast(pl.Float64, strict=False)
    value, whole = number.to_numpy().astype(float), entry.to_numpy().astype(float)
    percent = mark.is_in(["%", "％", "percent", "pct"]).to_numpy()
    shares = mark.is_in(["/", "outof"]).to_numpy() & (whole > 0)
    # A number may not have another behind it, unless this says what it is a share of.
    wrong = np.isfinite(whole) & ~shares | mark.is_in(["/", "outof"]).to_numpy() & ~shares
    finite = np.isfinite(value) & ~wrong
    within = inside.to_numpy().astype(float) / 100
    with np.errstate(divide="ignore", invalid="ignore"):
        read = np.where(percent, value / 100, np.where(shares, value / whole, value))
    plain = bare.str.contains(r"^[+-]?[0-9]*[.,]?[0-9]+(?:e[+-]?[0-9]+)?[%％]?$").to_numpy()
    values = np.where(finite, read, within)
    marked = (finite & (percent | shares)) | (~finite & np.isfinite(within))
    numbers, decorated = pl.Series(values).fill_nan(None), np.isfinite(values) & ~plain
    return pl.DataFrame({"cell": cells, "value": numbers, "marked": marked, "decorated": decorated})


def word_counts(cells: pl.Series, most: int = 40) -> dict[str, int]:
    """Return how often each word stands in a column, most frequent first; none if too many do."""
    text = lowered(cells).drop_nulls()
    text = text.filter(~text.is_in(MISSING_TEXT))
    if text.n_unique() > most:
        return {}
    counts = text.alias("word").value_counts(sort=True)
    return {str(word): int(count) for word, count in counts.rows()}


def meaning_of(word: str) -> float | None:
    """Return 1 for a word that means right, 0 for wrong, None for any other.

    Examples
    --------
    >>> meaning_of("ja"), meaning_of("failed"), meaning_of("A")
    (1.0, 0.0, None)
    """
    low = word.strip().lower()
    if low in RIGHT | YES:
        return 1.0
    return 0.0 if low in WRONG | NO or low == "x" else None


def to_scale(values: Floats, marked: Mask, scale: str) -> npt.NDArray[np.float64]:
    """Return confidences as shares; marked cells are shares already.

    Examples
    --------
    >>> to_scale(np.array([80.0, 0.7]), np.array([False, True]), "percent").tolist()
    [0.8, 0.7]
    >>> to_scale(np.array([0.3]), np.array([False]), "uncertainty").tolist()
    [0.7]
    """
    low, high = scale_range(scale)
    read = np.asarray(values, dtype=float)
    if scale == "logprob":
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(read))
    if scale == "rank-down":
        return -read
    if scale == "uncertainty":
        percent = bool(np.nanmax(read, initial=0.0) > 1)
        return 1 - np.where(marked | (not percent), read, read / 100)
    if scale == "mixed":
        return np.where(marked | (read <= 1), read, read / 100)
    if (low, high) == (0.0, 1.0):
        return read
    # -1 is a code for a refusal and none of the scale's values.
    return np.where(marked | (read == -1), read, (read - low) / (high - low))


def scale_range(scale: str) -> tuple[float, float]:
    """Return the values that stand for 0 and 1; for scales that have none, 0 and 1."""
    if scale == "percent":
        return 0.0, 100.0
    low, dash, high = scale.partition("-")
    if dash and low.replace(".", "").isdigit() and high.replace(".", "").isdigit():
        return float(low), float(high)
    return 0.0, 1.0


def word_scale(words: Mapping[str, int]) -> str | None:
    """Return what the words of a column stand for as a scale, where most are known levels."""
    known_names = {word: LEVELS[word] for word in words if word in LEVELS}
    levels = sum(words[word] for word in known_names)
    if len(known_names) < 2 or levels <= 0.8 * sum(words.values()):
        return None
    return ",".join(f"{word}={x:g}" for word, x in sorted(known_names.items(), key=lambda i: -i[1]))


def word_values(scale: str) -> dict[str, float]:
    """Return the number of each word of a scale such as ``low=0.3,high=0.9``."""
    parts = (part.rpartition("=") for part in scale.split(","))
    return {word.strip().lower(): float(number) for word, _, number in parts}


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
        kind = self.series.dtype
        nothing = kind.is_nested() or kind.is_temporal()
        return parse_numbers(pl.Series([None] * self.height) if nothing else self.series)

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
