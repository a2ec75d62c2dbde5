"""Optional dependencies: imported where they are used, with the exact install command."""

from __future__ import annotations

import importlib
from types import ModuleType

from calibrant.core.errors import MissingDependencyError


def optional_import(module: str, *, extra: str, purpose: str) -> ModuleType:
    """Import `module` or say what to install.

    Parameters
    ----------
    module
        Dotted module name.
    extra
        The extra of calibrant that brings it.
    purpose
        What it is needed for, in words that complete 'needed for ...'.

    Examples
    --------
    >>> optional_import("no_such_module", extra="ray", purpose="running on a cluster")
    Traceback (most recent call last):
    ...
    calibrant.core.errors.MissingDependencyError: no_such_module is needed for running on a cluster
      -> pip install 'calibrant[ray]'
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and not module.startswith(error.name):
            raise
        raise MissingDependencyError(
            f"{module} is needed for {purpose}\n  -> pip install 'calibrant[{extra}]'"
        ) from error
