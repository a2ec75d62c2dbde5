"""Tables as programs export them: lines above the header, totals below, workbooks of sheets."""

import csv
import io
import re
import zipfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct

from calibrant.core.errors import InputError
from calibrant.data.formats import separator_of
from calibrant.data.limits import limit, limit_hint

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
    body = [row for row in rows[place + 1 :] if not _is_comment(row)]
    if comments := len(rows) - place - 1 - len(body):
        note.append(f"Left out: {comments} comments among the rows.")
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


def _is_comment(row: Cells) -> bool:
    return _filled(row) == 1 < len(row) and str(row[0] or "").startswith("#")


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
    return [[_cell(value) for value in row] for row in rows]


def _cell(value: Any) -> str | None:
    """Return a cell as it would be typed: whole numbers without a point, dates by ISO 8601."""
    if value is None or value == "":
        return None
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat(" ") if hasattr(value, "hour") else str(value)
