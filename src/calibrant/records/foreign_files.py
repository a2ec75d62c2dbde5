"""A file of another program is never written into, also where it is a database."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from calibrant.core.errors import InputError

_SQLITE = b"SQLite format 3\x00"


def refuse_foreign_database(path: Path, table: str, what: str) -> None:
    """Refuse a file that holds something else, before it is opened for writing.

    An empty file is nobody's; so is a database without tables, which another process of ours may
    just have begun.

    Parameters
    ----------
    path
        The file; it need not exist.
    table
        A table that every file of this kind has.
    what
        What the file should be.
    """
    if not path.is_file() or not path.stat().st_size:
        return
    with path.open("rb") as file:
        if file.read(len(_SQLITE)) != _SQLITE:
            raise InputError(f"this is no {what}", source=str(path), hint="name another file")
    try:
        address = f"{path.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=60.0)) as db:
            rows = db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    except sqlite3.DatabaseError:
        return  # damaged, or in use: whoever opens it says so
    names = [str(name) for (name,) in rows]
    if names and table not in names:
        shown = ", ".join(sorted(names)[:3])
        raise InputError(
            f"this is no {what}, but a database of another program (tables: {shown})",
            source=str(path),
            hint="name another file",
        )
