"""Tables that fit a terminal: a number is never parted from its interval, nor cut."""

import re
from collections.abc import Sequence
from contextvars import ContextVar
from itertools import product
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace
from rich.cells import cell_len
from rich.console import RenderableType
from rich.text import Text

from calibrant.core.hints import Hint
from calibrant.report.cells import Form, Table, written

# What a terminal would obey instead of showing: control characters and turned directions.
_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_PARTS = re.compile(r"[^/_\-]*[/_\-]+|[^/_\-]+")
# Letters that names of rows keep before numbers are stacked, and where a table is split.
_NAME_WIDTH, _NAME_IN_PARTS = 26, 24


_BETWEEN = 2
_WORD = 11


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
    forms: tuple[Form, ...] = ("whole", "stacked")
    for form, heads in product(forms, "\n "):
        text = _written(table, form)
        natural = _natural(text, heads)
        least = sum(min(size, _NAME_WIDTH) for size in natural[: text.labels])
        room = _room(width, len(natural)) - sum(natural[text.labels :])
        if text.labels >= len(natural) and sum(natural) > room:
            return _drawn(text, _by_length(text, room))
        if least <= room:
            names = shared_out(natural[: text.labels], room)
            return _drawn(text, [*names, *natural[text.labels :]])
    parts = _parts(text, width)
    return [block for part in parts for block in _drawn(part, _part_widths(part, width))]


class _Written(Struct, frozen=True):
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


def _natural(table: _Written, heads: str = " ") -> list[int]:
    """Return the width that each column takes; headers are broken at `heads`."""
    return [
        max(cell_len(line) for line in "\n".join([*cells, *head.split(heads)]).split("\n"))
        for head, *cells in zip(table.columns, *table.rows, strict=True)
    ]


def _by_length(table: _Written, room: int) -> list[int]:
    """Share the room out among words, which can always be wrapped: by the length of all of them."""
    lengths = [sum(map(cell_len, cells)) or 1 for cells in zip(*table.rows, strict=True)]
    least = [min(size, room // len(lengths), _WORD) for size in _natural(table)]
    remaining = room - sum(least)
    targets = [remaining * length // sum(lengths) for length in lengths]
    spare = [max(size - floor, 0) for size, floor in zip(_natural(table), least, strict=True)]
    more = [min(want, most) for want, most in zip(targets, spare, strict=True)]
    # What short columns leave goes to the longest one.
    more[lengths.index(max(lengths))] += remaining - sum(more)
    return [max(floor + extra, 1) for floor, extra in zip(least, more, strict=True)]


def shared_out(natural: Sequence[int], room: int) -> list[int]:
    """Share the room out: short columns get what they need, long ones the rest alike."""
    values = [0] * len(natural)
    remaining = max(room, len(natural))
    for finished, place in enumerate(sorted(range(len(natural)), key=natural.__getitem__)):
        values[place] = max(min(natural[place], remaining // (len(natural) - finished)), 1)
        remaining -= values[place]
    return values


def _parts(table: _Written, width: int) -> list[_Written]:
    """Share the columns out over several tables, each with the names of the rows."""
    keys = _keys(table)
    wide = [min(size, width // 2) for size in _natural(table)]
    names = sum(min(size, _NAME_IN_PARTS) for size in wide[:keys])
    groups: list[list[int]] = [[]]
    for place in range(keys, len(table.columns)):
        tried = [*groups[-1], place]
        need = names + sum(wide[item] for item in tried)
        if groups[-1] and need > _room(width, keys + len(tried)):
            groups.append([place])
        else:
            groups[-1] = tried
    return [
        _part(table, [*range(keys), *places], number, len(groups))
        for number, places in enumerate(groups, 1)
    ]


def _keys(table: _Written) -> int:
    """Return how many of the first columns it takes to tell the rows apart."""
    for count in range(1, table.labels):
        if len({row[:count] for row in table.rows}) == len(table.rows):
            return count
    return max(min(table.labels, len(table.columns) - 1), 1)


def _part(table: _Written, places: Sequence[int], number: int, parts: int) -> _Written:
    return replace(
        table,
        columns=tuple(table.columns[place] for place in places),
        rows=tuple(tuple(row[place] for place in places) for row in table.rows),
        title=table.title if number == 1 else f"{table.title} ({number} of {parts})".strip(),
        note=table.note if number == parts else "",
        labels=sum(place < table.labels for place in places),
    )


def _part_widths(table: _Written, width: int) -> list[int]:
    keys = _keys(table)
    wide = [min(size, width // 2) for size in _natural(table)]
    room = _room(width, len(wide)) - sum(wide[keys:])
    return [*shared_out(wide[:keys], room), *wide[keys:]]


def _room(width: int, columns: int) -> int:
    """Return the letters that so many columns share."""
    return width - _BETWEEN * columns


def _drawn(table: _Written, widths: Sequence[int]) -> list[RenderableType]:
    """Return the table below a free line and its title, above its note, both in full width."""
    # Loaded here: the short view has none.
    from rich import box
    from rich.table import Table as RichTable

    draws = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=True)
    for place, (name, width) in enumerate(zip(table.columns, widths, strict=True)):
        justify: Literal["left", "right"] = "left" if place < table.labels else "right"
        # Fold, never cut: a name that ends in dots is no name.
        draws.add_column(name, justify=justify, overflow="fold", width=width)
    for row in table.rows:
        draws.add_row(
            *(
                Text(_wrapped(cell, width), overflow="fold")
                for cell, width in zip(row, widths, strict=True)
            )
        )
    title = [Text(safe_text(table.title), style="italic")] if table.title else []
    note = [Text(safe_text(table.note), style="dim")] if table.note else []
    return [Text(), *title, draws, *note]


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
    return spelled(Hint(" … {0} more ({top})", f"{left_out:,}", top=all_rows))


FOR_PYTHON: ContextVar[bool] = ContextVar("FOR_PYTHON", default=False)
"""Whether whoever reads the short view writes Python, instead of commands."""


def spelled(hint: Hint) -> str:
    """Return a hint as its reader types it.

    Examples
    --------
    >>> spelled(Hint("see {full}", full=True))
    'see --full'
    """
    return str(hint) if FOR_PYTHON.get() else hint.shell()
