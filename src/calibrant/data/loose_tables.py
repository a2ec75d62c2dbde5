"""Tables as programs export them: titles above, totals below, sheets, broken quotes."""

from __future__ import annotations

import csv
import io
import mmap
import re
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from msgspec import Struct

from calibrant.core.arrays import Array
from calibrant.core.errors import InputError
from calibrant.data.formats import limit, limit_hint, separator_of

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


_DOUBLE = 'double a quote that belongs to the text (""), or save the table as parquet'


def _unbalanced(data: bytes | mmap.mmap, place: int) -> InputError:
    rule = "a quote opens a cell here and closes in another row: rows would be joined"
    return InputError(rule, row=max(1, bytes(data[:place]).count(b"\n")), hint=_DOUBLE)


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
    kinds, mark = list(schema.values()), re.escape(separator)
    cells = [_cell(kind, mark) for kind in kinds]
    tests = {
        name: "".join(mark + cell for cell in cells[place + 1 :])
        + r"\r?\n"
        + "".join(cell + mark for cell in cells[:place])
        for place, (name, kind) in enumerate(schema.items())
        if kind == pl.String and _telling([*kinds[:place], *kinds[place + 1 :]])
    }
    if not tests:
        return
    joined = pl.any_horizontal(pl.col(name).str.contains(test) for name, test in tests.items())
    rows = texts.select(joined.arg_true()).collect().to_series()
    if len(rows):
        rule = "a quoted cell holds what looks like further rows of this table: a quote opens in "
        rule += "one row and closes in another"
        raise InputError(rule, row=int(rows[0]) + 1, hint=_DOUBLE)


def _telling(peers: list[pl.DataType]) -> bool:
    """Return whether numbers in these columns tell a row from a line of a text."""
    numbers = [kind for kind in peers if kind.is_numeric() or kind == pl.Boolean()]
    return len(numbers) > 1 and any(kind.is_float() for kind in numbers)


def _cell(kind: pl.DataType, mark: str) -> str:
    if kind.is_float():
        return _DECIMAL
    if kind.is_integer():
        return _WHOLE
    return _TRUTH if kind == pl.Boolean() else f"[^{mark}\\r\\n]*"


Cells: TypeAlias = Sequence[str | None]
_NUMBER = re.compile(r"[+-]?\d*[.,]?\d+(?:e[+-]?\d+)?\s*%?", re.I)
_TOTALS = frozenset(
    ["total", "totals", "sum", "average", "mean", "overall", "gesamt", "summe", "summary"]
)
_LOOKED_AT, _LAST = 200, 3
_WORDS = 0.7


class Loose(Struct, frozen=True):
    """A table without what does not belong to it, as plain text, and what was left out."""

    text: bytes
    notes: tuple[str, ...]


def _filled(row: Cells) -> int:
    return sum(bool(cell and cell.strip()) for cell in row)


def header_place(rows: Sequence[Cells]) -> int:
    """Return which row names the columns: the first of the usual width that is mostly words.

    Only titles and comments may stand above it; anything else is a row of a damaged table.

    Examples
    --------
    >>> header_place([["Export of May"], [], ["id", "sure", "ok"], ["1", "0.5", "x"]] * 2)
    2
    """
    widths = Counter(count for row in rows[:_LOOKED_AT] if (count := _filled(row)))
    width = max(widths, key=lambda size: (widths[size], size), default=0)
    if width < 2:
        return 0
    for place, row in enumerate(rows[:30]):
        count, words = _filled(row), [cell for cell in row if cell and cell.strip()]
        comment = bool(words) and words[0].startswith("#") and count < width
        if count > max(1, width // 2) and not comment:
            names = sum(not _NUMBER.fullmatch(cell.strip()) for cell in words) >= _WORDS * count
            return place if count >= max(2, width - 1) and names else 0
    return 0


def unique_names(header: Cells) -> list[str]:
    """Return names of columns of which none comes twice.

    Examples
    --------
    >>> unique_names(["ok", "p", "ok", None])
    ['ok', 'p', 'ok [2]', 'column 4']
    """
    observed: Counter[str] = Counter()
    names = []
    for place, cell in enumerate(header, start=1):
        name = (cell or "").strip() or f"column {place}"
        observed[name] += 1
        names.append(name if observed[name] == 1 else f"{name} [{observed[name]}]")
    return names


def _is_total(row: Cells) -> bool:
    return any((cell or "").strip(' "').lower() in _TOTALS for cell in row[:3])


def is_loose(head: str, last: str) -> bool:
    """Return whether a text table has more than a header and rows, told from its two ends.

    Parameters
    ----------
    head
        Its start.
    last
        Its last line.
    """
    lines = head.lstrip("\r\n").split("\n")
    separator = _separator(lines)
    try:
        rows = list(csv.reader(lines[:_LOOKED_AT], delimiter=separator))
    except csv.Error:
        return False
    rows = [row for row in rows if row]
    if not rows or max(map(len, rows)) < 2:
        return False
    names = [name.strip() for name in rows[header_place(rows)] if name.strip()]
    return header_place(rows) > 0 or len({*names}) < len(names) or _is_total(last.split(separator))


def _separator(lines: Sequence[str]) -> str:
    """Return the mark that makes the most rows of one width, told without titles and comments."""
    plain = [line for line in lines[:_LOOKED_AT] if line.strip() and not line.startswith("#")]
    counts = Counter(mark for line in plain if line.count(mark := separator_of(line)))
    return counts.most_common(1)[0][0] if counts else ","


def loose_text(text: str, notes: tuple[str, ...] = ()) -> Loose:
    """Return a text table as comma-separated rows below their header; `notes` were told before."""
    lines = text.split("\n")
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=_separator(lines))
    return _tidied([[*row] for row in rows], notes)


def _tidied(rows: list[Cells], notes: tuple[str, ...] = ()) -> Loose:
    rows = [row for row in rows if _filled(row)]
    place = header_place(rows)
    names = unique_names(rows[place]) if rows else []
    note = [*notes]
    if place:
        note.append(f"Left out: {place} {'line' if place == 1 else 'lines'} above the header.")
    comments = [
        _filled(row) == 1 < len(row) and str(row[0] or "").startswith("#")
        for row in rows[place + 1 :]
    ]
    body = [row for row, comment in zip(rows[place + 1 :], comments, strict=True) if not comment]
    if any(comments):
        note.append(f"Left out: {sum(comments)} comments among the rows.")
    totals = [row for row in body[-_LAST:] if _is_total(row)]
    if totals and not any(_is_total(row) for row in body[:-_LAST]):
        body = [*body[:-_LAST], *(row for row in body[-_LAST:] if not _is_total(row))]
        note.append(f"Left out: {len(totals)} {'row' if len(totals) == 1 else 'rows'} of totals.")
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    wide = len(names)
    writer.writerows([*row, *[None] * (wide - len(row))] for row in body)
    return Loose(out.getvalue().encode(), tuple(note))


# -- workbooks ------------------------------------------------------------------------------


def workbook(path: Path) -> Loose:
    """Return the largest sheet of a workbook (xlsx, xls, xlsb, ods) as text."""
    # Loaded here: few tables are workbooks.
    from python_calamine import CalamineError, CalamineWorkbook

    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as packed:
            unpacked = sum(entry.file_size for entry in packed.infolist())
        if unpacked > limit("unpacked_bytes"):
            rule = f"the workbook unpacks to more than {limit('unpacked_bytes'):,} bytes"
            raise InputError(rule, hint=limit_hint("unpacked_bytes"))
    try:
        with CalamineWorkbook.from_path(path) as book:
            sheets = {name: _rows(book, name) for name in book.sheet_names}
    except (CalamineError, OSError, ValueError, zipfile.BadZipFile) as error:
        rule = f"the workbook cannot be read: {' '.join(str(error).split())}"
        raise InputError(rule, hint="save it again, or as .csv") from None
    sizes = {name: sum(map(_filled, rows)) for name, rows in sheets.items()}
    best = max(sizes, key=sizes.__getitem__, default="")
    if not sizes.get(best):
        raise InputError("the workbook is empty")
    peers = ", ".join(name for name in sizes if name != best and sizes[name])
    note = f"The sheet {best!r} is read, the largest; {peers} is not." if peers else ""
    return _tidied(sheets[best], (note,) if note else ())


def _rows(book: Any, name: str) -> list[Cells]:
    rows = book.get_sheet_by_name(name).to_python(skip_empty_area=True)
    return [[_cell_text(value) for value in row] for row in rows]


def _cell_text(value: Any) -> str | None:
    """Return a cell as it would be typed: whole numbers without a point, dates by ISO 8601."""
    if value is None or value == "":
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat(" ") if hasattr(value, "hour") else str(value)
