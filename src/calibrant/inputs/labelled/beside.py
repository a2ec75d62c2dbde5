"""Whether labels lie beside a pool: asked of every input, so without what reads labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl

from calibrant.core.calls import Call
from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.records.formats import store_path
from calibrant.records.tables import collect, column_names, scan_table


def labels_of(data: Any, labels: str | Path | None, correct: str | None = None) -> Path | None:
    """Return the store with the labels of a pool: the one named, or the one beside its file.

    A file in which every row has an outcome (column `correct`) needs no labels beside it.

    Examples
    --------
    >>> labels_of("nowhere.csv", None) is None
    True
    """
    if labels is not None:
        place = Path(labels)
        if not place.exists():
            raise InputError(
                "there is no store of labels here",
                source=str(labels),
                hint=Hint("label the pool first: {call}", call=Call("label serve", "TABLE")),
            )
        return place
    if isinstance(data, list | tuple) and len(data) == 1:
        data = data[0]
    if not isinstance(data, str | Path) or str(data) == "-":
        return None
    beside = store_path(data)
    return beside if beside.is_file() and not _has_all_outcomes(data, correct) else None


def _has_all_outcomes(data: str | Path, correct: str | None) -> bool:
    """Return whether every row of a file has an outcome of its own: all of them were chosen."""
    if Path(data).is_dir():
        data = Path(data) / "scores.parquet"
        if not data.is_file():
            return False
    table, name = scan_table(data), correct or "correct"
    if name not in column_names(table, data):
        return False
    return collect(table.select(name).filter(pl.col(name).is_null()).head(1), data).height == 0
