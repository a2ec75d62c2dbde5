"""Text tables as people save them: their encoding, line ends, quotes and ids are checked first."""

from __future__ import annotations

import csv
import gzip
import io
import mmap
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from calibrant.core.errors import InputError
from calibrant.records.formats import read_bytes, separator_of

__all__ = ["scan_text_table"]

_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_HEAD = 65_536
_CHUNK = 1 << 26
_QUOTE = ord('"')


def scan_text_table(path: Path) -> pl.LazyFrame:
    """Return a lazy view of a text table; all rows are looked at before a type is chosen.

    UTF-16 and the line ends of old Macintosh files are read as well. Columns with numbers such as
    `01` stay text, because `1` and `01` are two ids. Refused are two columns of one name and
    quotes that join several rows into one.
    """
    stat = path.stat()
    kind = _looked_at(path, stat.st_mtime_ns, stat.st_size)
    options: dict[str, Any] = {
        "separator": kind.separator,
        "infer_schema_length": None,
        "schema_overrides": dict.fromkeys(kind.text_columns, pl.String()) or None,
    }
    if kind.as_is:
        return pl.scan_csv(path, glob=False, **options)
    return pl.read_csv(io.BytesIO(_plain(path)), **options).lazy()


class _Kind:
    """What a look at a text table has shown."""

    def __init__(self, separator: str, text_columns: Sequence[str], *, as_is: bool) -> None:
        self.separator = separator
        self.text_columns = text_columns
        self.as_is = as_is


@lru_cache(maxsize=64)
def _looked_at(path: Path, changed: int, size: int) -> _Kind:
    """Look at a table once; time and size of the file tell whether it is still the same."""
    del changed, size
    with path.open("rb") as file:
        head = file.read(_HEAD)
    zipped = head[:2] == b"\x1f\x8b"
    if zipped:
        with gzip.open(path) as unpacked:
            head = unpacked.read(_HEAD)
    as_is = head[:2] not in _UTF16 and (b"\r" not in head or b"\n" in head)
    if head[:2] not in _UTF16 and b"\x00" in head:
        raise InputError(
            "the text holds zero bytes: it is no UTF-8 table",
            source=str(path),
            hint="save the table as UTF-8",
        )
    if not as_is:
        head = _plain(path)[:_HEAD]
    header = _first_line(head)
    separator = separator_of(header)
    _check_names(header, separator, path)
    if not zipped and as_is and path.stat().st_size:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            _check_quotes(data, separator, path)
            zeros = _has_leading_zero(data, separator)
    else:
        raw = _plain(path)
        _check_quotes(raw, separator, path)
        zeros = _has_leading_zero(raw, separator)
    text = _columns_with_zeros(path, separator, as_is=as_is) if zeros else ()
    return _Kind(separator, text, as_is=as_is)


def _plain(path: Path) -> bytes:
    """Return the table as UTF-8 with the usual line ends."""
    raw = read_bytes(path)
    if raw[:2] in _UTF16:
        try:
            raw = raw.decode("utf-16").encode()
        except UnicodeDecodeError as error:
            raise InputError(
                f"the UTF-16 text cannot be read: {error}",
                source=str(path),
                hint="save the table as UTF-8",
            ) from None
    return raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _first_line(head: bytes) -> str:
    line = re.split(rb"[\r\n]", head.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n"), maxsplit=1)[0]
    return line.decode("utf-8", "replace")


def _check_names(header: str, separator: str, path: Path) -> None:
    names = next(csv.reader([header], delimiter=separator), [])
    for name, count in Counter(names).items():
        if name and count > 1:
            raise InputError(
                f"the header names the column {name!r} {count} times",
                source=str(path),
                hint="give each column a name of its own, so that nobody guesses which is meant",
            )


def _check_quotes(data: bytes | mmap.mmap, separator: str, path: Path) -> None:
    """Refuse quotes that open in one row and close in another without being a cell of both.

    Counted from the start, every other quote opens and the next one closes; a doubled quote
    closes and opens at once. A quote that opens stands at the start of a cell, one that closes
    at its end. Others are harmless as long as no line ends between them.
    """
    quotes = _places(data, _QUOTE)
    if not quotes.size:
        return
    if quotes.size % 2:
        raise _unbalanced(data, int(quotes[-1]), path)
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
    bad = next((i for i in suspect if _line_ends(raw, opening[i], closing[i])), None)
    place = None if bad is None else int(opening[bad])
    del raw, before, after  # a memory map cannot be closed while arrays look at it
    if place is not None:
        raise _unbalanced(data, place, path)


def _line_ends(raw: npt.NDArray[Any], start: int, stop: int) -> bool:
    part = raw[start:stop]
    return bool(np.any(part == ord("\n")) or np.any(part == ord("\r")))


def _places(data: bytes | mmap.mmap, byte: int) -> npt.NDArray[Any]:
    raw = np.frombuffer(data, dtype=np.uint8)
    found = [
        np.flatnonzero(raw[start : start + _CHUNK] == byte) + start
        for start in range(0, raw.size, _CHUNK)
    ]
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)


def _unbalanced(data: bytes | mmap.mmap, place: int, path: Path) -> InputError:
    return InputError(
        "a quote opens a cell here and closes in another row: rows would be joined",
        source=str(path),
        row=max(1, bytes(data[:place]).count(b"\n")),
        hint='double a quote that belongs to the text (""), or save the table as parquet',
    )


def _has_leading_zero(data: bytes | mmap.mmap, separator: str) -> bool:
    marks = re.escape(separator.encode())
    return re.search(rb'(?:^|[\r\n"' + marks + rb"])0\d", data) is not None


def _columns_with_zeros(path: Path, separator: str, *, as_is: bool) -> tuple[str, ...]:
    """Return the columns of whole numbers in which a number begins with 0."""
    source = path if as_is else io.BytesIO(_plain(path))
    try:
        typed = pl.read_csv(source, separator=separator, infer_schema_length=None, glob=False)
        whole = [name for name, kind in typed.schema.items() if kind.is_integer()]
        source = path if as_is else io.BytesIO(_plain(path))
        texts = pl.read_csv(
            source, separator=separator, infer_schema=False, columns=whole, glob=False
        )
    except pl.exceptions.PolarsError:
        return ()  # reading the table itself says what is wrong
    return tuple(name for name in whole if texts[name].str.contains(r"^\s*0\d").any())
