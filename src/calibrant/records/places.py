"""Where a table lies that is no plain file: in a database, or behind an address."""

from __future__ import annotations

import sqlite3
import tempfile
from contextlib import closing
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from calibrant.core.errors import InputError
from calibrant.core.optional import optional_import
from calibrant.records.formats import file_format, is_url
from calibrant.records.limits import limit, limit_hint

if TYPE_CHECKING:
    import polars as pl

MARK = "#"
"""Stands between the file of a database and its table or query."""
_PACKED = (".gz", ".zst", ".bz2", ".xz")
_WHOLE = (
    ".csv",
    ".tsv",
    ".txt",
    ".json",
    ".jsonl",
    ".ndjson",
    ".arrow",
    ".feather",
    ".db",
    ".sqlite",
)
_PIECE = 1 << 20


def database_part(source: str | Path) -> tuple[Path, str]:
    """Return the file of a database and what is asked of it, which may be nothing.

    Examples
    --------
    >>> database_part("no-such.db#scores")[1]
    ''
    """
    text = str(source)
    place, mark, what = text.partition(MARK)
    if not mark or Path(text).exists() or not Path(place).is_file():
        return Path(source), ""
    return (
        (Path(place), what.strip()) if file_format(Path(place)) == "sqlite" else (Path(source), "")
    )


def read_database(path: Path, what: str) -> pl.DataFrame:
    """Read a table or a query of a database, which is opened for reading alone."""
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as db:
            query = what if " " in what.strip() else f'SELECT * FROM "{_table(db, path, what)}"'
            found = db.execute(query)
            names = [column[0] for column in found.description or ()]
            rows = found.fetchall()
    except sqlite3.Error as error:
        raise InputError(f"the database cannot be read: {error}", source=str(path)) from None
    # Loaded here: a large table is streamed without this library.
    import polars as pl

    columns = {name: [row[at] for row in rows] for at, name in enumerate(names)}
    return pl.DataFrame(columns, strict=False)


def _table(db: sqlite3.Connection, path: Path, what: str) -> str:
    held = db.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").fetchall()
    names = [str(name) for (name,) in held if not str(name).startswith("sqlite_")]
    if what in names:
        return what
    if not what and len(names) == 1:
        return names[0]
    which = f"there is no table {what!r}" if what else f"the database has {len(names)} tables"
    raise InputError(
        f"{which}: {', '.join(sorted(names)[:8])}",
        source=str(path),
        hint=f"name one, {path.name}{MARK}{(sorted(names) or ['TABLE'])[0]}, or write a query: "
        f"'{path.name}{MARK}SELECT ..'",
    )


def is_fetched(source: str | Path) -> bool:
    """Return whether a table behind an address is read whole; parquet is read in parts.

    Examples
    --------
    >>> is_fetched("https://example.org/scores.csv.gz?raw=1"), is_fetched("s3://bucket/days")
    (True, False)
    """
    if not is_url(str(source)):
        return False
    endings = _name(str(source)).suffixes
    endings = endings[:-1] if endings and endings[-1] in _PACKED else endings
    return bool(endings) and endings[-1].lower() in _WHOLE


def _name(url: str) -> PurePosixPath:
    return PurePosixPath(url.partition("?")[0].partition("#")[0])


def local_path(source: str | Path) -> Path:
    """Return where a table lies on this machine: a file as it is, a fetched one as its copy."""
    return _fetched(str(source)) if is_fetched(source) else Path(source)


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="calibrant-")


@cache
def _fetched(url: str) -> Path:
    fsspec = optional_import("fsspec", extra="scale", purpose=f"reading {url}")
    name = _name(url).name
    place = Path(tempfile.mkdtemp(dir=_folder().name)) / name
    most, seen = limit("table_bytes"), 0
    try:
        with fsspec.open(url, "rb") as remote, place.open("wb") as copy:
            while piece := remote.read(_PIECE):
                seen += copy.write(piece)
                if seen > most:
                    break
    except Exception as error:  # noqa: BLE001 - every protocol's library has errors of its own
        raise InputError(
            f"the address cannot be read: {error}", source=url, hint="check the address"
        ) from None
    if seen > most:
        hint = limit_hint("table_bytes")
        raise InputError(f"the table has more than {most:,} bytes", source=url, hint=hint)
    return place
