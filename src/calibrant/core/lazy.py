"""Packages whose names are loaded on first use, so that a command loads what it needs."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def lazy_exports(
    package: str, homes: Mapping[str, tuple[str, ...]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package that imports its names when asked for.

    A name that is also the name of a module of the package must be imported by the package
    itself: whoever imports the module first would otherwise bind the module under that name.

    Parameters
    ----------
    package
        ``__name__`` of the package.
    homes
        Names by the module that defines them, written as in an import: ``.rng`` is a module of
        the package, and ``report as write_report`` gives a name of its own here.

    Examples
    --------
    >>> find, names = lazy_exports("calibrant.core", {".rng": ("named_stream",)})
    >>> find("named_stream").__name__, find("rng").__name__
    ('named_stream', 'calibrant.core.rng')
    >>> find("other")
    Traceback (most recent call last):
    ...
    AttributeError: module 'calibrant.core' has no attribute 'other'
    """
    home: dict[str, tuple[str, str]] = {}
    for module, names_there in homes.items():
        for written in names_there:
            there, _, here = written.partition(" as ")
            home[here or there] = (module, there)

    def find(name: str) -> Any:
        if name in home:
            module, there = home[name]
            value = getattr(importlib.import_module(module, package), there)
        elif f".{name}" in homes:
            value = importlib.import_module(f".{name}", package)
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        # Bound as an import would bind it, so that it is looked for once.
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home})

    return find, names
