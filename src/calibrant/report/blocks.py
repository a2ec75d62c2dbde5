"""Neutral pieces of text output; terminal, Markdown and HTML render the same ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Paragraph", "Table", "estimate_cell", "number_cell"]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph; `strong` for the verdict."""

    text: str
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table of strings. The first `labels` columns are names, the others numbers.

    `folded`: a page shows the title alone until the reader opens it (reasons, details).
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""
    note: str = ""
    labels: int = 1
    folded: bool = False


def number_cell(value: float | int | None, *, digits: int = 3) -> str:
    """Return a number as text; undefined is said, never shown as 0.

    Examples
    --------
    >>> number_cell(None), number_cell(0.12345), number_cell(1200)
    ('undefined', '0.123', '1,200')
    """
    if value is None:
        return "undefined"
    return f"{value:,}" if isinstance(value, int) else f"{value:.{digits}f}"


def estimate_cell(estimate: Mapping[str, Any] | None, *, digits: int = 3) -> str:
    """Return an estimate with its interval.

    Examples
    --------
    >>> estimate_cell({"value": 0.1, "low": 0.08, "high": 0.13})
    '0.100 [0.080, 0.130]'
    """
    if estimate is None or estimate["value"] is None:
        return "undefined"
    value = f"{estimate['value']:.{digits}f}"
    if estimate["low"] is None or estimate["high"] is None:
        return f"{value} [no interval]"
    return f"{value} [{estimate['low']:.{digits}f}, {estimate['high']:.{digits}f}]"
