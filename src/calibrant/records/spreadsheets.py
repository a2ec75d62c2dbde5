"""Tables that people open in a spreadsheet, which would run a cell that looks like a formula."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

# Signs of full width are signs to some spreadsheets; characters without width hide what follows.
_FORMULA = r"^[\s\x{200b}-\x{200d}\x{feff}]*[=+\-@\x{ff1d}\x{ff0b}\x{ff0d}\x{ff20}]|^[\t\r\n]"


def neutral_cells(frame: pl.DataFrame, *, keep: Collection[str] = ()) -> pl.DataFrame:
    """Return the table with an apostrophe before each text that a spreadsheet would run.

    Such texts begin with = + - @ or a tab. Numbers stay as they are. So do names of columns that
    are kept; others are treated like any text.

    Parameters
    ----------
    frame
        The table.
    keep
        Columns that are read back by calibrant, such as ids: they stay as they are.

    Examples
    --------
    >>> frame = pl.DataFrame({"answer": ["=1+1", "-0.5", "Paris", None]})
    >>> neutral_cells(frame)["answer"].to_list()
    ["'=1+1", '-0.5', 'Paris', None]
    """
    texts = [name for name, kind in frame.schema.items() if kind == pl.String and name not in keep]
    # A zero byte ends a text for many programs, and no table with one is read back.
    frame = frame.with_columns(pl.col(texts).str.replace_all("\0", "\\0", literal=True))
    frame = frame.with_columns(
        pl.when(
            pl.col(name).str.contains(_FORMULA)
            & pl.col(name).str.strip_chars().cast(pl.Float64, strict=False).is_null()
        )
        .then(pl.lit("'") + pl.col(name))
        .otherwise(pl.col(name))
        .alias(name)
        for name in texts
    )
    names = pl.Series(frame.columns)
    runs = names.filter(names.str.contains(_FORMULA) & ~names.is_in(list(keep)))
    return frame.rename({name: f"'{name}" for name in runs})
