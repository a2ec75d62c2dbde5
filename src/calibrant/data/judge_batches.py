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
_UNLIKE = (
    "is it a batch of this table? Sort whole rows, give a rating once, and leave out a column that "
    "a program wrote anew"
)


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
    lines = [(row, _place(filled[key][row], frame.height, source, row)) for row in rows]
    shared = [name for name in filled.columns if name in frame.columns]
    text = flat_table(frame.select(shared)).cast(pl.String)
    merged = [_merged(filled[name], text[name], lines, source) for name in shared]
    return frame.with_columns(column for column in merged if column.name in people)


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


def _merged(
    filled: pl.Series, text: pl.Series, lines: Sequence[tuple[int, int]], source: str
) -> pl.Series:
    """Return a column with the cells of a batch; one that stands there otherwise is refused."""
    cells, new, came = cell_texts(text), cell_texts(filled).to_list(), dict[int, int]()
    # 0 in all rows that were given out, among higher numbers, says that nobody rated them.
    before = {cells[place] for row, place in lines if new[row] is not None}
    if before in ({"0"}, {"-1"}) and (cells.cast(pl.Float64, strict=False) > 1).any():
        cells = cells.set(cells.is_in([*before]).fill_null(False), None)
    column, texts = text.to_list(), cells.to_list()
    for row, place in lines:
        if not same_text(new[row], texts[place]):
            where = "the table or an earlier batch"
            where = f"row {came[place] + 1} of this batch" if place in came else where
            number, cell = f"{text.name} of row {place + 1} of the table", _cut(new[row])
            rule = f"{number} is {cell} here, and {_cut(texts[place])} in {where}"
            raise InputError(rule, source=source, row=row + 1, hint=_UNLIKE)
        if new[row] is not None:
            column[place], texts[place], came[place] = filled[row], new[row], row
    return pl.Series(text.name, column, dtype=pl.String)


def refuse_filled(path: Path, people: Sequence[str]) -> None:
    """Refuse to write over a batch that somebody has filled in."""
    frame = earlier_batch(path)
    filled = [name for name in people if name in frame.columns and cell_texts(frame[name]).count()]
    if filled:
        rule = f"{', '.join(filled)} filled in this batch, so it is not written over"
        hint = Hint("take it back with {rated}, and name another {batch}", rated=str(path))
        raise InputError(rule, source=str(path), hint=hint)


def earlier_batch(path: Path) -> pl.DataFrame:
    """Return the batch that a file holds; an empty table where it holds none."""
    try:
        return read_text(path)
    except (InputError, PolarsError, UnicodeDecodeError):
        return pl.DataFrame()


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
