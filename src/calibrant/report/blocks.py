"""Neutral pieces of a report: terminal, Markdown, page and notebook render the same ones."""

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any

from msgspec import Struct

from calibrant.findings.documents.entries import EstimateEntry
from calibrant.report.answers import claims_of
from calibrant.report.cells import Cell, estimate_cell, number_cell

Columns = Mapping[str, str | Callable[[Any], Cell]]
"""Title of each column, and the key (or path) of an entry, or what makes a cell of the entry."""


class Paragraph(Struct, frozen=True):
    """A paragraph; `strong` for the verdict."""

    text: str
    strong: bool = False


class Table(Struct, frozen=True):
    """A table of cells. The first `labels` columns are names, the others numbers.

    `main`: the one table of the short view, where it is not the first.
    `folded`: a page shows the title alone until the reader opens it (reasons, details).
    `name`: what the table is, for whoever looks for it.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    title: str = ""
    note: str = ""
    labels: int = 1
    folded: bool = False
    main: bool = False
    name: str = ""


Block = Paragraph | Table


def table_of(entries: Iterable[Any], columns: Columns, title: str = "", **about: Any) -> Table:
    """Return a table with a row per entry.

    Examples
    --------
    >>> table = table_of([{"model": "a", "n": 12}], {"model": "model", "rows": "n"})
    >>> table.columns, [str(cell) for cell in table.rows[0]]
    (('model', 'rows'), ['a', '12'])
    """
    rows = tuple(
        tuple(key(entry) if callable(key) else _cell(_part(entry, key)) for key in columns.values())
        for entry in entries
    )
    return Table(tuple(columns), rows, title, **about)


def _part(entry: Any, name: str) -> Any:
    return attrgetter(name)(entry) if isinstance(entry, Struct) else entry[name]


def _cell(value: Any) -> Cell:
    """Return the plain cell of a value: estimates with their interval, whole numbers as counts."""
    if isinstance(value, Mapping | EstimateEntry):
        return estimate_cell(value)
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return value if isinstance(value, str) else number_cell(value)


def entry_name(entry: Any) -> str:
    """Return whose confidence an entry is about."""
    return f"{_part(entry, 'model')} / {_part(entry, 'method')}"


def claims_first(document: Mapping[str, Any]) -> list[Block]:
    """Return what a document claims, as its first paragraphs."""
    return [Paragraph(claim.text, strong=True) for claim in claims_of(document)]


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
