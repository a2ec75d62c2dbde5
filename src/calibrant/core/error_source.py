"""Messages that name the file, also where the code that found the fault has only a table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from calibrant.core.errors import InputError

IN_MEMORY = "a table in memory"
"""How messages call a table that has no name of its own."""


@contextmanager
def error_source(source: str | None, *, rows_before: int = 0) -> Iterator[None]:
    """Put the name of the source into an error that has none.

    Parameters
    ----------
    source
        What the reader calls the data; None leaves errors as they are.
    rows_before
        Rows that came before this part of a stream: the row named is counted from its start.

    Examples
    --------
    >>> with error_source("scores.csv", rows_before=100):
    ...     raise InputError("the confidence is missing", source=IN_MEMORY, row=6)
    Traceback (most recent call last):
    ...
    calibrant.core.errors.InputError: scores.csv, row 106: the confidence is missing
    """
    try:
        yield
    except InputError as error:
        nameless = (None, IN_MEMORY)
        if source in nameless or error.source not in nameless:
            raise
        row = None if error.row is None else error.row + rows_before
        raise type(error)(error.rule, source=source, row=row, hint=error.hint) from None
