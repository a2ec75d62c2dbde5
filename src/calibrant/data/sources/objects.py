"""Objects of other libraries, standard input and files that grow as what calibrant reads."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Set
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from polars.exceptions import PolarsError

from calibrant.core.errors import InputError, error_source
from calibrant.data.formats import separator_of
from calibrant.data.text_tables import check_names, name_columns

_POLL_SECONDS = 0.2


def read_stdin(rows: int) -> Iterator[pl.DataFrame]:
    """Yield tables of `rows` rows from CSV or JSON lines on standard input."""
    yield from _tables(sys.stdin, rows, "standard input")


def follow_file(path: Path, rows: int, idle_seconds: float) -> Iterator[pl.DataFrame]:
    """Yield tables of new rows as a CSV or JSON-lines file grows, until it rests for a while."""
    if not path.is_file():
        raise InputError("there is no such file", source=str(path))
    yield from _tables(_growing_lines(path, idle_seconds), rows, str(path))


def _growing_lines(path: Path, idle_seconds: float) -> Iterator[str]:
    with path.open(encoding="utf-8") as file:
        waited, half = 0.0, ""
        while waited < idle_seconds:
            line = file.readline()
            if line.endswith("\n"):
                yield half + line
                waited, half = 0.0, ""
            else:
                # A line may be caught while it is being written: keep what is there.
                half += line
                time.sleep(_POLL_SECONDS)
                waited += _POLL_SECONDS
        if half:
            yield half


def _tables(lines: Iterable[str], rows: int, source: str) -> Iterator[pl.DataFrame]:
    header: str | None = None
    batch: list[str] = []
    number = 0
    try:
        for line in lines:
            number += 1
            if not line.strip():
                continue
            if header is None and not line.lstrip().startswith("{"):
                header = line
                continue
            header = header or ""
            batch.append(line)
            if len(batch) >= rows:
                yield _parse(header, batch, source)
                batch = []
    except UnicodeDecodeError:
        raise InputError(
            f"line {number + 1} or one soon after it is no UTF-8 text",
            source=source,
            hint="a stream is CSV or JSON lines in UTF-8; parquet and gzip are read as whole files",
        ) from None
    if batch:
        yield _parse(header or "", batch, source)


def _parse(header: str, lines: list[str], source: str) -> pl.DataFrame:
    text = (header + "".join(lines)).encode()
    try:
        if header:
            mark = separator_of(header)
            with error_source(source):
                check_names(header.encode(), mark)
            columns = [name.strip().strip('"') for name in header.split(mark)]
            # A batch has few rows: what looks like a number in one is a name in the next.
            names = dict.fromkeys(name_columns(columns), pl.String())
            return pl.read_csv(
                io.BytesIO(text), separator=mark, infer_schema_length=None, schema_overrides=names
            )
        return pl.read_ndjson(io.BytesIO(text), infer_schema_length=None)
    except PolarsError as error:
        raise InputError(f"the rows cannot be read: {error}", source=source) from None


STDIN = "-"
"""Stands for standard input where a path is expected."""

NO_OUTCOMES = "an array of confidences needs an array of outcomes: audit(confidence, correct)"
_KNOWN_COLUMNS = frozenset({"numpy", "pandas", "polars", "pyarrow"})
"""Libraries whose columns tables take as they are."""


def plain_input(data: Any, outcomes: Any = None) -> tuple[Any, Any]:
    """Return the data and the outcomes of a verb, as arrays or as something that is a table.

    Parameters
    ----------
    data
        Confidences where outcomes are given, else a table: see `as_column` and `as_table`.
    outcomes
        Outcomes, or the name of their column, or None.

    Examples
    --------
    >>> import polars as pl
    >>> plain_input(pl.Series([0.5, 0.9]), (flag for flag in [0, 1]))
    (array([0.5, 0.9]), [0, 1])
    """
    if outcomes is None or isinstance(outcomes, str):
        return as_table(data), outcomes
    return as_column(data, "confidence"), as_column(outcomes, "correct")


def as_column(values: Any, name: str) -> Any:
    """Return one column as an array: Series, Arrow arrays, tensors, iterators.

    Lists and numpy arrays stay as they are. A tensor leaves its device and its gradient behind.
    Missing values become NaN, and the rules for rows decide about them.
    """
    if isinstance(values, np.ndarray | list | tuple | str) or hasattr(type(values), "columns"):
        return values
    if isinstance(values, Iterator):
        return list(values)
    for step in ("detach", "cpu"):
        values = getattr(values, step)() if hasattr(values, step) else values
    try:
        return _array(values)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(
            f"{name} cannot be read as an array from {type(values).__name__}: {reason}",
            hint="convert it with numpy.asarray, or to a list",
        ) from None


def _array(values: Any) -> Any:
    # Arrow arrays with missing values cannot be shared, so they are copied.
    arrow = type(values).__module__.startswith("pyarrow") and hasattr(values, "to_pylist")
    if arrow and not hasattr(values, "chunks"):
        return values.to_numpy(zero_copy_only=False)
    if hasattr(values, "to_numpy"):
        array = np.asarray(values.to_numpy())
        if array.dtype == object and type(values).__module__.startswith("pandas"):
            # pandas has several signs for what is missing; None is read as such everywhere.
            array = array.copy()
            array[np.asarray(values.isna(), dtype=bool)] = None
        return array
    if hasattr(values, "__array__"):
        return np.asarray(values)
    if hasattr(values, "__dlpack__"):
        return np.from_dlpack(values)
    if isinstance(values, Set):
        raise InputError(
            f"a {type(values).__name__} has no order: its values cannot be matched with outcomes",
            hint="give a list or an array",
        )
    return np.asarray(list(values))


def as_table(data: Any) -> Any:
    """Return a list of dictionaries, a data set or standard input as a dataframe.

    Paths, dataframes, mappings and lists of them stay as they are. A data set is any object with
    `column_names` and `to_polars`, as those of Hugging Face have them. ``-`` is standard input:
    CSV or JSON lines.
    """
    if isinstance(data, str | Path):
        if str(data) != STDIN:
            return data
        parts = list(read_stdin(100_000))
        if not parts:
            raise InputError("there are no rows", source="standard input")
        return pl.concat(parts, how="diagonal_relaxed")
    if isinstance(data, Iterator):
        data = list(data)
    if isinstance(data, list | tuple) and data and all(isinstance(row, Mapping) for row in data):
        return _from_rows(data)
    if hasattr(data, "column_names") and hasattr(data, "to_polars"):
        return data.to_polars()
    if isinstance(data, Mapping):
        return {name: _plain_column(values, name) for name, values in data.items()}
    # Asked of the class: a lazy frame of polars warns where its columns are looked up.
    table = isinstance(data, np.ndarray) or hasattr(type(data), "columns")
    if table or hasattr(data, "columns"):
        return data
    shape = getattr(data, "shape", None)
    arrow = type(data).__module__.startswith("pyarrow") and hasattr(data, "to_pylist")
    if arrow or (isinstance(shape, tuple) and len(shape) == 1):
        raise InputError(NO_OUTCOMES)
    return data


def is_row(item: Any) -> bool:
    """Return whether this is one row: a mapping whose values are no columns.

    Examples
    --------
    >>> is_row({"confidence": 0.9, "correct": 1}), is_row({"confidence": [0.9], "correct": [1]})
    (True, False)
    """
    return isinstance(item, Mapping) and not any(
        isinstance(value, list | tuple) or getattr(value, "shape", ()) for value in item.values()
    )


def _plain_column(values: Any, name: Any) -> Any:
    """Return a column that is known by the array protocol only, such as a tensor, as an array."""
    if isinstance(values, Iterator):
        return list(values)
    home = type(values).__module__.partition(".")[0]
    is_known = isinstance(values, list | tuple | str) or home in _KNOWN_COLUMNS
    if is_known or not (hasattr(values, "__array__") or hasattr(values, "__dlpack__")):
        return values
    return as_column(values, str(name))


def _from_rows(rows: Any) -> pl.DataFrame:
    if any(isinstance(value, list | tuple | np.ndarray) for value in rows[0].values()):
        # Tables given as mappings of columns, one per model, are no rows.
        return rows  # type: ignore[no-any-return]
    try:
        return pl.DataFrame(list(rows), infer_schema_length=None)
    except (PolarsError, TypeError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"the rows cannot be put into one table: {reason}") from None
