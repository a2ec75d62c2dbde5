"""Rows that a quote joins: one that opens in a row and closes in another makes a cell of both."""

import mmap
import re
from collections.abc import Mapping

import numpy as np
import polars as pl

from calibrant.core.arrays import Array
from calibrant.core.errors import InputError

_CHUNK = 1 << 26
_QUOTE = ord('"')
_WHOLE = r"\s*[+-]?\d+\s*"
# A decimal point is asked for: lines of whole numbers are answers of many puzzles.
_DECIMAL = r"\s*[+-]?\d*\.\d+(?:[eE][+-]?\d+)?\s*"
_TRUTH = r"\s*(?:true|false|True|False|TRUE|FALSE)\s*"


def refuse_open_quotes(data: bytes | mmap.mmap, separator: str) -> bool:
    """Refuse quotes that open in one row and close in another without being a cell of both.

    Counted from the start, every other quote opens and the next one closes; a doubled quote
    closes and opens at once. A quote that opens stands at the start of a cell, one that closes
    at its end. Others are harmless as long as no line ends between them.

    Returns whether a line ends inside of a quoted cell.
    """
    quotes = _places(data, _QUOTE)
    if not quotes.size:
        return False
    if quotes.size % 2:
        raise _unbalanced(data, int(quotes[-1]))
    opening, closing = quotes[::2], quotes[1::2]
    raw = np.frombuffer(data, dtype=np.uint8)
    allowed = np.zeros(256, dtype=bool)
    allowed[[ord(separator), ord("\n"), ord("\r"), _QUOTE]] = True
    before = raw[np.maximum(opening - 1, 0)]
    after = raw[np.minimum(closing + 1, raw.size - 1)]
    marked = bytes(raw[:3]) == b"\xef\xbb\xbf"
    good_open = allowed[before] | (opening == 0) | (marked & (opening == 3))
    good_close = allowed[after] | (closing == raw.size - 1)
    suspect = np.flatnonzero(~(good_open & good_close))
    ends = (ord("\n"), ord("\r"))
    bad = next((i for i in suspect if np.isin(raw[opening[i] : closing[i]], ends).any()), None)
    place = None if bad is None else int(opening[bad])
    del raw, before, after  # a memory map cannot be closed while arrays look at it
    if place is not None:
        raise _unbalanced(data, place)
    lines = _places(data, ord("\n"))
    return bool(np.any(np.searchsorted(lines, opening) < np.searchsorted(lines, closing)))


def _places(data: bytes | mmap.mmap, byte: int) -> Array:
    raw = np.frombuffer(data, dtype=np.uint8)
    places = [
        np.flatnonzero(raw[start : start + _CHUNK] == byte) + start
        for start in range(0, raw.size, _CHUNK)
    ]
    return np.concatenate(places) if places else np.zeros(0, dtype=np.int64)


def _unbalanced(data: bytes | mmap.mmap, place: int) -> InputError:
    return InputError(
        "a quote opens a cell here and closes in another row: rows would be joined",
        row=max(1, bytes(data[:place]).count(b"\n")),
        hint='double a quote that belongs to the text (""), or save the table as parquet',
    )


def refuse_joined_rows(
    schema: Mapping[str, pl.DataType], separator: str, texts: pl.LazyFrame
) -> None:
    """Refuse a row of which a cell holds the end of one row and the start of another.

    A quote at the start of a cell and one at the end of another, rows below, make one cell of all
    that stands between them. That is how a text with line ends is written, too. So it is told by
    what the cell holds: behind a line end, the cells of a row of this very table, with numbers
    where it has numbers, one of them with a decimal point.

    Parameters
    ----------
    schema
        The columns of the table and their types.
    separator
        The mark between cells.
    texts
        The table with every cell as text.
    """
    kinds = list(schema.values())
    tests = {
        name: _pattern(kinds, place, separator)
        for place, (name, kind) in enumerate(schema.items())
        if kind == pl.String and _telling([*kinds[:place], *kinds[place + 1 :]])
    }
    if not tests:
        return
    joined = pl.any_horizontal(pl.col(name).str.contains(test) for name, test in tests.items())
    rows = texts.select(joined.arg_true()).collect().to_series()
    if len(rows):
        raise InputError(
            "a quoted cell holds what looks like further rows of this table: a quote opens in one "
            "row and closes in another",
            row=int(rows[0]) + 1,
            hint='double a quote that belongs to the text (""), or save the table as parquet',
        )


def _telling(peers: list[pl.DataType]) -> bool:
    """Return whether numbers in these columns tell a row from a line of a text."""
    numbers = [kind for kind in peers if kind.is_numeric() or kind == pl.Boolean()]
    return len(numbers) > 1 and any(kind.is_float() for kind in numbers)


def _pattern(kinds: list[pl.DataType], place: int, separator: str) -> str:
    mark = re.escape(separator)
    cells = [_cell(kind, mark) for kind in kinds]
    after = "".join(mark + cell for cell in cells[place + 1 :])
    before = "".join(cell + mark for cell in cells[:place])
    return f"{after}\\r?\\n{before}"


def _cell(kind: pl.DataType, mark: str) -> str:
    if kind.is_float():
        return _DECIMAL
    if kind.is_integer():
        return _WHOLE
    return _TRUTH if kind == pl.Boolean() else f"[^{mark}\\r\\n]*"
