"""The way back from a damaged ledger: check it, keep a copy, save every row that can be read."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from calibrant.core.calls import Call
from calibrant.core.errors import InputError, SchemaError
from calibrant.core.hints import Hint
from calibrant.records.ledger.accounts import open_accounts
from calibrant.records.ledger.leases import this_machine
from calibrant.records.ledger.schema import SCHEMA_VERSION, TABLES, is_running, statements

_SAVED = ("sessions", "requests", "attempts", "attempt_ends", "payloads", "draws", "failures")
_KEYS = {"attempt_ends": "attempt_id"}
_CHUNK = 500
_LAST = 2**62
_MOST_TRIES = 50_000


@dataclass
class Repair:
    """What a repair has found and done.

    Parameters
    ----------
    problems
        What the check of the file says; empty where it is sound.
    draws, lost
        Draws that are kept, and draws whose answer could not be read: those are asked for again.
    backup
        Copy of the file as it was; None where nothing was changed.
    """

    problems: list[str] = field(default_factory=list)
    draws: int = 0
    lost: int = 0
    backup: Path | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return it as a part of a document."""
        return {
            "problems": self.problems,
            "draws": self.draws,
            "lost": self.lost,
            "backup": None if self.backup is None else str(self.backup),
        }


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
        other = code == sqlite3.SQLITE_NOTADB
        return SchemaError(
            f"not a ledger: {error}" if other else "the ledger is damaged",
            source=str(path),
            hint=Hint(
                "{call} keeps a copy and saves every answer that can be read",
                call=Call("run", path.parent, repair=True),
            ),
        )
    if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
        return InputError(
            f"the ledger cannot be written: {error}",
            source=str(path),
            hint="check the disk and the rights of the folder; what was kept before stays kept",
        )
    return error


def repair_ledger(path: str | Path) -> Repair:
    """Check a ledger; where it is damaged keep a copy and save every row that can be read.

    Draws without a readable answer are left out, so that the next run asks for them again. A
    sound ledger is not touched.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from calibrant.records.ledger import Ledger
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "ledger.sqlite"
    ...     Ledger(path).close()
    ...     repair_ledger(path)
    Repair(problems=[], draws=0, lost=0, backup=None)
    """
    path = Path(path)
    if not path.is_file():
        raise InputError("there is no ledger to repair", source=str(path))
    _check_nobody_writes(path)
    found = Repair(_problems(path))
    if not found.problems:
        found.draws, found.lost = _count(path)
        if not found.lost:
            return found
    found.backup = _backup(path)
    fresh = path.with_name(path.name + ".repaired")
    fresh.unlink(missing_ok=True)
    _save(found.backup, fresh)
    found.draws, found.lost = _count(fresh)
    _leave_out_unreadable(fresh)
    for ending in ("-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
    fresh.replace(path)
    return found


def _open(path: Path, mode: str = "ro") -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None, timeout=5.0
    )


def _check_nobody_writes(path: Path) -> None:
    """Refuse while a run is under way: its draws would go to a file that is being replaced."""
    db = _open(path)
    try:
        rows = db.execute(
            "SELECT pid FROM sessions WHERE ended_at IS NULL AND host = ? AND pid <> ?",
            (this_machine(), os.getpid()),
        ).fetchall()
    except sqlite3.DatabaseError:
        return  # too damaged to be written to
    finally:
        db.close()
    at_work = [pid for (pid,) in rows if is_running(pid)]
    if at_work:
        raise InputError(
            f"process {at_work[0]} is using the ledger",
            source=str(path),
            hint="wait until that run has ended, or end it",
        )


def _problems(path: Path) -> list[str]:
    db = _open(path)
    try:
        rows = [str(row[0]) for row in db.execute("PRAGMA integrity_check(20)")]
        db.execute("SELECT COUNT(*) FROM draws").fetchone()
    except sqlite3.DatabaseError as error:
        return [str(error)]
    finally:
        db.close()
    return [] if rows == ["ok"] else rows


def _count(path: Path) -> tuple[int, int]:
    """Return how many draws have a readable answer, and how many have none."""
    db = _open(path)
    try:
        good = bad = 0
        query = "SELECT p.body FROM draws d LEFT JOIN payloads p ON p.id = d.id"
        for (body,) in db.execute(query):
            sound = _readable(body)
            good, bad = good + sound, bad + (not sound)
        return good, bad
    finally:
        db.close()


def _readable(body: object) -> bool:
    if not isinstance(body, bytes):
        return False
    try:
        held = orjson.loads(body)
    except orjson.JSONDecodeError:
        return False
    return isinstance(held, dict) and isinstance(held.get("text"), str)


def _backup(path: Path) -> Path:
    """Copy the file and its journal under a name that is free."""
    number = 1
    while (copy := path.with_name(f"{path.stem}.damaged-{number}{path.suffix}")).exists():
        number += 1
    shutil.copy2(path, copy)
    for ending in ("-wal", "-shm"):
        beside = path.with_name(path.name + ending)
        if beside.is_file():
            shutil.copy2(beside, copy.with_name(copy.name + ending))
    return copy


def _save(damaged: Path, fresh: Path) -> None:
    """Write every row that can be read into a new ledger."""
    old, new = _open(damaged), _open(fresh, "rwc")
    try:
        new.execute("BEGIN")
        for statement in statements(TABLES):
            new.execute(statement)
        new.execute("INSERT INTO meta VALUES ('schema', ?)", (str(SCHEMA_VERSION),))
        for table in _SAVED:
            for row in _rows(old, table):
                marks = ",".join("?" * len(row))
                new.execute(f"INSERT OR IGNORE INTO {table} VALUES ({marks})", row)
        open_accounts(new)
        new.execute("COMMIT")
    finally:
        old.close()
        new.close()


def _rows(db: sqlite3.Connection, table: str) -> Iterator[tuple[object, ...]]:
    """Yield the rows of a table; where a page cannot be read, go around it by halving."""
    key, waiting, tries = _KEYS.get(table, "id"), [(0, _LAST)], 0
    query = f"SELECT * FROM {table} WHERE {key} > ? AND {key} <= ? ORDER BY {key} LIMIT {_CHUNK}"
    while waiting and tries < _MOST_TRIES:
        low, high = waiting.pop()
        try:
            rows = db.execute(query, (low, high)).fetchall()
        except sqlite3.DatabaseError:
            tries += 1
            if high - low > 1:
                middle = (low + high) // 2
                waiting += [(middle, high), (low, middle)]
            continue
        yield from rows
        if len(rows) == _CHUNK:
            waiting.append((int(rows[-1][0]), high))


def _leave_out_unreadable(path: Path) -> None:
    db = _open(path, "rw")
    try:
        bodies = db.execute("SELECT d.id, p.body FROM draws d LEFT JOIN payloads p ON p.id = d.id")
        bad = [(id_,) for id_, body in bodies if not _readable(body)]
        if not bad:
            return
        db.execute("BEGIN")
        triggers = db.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' "
            "AND name IN ('draws_delete', 'payloads_delete')"
        ).fetchall()
        for name, _ in triggers:
            db.execute(f"DROP TRIGGER {name}")
        for table in ("draws", "payloads"):
            db.executemany(f"DELETE FROM {table} WHERE id = ?", bad)
        for _, sql in triggers:
            db.execute(sql)
        db.execute("COMMIT")
    finally:
        db.close()
