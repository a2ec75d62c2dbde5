"""Cells as people write them, `~85 %`, `0,85` or words, and columns of them as numbers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from typing import TypeAlias

import numpy as np
import polars as pl
from msgspec import Struct

from calibrant.core.arrays import Floats, Mask
from calibrant.core.errors import InputError, did_you_mean
from calibrant.core.hints import Hint
from calibrant.data.reading.names import WORDS, NameRoles, name_roles, tokens

MISSING_TEXT = [word.replace("\\n", r"\n") for word in WORDS["cells"]["missing"].split(",")]
REFUSALS = WORDS["cells"]["refusal"].split(",")
_OUTCOMES = WORDS["outcomes"]
RIGHT, WRONG, YES, NO, SURE = (
    frozenset(_OUTCOMES[use].split()) for use in ("right", "wrong", "yes", "no", "sure")
)
NEITHER = frozenset(_OUTCOMES["neither"].split(","))
"""Words that say neither right nor wrong: not attempted, partial, a tie."""
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
    bare, value, whole, within = (pl.col(name) for name in ("bare", "value", "whole", "within"))
    frame = pl.DataFrame({"cell": cells, "bare": cells.str.replace_all(_BLANKS, "")})
    groups = {"value": (_NUMBER, 1), "whole": (_NUMBER, 3), "within": (_INSIDE, 1)}
    texts = (bare.str.extract(*group).str.replace(",", ".").alias(n) for n, group in groups.items())
    frame = frame.with_columns(text.cast(pl.Float64, strict=False) for text in texts)
    mark = bare.str.extract(_NUMBER, 2).fill_null("")
    percent, of_whole = mark.is_in(["%", "％", "percent", "pct"]), mark.is_in(["/", "outof"])
    share = of_whole & (whole > 0).fill_null(False)
    # A number may not have another behind it, unless this says what it is a share of.
    alone = value.is_finite().fill_null(False) & (share | (whole.is_null() & ~of_whole))
    frame = frame.with_columns(
        value=pl.when(alone).then(value).otherwise(within),
        parts=pl.when(percent | ~alone).then(100.0).when(share).then(whole).otherwise(1.0),
        marked=pl.when(alone).then(percent | share).otherwise(within.is_not_null()),
        plain=bare.str.contains(r"^[+-]?[0-9]*[.,]?[0-9]+(?:e[+-]?[0-9]+)?[%％]?$"),
    )
    # By numpy: polars multiplies by the reciprocal of a constant, which is off in the last digit.
    shares = pl.Series("value", frame["value"].to_numpy() / frame["parts"].to_numpy())
    return frame.with_columns(shares, decorated=value.is_not_null() & ~pl.col("plain"))


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


# -- columns as numbers ---------------------------------------------------------------------

_PLAIN_FLAGS = frozenset({"true", "false"})
_NO_TEXT = pl.lit(None, pl.String)


def read_number(frame: pl.DataFrame, column: str, *, keep_single: bool = False) -> pl.DataFrame:
    """Read a column of numbers, remembering the text of cells that hold none."""
    mark, dtype = f"_{column}_text", frame.schema[column]
    if is_text(dtype):
        cells = parse_numbers(frame[column])
        return with_text(frame, column, cells.values, cells.text)
    if not (dtype.is_numeric() or dtype in (pl.Boolean, pl.Null)):
        raise InputError(f"the column for {column} must hold numbers, it holds {dtype}")
    # Single precision is kept: binning knows that 0.7 stored in 32 bits was meant as 0.7.
    keep = keep_single and dtype == pl.Float32
    number = pl.col(column) if keep else pl.col(column).cast(pl.Float64)
    return frame.with_columns(number, _NO_TEXT.alias(mark))


def with_text(frame: pl.DataFrame, column: str, values: Floats, text: Mask) -> pl.DataFrame:
    """Put numbers in place of a column; words that are none stand beside them."""
    words = frame[column].cast(pl.String).str.strip_chars()
    label = pl.select(pl.when(pl.Series(text)).then(words)).to_series()
    numbers = pl.Series(column, values).fill_nan(None)
    return frame.with_columns(numbers, label.alias(f"_{column}_text"))


def read_outcome(frame: pl.DataFrame, right: str | None) -> tuple[pl.DataFrame, str | None]:
    """Read outcomes; return the words that were taken for right and wrong, if any.

    Words that say neither, such as `not attempted`, are marked in the column ``_neither``.
    """
    column = frame["correct"]
    if right is not None:
        return _named_right(frame, column, right)
    if not is_text(column.dtype):
        return read_number(frame, "correct"), None
    text, words = lowered(column), word_counts(column, most=column.len())
    meaning = {word: x for word in words if (x := meaning_of(word)) is not None}
    if not meaning:
        return read_number(frame, "correct"), None
    cells = parse_numbers(column)
    spoken = text.replace_strict(meaning, default=None, return_dtype=pl.Float64)
    values = np.where(spoken.is_null().to_numpy(), cells.values, spoken.to_numpy().astype(float))
    neither = text.is_in(list(NEITHER)).fill_null(False)
    unknown = cells.text & np.isnan(values) & ~neither.to_numpy()
    read = with_text(frame, "correct", values, unknown).with_columns(_neither=neither)
    right_first = sorted(meaning, key=lambda word: (-meaning[word], word))
    return read, None if {*right_first} <= _PLAIN_FLAGS else "/".join(right_first)


def _named_right(
    frame: pl.DataFrame, column: pl.Series, right: str
) -> tuple[pl.DataFrame, str | None]:
    """Read outcomes by the words that somebody says mean right; others mean wrong."""
    text = lowered(column)
    words = word_counts(column, most=column.len())
    names = _words_named(right, words)
    meant, remainder = names[0], NEITHER - {*names[0]}
    strange = [word for subset in names for word in subset if word not in words]
    if strange or not any(names):
        label = ", ".join([*words][:12]) + (" .." if len(words) > 12 else "")
        near = [did_you_mean(word, words) for word in strange[:1]]
        hint = Hint("the column holds: {0}" + "; {1}" * len(near), label, *near)
        rule = Hint("{right} names {0}, which does not occur", repr(", ".join(strange) or right))
        raise InputError(rule, hint=hint)
    if len(names) > 1:
        remainder = frozenset(words) - {*meant, *names[1]}
    value = {word: float(word in meant) for word in words}
    neither = text.is_in([*remainder]).fill_null(False)
    numbers = text.replace_strict(value, default=None, return_dtype=pl.Float64)
    correct = pl.select(pl.when(~neither).then(numbers)).to_series()
    read = frame.with_columns(correct=correct, _correct_text=_NO_TEXT, _neither=neither)
    wrong = [word for word in sorted(words) if word not in meant and word not in remainder]
    return read, "/".join([*sorted({*meant}), *wrong][:12])


_BOUND = re.compile(r"(>=|>|<=|<)\s*(-?\d*\.?\d+)")
_EQUAL = {"1": ("1.0", "true"), "0": ("0.0", "false"), "true": ("1",), "false": ("0",)}
"""How cells write the same: 1 is also true, and 0 false."""
_COMPARED = {">=": np.greater_equal, ">": np.greater, "<=": np.less_equal, "<": np.less}


def _words_named(right: str, words: Mapping[str, int]) -> list[list[str]]:
    """Return the words that mean right and, where a slash says them, those that mean wrong.

    A bound such as ``>=0.5`` means all numbers that keep it.

    Examples
    --------
    >>> _words_named("yes/no", {"yes": 3, "no": 2, "s": 1})
    [['yes'], ['no']]
    >>> _words_named(">=0.5", {"0.25": 3, "0.75": 2})
    [['0.75']]
    """
    whole = right.strip().lower()
    several = whole.split(",")
    slash = "/" in whole and not any("/" in word and word.strip() in words for word in several)
    parts = whole.split("/", 1) if slash and whole not in words else [whole]
    return [_written(part, words) for part in parts]


def _written(part: str, words: Mapping[str, int]) -> list[str]:
    if part in words:
        return [part]
    if bound := _BOUND.fullmatch(part):
        numbers = parse_numbers(pl.Series([*words], dtype=pl.String)).values
        selection = _COMPARED[bound[1]](numbers, float(bound[2]))
        return [word for word, keeps in zip(words, selection, strict=True) if keeps]
    several = (word.strip() for word in part.split(",") if word.strip())
    spellings = ((word, *_EQUAL.get(word, ())) for word in several)
    return [next((text for text in group if text in words), group[0]) for group in spellings]


def is_outcome(column: pl.Series) -> bool:
    """Return whether all values are 0 or 1, true or false, or words that mean right or wrong.

    Examples
    --------
    >>> is_outcome(pl.Series(["Yes", "no", None])), is_outcome(pl.Series(["A", "B"]))
    (True, False)
    """
    if column.dtype == pl.Boolean:
        return True
    words = word_counts(column) if not column.dtype.is_nested() else {}
    return bool(words) and all(meaning_of(word) is not None or word in NEITHER for word in words)
