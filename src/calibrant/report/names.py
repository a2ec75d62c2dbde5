"""Names that must fit: what all of them begin with is left out first."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["told_apart"]

_LEAST_SHARED = 4


def told_apart(names: Iterable[str]) -> dict[str, str]:
    """Return names without the beginning that all of them share, which tells nothing apart.

    Examples
    --------
    >>> told_apart(["qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"])
    {'qwen2.5-coder-0.5b': '…0.5b', 'qwen2.5-coder-1.5b': '…1.5b'}
    >>> told_apart(["small", "large"])
    {'small': 'small', 'large': 'large'}
    """
    known = list(dict.fromkeys(names))
    shared = _shared_start(min(known), max(known)) if len(known) > 1 else ""
    # Only whole words are left out, and never a whole name.
    ends = [found.end() for found in re.finditer(r"[-_/: ]", shared)]
    cut = ends[-1] if ends and ends[-1] >= _LEAST_SHARED else 0
    if not cut or any(len(name) == cut for name in known):
        return {name: name for name in known}
    return {name: f"…{name[cut:]}" for name in known}


def _shared_start(first: str, last: str) -> str:
    """Return what the first and the last of sorted names begin with, and so all between them."""
    size = next((k for k, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), None)
    return first if size is None else first[:size]
