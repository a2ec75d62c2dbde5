"""Rows that quotes have swallowed: a cell with line ends that holds what was meant as rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import polars as pl

_WHOLE = r"\s*[+-]?\d+\s*"
# A decimal point is asked for: lines of whole numbers are answers of many puzzles.
_DECIMAL = r"\s*[+-]?\d*\.\d+(?:[eE][+-]?\d+)?\s*"
_TRUTH = r"\s*(?:true|false|True|False|TRUE|FALSE)\s*"


def joined_row(
    schema: Mapping[str, pl.DataType], separator: str, texts: Callable[[], pl.LazyFrame]
) -> int | None:
    """Return the first row of which a cell holds the end of one row and the start of another.

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
        Reads the table with every cell as text.
    """
    kinds = list(schema.values())
    tests = {
        name: _pattern(kinds, place, separator)
        for place, (name, kind) in enumerate(schema.items())
        if kind == pl.String and _telling([*kinds[:place], *kinds[place + 1 :]])
    }
    if not tests:
        return None
    found = (
        texts()
        .select(pl.any_horizontal(pl.col(name).str.contains(test) for name, test in tests.items()))
        .collect()
        .to_series()
        .arg_true()
    )
    return int(found[0]) + 1 if len(found) else None


def _telling(others: list[pl.DataType]) -> bool:
    """Return whether numbers in these columns tell a row from a line of a text."""
    numbers = [kind for kind in others if kind.is_numeric() or kind == pl.Boolean()]
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
