"""Neutral pieces of text output; terminal, Markdown and HTML render the same ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# The least p-value that the law of the error tells apart.
_LEAST_P = 1e-10


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph; `strong` for the verdict."""

    text: str
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table of strings. The first `labels` columns are names, the others numbers.

    `main`: the one table of the short view, where it is not the first.
    `folded`: a page shows the title alone until the reader opens it (reasons, details).
    `whole`: the whole text behind a cell that had to be cut, by the cell; a page shows it when
    asked.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""
    note: str = ""
    labels: int = 1
    folded: bool = False
    main: bool = False
    whole: Mapping[str, str] = field(default_factory=dict)


def cut_text(text: str, letters: int) -> str:
    """Return a text on one line, cut between words where it is longer than `letters`.

    Examples
    --------
    >>> cut_text("Which river flows through the most capitals?", 24)
    'Which river flows ...'
    """
    line = " ".join(text.split())
    if len(line) <= letters:
        return line
    room = letters - 4
    head = line[:room]
    # A word that alone is longer than the room is cut inside.
    if line[room] != " " and " " in head:
        head = head.rsplit(" ", 1)[0]
    return f"{head.rstrip()} ..."


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


def share_cell(share: float | None, *, digits: int = 0) -> str:
    """Return a share in percent.

    Examples
    --------
    >>> share_cell(0.731), share_cell(0.00412, digits=1), share_cell(None)
    ('73 %', '0.4 %', 'undefined')
    """
    return "undefined" if share is None else f"{100 * share:.{digits}f} %"


def percent_cell(estimate: Mapping[str, Any] | None) -> str:
    """Return an estimated share in percent, with its interval.

    Examples
    --------
    >>> percent_cell({"value": 0.731, "low": 0.68, "high": 0.77})
    '73.1 % [68.0, 77.0]'
    """
    return _scaled(estimate, "{:.1f} %")


def points_cell(estimate: Mapping[str, Any] | None, *, sign: bool = True) -> str:
    """Return an estimated difference of shares in points, with its interval.

    Examples
    --------
    >>> points_cell({"value": 0.0312, "low": -0.01, "high": 0.08})
    '+3.1 [-1.0, 8.0]'
    """
    return _scaled(estimate, "{:+.1f}" if sign else "{:.1f}")


def _scaled(estimate: Mapping[str, Any] | None, form: str) -> str:
    if estimate is None or estimate["value"] is None:
        return "undefined"
    value = form.format(100 * estimate["value"])
    if estimate["low"] is None or estimate["high"] is None:
        return value
    return f"{value} [{100 * estimate['low']:.1f}, {100 * estimate['high']:.1f}]"


def p_cell(p_value: float | None) -> str:
    """Return a p-value as text: small ones by their size, the least one as a bound.

    Examples
    --------
    >>> p_cell(0.0312), p_cell(0.00004), p_cell(1e-10), p_cell(None)
    ('0.031', '4e-05', '<1e-10', 'none')
    """
    if p_value is None:
        return "none"
    if p_value <= _LEAST_P:
        return "<1e-10"
    return f"{p_value:.3f}" if p_value >= 0.001 else f"{p_value:.0e}"


def p_value_text(p_value: float) -> str:
    """Return a p-value for a sentence.

    Examples
    --------
    >>> p_value_text(0.0312), p_value_text(1e-12)
    ('p = 0.031', 'p < 1e-10')
    """
    cell = p_cell(p_value)
    return f"p < {cell[1:]}" if cell.startswith("<") else f"p = {cell}"
