"""JSON as tools write it: with NaN, and sometimes cut short."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from calibrant.records.convert.log import LogBuilder

__all__ = ["json_lines", "load_json", "readable_samples"]


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
        return json.loads(data)


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


def readable_samples(data: bytes) -> dict[str, Any]:
    """Return what can be read of a JSON log that is cut: its first fields and whole samples.

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
            if key == "samples" and text[place : place + 1] == "[":
                place += 1
                samples = found.setdefault("samples", [])
                while text[(place := _skip(text, place, " \t\r\n,")) : place + 1] not in ("]", ""):
                    sample, place = decoder.raw_decode(text, place)
                    samples.append(sample)
                place += 1
            else:
                found[key], place = decoder.raw_decode(text, place)
    except (json.JSONDecodeError, TypeError):
        return found


def _skip(text: str, place: int, marks: str) -> int:
    while place < len(text) and text[place] in marks:
        place += 1
    return place
