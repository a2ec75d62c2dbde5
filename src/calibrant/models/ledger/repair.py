"""The way back from a damaged ledger: check it, keep a copy, save every row that can be read."""

import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from calibrant.core.errors import InputError, SchemaError, error_source
from calibrant.core.hints import Call, Hint
from calibrant.core.sqlite import statements
from calibrant.models.ledger import schema
from calibrant.models.ledger.leases import this_machine
from calibrant.models.ledger.page_scan import Row, scan_rows

_REAL = (float, int)
_TEXT = (str, type(None))
# What the rows of each table look like; the id of a row stands beside it.
_SHAPES: dict[str, tuple[Any, ...]] = {
    "sessions": (type(None), int, str, _REAL, _REAL, (float, int, type(None))),
    "attempts": (type(None), int, int, int, int, float),
    "attempt_ends": (type(None), _REAL, str, _TEXT),
    "draws": (type(None), int, int, int, _TEXT, int, int, (float, int, type(None)), _REAL),
    "failures": (type(None), int, str, str, _REAL),
}


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

    Rows are read page by page, so a damaged header or tree hides none. Draws without a readable
    answer are left out and counted. A sound ledger is not touched, nor one without anything to
    save.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from calibrant.models.ledger import Ledger
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "ledger.sqlite"
    ...     Ledger(path).close()
    ...     repair_ledger(path)
    Repair(problems=[], draws=0, lost=0, backup=None)
    """
    with error_source(str(path)):
        return _repaired(Path(path))


def _repaired(path: Path) -> Repair:
    if not path.is_file():
        raise InputError("there is no ledger to repair")
    _check_nobody_writes(path)
    repair = Repair(_problems(path))
    if not repair.problems:
        query = "SELECT p.body FROM draws d LEFT JOIN payloads p ON p.id = d.id"
        with closing(schema.connect(path, timeout=5.0)) as db:
            sound = Counter(_readable(body) for (body,) in db.execute(query))
        repair.draws, repair.lost = sound[True], sound[False]
        if not repair.lost:
            return repair
    saved = _Saved(scan_rows(path))
    if not saved.requests:
        raise InputError(
            "nothing can be read in this file, so it is left as it is",
            hint="move it away to begin again; every answer is then asked for again",
        )
    repair.backup = _backup(path)
    fresh = path.with_name(path.name + ".repaired")
    fresh.unlink(missing_ok=True)
    repair.draws, repair.lost = saved.write(fresh)
    for ending in ("-wal", "-shm"):
        path.with_name(path.name + ending).unlink(missing_ok=True)
    fresh.replace(path)
    return repair


def _check_nobody_writes(path: Path) -> None:
    """Refuse while a run is under way: its draws would go to a file that is being replaced."""
    with closing(schema.connect(path, timeout=5.0)) as db:
        try:
            rows = db.execute(
                "SELECT pid FROM sessions WHERE ended_at IS NULL AND host = ? AND pid <> ?",
                (this_machine(), os.getpid()),
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


class _Saved:
    """Rows of a ledger, sorted into their tables by what they look like."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self.requests: dict[int, tuple[object, ...]] = {}
        self._others: dict[str, dict[int, tuple[object, ...]]] = {n: {} for n in _SHAPES}
        self._payloads: dict[int, bytes] = {}
        self._known: dict[tuple[int, int], int] = {}
        for id_, values in rows:
            if id_ is None:
                # The index over draws: request, draw and id stand there again.
                if _fits(values, (int, int, int)):
                    request, draw, noted = (int(str(value)) for value in values)
                    self._known.setdefault((request, draw), noted)
            elif len(values) == 2 and isinstance(values[1], bytes):
                self._payloads.setdefault(id_, values[1])
            elif _is_request(values):
                self.requests[id_] = values
            else:
                for name, shape in _SHAPES.items():
                    if _fits(values, shape):
                        self._others[name].setdefault(id_, values)

    def write(self, path: Path) -> tuple[int, int]:
        """Write a ledger of what is saved; return how many draws it has and how many are lost."""
        draws = self._draws()
        with closing(schema.connect(path, "rwc")) as new:
            new.execute("BEGIN")
            for statement in statements(schema.TABLES):
                new.execute(statement)
            new.execute("INSERT INTO meta VALUES ('schema', ?)", (str(schema.SCHEMA_VERSION),))
            tables = {**self._others, "requests": self.requests, "draws": draws}
            for name, rows in tables.items():
                for id_, row in rows.items():
                    marks = ",".join("?" * len(row))
                    values = (id_, *row[1:])
                    new.execute(f"INSERT OR IGNORE INTO {name} VALUES ({marks})", values)
            bodies = [(id_, self._payloads[id_]) for id_ in draws]
            new.executemany("INSERT INTO payloads VALUES (?, ?)", bodies)
            new.execute(schema.OPENING)
            new.execute("COMMIT")
        kept = {(row[1], row[2]) for row in draws.values()}
        return len(kept), len(self._expected() - kept)

    def _draws(self) -> dict[int, tuple[object, ...]]:
        """Return the draws that have a request and a readable answer."""
        draws = dict(self._others["draws"])
        for (request, draw), id_ in self._known.items():
            if id_ not in draws and id_ in self._payloads:
                draws[id_] = _remade(request, draw, self._payloads[id_])
        indexed = {id_: place for place, id_ in self._known.items()}
        return {
            id_: row
            for id_, row in draws.items()
            if row[1] in self.requests
            and indexed.get(id_, row[1:3]) == row[1:3]
            and _readable(self._payloads.get(id_))
        }

    def _expected(self) -> set[tuple[object, object]]:
        """Return the draws that the ledger had, as far as anything in it shows them."""
        draws: set[tuple[object, object]] = {(r[1], r[2]) for r in self._others["draws"].values()}
        # Where row and index disagree, a bit has flipped: it is one draw all the same.
        rows = self._others["draws"]
        draws |= {place for place, id_ in self._known.items() if id_ not in rows}
        done = {id_ for id_, row in self._others["attempt_ends"].items() if row[2] == "done"}
        for id_, row in self._others["attempts"].items():
            _, _, request, first, n, _ = row
            asked = {(request, int(str(first)) + step) for step in range(int(str(n)))}
            # An endpoint may give fewer than it was asked for: only calls without a trace count.
            if id_ in done and not asked & draws:
                draws |= asked
        return draws


def _fits(values: tuple[object, ...], shape: tuple[Any, ...]) -> bool:
    return len(values) == len(shape) and all(map(isinstance, values, shape))


def _is_request(values: tuple[object, ...]) -> bool:
    if not _fits(values, (type(None), bytes, str, str, str, bytes)):
        return False
    _, digest, *key = values
    return bool(schema.LedgerKey(*key).digest == digest)  # type: ignore[arg-type]


def _remade(request: int, draw: int, body: bytes) -> tuple[object, ...]:
    """Return a draw whose own row is lost, from its answer; what it cost is not known."""
    try:
        answer = orjson.loads(body)
        prompt, completion = (max(0, int(tokens)) for tokens in answer["usage"])
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError):
        prompt = completion = 0
    return (None, request, draw, 0, None, prompt, completion, None, 0.0)
