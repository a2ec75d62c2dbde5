"""Which row of a text table cannot be read, and why: found only once reading has failed."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import NoReturn

from calibrant.core.errors import CalibrantError
from calibrant.records.formats import file_format, plain_text, separator_of

_LONGEST = 1 << 28
"""Bytes: beyond, the reader's own message must do."""


def bad_row(path: Path) -> tuple[int, str] | None:
    """Return the number of the first row that cannot be read and what is wrong, or None."""
    try:
        kind = file_format(path) if path.is_file() else ""
        if kind not in ("csv", "jsonl") or path.stat().st_size > _LONGEST:
            return None
        raw = plain_text(path)
    except (CalibrantError, OSError):
        return None
    broken = _not_utf8(raw, headers=kind == "csv")
    if broken is not None:
        return broken
    text = raw.decode()
    return _bad_object(text) if kind == "jsonl" else _uneven(text)


def _not_utf8(raw: bytes, *, headers: bool) -> tuple[int, str] | None:
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        row = raw.count(b"\n", 0, error.start) + (not headers)
        return max(row, 1), f"the byte 0x{raw[error.start]:02x} is no UTF-8 text"
    return None


def _uneven(text: str) -> tuple[int, str] | None:
    header, _, _ = text.lstrip("\r\n").partition("\n")
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator_of(header))
    try:
        names = next((row for row in rows if row), [])
        for number, cells in enumerate(rows, start=1):
            if len(cells) > len(names):
                return number, f"it has {len(cells)} cells, and the header {len(names)}"
    except csv.Error:
        return None
    alone = re.search(r"\r(?!\n)", text)
    if alone is not None and "\n" in text:
        row = max(text.count("\n", 0, alone.start()), 1)
        return row, "a carriage return stands alone in it: the line ends are of two kinds"
    return None


def _bad_object(text: str) -> tuple[int, str] | None:
    lines = (line for line in text.split("\n") if line.strip())
    for number, line in enumerate(lines, start=1):
        try:
            value = json.loads(line, parse_constant=_no_number)
        except RecursionError:
            return number, "it is nested too deeply"
        except ValueError as error:
            return number, f"it is no JSON object: {error}"
        if not isinstance(value, dict):
            return number, "it is no JSON object"
    return None


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON; write null for what is missing")
