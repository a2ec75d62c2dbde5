"""JSON as tools write it: with NaN, and sometimes cut short."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from calibrant.records.convert.log import LogBuilder


def load_json(data: bytes) -> Any:
    """Parse JSON; NaN and Infinity, which Python writes, are read too.

    Examples
    --------
    >>> load_json(b'{"value": NaN}')
    {'value': nan}
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        # The strict and fast parser refuses NaN; damaged text fails here once more.
        try:
            return json.loads(data)
        except RecursionError:
            raise ValueError("nested too deeply to be read") from None


def json_lines(path: Path, builder: LogBuilder) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, object) of a jsonl file; lines that cannot be read are noted."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                row = load_json(line)
            except ValueError as error:
                builder.problem(f"line {number}", f"not JSON: {error}")
                continue
            if isinstance(row, dict):
                yield number, row
            else:
                builder.problem(f"line {number}", "not an object")


def readable_samples(data: bytes, *, rows: str = "samples") -> dict[str, Any]:
    """Return what can be read of a JSON object that is damaged: its first fields and whole rows.

    Parameters
    ----------
    data
        The text.
    rows
        The field that holds a list of rows, of which every whole one before the damage is read.

    Examples
    --------
    >>> readable_samples(b'{"version": 2, "samples": [{"id": 1}, {"id": 2}, {"id": ')
    {'version': 2, 'samples': [{'id': 1}, {'id': 2}]}
    """
    text = data.decode("utf-8", errors="replace")
    decoder = json.JSONDecoder()
    found: dict[str, Any] = {}
    place = text.find("{") + 1
    try:
        while True:
            place = _skip(text, place, " \t\r\n,")
            key, place = decoder.raw_decode(text, place)
            place = _skip(text, place, " \t\r\n:")
            if key == rows and text[place : place + 1] == "[":
                place = _read_rows(text, place + 1, decoder, found.setdefault(rows, []))
            else:
                found[key], place = decoder.raw_decode(text, place)
    except (json.JSONDecodeError, TypeError, RecursionError):
        return found


def readable_rows(data: bytes) -> list[Any]:
    """Return the whole rows before the damage of a JSON list.

    Examples
    --------
    >>> readable_rows(b'[{"id": 1}, {"id": 2}, {"i')
    [{'id': 1}, {'id': 2}]
    """
    text = data.decode("utf-8", errors="replace")
    found: list[Any] = []
    start = _skip(text, 0, "\ufeff \t\r\n")
    if text[start : start + 1] == "[":
        with contextlib.suppress(json.JSONDecodeError, RecursionError):
            _read_rows(text, start + 1, json.JSONDecoder(), found)
    return found


def _read_rows(text: str, place: int, decoder: json.JSONDecoder, found: list[Any]) -> int:
    """Append the rows of a list to `found`, and return the place after its end."""
    while text[(place := _skip(text, place, " \t\r\n,")) : place + 1] not in ("]", ""):
        row, place = decoder.raw_decode(text, place)
        found.append(row)
    return place + 1


def _skip(text: str, place: int, marks: str) -> int:
    while place < len(text) and text[place] in marks:
        place += 1
    return place
