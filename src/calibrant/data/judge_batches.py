"""Batches of rows that people rate: read back whatever a spreadsheet made of them."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
from polars.exceptions import PolarsError

from calibrant.core.errors import InputError, printable, require_known
from calibrant.core.hints import Hint
from calibrant.data.formats import file_format
from calibrant.data.judge_cells import cell_texts
from calibrant.data.tables import read_table, source_name, unreadable
from calibrant.data.text_tables import read_cells

# Letters that a cell of a workbook can hold, and those of a cell that a message shows.
LONGEST_CELL, _SHOWN = 32_000, 80


def number_column(frame: pl.DataFrame) -> str:
    """Return what a batch calls the column that says which row of the table is meant.

    Examples
    --------
    >>> number_column(pl.DataFrame({"judge": [1]})), number_column(pl.DataFrame({"row": [1]}))
    ('row', 'row of the table')
    """
    name = "row"
    while name in frame.columns:
        name += "_" if " " in name else " of the table"
    return name


def with_batch(frame: pl.DataFrame, batch: Any, people: Sequence[str]) -> pl.DataFrame:
    """Return the rows with the ratings of a batch.

    A batch whose rows are no longer those of the table is refused, and so is a rating where
    another one stands: which of them counts would be a guess.

    Parameters
    ----------
    frame
        The table; earlier batches are in it.
    batch
        Path of a file, or a table in memory, with a column of row numbers, see `number_column`.
    people
        Columns of ratings; in a row without any, nothing is read.
    """
    source, key = source_name(batch), number_column(frame)
    filled = read_text(Path(batch)) if isinstance(batch, str | Path) else read_table(batch)
    filled = flat_table(filled).cast(pl.String)
    require_known([key, *people], filled.columns, "there is no column {}", source=source)
    rated = filled.select(cell_texts(filled[name]) for name in people)
    rows = [n for n, row in enumerate(rated.iter_rows()) if any(cell is not None for cell in row)]
    if not rows:
        hint = f"write ratings into the column {', '.join(people)}"
        raise InputError("no rating is filled in", source=source, hint=hint)
    text = flat_table(frame).cast(pl.String)
    places = [_place(filled[key][row], frame.height, source, row) for row in rows]
    for name in (name for name in filled.columns if name in frame.columns and name not in people):
        for row, place, new, old in zip(
            rows, places, filled[name][rows], text[name][places], strict=True
        ):
            if not same_text(new or None, old or None):
                rule = (
                    f"row {place + 1} of the table has {_cut(old)} in column {name}, and the batch "
                    f"has {_cut(new)}"
                )
                hint = (
                    "sort whole rows; is it a batch of this table? A column that a program wrote "
                    "anew may be left out of the batch"
                )
                raise InputError(rule, source=source, row=row + 1, hint=hint)
    ratings = (_ratings(name, rows, places, filled, text, source) for name in people)
    return frame.with_columns(ratings)


def _place(cell: str | None, height: int, source: str, row: int) -> int:
    """Return the place in the table that a cell of a batch names."""
    try:
        number = float(cell or "")
    except ValueError:
        number = math.nan
    if not (number.is_integer() and 1 <= number <= height):
        rule = f"the table has rows 1 to {height:,}, and {_cut(cell)} is none of them"
        raise InputError(rule, source=source, row=row + 1)
    return int(number) - 1


def _ratings(
    name: str, rows: Sequence[int], places: Sequence[int], filled: pl.DataFrame, text: pl.DataFrame,
    source: str,
) -> pl.Series:  # fmt: skip
    """Return a person's column with the new ratings; another one in the same place is refused."""
    column, known = text[name].to_list(), cell_texts(text[name]).to_list()
    new, came = cell_texts(filled[name]).to_list(), dict[int, int]()
    for row, place in zip(rows, places, strict=True):
        if new[row] is None:
            continue
        if known[place] is not None and not same_text(new[row], known[place]):
            where = f"row {came[place] + 1} of the batch" if place in came else "the table"
            where += "" if place in came else " or a batch before this one"
            rule = (
                f"{name} rates row {place + 1} of the table {_cut(new[row])}, and {where} has "
                f"{_cut(known[place])}"
            )
            raise InputError(rule, source=source, row=row + 1, hint="leave one of them empty")
        column[place], known[place], came[place] = filled[name][row], new[row], row
    return pl.Series(name, column, dtype=pl.String)


def refuse_filled(path: Path, people: Sequence[str]) -> None:
    """Refuse to write over a batch that somebody has filled in."""
    try:
        frame = read_text(path) if path.is_file() else pl.DataFrame()
    except (InputError, PolarsError, UnicodeDecodeError):
        # Not a batch that could be taken back.
        return
    filled = [name for name in people if name in frame.columns and cell_texts(frame[name]).count()]
    if filled:
        rule = f"{', '.join(filled)} filled in this batch, so it is not written over"
        hint = Hint("take it back with {rated}, and name another {batch}", rated=str(path))
        raise InputError(rule, source=str(path), hint=hint)


def read_text(path: Path) -> pl.DataFrame:
    """Return a batch with its cells as they are written."""
    if not path.is_file():
        raise InputError("there is no such file", source=str(path), hint="check the path")
    try:
        if file_format(path) in ("csv", "workbook"):
            return read_cells(path)
        return flat_table(read_table(path)).cast(pl.String)
    except PolarsError as error:
        raise unreadable(error, path) from None


def flat_table(frame: pl.DataFrame) -> pl.DataFrame:
    """Return a table without lists, dates and the like: they are text as a person writes it."""
    kinds = frame.schema.items()
    flat = [n for n, kind in kinds if not kind.is_numeric() and kind not in (pl.String, pl.Boolean)]
    return frame.with_columns(
        pl.Series(name, [_flat(cell) for cell in frame[name].to_list()], dtype=pl.String)
        for name in flat
    )


def _flat(cell: Any) -> str | None:
    """Return a cell as text: of a list its parts, beside each other."""
    if isinstance(cell, list):
        return " | ".join(map(str, cell))
    return None if cell is None else str(cell)


def cell_text(text: str) -> str:
    """Return a text as a cell of a workbook holds it."""
    return printable(text.replace("\0", "\\0").replace("\r", ""))


def same_text(values: str | None, stored: str | None) -> bool:
    """Compare texts as a person would after a spreadsheet has been at them: 3.50 and 3.5.

    Examples
    --------
    >>> same_text("3,50", "3.5"), same_text("'=1+1", "=1+1"), same_text("TRUE", "true")
    (True, True, True)
    """
    if values is None or stored is None:
        return True
    # An apostrophe keeps a spreadsheet from running a text, see `neutral_cells`.
    values, stored = (text.strip().removeprefix("'") for text in (values, stored))
    if values == stored:
        return True
    try:
        new, old = (float(text.replace(",", ".")) for text in (values, stored))
        # A spreadsheet keeps 15 digits.
        return math.isclose(new, old, rel_tol=1e-14)
    except ValueError:
        # As a table or workbook holds them, without blanks.
        whole, cut = ("".join(cell_text(text).lower().split()) for text in (stored, values))
        return whole == cut or (len(values) >= LONGEST_CELL and whole.startswith(cut))


def _cut(cell: str | None) -> str:
    text = "nothing" if cell is None else repr(cell)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + ".."
