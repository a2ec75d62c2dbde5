"""Tables of JSON, one object per line or one list: their encoding and keys are checked first."""

from __future__ import annotations

import glob
import io
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from calibrant.core.errors import InputError
from calibrant.records.formats import MARKED, first_bytes, plain_text

# A writer that repeats a key does so from the start.
_LOOKED_AT = 65_536


def scan_json_lines(path: Path) -> pl.LazyFrame:
    """Return a lazy view of a file with a JSON object per line, in UTF-8 or UTF-16."""
    head = first_bytes(path, _LOOKED_AT)
    if not head.startswith(MARKED):
        check_keys(head, path)
        return pl.scan_ndjson(glob.escape(str(path)), infer_schema_length=None)
    text = plain_text(path)
    check_keys(text[:_LOOKED_AT], path)
    return pl.read_ndjson(io.BytesIO(text), infer_schema_length=None).lazy()


def scan_json_list(path: Path) -> pl.LazyFrame:
    """Return a lazy view of a file with one list of JSON objects."""
    text = plain_text(path)
    check_list_keys(text, path)
    return pl.read_json(io.BytesIO(text), infer_schema_length=None).lazy()


def check_list_keys(text: bytes, path: Path) -> None:
    """Refuse a list of which an object, as far as is looked, has a key twice."""
    for row, twice in enumerate(_repeated_keys(_first_objects(text)), start=1):
        _refuse(twice, row, path)


def check_keys(head: bytes, path: Path) -> None:
    """Refuse lines of JSON of which an object in this start of the file has a key twice."""
    # The last line may be cut: it says nothing.
    lines = head.split(b"\n")[: -1 if len(head) >= _LOOKED_AT else None]
    rows = (line.decode("utf-8", "replace") for line in lines if line.strip())
    for row, twice in enumerate(_repeated_keys(rows), start=1):
        _refuse(twice, row, path)


def _first_objects(text: bytes) -> Iterator[str]:
    """Yield the objects at the start of a list, as far as they are looked at."""
    head = text[:_LOOKED_AT].decode("utf-8", "replace")
    place, decoder = head.find("[") + 1, json.JSONDecoder()
    while True:
        place += len(head[place:]) - len(head[place:].lstrip(" \t\r\n,"))
        try:
            _, end = decoder.raw_decode(head, place)
        except (ValueError, RecursionError):
            return
        yield head[place:end]
        place = end


def _repeated_keys(rows: Iterator[str]) -> Iterator[str | None]:
    """Yield, for each object, a key that it has twice, or None."""
    for row in rows:
        found: list[str] = []

        def noted(pairs: list[tuple[str, Any]], found: list[str] = found) -> None:
            counts = Counter(key for key, _ in pairs)
            found.extend(key for key, count in counts.items() if count > 1)

        try:
            json.loads(row, object_pairs_hook=noted)
        except (ValueError, RecursionError):
            return  # reading the table itself says what is wrong
        yield found[0] if found else None


def _refuse(key: str | None, row: int, path: Path) -> None:
    if key is not None:
        raise InputError(
            f"the object names {key!r} more than once",
            source=str(path),
            row=row,
            hint="give each value a name of its own, so that nobody guesses which is meant",
        )
