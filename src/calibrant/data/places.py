"""Where rows lie that are in no plain file: in a database, or behind an address."""

from __future__ import annotations

import tempfile
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from calibrant.core.errors import InputError
from calibrant.core.names import optional_import
from calibrant.data.formats import DATABASE_MARK, address_name, limit, limit_hint

if TYPE_CHECKING:
    import sqlite3

    import polars as pl


_PIECE = 1 << 20


def read_database(path: Path, what: str) -> pl.DataFrame:
    """Read a table or a query of a database, which is opened for reading alone."""
    # Loaded here: most tables are files.
    import sqlite3

    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
            query = what if " " in what.strip() else f'SELECT * FROM "{_table(db, path, what)}"'
            cursor = db.execute(query)
            names = [column[0] for column in cursor.description or ()]
            rows = cursor.fetchall()
    except sqlite3.Error as error:
        raise InputError(f"the database cannot be read: {error}", source=str(path)) from None
    # Loaded here: a large table is streamed without this library.
    import polars as pl

    columns = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    return pl.DataFrame(columns, strict=False)


def _table(db: sqlite3.Connection, path: Path, what: str) -> str:
    rows = db.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
    names = [str(name) for (name,) in rows if not str(name).startswith("sqlite_")]
    if what in names:
        return what
    if not what and len(names) == 1:
        return names[0]
    place, names = f"{path.name}{DATABASE_MARK}", sorted(names)
    kind = f"there is no table {what!r}" if what else f"the database has {len(names)} tables"
    hint = f"name one, {place}{(names or ['TABLE'])[0]}, or write a query: '{place}SELECT ..'"
    raise InputError(f"{kind}: {', '.join(names[:8])}", source=str(path), hint=hint)


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="calibrant-")


@cache
def fetched(url: str) -> Path:
    """Return the copy of a table behind an address, made once."""
    fsspec = optional_import("fsspec", extra="scale", purpose=f"reading {url}")
    name = address_name(url).name
    place = Path(tempfile.mkdtemp(dir=_folder().name)) / name
    most, observed = limit("unpacked_bytes"), 0
    try:
        with fsspec.open(url, "rb") as remote, place.open("wb") as copy:
            while piece := remote.read(_PIECE):
                observed += copy.write(piece)
                if observed > most:
                    break
    except Exception as error:  # noqa: BLE001 - every protocol's library has errors of its own
        rule = f"the address cannot be read: {error}"
        raise InputError(rule, source=url, hint="check the address") from None
    if observed > most:
        hint = limit_hint("unpacked_bytes")
        raise InputError(f"the table has more than {most:,} bytes", source=url, hint=hint)
    return place


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
    import sqlite3

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
        text = ", ".join(sorted(names)[:3])
        rule = f"this is no {what}, but a database of another program (tables: {text})"
        raise InputError(rule, source=str(path), hint="name another file")
