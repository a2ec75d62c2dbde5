"""Tables that fit a terminal: a number is never parted from its interval, nor cut."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rich import box
from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from calibrant.core.hints import Hint
from calibrant.report.blocks import Table
from calibrant.report.cells import Form, written

# What a terminal would obey instead of showing: control characters and turned directions.
_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_PARTS = re.compile(r"[^/_\-]*[/_\-]+|[^/_\-]+")
# Widths that the names of rows get before numbers are stacked.
_NAME_WIDTH, _TEXT_WIDTH = 34, 26
# Widths of names tried where a table is split: the widest that needs no further table.
_NAMES_IN_PARTS = (28, 24, 20)
_NARROW = 100


@dataclass(frozen=True, slots=True)
class _Look:
    """How columns are drawn; a narrow terminal gets no upright lines."""

    box: box.Box
    between: int
    edge: int


_WIDE_LOOK = _Look(box.HEAVY_HEAD, between=3, edge=1)
_NARROW_LOOK = _Look(box.SIMPLE_HEAD, between=2, edge=0)


def safe_text(text: str) -> str:
    """Return the text without what a terminal would obey: model output is hostile.

    Examples
    --------
    >>> len(safe_text("red" + chr(27) + "[31m")), chr(27) in safe_text(chr(27))
    (8, False)
    """
    return _UNSAFE.sub("\ufffd", text)


def fitted(table: Table, width: int) -> list[RenderableType]:
    """Return the table as one that fits `width`, or as several with the names repeated.

    First numbers keep their interval beside them; where that is too wide it goes below them;
    where that is still too wide, columns move to a further table.
    """
    look = _NARROW_LOOK if width < _NARROW else _WIDE_LOOK
    stacked = _written(table, "stacked")
    for candidate in (_written(table, "whole"), stacked):
        widths = _widths(candidate, width, look)
        if widths is not None:
            return _drawn(candidate, _with_heads(candidate, widths, width, look), look)
    looks = dict.fromkeys((look, _NARROW_LOOK))
    split = {look: _parts(stacked, width, look) for look in looks}
    best = min(split, key=lambda look: len(split[look]))
    return [block for part in split[best] for block in _drawn(*part, best)]


@dataclass(frozen=True, slots=True)
class _Written:
    """A table whose cells are spelled: widths are those of letters."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str
    note: str
    labels: int


def _written(table: Table, form: Form) -> _Written:
    rows = tuple(tuple(safe_text(written(cell, form)) for cell in row) for row in table.rows)
    columns = tuple(map(safe_text, table.columns))
    return _Written(columns, rows, table.title, table.note, table.labels)


def _widths(table: _Written, width: int, look: _Look) -> list[int] | None:
    """Return the width of every column, or None where they do not fit."""
    room = width - look.edge - look.between * len(table.columns)
    natural = [_widest(table, place) for place in range(len(table.columns))]
    names = range(min(table.labels, len(natural)))
    numbers = sum(natural[len(names) :])
    least = [_least(table, place) for place in names]
    if len(names) == len(natural):
        # Words alone can always be wrapped.
        return natural if sum(natural) <= room else _by_length(table, natural, room)
    if numbers + sum(least) > room:
        return None
    return [
        *shared_out([natural[place] for place in names], room - numbers),
        *natural[len(names) :],
    ]


def _with_heads(table: _Written, widths: list[int], width: int, look: _Look) -> list[int]:
    """Use what room is left for headers on one line."""
    spare = width - look.edge - look.between * len(widths) - sum(widths)
    for place, name in enumerate(table.columns):
        more = cell_len(name) - widths[place]
        if 0 < more <= spare:
            widths[place] += more
            spare -= more
    return widths


def _least(table: _Written, place: int) -> int:
    """Return the width below which the words of a column would be hard to read."""
    natural = _widest(table, place)
    if place == 0:
        return min(natural, _NAME_WIDTH)
    return min(max(_longest_word(table, place), natural // 2), natural, _TEXT_WIDTH)


def shared_out(natural: Sequence[int], room: int) -> list[int]:
    """Share the room out: short columns get what they need, long ones the rest alike."""
    given = [0] * len(natural)
    left, open_places = max(room, len(natural)), list(range(len(natural)))
    while open_places:
        share = left // len(open_places)
        small = [place for place in open_places if natural[place] <= share]
        if not small:
            for place in open_places:
                given[place] = max(share, 1)
            return given
        for place in small:
            given[place] = max(natural[place], 1)
            left -= natural[place]
            open_places.remove(place)
    return given


def _by_length(table: _Written, natural: Sequence[int], room: int) -> list[int]:
    """Share the room out among words: the longest word of each column, the rest by length."""
    places = range(len(natural))
    given = [min(_longest_word(table, place), room // len(natural)) for place in places]
    lengths = [sum(cell_len(row[place]) for row in table.rows) for place in places]
    left = room - sum(given)
    total = sum(length for place, length in enumerate(lengths) if natural[place] > given[place])
    for place in sorted(places, key=lambda place: natural[place] - given[place]):
        if natural[place] > given[place]:
            more = min(natural[place] - given[place], left * lengths[place] // max(total, 1))
            given[place] += more
            left -= more
            total -= lengths[place]
    return given


def _longest_word(table: _Written, place: int) -> int:
    words = [word for row in table.rows for word in row[place].split()]
    return max(map(cell_len, [*words, *table.columns[place].split()]), default=1)


def _widest(table: _Written, place: int) -> int:
    """Return the width that a column takes: names on one line, headers broken between words."""
    cells = [line for row in table.rows for line in row[place].split("\n")]
    head = table.columns[place].split(" ")
    return max(map(cell_len, [*cells, *head]), default=1)


def _parts(table: _Written, width: int, look: _Look) -> list[tuple[_Written, list[int]]]:
    """Share the columns out over several tables, each with the names of the rows."""
    natural = _widest(table, 0)
    tried = [_groups(table, min(natural, name), width, look) for name in _NAMES_IN_PARTS]
    groups = min(tried, key=len)
    return [
        _part(table, group, (number, len(groups)), width, look)
        for number, group in enumerate(groups, 1)
    ]


def _groups(table: _Written, name: int, width: int, look: _Look) -> list[list[int]]:
    """Return which columns go together beside names of this width."""
    groups: list[list[int]] = [[]]
    keys = _keys(table)
    start = look.edge + look.between + name
    start += sum(_own(table, place, width) + look.between for place in range(1, keys))
    used = start
    for place in range(keys, len(table.columns)):
        wide = _own(table, place, width) + look.between
        if groups[-1] and used + wide > width:
            groups.append([])
            used = start
        groups[-1].append(place)
        used += wide
    return groups


def _keys(table: _Written) -> int:
    """Return how many of the first columns it takes to tell the rows apart."""
    for count in range(1, table.labels):
        if len({row[:count] for row in table.rows}) == len(table.rows):
            return count
    return max(min(table.labels, len(table.columns) - 1), 1)


def _own(table: _Written, place: int, width: int) -> int:
    need = _least(table, place) if place < table.labels else _widest(table, place)
    return min(need, width // 2)


def _part(
    table: _Written, places: Sequence[int], of: tuple[int, int], width: int, look: _Look
) -> tuple[_Written, list[int]]:
    number, parts = of
    chosen = [*range(_keys(table)), *places]
    made = replace(
        table,
        columns=tuple(table.columns[place] for place in chosen),
        rows=tuple(tuple(row[place] for place in chosen) for row in table.rows),
        title=table.title if number == 1 else f"{table.title} ({number} of {parts})".strip(),
        note=table.note if number == parts else "",
        labels=sum(place < table.labels for place in chosen),
    )
    own = [_own(made, place, width) for place in range(1, len(chosen))]
    room = width - look.edge - look.between * len(chosen) - sum(own)
    return made, [max(min(_widest(made, 0), room), 1), *own]


def _drawn(table: _Written, widths: Sequence[int], look: _Look) -> list[RenderableType]:
    """Return the table below a free line and its title, above its note, both in full width."""
    drawn = RichTable(
        box=look.box,
        pad_edge=look is _WIDE_LOOK,
        show_edge=look is _WIDE_LOOK,
        collapse_padding=look is _NARROW_LOOK,
    )
    for place, (name, width) in enumerate(zip(table.columns, widths, strict=True)):
        justify: Literal["left", "right"] = "left" if place < table.labels else "right"
        # Fold, never cut: a name that ends in dots is no name.
        drawn.add_column(name, justify=justify, overflow="fold", width=width)
    for row in table.rows:
        drawn.add_row(
            *(
                Text(_wrapped(cell, width), overflow="fold")
                for cell, width in zip(row, widths, strict=True)
            )
        )
    title = [Text(safe_text(table.title), style="italic")] if table.title else []
    note = [Text(safe_text(table.note), style="dim")] if table.note else []
    return [Text(), *title, drawn, *note]


def _wrapped(text: str, width: int) -> str:
    """Break a text where a reader would: between words, and a long word after a / - or _.

    Examples
    --------
    >>> _wrapped("Meta-Llama-3.1-405B-Instruct / first_run_consistency", 22).splitlines()
    ['Meta-Llama-3.1-405B-', 'Instruct /', 'first_run_consistency']
    """
    return "\n".join(_wrapped_line(line, width) for line in text.split("\n"))


def _wrapped_line(line: str, width: int) -> str:
    lines = [""]
    for word in line.split(" "):
        parts = [word] if cell_len(word) <= width else _PARTS.findall(word)
        for number, part in enumerate(parts):
            gap = " " if lines[-1] and number == 0 else ""
            if lines[-1] and cell_len(lines[-1] + gap + part) > width:
                lines.append(part)
            else:
                lines[-1] += gap + part
    return "\n".join(lines)


def more_rows(left_out: int, all_rows: int) -> str:
    """Return the line that stands for rows left out, and how to see them.

    Examples
    --------
    >>> more_rows(8, 12)
    ' … 8 more (--top 12)'
    """
    return Hint(" … {0} more ({top})", f"{left_out:,}", top=all_rows).shell()
