"""The ledger: every call and every draw, the only place that costs money to rebuild.

A draw is named by endpoint, resolved model, canonical request, purpose, draw index and schema
version. So a hit never stands for two draws, two runs share what they have in common, and a
larger number of draws adds only the missing ones.
"""

from __future__ import annotations

import os
import socket
import sqlite3
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from calibrant.core.errors import SchemaError
from calibrant.records.ledger_schema import (
    SCHEMA_VERSION,
    TABLES,
    Attempt,
    DrawRow,
    Failure,
    LedgerKey,
    StoredDraw,
    is_running,
    statements,
)

__all__ = ["Attempt", "DrawRow", "Failure", "Ledger", "LedgerKey", "StoredDraw"]

BATCH = 500
"""Keys per SQL statement; bounds both memory and the number of statement variables."""
LIVE_FOR_S = 60.0
"""A session whose heartbeat is older than this is taken for dead."""


class Ledger:
    """An append-only SQLite file, safe with several processes on one study.

    Writing is done between `begin` and `commit`, so that many rows share one commit. The
    object belongs to one thread, except that `commit` may be called from another one while
    the first waits (waiting for the disk then does not hold up an event loop).

    Parameters
    ----------
    path
        The file; created where it does not exist.
    read_only
        Refuse to write and to create.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Ledger(pathlib.Path(folder.name) / "ledger.sqlite") as ledger:
    ...     key = LedgerKey("http://127.0.0.1/v1", "m", "answer", b"{}")
    ...     with ledger.writing():
    ...         request = ledger.register([key])[0]
    ...         attempt = ledger.start_attempt(request, first_draw=0, n=1)
    ...     with ledger.writing():
    ...         _ = ledger.add_draws([DrawRow(request, 0, attempt, b"Paris")])
    ...         ledger.end_attempt(attempt, "done")
    ...     ledger.held([key])
    [{0}]
    >>> folder.cleanup()
    """

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.path = Path(path)
        self.read_only = read_only
        if read_only and not self.path.is_file():
            raise SchemaError("there is no ledger", source=str(self.path))
        self._db = self._connect()
        # Readers see what is committed, and never wait for a commit that another thread makes.
        self._reader = self._db if read_only else self._open("ro")
        self._session: int | None = None
        self._session_is_new = False
        self._counter = 0
        self._others: set[int] | None = None
        self._durable: bool | None = None

    # -- opening and closing ---------------------------------------------------------------

    def _open(self, mode: str) -> sqlite3.Connection:
        return sqlite3.connect(
            f"{self.path.absolute().as_uri()}?mode={mode}",
            uri=True,
            isolation_level=None,
            timeout=60.0,
            check_same_thread=False,
        )

    def _connect(self) -> sqlite3.Connection:
        db = self._open("ro" if self.read_only else "rwc")
        try:
            self._prepare(db)
        except sqlite3.DatabaseError as error:
            db.close()
            raise SchemaError(f"not a ledger: {error}", source=str(self.path)) from None
        except BaseException:
            db.close()
            raise
        return db

    def _prepare(self, db: sqlite3.Connection) -> None:
        if not self.read_only:
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA wal_autocheckpoint=4000")
            db.execute("BEGIN IMMEDIATE")
            known = db.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone()
            if known is None:
                for statement in statements(TABLES):
                    db.execute(statement)
                db.execute("INSERT INTO meta VALUES ('schema', ?)", (str(SCHEMA_VERSION),))
            db.execute("COMMIT")
        row = db.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone()
        version = row[0] if row else None
        if version != str(SCHEMA_VERSION):
            raise SchemaError(
                f"this version reads ledgers of schema {SCHEMA_VERSION}, got {version!r}",
                source=str(self.path),
                hint="open it with the version of calibrant that wrote it",
            )

    def close(self) -> None:
        """End the session and close the file."""
        if self._session is not None:
            with self.writing():
                self._db.execute(
                    "UPDATE sessions SET ended_at = ? WHERE id = ?", (time.time(), self._session)
                )
            self._session = None
        self._reader.close()
        self._db.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- writing ---------------------------------------------------------------------------

    def writing(self) -> _Writing:
        """Return a context that begins, and commits unless an error leaves it."""
        return _Writing(self)

    def begin(self, *, durable: bool = True) -> None:
        """Take the write lock.

        With `durable` the next commit outlives a power cut; without, it outlives the death of
        the process only, which is enough for the note that a call is being sent.
        """
        if durable is not self._durable:
            self._db.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            self._durable = durable
        self._db.execute("BEGIN IMMEDIATE")
        self._others = None  # nobody else can start while we hold the lock: asked once

    def commit(self) -> None:
        """Make what was written since `begin` permanent."""
        self._db.execute("COMMIT")
        self._session_is_new = False

    def rollback(self) -> None:
        """Forget what was written since `begin`."""
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")
        if self._session_is_new:
            self._session = None

    @property
    def session(self) -> int:
        """Number of this process's session; the first call, inside `writing`, opens it."""
        if self._session is None:
            now = time.time()
            cursor = self._db.execute(
                "INSERT INTO sessions (pid, host, started_at, seen_at) VALUES (?, ?, ?, ?)",
                (os.getpid(), socket.gethostname(), now, now),
            )
            assert cursor.lastrowid is not None
            self._session = cursor.lastrowid
            self._session_is_new = True
        return self._session

    def heartbeat(self) -> None:
        """Note that this session is at work; others then leave its claims alone."""
        self._db.execute(
            "UPDATE sessions SET seen_at = ? WHERE id = ?", (time.time(), self.session)
        )

    def register(self, keys: Sequence[LedgerKey]) -> list[int]:
        """Return the ids of the requests, adding those that are new."""
        rows = [(key.digest, key.endpoint, key.model, key.purpose, key.body) for key in keys]
        self._db.executemany(
            "INSERT INTO requests (digest, endpoint, model, purpose, body) "
            "VALUES (?, ?, ?, ?, ?) ON CONFLICT (digest) DO NOTHING",
            rows,
        )
        find = "SELECT id FROM requests WHERE digest = ?"
        return [self._db.execute(find, row[:1]).fetchone()[0] for row in rows]

    def claim(self, request_id: int, *, first_draw: int, n: int) -> int | None:
        """Start an attempt unless one of its draws is held or being asked for by others.

        Done under the write lock, so that two processes never buy the same draw.
        """
        held = self._db.execute(
            "SELECT 1 FROM draws WHERE request_id = ? AND draw >= ? AND draw < ? LIMIT 1",
            (request_id, first_draw, first_draw + n),
        ).fetchone()
        if held is not None:
            return None
        if self._others is None:
            self._others = self._live_sessions()
        if self._others:
            wanted = set(range(first_draw, first_draw + n))
            if wanted & self.claimed_by_id([request_id]).get(request_id, set()):
                return None
        return self.start_attempt(request_id, first_draw=first_draw, n=n)

    def start_attempt(self, request_id: int, *, first_draw: int, n: int) -> int:
        """Note that a call is about to be sent, and return its id."""
        attempt = self._next_id()
        self._db.execute(
            "INSERT INTO attempts VALUES (?, ?, ?, ?, ?, ?)",
            (attempt, self.session, request_id, first_draw, n, time.time()),
        )
        return attempt

    def end_attempt(self, attempt: int, status: str, reason: str | None = None) -> None:
        """Note how a call ended: ``done``, ``transient``, ``permanent`` or ``abandoned``."""
        self._db.execute(
            "INSERT INTO attempt_ends VALUES (?, ?, ?, ?)", (attempt, time.time(), status, reason)
        )

    def add_draws(self, rows: Sequence[DrawRow]) -> int:
        """Write draws and return how many were new.

        A draw that another process has committed meanwhile stays as it is; the late answer is
        kept in the file but never used.
        """
        now = time.time()
        ids = [self._next_id() for _ in rows]
        self._db.executemany(
            "INSERT INTO payloads VALUES (?, ?)",
            [(id_, row.payload) for id_, row in zip(ids, rows, strict=True)],
        )
        cursor = self._db.executemany(
            "INSERT INTO draws VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (request_id, draw) DO NOTHING",
            [
                (
                    id_,
                    row.request_id,
                    row.draw,
                    row.attempt_id,
                    row.answered_by,
                    row.prompt_tokens,
                    row.completion_tokens,
                    row.cost,
                    now,
                )
                for id_, row in zip(ids, rows, strict=True)
            ],
        )
        return cursor.rowcount

    def add_failure(self, request_id: int, kind: str, message: str) -> None:
        """Set a request aside for good."""
        self._db.execute(
            "INSERT INTO failures VALUES (?, ?, ?, ?, ?)",
            (self._next_id(), request_id, kind, message, time.time()),
        )

    def _next_id(self) -> int:
        # Ids are given here, not by SQLite, so that rows can be batched; the session in the
        # high bits keeps two processes apart.
        self._counter += 1
        return (self.session << 40) | self._counter

    # -- looking up ------------------------------------------------------------------------

    def find(self, keys: Sequence[LedgerKey]) -> list[int | None]:
        """Return the ids of requests that the ledger knows, None for the others."""
        digests = [key.digest for key in keys]
        found = self._ids(digests)
        return [found.get(digest) for digest in digests]

    def held(self, keys: Sequence[LedgerKey]) -> list[set[int]]:
        """Return, for each key, the indices of the draws that are committed."""
        ids = self.find(keys)
        held = self.held_by_id([id_ for id_ in ids if id_ is not None])
        return [held.get(id_, set()) if id_ is not None else set() for id_ in ids]

    def held_by_id(self, request_ids: Sequence[int]) -> dict[int, set[int]]:
        """Return the committed draw indices of each request that has any."""
        held: dict[int, set[int]] = {}
        query = "SELECT request_id, draw FROM draws WHERE request_id IN ({})"
        for request_id, draw in self._in_batches(query, request_ids):
            held.setdefault(request_id, set()).add(draw)
        return held

    def claimed_by_id(self, request_ids: Sequence[int]) -> dict[int, set[int]]:
        """Return the draw indices that other live sessions are asking for right now."""
        live = self._live_sessions()
        if not live:
            return {}
        claimed: dict[int, set[int]] = {}
        query = (
            "SELECT a.request_id, a.first_draw, a.n, a.session_id FROM attempts a "
            "LEFT JOIN attempt_ends e ON e.attempt_id = a.id "
            "WHERE a.request_id IN ({}) AND e.attempt_id IS NULL"
        )
        for request_id, first, n, session in self._in_batches(query, request_ids):
            if session in live:
                claimed.setdefault(request_id, set()).update(range(first, first + n))
        return claimed

    def failures_by_id(self, request_ids: Sequence[int]) -> dict[int, Failure]:
        """Return the last failure of each request that has one."""
        query = (
            "SELECT request_id, kind, message FROM failures WHERE request_id IN ({}) ORDER BY id"
        )
        return {row[0]: Failure(*row) for row in self._in_batches(query, request_ids)}

    def draws(
        self, request_ids: Sequence[int], *, below: int | None = None
    ) -> Iterator[StoredDraw]:
        """Yield the draws of these requests with their payload, by request and draw index.

        Only indices under `below` are read where it is given.
        """
        limit = "" if below is None else f" AND d.draw < {int(below)}"
        query = (
            "SELECT d.request_id, d.draw, p.body, d.answered_by, d.prompt_tokens, "
            "d.completion_tokens, d.cost FROM draws d JOIN payloads p ON p.id = d.id "
            f"WHERE d.request_id IN ({{}}){limit} ORDER BY d.request_id, d.draw"
        )
        for row in self._in_batches(query, request_ids):
            yield StoredDraw(*row)

    def requests(self, *, purpose: str | None = None) -> Iterator[tuple[int, LedgerKey]]:
        """Yield every request that was ever registered, with its id."""
        query = "SELECT id, endpoint, model, purpose, body FROM requests"
        args: tuple[Any, ...] = ()
        if purpose is not None:
            query, args = query + " WHERE purpose = ?", (purpose,)
        for row in self._reader.execute(query + " ORDER BY id", args):
            yield row[0], LedgerKey(*row[1:])

    def failures(self) -> list[tuple[LedgerKey, Failure]]:
        """Return every request that was set aside, with the last reason."""
        last = dict[int, Failure]()
        for row in self._reader.execute(
            "SELECT request_id, kind, message FROM failures ORDER BY id"
        ):
            last[row[0]] = Failure(*row)
        return [(key, last[id_]) for id_, key in self.requests() if id_ in last]

    def in_flight(self) -> list[Attempt]:
        """Return the calls that were sent and have no recorded end."""
        live = self._live_sessions(others=False)
        rows = self._reader.execute(
            "SELECT a.id, r.id, r.purpose, r.model, a.first_draw, a.n, a.started_at, a.session_id "
            "FROM attempts a JOIN requests r ON r.id = a.request_id "
            "WHERE a.id NOT IN (SELECT attempt_id FROM attempt_ends) ORDER BY a.id"
        )
        return [
            Attempt(id_, request, purpose, model, first, n, started, session in live)
            for id_, request, purpose, model, first, n, started, session in rows
        ]

    def totals(self) -> dict[str, float]:
        """Return calls, draws, tokens and known cost of all that is in the ledger."""
        draws, prompt, completion, cost, unpriced = self._reader.execute(
            "SELECT COUNT(*), TOTAL(prompt_tokens), TOTAL(completion_tokens), TOTAL(cost), "
            "COUNT(*) - COUNT(cost) FROM draws"
        ).fetchone()
        calls = self._reader.execute("SELECT COUNT(*) FROM attempts").fetchone()[0]
        return {
            "calls": calls,
            "draws": draws,
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "cost": cost,
            "draws_without_price": unpriced,
        }

    def _ids(self, digests: Sequence[bytes]) -> dict[bytes, int]:
        query = "SELECT digest, id FROM requests WHERE digest IN ({})"
        return dict(self._in_batches(query, digests))

    def _in_batches(self, query: str, values: Sequence[Any]) -> Iterator[Any]:
        for start in range(0, len(values), BATCH):
            batch = values[start : start + BATCH]
            yield from self._reader.execute(query.format(",".join("?" * len(batch))), batch)

    def _live_sessions(self, *, others: bool = True) -> set[int]:
        rows = self._reader.execute(
            "SELECT id, pid, host FROM sessions WHERE ended_at IS NULL AND seen_at > ?",
            (time.time() - LIVE_FOR_S,),
        )
        here = socket.gethostname()
        return {
            id_
            for id_, pid, host in rows
            if (host != here or is_running(pid)) and not (others and id_ == self._session)
        }


class _Writing:
    """Begin on entry; commit on exit, or roll back where an error leaves the block."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def __enter__(self) -> None:
        self._ledger.begin()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._ledger.commit()
        else:
            self._ledger.rollback()
