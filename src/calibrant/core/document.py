"""Plain data: result documents with a schema name, and dataclasses stored and read back."""

import datetime as dt
import math
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from fnmatch import fnmatch
from functools import cache, partial
from pathlib import Path
from typing import Any, ClassVar, Self, get_args, get_origin, get_type_hints

import numpy as np
import orjson
from msgspec import UNSET, Struct, structs

from calibrant.core.arrays import Estimate
from calibrant.core.errors import InputError, SchemaError

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
    items = zip(value.__struct_encode_fields__, structs.astuple(value), strict=True)
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
    difference = paths and all(
        any(path == p or Path(p) in Path(path).parents or fnmatch(path, p) for p in parts)
        for path in paths
    )
    return parts if difference else [source]


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


NOT_STORED = {"stored": False}
"""Metadata of a field that is not saved."""


def read_by(read: Callable[[Any], Any]) -> dict[str, Any]:
    """Return the metadata of a field that a function reads, where several classes may stand."""
    return {"read": read}


class Stored:
    """A dataclass that is saved as plain data, field by field, under their names.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Curve(Stored):
    ...     stored_as = "curve"
    ...     knots: tuple[float, ...]
    >>> Curve((0.0, 1.0)).to_dict()
    {'kind': 'curve', 'knots': [0.0, 1.0]}
    >>> Curve.from_dict({"kind": "curve", "knots": [0, 1]})
    Curve(knots=(0.0, 1.0))
    """

    __slots__ = ()
    stored_as: ClassVar[str] = ""
    """Kind that is written, where several classes may stand in one place."""
    stored: ClassVar[tuple[str, ...]] = ()
    """What is saved of a class that is fitted, where that is not every field: its attributes."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        values = {name.rstrip("_"): _plain(getattr(self, name)) for name in _readers_of(type(self))}
        return {"kind": self.stored_as, **values} if self.stored_as else values

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return what `to_dict` described, bit for bit; a field that is missing is an error."""
        values = {name: read(data[name.rstrip("_")]) for name, read in _readers_of(cls).items()}
        if not cls.stored:
            return cls(**values)
        instance = cls.__new__(cls)
        instance.__dict__.update(values)
        return instance


def _plain(value: Any) -> Any:
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _found(kind: Any) -> dict[str, Callable[[Any], Any]]:
    hints = get_type_hints(kind)
    return {
        field.name: partial(_read, field.metadata.get("read"), hints[field.name])
        for field in fields(kind)
        if (field.name in kind.stored if kind.stored else field.init)
        and field.metadata.get("stored", True)
    }


_readers_of: Callable[[Any], dict[str, Callable[[Any], Any]]] = cache(_found)


# Files are edited by people: what a field cannot hold is an error where it is read.
_SHAPES: Mapping[Any, tuple[type, ...]] = {
    float: (float, int), int: (int,), str: (str,), bool: (bool,), tuple: (list,),
    np.ndarray: (list,), Sequence: (list,), Mapping: (dict,), list: (list,), dict: (dict,),
}  # fmt: skip


def _read(reader: Callable[[Any], Any] | None, hint: Any, value: Any) -> Any:
    if value is None:
        return None
    if reader is not None:
        return reader(value)
    if hasattr(hint, "from_dict"):
        return hint.from_dict(value)
    kind, parts = get_origin(hint), get_args(hint)
    shapes: tuple[Any, ...] = _SHAPES.get(kind or hint, (object,))
    if not isinstance(value, shapes) or (isinstance(value, bool) and shapes[-1] is int):
        raise TypeError(f"{value!r:.40} where {shapes[0].__name__} is meant")
    if kind is np.ndarray:
        return np.asarray(value, dtype=get_args(parts[1])[0])
    if type(None) in parts:
        return _read(None, next(part for part in parts if part is not type(None)), value)
    if kind is tuple:
        inner = parts if parts[-1] is not Ellipsis else parts[:1] * len(value)
        return tuple(_read(None, *pair) for pair in zip(inner, value, strict=True))
    if isinstance(value, list):
        return [_read(None, parts[0] if parts else Any, item) for item in value]
    if isinstance(value, dict) and parts:
        return {key: _read(None, parts[1], item) for key, item in value.items()}
    return float(value) if hint is float else value
