"""The copy of a ledger beside it, and the way back to it from a damaged file."""

import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import orjson

from calibrant.core.errors import InputError, SchemaError, error_source
from calibrant.core.hints import Call, Hint
from calibrant.models.ledger import schema

# In this order: a draw is saved only where its request and its answer are.
_COLUMNS = {
    "meta": 2,
    "sessions": 6,
    "requests": 6,
    "attempts": 6,
    "attempt_ends": 4,
    "failures": 5,
    "payloads": 2,
    "draws": 9,
}
_INDEXED = "SELECT id, request_id, draw FROM draws INDEXED BY draws_by_request"
_DONE = """
SELECT request_id, first_draw, n FROM attempts JOIN attempt_ends ON attempt_id = id
WHERE status = 'done'
"""
_WHOLE = " WHERE ?1 IN (SELECT id FROM payloads) AND ?2 IN (SELECT id FROM requests)"
MOST_AT_ONCE = 1 << 16
"""A call for more draws than this is a flipped bit."""


class Repair(msgspec.Struct):
    """What a repair has found and done.

    Parameters
    ----------
    problems
        What the check of the file says; empty where it is sound.
    draws, lost
        Draws that are kept, and draws whose answer could not be read: those are asked for again.
    backup
        Copy of the file as it was; None where nothing was changed.
    saved_at
        When the backup was made that was read first; None where there was none.
    unread
        Tables that could not be read to their end: what came after the backup and stood there
        alone cannot be counted.
    """

    problems: list[str] = []
    draws: int = 0
    lost: int = 0
    backup: Path | None = None
    saved_at: str | None = None
    unread: list[str] = []


def ledger_error(error: sqlite3.Error, path: Path) -> Exception:
    """Return what to tell about an error of the file; the error itself where it is another one."""
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        return InputError(
            "the disk is full: the run has stopped, and what was kept before stays kept",
            source=str(path),
            hint="free some space and run it again; it goes on where it stopped",
        )
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        peer = code == sqlite3.SQLITE_NOTADB
        return damaged_ledger(f"not a ledger: {error}" if peer else "the ledger is damaged", path)
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
        return InputError(
            f"the ledger cannot be written: {error}",
            source=str(path),
            hint="check the disk and the rights of the folder; what was kept before stays kept",
        )
    return error


def damaged_ledger(rule: str, path: Path) -> SchemaError:
    """Return what to tell about a ledger that cannot be read, and the way back to what it held."""
    if (path.parent / "study.toml").is_file():
        words = "{call} keeps a copy and saves every answer that can be read"
        hint = Hint(words, call=Call("run", path.parent, repair=True))
    else:
        move, copy = f"mv {path.name} {path.name}.damaged", backup_path(path).name
        hint = Hint("stop what writes it, then: {0} && rm -f {1}-wal {1}-shm && mv {2} {1}",
                    move, path.name, copy)  # fmt: skip
    return SchemaError(rule, source=str(path), hint=hint)


def back_up(path: Path) -> None:
    """Write a copy of the ledger beside it, in place of the one before.

    Every row is read on the way: a ledger with broken pages does not replace a sound copy.
    """
    copy = backup_path(path)
    fresh = copy.with_name(f"{copy.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    try:
        with closing(schema.connect(path)) as db:
            db.execute("VACUUM INTO ?", (str(fresh),))
        fresh.replace(copy)
    finally:
        fresh.unlink(missing_ok=True)


def backup_path(path: Path) -> Path:
    """Return where the copy of a ledger is kept."""
    return path.with_name(f"{path.stem}.backup{path.suffix}")


def repair_ledger(path: str | Path) -> Repair:
    """Check a ledger; where it is damaged keep a copy, and put its backup in its place.

    What SQLite can still read of the damaged file is added. Draws without a readable answer are
    left out and counted. A sound ledger is not touched, nor one without anything to save.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from calibrant.models.ledger import Ledger
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "ledger.sqlite"
    ...     Ledger(path).close()
    ...     repair_ledger(path)
    Repair(problems=[], draws=0, lost=0, backup=None, saved_at=None, unread=[])
    """
    path = Path(path)
    with error_source(str(path)):
        if not path.is_file():
            raise InputError("there is no ledger to repair")
        _check_nobody_writes(path)
        return _repaired(path)


def _repaired(path: Path) -> Repair:
    repair = Repair(_problems(path))
    if not repair.problems:
        query = "SELECT p.body FROM draws d LEFT JOIN payloads p ON p.id = d.id"
        with closing(schema.connect(path, timeout=5.0)) as db:
            sound = Counter(_readable(body) for (body,) in db.execute(query))
        repair.draws, repair.lost = sound[True], sound[False]
        if not repair.lost:
            return repair
    fresh = path.with_name(path.name + ".repaired")
    fresh.unlink(missing_ok=True)
    backup = backup_path(path)
    try:
        _save([source for source in (backup, path) if source.is_file()], fresh, repair)
        number = 1
        while (copy := path.with_name(f"{path.stem}.damaged-{number}{path.suffix}")).exists():
            number += 1
        shutil.copy2(path, copy)
        for ending in ("-wal", "-shm"):
            journal = path.with_name(path.name + ending)
            if journal.is_file():
                shutil.move(journal, copy.with_name(copy.name + ending))
        repair.backup = copy
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    if backup.is_file():
        saved_at = datetime.fromtimestamp(backup.stat().st_mtime, UTC)
        repair.saved_at = saved_at.isoformat(timespec="minutes")
    return repair


def _check_nobody_writes(path: Path) -> None:
    """Refuse while a run is under way: its draws would go to a file that is being replaced."""
    with closing(schema.connect(path, timeout=5.0)) as db:
        try:
            rows = db.execute(
                "SELECT pid FROM sessions WHERE ended_at IS NULL AND host = ? AND pid <> ?",
                (schema.this_machine(), os.getpid()),
            ).fetchall()
        except sqlite3.DatabaseError:
            return  # too damaged to be written to
    at_work = [pid for (pid,) in rows if schema.is_running(pid)]
    if at_work:
        rule = f"process {at_work[0]} is using the ledger"
        raise InputError(rule, hint="wait until that run has ended, or end it")


def _problems(path: Path) -> list[str]:
    with closing(schema.connect(path, timeout=5.0)) as db:
        try:
            rows = [str(row[0]) for row in db.execute("PRAGMA integrity_check(20)")]
            db.execute("SELECT COUNT(*) FROM draws").fetchone()
        except sqlite3.DatabaseError as error:
            return [str(error)]
    return [] if rows == ["ok"] else rows


def _readable(body: object) -> bool:
    if not isinstance(body, bytes):
        return False
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    return isinstance(answer, dict) and isinstance(answer.get("text"), str)


def _rows(source: Path, query: str, unread: set[str]) -> Iterator[tuple[Any, ...]]:
    """Yield what a query finds, from its beginning and, past a damaged page, from its end."""
    with closing(schema.connect(source, timeout=5.0)) as db:
        for order in ("ASC", "DESC"):
            try:
                yield from db.execute(f"{query} ORDER BY 1 {order}")
                return
            except sqlite3.DatabaseError:
                unread.add(query.split()[-1])


def _is_sound(table: str, row: tuple[Any, ...]) -> bool:
    """Whether a row can be what was written."""
    match table:
        case "requests":
            try:
                return bool(schema.LedgerKey(*row[2:]).digest == row[1])
            except (AttributeError, TypeError):
                return False
        case "payloads":
            return _readable(row[1])
        case "attempts":
            return all(isinstance(n, int) for n in row[:5]) and 0 < row[4] < MOST_AT_ONCE
        case "draws":
            return all(isinstance(n, int) for n in row[:3])
    return True


def _noting(
    rows: Iterator[tuple[Any, ...]], noted: dict[int, tuple[int, int]]
) -> Iterator[tuple[Any, ...]]:
    """Yield the draws and note which they are."""
    for row in rows:
        noted[row[0]] = row[1:3]
        yield row


def _save(sources: Sequence[Path], fresh: Path, repair: Repair) -> None:
    """Write a ledger of the rows that can be read; of two with one number the first is kept."""
    noted: dict[int, tuple[int, int]] = {}
    unread: set[str] = set()
    with closing(schema.connect(fresh, "rwc")) as new:
        new.execute("BEGIN")
        schema.create_tables(new)
        for source, (table, columns) in product(sources, _COLUMNS.items()):
            read = _rows(source, f"SELECT * FROM {table}", unread)
            rows = iter(row for row in read if len(row) == columns and _is_sound(table, row))
            if table == "draws":
                # Their index has request and draw once more.
                noted |= {row[0]: row[1:] for row in _rows(source, _INDEXED, unread)}
            marks = ",".join(f"?{n}" for n in range(1, columns + 1))
            only = _WHOLE if table == "draws" else ""
            insert = f"INSERT OR IGNORE INTO {table} SELECT {marks}{only}"
            new.executemany(insert, _noting(rows, noted) if only else rows)
        new.execute(schema.OPENING)
        new.execute("COMMIT")
        if not new.execute("SELECT COUNT(*) FROM requests").fetchone()[0]:
            raise InputError(
                "nothing can be read in this file, and it has no backup: it is left as it is",
                hint="move it away to begin again; every answer is then asked for again",
            )
        repair.draws, repair.lost = _count(new, noted)
    repair.unread = sorted(unread)


def _count(db: sqlite3.Connection, noted: Mapping[int, tuple[int, int]]) -> tuple[int, int]:
    """Return how many draws are saved, and how many there were beside, as far as rows show them."""
    ids = {id_: (request, draw) for id_, request, draw in db.execute(_INDEXED)}
    saved = set(ids.values())
    missing = {place for id_, place in noted.items() if id_ not in ids} - saved
    # An endpoint may give fewer than it was asked for: only calls without a trace count.
    for request, first, n in db.execute(_DONE):
        query = {(request, first + step) for step in range(n)}
        if saved.isdisjoint(query) and missing.isdisjoint(query):
            missing |= query
    return len(saved), len(missing)
