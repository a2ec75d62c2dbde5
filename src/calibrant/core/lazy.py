"""Packages whose names are loaded on first use, so that a command loads what it needs."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["exported_from"]


def exported_from(package: str, homes: Mapping[str, tuple[str, ...]]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package: names are imported from their modules when asked for.

    Parameters
    ----------
    package
        ``__name__`` of the package.
    homes
        Names by the module of the package that defines them.

    Examples
    --------
    >>> found = exported_from("calibrant.core", {"rng": ("named_stream",)})
    >>> found("named_stream").__name__
    'named_stream'
    >>> found("other")
    Traceback (most recent call last):
    ...
    AttributeError: module 'calibrant.core' has no attribute 'other'
    """
    home = {name: module for module, names in homes.items() for name in names}

    def found(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{package}.{home[name]}"), name)

    return found
