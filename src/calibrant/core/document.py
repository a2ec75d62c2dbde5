"""Result documents: plain JSON with a schema name, the one form that all renderers take."""

from __future__ import annotations

import datetime as dt
import math
import tomllib
from collections.abc import Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from msgspec import UNSET, Struct
from msgspec.structs import astuple

from calibrant.core.errors import InputError, SchemaError
from calibrant.core.estimate import Estimate

# Documents that have grown since their first version.
_VERSIONS = {"monitor": 2}
_AS_IS = frozenset({str, int, bool, type(None)})


def plain(value: Any) -> Any:
    """Return `value` as plain JSON data: estimates as dictionaries, undefined numbers as None.

    Examples
    --------
    >>> plain({"ece": Estimate(0.1, 0.0, 0.2, n=5), "x": float("nan")})
    {'ece': {'value': 0.1, 'low': 0.0, 'high': 0.2, 'n': 5}, 'x': None}
    """
    # Most of a document is numbers and text: their exact types are settled first, and lists of
    # them as a whole.
    kind = type(value)
    if kind is float:
        return value if math.isfinite(value) else None
    if kind in _AS_IS:
        return value
    if kind is list:
        kinds = set(map(type, value))
        if kinds <= _AS_IS or (kinds == {float} and math.isfinite(sum(value))):
            return value.copy()
    if isinstance(value, Struct):
        return _entry(value)
    if isinstance(value, Mapping):
        return {
            str(key): item if type(item) in _AS_IS else plain(item) for key, item in value.items()
        }
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return plain(float(value))
    if isinstance(value, Path | dt.date):
        return value.isoformat() if isinstance(value, dt.date) else str(value)
    return value


def _entry(value: Struct) -> dict[str, Any]:
    """Return the keys of an entry; those that are unset are left out."""
    if isinstance(value, Estimate):
        return value.to_dict()
    items = zip(value.__struct_encode_fields__, astuple(value), strict=True)
    return {name: plain(item) for name, item in items if item is not UNSET}


def given_places(document: Mapping[str, Any]) -> list[str]:
    """Return the paths that a document's input was given by; none for data in memory.

    Examples
    --------
    >>> given_places({"source": "s, t", "input": [{"path": "s/a.csv"}, {"path": "t/a.csv"}]})
    ['s', 't']
    >>> given_places({"source": "s, t.csv", "input": [{"path": "s, t.csv"}]})
    ['s, t.csv']
    >>> given_places({"source": "a table in memory", "input": []})
    []
    """
    source = document.get("source") or document.get("study") or ""
    if isinstance(source, list):
        return [str(place) for place in source]
    source = str(source)
    if source == "standard input":
        return ["-"]
    if not source or source.endswith((" in memory", "a stream of tables")):
        return []
    paths = [str(entry["path"]) for entry in document.get("input") or ()]
    parts = source.split(", ")
    if len(parts) > 1 and ", ".join(paths) == source:
        return paths
    # A study or a pattern stands for several files; a comma may belong to a name.
    difference = paths and all(any(_stands_for(part, path) for part in parts) for path in paths)
    return parts if difference else [source]


def _stands_for(place: str, path: str) -> bool:
    return path == place or Path(place) in Path(path).parents or fnmatch(path, place)


def dump_document(document: Mapping[str, Any]) -> bytes:
    """Return the document as indented JSON, keys in their own order, with a final newline."""
    shape = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
    try:
        # Most documents are plain already, and undefined numbers are written as null anyway.
        return orjson.dumps(document, option=shape | orjson.OPT_PASSTHROUGH_DATACLASS)
    except TypeError:
        return orjson.dumps(plain(document), option=shape)


def load_document(path: str | Path) -> dict[str, Any]:
    """Read a result document and check that it names its schema."""
    try:
        document = orjson.loads(Path(path).read_bytes())
    except orjson.JSONDecodeError as error:
        raise SchemaError(f"not a JSON document: {error}", source=str(path)) from None
    except OSError as error:
        raise InputError(
            f"cannot be read: {error.strerror}", source=str(path), hint="check the path"
        ) from None
    if not isinstance(document, dict) or "schema" not in document:
        raise SchemaError(
            "a result document has a 'schema' such as calibrant.audit/1", source=str(path)
        )
    return document


def load_toml(text: bytes | str, *, source: str) -> dict[str, Any]:
    """Return the settings that a TOML text holds; one that holds none is refused by name.

    Examples
    --------
    >>> load_toml("bins = 15", source="study.toml")
    {'bins': 15}
    """
    try:
        return tomllib.loads(text if isinstance(text, str) else text.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"not valid TOML: {error}", source=source) from None
    except RecursionError:
        raise InputError("not valid TOML: it is nested too deeply", source=source) from None


def kind_of(document: Mapping[str, Any]) -> str:
    """Return the kind: ``audit`` for ``calibrant.audit/1``."""
    schema = str(document.get("schema", ""))
    name, _, version = schema.partition("/")
    kind = name.removeprefix("calibrant.")
    newest = newest_version(kind)
    is_known = version.isascii() and version.isdigit() and 1 <= int(version) <= newest
    if not name.startswith("calibrant.") or not is_known:
        rule = f"this version reads calibrant.*/{newest} documents, got schema {schema!r}"
        raise SchemaError(rule, hint="write the document again with this version")
    return kind


def newest_version(kind: str) -> int:
    """Return the version in which documents of a kind are written; older ones are read too.

    Examples
    --------
    >>> newest_version("audit"), newest_version("monitor")
    (1, 2)
    """
    return _VERSIONS.get(kind, 1)
