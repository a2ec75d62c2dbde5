"""Tables that people open in a spreadsheet, which would run a cell that looks like a formula."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

__all__ = ["neutral_cells"]

_FORMULA = r"^[\s]*[=+\-@]|^[\t\r\n]"


def neutral_cells(frame: pl.DataFrame, *, keep: Collection[str] = ()) -> pl.DataFrame:
    """Return the table with an apostrophe before each text that a spreadsheet would run.

    Such texts begin with = + - @ or a tab. Numbers stay as they are.

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
    return frame.with_columns(
        pl.when(
            pl.col(name).str.contains(_FORMULA)
            & pl.col(name).str.strip_chars().cast(pl.Float64, strict=False).is_null()
        )
        .then(pl.lit("'") + pl.col(name))
        .otherwise(pl.col(name))
        .alias(name)
        for name in texts
    )
