"""Neutral pieces of a report: terminal, Markdown, page and notebook render the same ones."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.report.cells import Cell


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph; `strong` for the verdict."""

    text: str
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Table:
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
