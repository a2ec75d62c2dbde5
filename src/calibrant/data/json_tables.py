"""Tables of JSON, and the row of a text table that cannot be read."""

import csv
import glob
import io
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import polars as pl

from calibrant.core.errors import CalibrantError, InputError
from calibrant.data import formats
from calibrant.data.reading.names import name_roles

_LOOKED_AT = 65_536
_NO_NUMBER = re.compile(rb"[:,\[]\s*-?(?:NaN|Infinity)\b")


def scan_json(path: Path) -> pl.LazyFrame:
    """Return a lazy view of a JSON file, in UTF-8 or UTF-16; fields of objects become columns.

    It may hold an object per line, a list of objects, objects over several lines, or one object
    with a table in it, by columns or as a list of rows: the longest list is taken.
    """
    if (whole := _whole(path)) is not None:
        return flat_rows(whole[0])
    head = formats.first_bytes(path, _LOOKED_AT)
    if not head.startswith(formats.MARKED) and formats.packed_by(path) in (None, "gzip"):
        return flat_rows(pl.scan_ndjson(glob.escape(str(path)), infer_schema_length=None))
    text = io.BytesIO(formats.plain_text(path))
    return flat_rows(pl.read_ndjson(text, infer_schema_length=None).lazy())


def json_notes(path: Path) -> tuple[str, ...]:
    """Return what was said about finding the table in a JSON file."""
    whole = _whole(path)
    schema = scan_json(path).collect_schema()
    lists = {name.partition(".")[0] for name in schema if name.endswith(_PARENT)}
    rows = tuple(f"Each entry of {name} is a row; the rows of one entry belong together."
                 for name in sorted(lists))  # fmt: skip
    return (*(whole[1] if whole else ()), *rows)


@partial(formats.once_per_file, most=4)
def _whole(path: Path) -> tuple[pl.LazyFrame, list[str]] | None:
    """Return the table of a file that is one JSON text, and what is said about finding it.

    None where it has an object per line.
    """
    head = formats.first_bytes(path, _LOOKED_AT)
    plain = not head.startswith(formats.MARKED) and formats.packed_by(path) in (None, "gzip")
    text = b"" if plain else formats.plain_text(path)
    start = (head if plain else text[:_LOOKED_AT]).lstrip(b"\xef\xbb\xbf \t\r\n")
    lines = not start.startswith(b"[") and _has_lines(start)
    if lines and not _NO_NUMBER.search(start):
        return None
    whole = text or formats.plain_text(path)
    if lines:
        rows = [json.loads(line) for line in whole.splitlines() if line.strip()]
        return _table(rows, path), ["NaN, which is no number of JSON, is read as it is meant."]
    if start.startswith(b"["):
        with suppress(pl.exceptions.PolarsError):
            return pl.read_json(whole, infer_schema_length=None).lazy(), []
    objects = list(_objects(whole.decode("utf-8", "replace"), path))
    notes: list[str] = []
    rows = objects if len(objects) > 1 else _from_document(objects[0], notes)
    return _table(rows, path), notes


_PARENT = ".parent"
_MOST_FIELDS = 40


def flat_rows(lazy: pl.LazyFrame) -> pl.LazyFrame:
    """Return a table whose columns are no objects: their fields are, as `output.confidence`.

    A list of objects that name a confidence and an outcome becomes a row each, where the row
    around it names no confidence; `claims.parent` numbers the row that they came from.

    Examples
    --------
    >>> nested = pl.LazyFrame({"a": [{"b": {"c": 1}}]})
    >>> flat_rows(nested).collect().to_dicts()
    [{'a.b.c': 1}]
    >>> listed = pl.LazyFrame({"q": ["x"], "claims": [[{"conf": 0.9, "correct": True}] * 2]})
    >>> flat_rows(listed).collect().columns
    ['q', 'claims.parent', 'claims.conf', 'claims.correct']
    """
    lazy = _without_objects(lazy)
    schema = lazy.collect_schema()
    if any(name_roles(name).stated >= 2 for name in schema):
        return lazy
    for name, kind in schema.items():
        fields = getattr(getattr(kind, "inner", None), "fields", ())
        roles = [name_roles(field.name) for field in fields]
        if any(r.stated >= 1 for r in roles) and any(r.graded >= 2 for r in roles):
            parent = f"{name}{_PARENT}"
            lazy = lazy.with_row_index(parent).explode(name)
            remainder = [column for column in schema if column != name]
            return _without_objects(lazy.select(*remainder, parent, name))
    return lazy


def _without_objects(lazy: pl.LazyFrame) -> pl.LazyFrame:
    schema = lazy.collect_schema()
    while any(_is_object(kind) for kind in schema.values()):
        columns = []
        for name, kind in schema.items():
            fields = kind.fields if isinstance(kind, pl.Struct) and _is_object(kind) else ()
            parts = {field.name: f"{name}.{field.name}" for field in fields}
            field = pl.col(name).struct.field
            columns += [field(p).alias(whole) for p, whole in parts.items() if whole not in schema]
            columns += [] if _is_object(kind) else [pl.col(name)]
        lazy = lazy.select(columns)
        schema = lazy.collect_schema()
    return lazy


def _is_object(kind: pl.DataType) -> bool:
    return isinstance(kind, pl.Struct) and len(kind.fields) <= _MOST_FIELDS


def _has_lines(head: bytes) -> bool:
    """Return whether the start of a file is that of objects on a line each."""
    first, end, tail = head.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")
    if not end:
        return not _is_table(_object(first))
    return _object(first) is not None and (bool(tail.strip()) or not _is_table(_object(first)))


def _object(line: bytes) -> dict[str, object] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        # A line that is longer than what is looked at is one of many, or damaged.
        return {} if line.rstrip().endswith(b"}") or len(line) >= _LOOKED_AT else None
    return value if isinstance(value, dict) else None


def _is_table(item: dict[str, object] | None) -> bool:
    """Return whether one object may hold a whole table: nested values only, or a list of rows."""
    if not item:
        return item is None
    return bool(_lists(item)) or all(isinstance(value, list | dict) for value in item.values())


def _lists(item: Mapping[str, object]) -> dict[str, list[object]]:
    """Return the lists of objects in an object by name, also those deeper in it."""
    matches: dict[str, list[object]] = {}
    for name, value in item.items():
        if isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
            matches[name] = value
        elif isinstance(value, dict):
            matches |= {f"{name}.{key}": rows for key, rows in _lists(value).items()}
    return matches


def _objects(text: str, path: Path) -> Iterator[Any]:
    place, decoder = 0, json.JSONDecoder()
    while place < len(text.rstrip()):
        place += len(text[place:]) - len(text[place:].lstrip(" \t\r\n,\ufeff"))
        try:
            value, place = decoder.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            raise InputError(f"the JSON cannot be read: {error}", source=str(path)) from None
        yield value


def _from_document(document: Any, notes: list[str]) -> Any:
    """Return the table that one object holds: rows, columns, or the parts that pandas writes."""
    if not isinstance(document, dict):
        return document
    if isinstance(document.get("columns"), list) and isinstance(document.get("data"), list):
        return [dict(zip(document["columns"], row, strict=False)) for row in document["data"]]
    lists = _lists(document)
    if lists:
        longest = max(lists, key=lambda name: len(lists[name]))
        if peers := [name for name in lists if name != longest]:
            notes.append(f"The list {longest!r} is read, the longest; {', '.join(peers)} is not.")
        return lists[longest]
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
