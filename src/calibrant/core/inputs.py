"""Places to read from: refused by name where the system refuses them."""

from __future__ import annotations

import errno
import stat
from pathlib import Path, PurePath

from calibrant.core.errors import InputError

_PARQUET = b"PAR1"
# Head, length of the footer, tail.
_LEAST_PARQUET = 12
_SUFFIXES = {".csv", ".parquet", ".json", ".jsonl", ".ndjson", ".eval", ".tsv", ".gz", ".zst"}


def bare_name(place: str) -> str:
    """Return the name of a file without its folder and the endings of a table.

    Examples
    --------
    >>> bare_name("runs/draws.jsonl.gz"), bare_name("llama-3.1.csv")
    ('draws', 'llama-3.1')
    """
    path = PurePath(place.replace("\\", "/"))
    while path.suffix.lower() in _SUFFIXES:
        path = path.with_suffix("")
    return path.name


def check_input(path: str | Path) -> None:
    """Refuse a path that is empty, a pipe or cannot be opened, and parquet data that was cut off.

    A path that is not there is left to the reader, who knows whether it may be a pattern, a URL
    or a stream.

    Examples
    --------
    >>> check_input("")
    Traceback (most recent call last):
    ...
    calibrant.core.errors.InputError: the path of an input is empty
      -> name a file or a folder; . is the folder you are in
    """
    if not str(path):
        raise InputError(
            "the path of an input is empty",
            hint="name a file or a folder; . is the folder you are in",
        )
    try:
        place = Path(path)
        mode = place.stat().st_mode
        if stat.S_ISREG(mode):
            _check_parquet(place)
        elif stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            # Nobody may ever write to it, and what is in it can be read only once.
            raise InputError(
                "this is a pipe, not a file",
                source=_shown(path),
                hint="give what comes out of it as standard input, -, or save it as a file first",
            )
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            return
        raise InputError(f"cannot be read: {error.strerror}", source=_shown(path)) from None
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"cannot be read: {error}", source=_shown(path)) from None


def _check_parquet(path: Path) -> None:
    with path.open("rb") as file:
        if file.read(4) != _PARQUET:
            return
        size = file.seek(0, 2)
        file.seek(max(size - 8, 0))
        tail = file.read()
    footer = int.from_bytes(tail[:4], "little")
    if size < _LEAST_PARQUET or tail[4:] != _PARQUET or footer > size - _LEAST_PARQUET:
        raise InputError(
            "the parquet data is cut off or damaged: its end does not hold",
            source=str(path),
            hint="write or copy the file again",
        )


def _shown(path: str | Path) -> str:
    text = repr(str(path))[1:-1]
    return text if len(text) <= 120 else text[:120] + " ..."
