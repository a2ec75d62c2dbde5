"""Dataclasses as plain data, and back: what a field holds follows from its annotation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import cache, partial
from typing import Any, ClassVar, Self, get_args, get_origin, get_type_hints

import numpy as np

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
