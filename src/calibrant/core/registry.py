"""A small registry: names to entries, and a word for those that are not there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from calibrant.core.errors import InputError, require_known

T = TypeVar("T")


class Registry(Generic[T]):
    """Names to entries, in order of registration.

    Examples
    --------
    >>> colours: Registry[int] = Registry("colour")
    >>> colours.add("red", 1)
    >>> colours["rde"]
    Traceback (most recent call last):
    ...
    calibrant.core.errors.InputError: there is no colour 'rde'
      -> did you mean 'red'?
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, T] = {}

    def add(self, name: str, entry: T) -> None:
        """Register `entry`; a name is given once."""
        if name in self._entries:
            raise InputError(f"the {self.kind} {name!r} is registered already")
        self._entries[name] = entry

    def arrange(self, names: Iterable[str]) -> None:
        """Put the entries into this order; each name must be registered."""
        self._entries = {name: self[name] for name in names}

    def __getitem__(self, name: str) -> T:
        require_known([name], self._entries, f"there is no {self.kind} {{}}")
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def values(self) -> list[T]:
        """Return the entries in order of registration."""
        return list(self._entries.values())
