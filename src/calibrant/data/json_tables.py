"""Tables of JSON, and the row of a text table that cannot be read."""

import csv
import glob
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import polars as pl

from calibrant.core.errors import CalibrantError, InputError
from calibrant.data import formats

_LOOKED_AT = 65_536


def scan_json_lines(path: Path) -> pl.LazyFrame:
    """Return a lazy view of a file with a JSON object per line, in UTF-8 or UTF-16.

    Objects that are written over several lines, and one object that holds a whole table, by
    columns or as a list of rows, are read as well.
    """
    head = formats.first_bytes(path, _LOOKED_AT)
    plain = not head.startswith(formats.MARKED) and formats.packed_by(path) in (None, "gzip")
    text = b"" if plain else formats.plain_text(path)
    if not _has_lines(head if plain else text[:_LOOKED_AT]):
        whole = (text or formats.plain_text(path)).decode("utf-8", "replace")
        objects = list(_objects(whole, path))
        return _table(objects if len(objects) > 1 else _from_object(objects[0]), path)
    if plain:
        return pl.scan_ndjson(glob.escape(str(path)), infer_schema_length=None)
    return pl.read_ndjson(io.BytesIO(text), infer_schema_length=None).lazy()


def _has_lines(head: bytes) -> bool:
    """Return whether the start of a file is that of objects on a line each."""
    first, end, rest = head.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")
    if not end:
        return not _is_table(_object(first))
    return _object(first) is not None and (bool(rest.strip()) or not _is_table(_object(first)))


def _object(line: bytes) -> dict[str, object] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        # A line that is longer than what is looked at is one of many, or damaged.
        return {} if line.rstrip().endswith(b"}") or len(line) >= _LOOKED_AT else None
    return value if isinstance(value, dict) else None


def _is_table(one: dict[str, object] | None) -> bool:
    """Return whether one object may hold a whole table: nested values only, or a list of rows."""
    if not one:
        return one is None
    nested = all(isinstance(value, list | dict) for value in one.values())
    return nested or _rows_of(one) is not None


def _rows_of(one: dict[str, object]) -> list[object] | None:
    """Return the list of rows in an object that holds one, as many programs write it."""
    lists = [value for value in one.values() if isinstance(value, list) and value]
    rows = [value for value in lists if all(isinstance(row, dict) for row in value)]
    return rows[0] if len(rows) == 1 else None


def _objects(text: str, path: Path) -> Iterator[Any]:
    place, decoder = 0, json.JSONDecoder()
    while place < len(text.rstrip()):
        place += len(text[place:]) - len(text[place:].lstrip(" \t\r\n,\ufeff"))
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            raise InputError(f"the JSON cannot be read: {error}", source=str(path)) from None
        yield value


def _from_object(document: dict[str, Any]) -> Any:
    """Return the table that one object holds: rows, columns, or the parts that pandas writes."""
    if isinstance(document.get("columns"), list) and isinstance(document.get("data"), list):
        return [dict(zip(document["columns"], row, strict=False)) for row in document["data"]]
    rows = _rows_of(document)
    if rows is not None:
        return rows
    values = list(document.values())
    if values and all(isinstance(value, list) for value in values):
        return document
    if values and all(isinstance(value, dict) for value in values):
        keys = [set(value) for value in values]
        shared = keys[0].intersection(*keys[1:])
        # By columns the keys are row numbers, by rows they are the names of columns.
        if all(key.lstrip("-").isdigit() for key in shared) and shared:
            return {name: list(value.values()) for name, value in document.items()}
        return values
    return [document]


def _table(rows: Any, path: Path) -> pl.LazyFrame:
    try:
        return pl.DataFrame(rows, infer_schema_length=None, strict=False).lazy()
    except (pl.exceptions.PolarsError, TypeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"the JSON makes no table: {reason}", source=str(path)) from None


_LONGEST = 1 << 28
"""Bytes: beyond, the reader's own message must do."""


def bad_row(path: Path) -> tuple[int, str] | None:
    """Return the number of the first row that cannot be read and what is wrong, or None."""
    try:
        kind = formats.file_format(path) if path.is_file() else ""
        if kind not in ("csv", "jsonl") or path.stat().st_size > _LONGEST:
            return None
        raw = formats.plain_text(path)
    except (CalibrantError, OSError):
        return None
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        row = raw.count(b"\n", 0, error.start) + (kind == "jsonl")
        return max(row, 1), f"the byte 0x{raw[error.start]:02x} is no UTF-8 text"
    return _bad_object(text) if kind == "jsonl" else _uneven(text)


def _uneven(text: str) -> tuple[int, str] | None:
    header, _, _ = text.lstrip("\r\n").partition("\n")
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=formats.separator_of(header))
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
