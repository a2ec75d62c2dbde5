"""How a log is read: choices that it cannot make, and JSON as tools write it, also cut short."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import orjson
from msgspec import Struct

from calibrant.core.names import data_beside
from calibrant.data.formats import read_bytes, unpacked

if TYPE_CHECKING:
    from calibrant.data.logs.log import ForeignLog

KINDS: dict[str, Any] = data_beside(__file__, "kinds.toml")
"""What is known of each kind of log, in the order in which they are looked for."""
Row = TypeVar("Row")
BLANK = b"\xef\xbb\xbf \t\r\n"
"""Bytes that may stand before a text."""


class ReadOptions(Struct, frozen=True):
    """Choices that a log itself cannot make.

    Parameters
    ----------
    grade
        The scorer (Inspect), metric (lm-eval, HELM) or column that decides what is right; None
        takes the first that gives a grade.
    filter
        The filter of lm-eval whose rows are used; None takes the first.
    scale
        ``"fraction"``, or ``"percent"`` where the log states confidences as percentages.
    columns
        Names of the columns of a plain table, by role: confidence, correct, question, model,
        method, answer.
    texts
        Keep the replies; an audit does not need them where the log names the answers.
    opinions
        Keep all that judges and people said of each answer.
    """

    grade: str | None = None
    filter: str | None = None
    scale: str = "fraction"
    columns: Mapping[str, str] = {}
    texts: bool = True
    opinions: bool = False

    def fraction(self, confidence: float) -> float:
        """Return a confidence of the log as a fraction."""
        return confidence / 100.0 if self.scale == "percent" else confidence


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


def json_or_none(data: bytes) -> Any:
    """Parse JSON, or return None where it is none."""
    try:
        return load_json(data)
    except ValueError:
        return None


def json_lines(path: Path, log: ForeignLog) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield (line number, object) of a jsonl file; lines that cannot be read are noted."""
    with unpacked(path) as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                row = load_json(line)
            except ValueError as error:
                log.problem(f"line {number}", f"not JSON: {error}")
                continue
            if isinstance(row, dict):
                yield number, row
            else:
                log.problem(f"line {number}", "not an object")


def named_lines(path: Path, log: ForeignLog) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the objects of a jsonl file with the names by which messages call them."""
    return ((f"line {number}", row) for number, row in json_lines(path, log))


def read_json(path: Path, log: ForeignLog, *, rows: str = "") -> Any:
    """Return the JSON of a file; of a damaged one what can be read, and the damage is listed.

    Parameters
    ----------
    path, log
        The file, and where damage is listed.
    rows
        The field that holds a list of rows, where the file is one object.
    """
    data = read_bytes(path)
    try:
        return load_json(data)
    except ValueError as error:
        listed = data.lstrip(BLANK).startswith(b"[")
        content = readable_rows(data) if listed else readable_samples(data, rows=rows)
        whole = content if isinstance(content, list) else content.get(rows, content)
        why = f"the JSON is damaged: {error}; {len(whole)} rows before it; its end may be missing"
        log.problem(path.name, why)
        return content


def json_rows(path: Path, log: ForeignLog) -> list[tuple[str, dict[str, object]]]:
    """Return places and rows of a list of objects, in a file of its own or as ``data`` of one.

    A file of which each line is an object is read as well.
    """
    start = read_bytes(path).lstrip(BLANK)
    try:
        rows = read_json(path, log) if start.startswith(b"[") else load_json(start)
    except ValueError:
        return list(named_lines(path, log))
    if isinstance(rows, dict):
        inner = rows.get("data")
        rows = inner if isinstance(inner, list) else [rows]
    listed = rows if isinstance(rows, list) else []
    return [(place, row) for place, row in numbered("row", listed) if isinstance(row, dict)]


def joined_objects(path: Path, log: ForeignLog) -> list[dict[str, object]]:
    """Return the objects of a file one after the other: lines, pretty print, or a list of them."""
    text = path.read_text(encoding="utf-8-sig", errors="replace").lstrip(" \t\r\n[")
    rows: list[Any] = []
    try:
        _read_rows(text, 0, json.JSONDecoder(), rows)
    except (json.JSONDecodeError, RecursionError) as error:
        log.problem(path.name, f"the JSON is damaged: {error}; {len(rows)} objects before it")
    return [row for row in rows if isinstance(row, dict)]


def numbered(word: str, rows: Iterable[Row]) -> Iterator[tuple[str, Row]]:
    """Yield rows with the names by which messages call them.

    Examples
    --------
    >>> list(numbered("case", "ab"))
    [('case 1', 'a'), ('case 2', 'b')]
    """
    for number, row in enumerate(rows, start=1):
        yield f"{word} {number}", row


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
    fields: dict[str, Any] = {}
    place = text.find("{") + 1
    try:
        while True:
            place = _skip(text, place, " \t\r\n,")
            key, place = decoder.raw_decode(text, place)
            place = _skip(text, place, " \t\r\n:")
            if key == rows and text[place : place + 1] == "[":
                place = _read_rows(text, place + 1, decoder, fields.setdefault(rows, []))
            else:
                fields[key], place = decoder.raw_decode(text, place)
    except (json.JSONDecodeError, TypeError, RecursionError):
        return fields


def readable_rows(data: bytes) -> list[Any]:
    """Return the whole rows before the damage of a JSON list.

    Examples
    --------
    >>> readable_rows(b'[{"id": 1}, {"id": 2}, {"i')
    [{'id': 1}, {'id': 2}]
    """
    text = data.decode("utf-8", errors="replace")
    rows: list[Any] = []
    start = _skip(text, 0, "\ufeff \t\r\n")
    if text[start : start + 1] == "[":
        with contextlib.suppress(json.JSONDecodeError, RecursionError):
            _read_rows(text, start + 1, json.JSONDecoder(), rows)
    return rows


def _read_rows(text: str, place: int, decoder: json.JSONDecoder, rows: list[Any]) -> int:
    """Append the rows of a list to `rows`, and return the place after its end."""
    while text[(place := _skip(text, place, " \t\r\n,")) : place + 1] not in ("]", ""):
        row, place = decoder.raw_decode(text, place)
        rows.append(row)
    return place + 1


def _skip(text: str, place: int, marks: str) -> int:
    while place < len(text) and text[place] in marks:
        place += 1
    return place


def finite_number(value: Any) -> float | None:
    """Return a JSON number as float; None for anything else, flags and text included.

    Examples
    --------
    >>> finite_number(1), finite_number("1"), finite_number(True), finite_number(float("nan"))
    (1.0, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def as_text(value: Any) -> str | None:
    """Return a JSON value as text: strings as they are, the rest in the JSON manner.

    Examples
    --------
    >>> as_text("a"), as_text(2), as_text(None), as_text(True)
    ('a', '2', None, 'true')
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
