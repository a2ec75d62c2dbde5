"""A small registry: names to entries, and a word for those that are not there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn, TypeVar

from calibrant.core.errors import InputError, require_known

T = TypeVar("T")


class Registry(dict[str, T]):
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
        super().__init__()
        self.kind = kind

    def add(self, name: str, entry: T) -> None:
        """Register `entry`; a name is given once."""
        if name in self:
            raise InputError(f"the {self.kind} {name!r} is registered already")
        self[name] = entry

    def arrange(self, names: Iterable[str]) -> None:
        """Put the entries into this order; each name must be registered."""
        arranged = {name: self[name] for name in names}
        self.clear()
        self.update(arranged)

    def __missing__(self, name: str) -> NoReturn:
        require_known([name], self, f"there is no {self.kind} {{}}")
        raise KeyError(name)
