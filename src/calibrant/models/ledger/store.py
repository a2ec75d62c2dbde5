"""The ledger: every call and every draw, the only place that costs money to rebuild.

A draw is named by endpoint, resolved model, canonical request, purpose, draw index and schema
version. So a hit never stands for two draws, two runs share what they have in common, and a
larger number of draws adds only the missing ones. Many write at a time: rows of calls that end
together reach the disk together.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from calibrant.core.errors import InputError, SchemaError, StorageError
from calibrant.core.event_loop import happens
from calibrant.models.ledger import schema
from calibrant.models.ledger.lookup import LedgerLookup, beat, end_sessions
from calibrant.models.ledger.repair import back_up, ledger_error
from calibrant.models.ledger.schema import DrawRow, LedgerClaim, Refusal

BACKUP_EVERY_S = 600.0


class Ledger(LedgerLookup):
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
    >>> from calibrant.models.ledger import LedgerClaim, DrawRow, LedgerKey
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Ledger(pathlib.Path(folder.name) / "ledger.sqlite") as ledger:
    ...     key = LedgerKey("http://127.0.0.1/v1", "m", "answer", b"{}")
    ...     with ledger.writing():
    ...         request = ledger.register([key])[0]
    ...         [attempt] = ledger.claim_all([LedgerClaim(request, first_draw=0, n=1)])
    ...     with ledger.writing():
    ...         _ = ledger.keep_all([(attempt, [DrawRow(request, 0, attempt, b"Paris")])])
    ...     ledger.held([key])
    [{0}]
    >>> folder.cleanup()
    """

    def close(self) -> None:
        """End the session and close the file."""
        if self._session is not None:
            with self.writing():
                end_sessions(self._db, {self._session})
            self._session = None
            self.back_up()
        self._reader.close()
        self._db.close()

    def back_up(self) -> None:
        """Renew the copy beside the file; where that fails say so, the ledger itself is whole."""
        try:
            back_up(self.path)
        except (sqlite3.Error, OSError) as error:
            reason = ledger_error(error, self.path) if isinstance(error, sqlite3.Error) else error
            warnings.warn(f"the ledger has no new backup: {reason}", stacklevel=2)

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        with warnings.catch_warnings():
            if kind is not None:
                warnings.simplefilter("ignore")  # the error says more than a backup that failed
            self.close()

    # -- writing ---------------------------------------------------------------------------

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Begin, and commit unless an error leaves the block."""
        self.begin()
        try:
            yield
            self.commit()
        except BaseException:
            self.rollback()
            raise

    def begin(self, *, durable: bool = True) -> None:
        """Take the write lock.

        With `durable` the next commit outlives a power cut; without, it outlives the death of
        the process only, which is enough for the note that a call is being sent.
        """
        if durable is not self._durable:
            self._db.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            self._durable = durable
        self._db.execute("BEGIN IMMEDIATE")
        self._others = self._spent = None  # nobody else writes while we hold the lock: asked once

    def commit(self) -> None:
        """Make what was written since `begin` permanent."""
        if self._accounts.changed:
            self._accounts.write(self._db, self.session)
        self._db.execute("COMMIT")
        self._accounts.settle()
        self._session_is_new = False

    def checkpoint(self) -> None:
        """Fold the journal into the file as far as nobody is held up; any thread may call it.

        Every ten minutes the copy beside the file is renewed, too.
        """
        with closing(schema.connect(self.path, "rw")) as db:
            db.execute("PRAGMA wal_checkpoint(PASSIVE)")
        if time.monotonic() - self._backed_up_at > BACKUP_EVERY_S:
            self._backed_up_at = time.monotonic()
            self.back_up()

    def rollback(self) -> None:
        """Forget what was written since `begin`."""
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")
        self._accounts.undo()
        if self._session_is_new:
            self._session = None

    def heartbeat(self) -> None:
        """Note that this session is at work; others then leave its claims alone."""
        beat(self._db, self.session)

    def register(self, keys: Sequence[schema.LedgerKey]) -> list[int]:
        """Return the ids of the requests, adding those that are new."""
        digests = [key.digest for key in keys]
        self._db.executemany(
            "INSERT INTO requests (digest, endpoint, model, purpose, body) "
            "VALUES (?, ?, ?, ?, ?) ON CONFLICT (digest) DO NOTHING",
            [(digest, *key) for digest, key in zip(digests, keys, strict=True)],
        )
        ids = self._ids(digests, self._db)  # the reader does not see them before the commit
        return [ids[digest] for digest in digests]

    def end_attempt(self, attempt: int, status: str, reason: str | None = None) -> None:
        """Note how a call ended: ``done``, ``transient``, ``permanent`` or ``abandoned``."""
        self._db.execute(
            "INSERT INTO attempt_ends VALUES (?, ?, ?, ?)", (attempt, time.time(), status, reason)
        )
        self._accounts.give_back(attempt, unsent=status == "unsent")

    def keep_all(self, answered: Sequence[tuple[int, Sequence[schema.DrawRow]]]) -> list[int]:
        """End attempts with their draws, and return how many draws of each were new.

        A draw that another process has committed meanwhile stays as it is; the late answer is
        kept in the file but never used.
        """
        now = time.time()
        self._db.executemany(
            "INSERT INTO attempt_ends VALUES (?, ?, 'done', NULL)",
            [(attempt, now) for attempt, _ in answered],
        )
        for attempt, rows in answered:
            self._accounts.spend(
                attempt,
                tokens=sum(row.prompt_tokens + row.completion_tokens for row in rows),
                money=sum(row.cost or 0.0 for row in rows),
            )
        return self._add([rows for _, rows in answered])

    def ask_again(self, request_id: int, draws: Sequence[int]) -> None:
        """Take these draws, whose answers are not in the file, for missing; see `keep_all`."""
        self._lost.setdefault(request_id, set()).update(draws)

    def _refill(self, rows: Sequence[schema.DrawRow]) -> None:
        """Write the answers of draws that are noted without one."""
        for row in rows:
            missing = self._lost.get(row.request_id, set())
            if row.draw in missing:
                self._db.execute(
                    "INSERT OR IGNORE INTO payloads SELECT id, ? FROM draws "
                    "WHERE request_id = ? AND draw = ?",
                    (row.payload, row.request_id, row.draw),
                )
                missing.discard(row.draw)

    def _add(self, groups: Sequence[Sequence[schema.DrawRow]]) -> list[int]:
        now = time.time()
        rows = [row for group in groups for row in group]
        ids = self._next_ids(len(rows))
        self._db.executemany(
            "INSERT INTO payloads VALUES (?, ?)",
            [(id_, row.payload) for id_, row in zip(ids, rows, strict=True)],
        )
        cursor = self._db.executemany(
            "INSERT INTO draws VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (request_id, draw) DO NOTHING",
            # All of a row but its payload.
            [(id_, *row[:3], *row[4:], now) for id_, row in zip(ids, rows, strict=True)],
        )
        if cursor.rowcount == len(rows):
            return [len(group) for group in groups]
        if self._lost:
            self._refill(rows)
        ends = accumulate(map(len, groups), initial=ids[0])
        query = "SELECT COUNT(*) FROM draws WHERE id >= ? AND id < ?"
        return [self._db.execute(query, places).fetchone()[0] for places in pairwise(ends)]

    def note(self, name: str, value: str) -> None:
        """Keep a small fact about an endpoint under a name, in place of what was there."""
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (name, value))

    def add_failure(self, request_id: int, kind: str, message: str) -> None:
        """Set a request aside for good."""
        self._db.execute(
            "INSERT INTO failures VALUES (?, ?, ?, ?, ?)",
            (self._next_ids(1)[0], request_id, kind, message, time.time()),
        )


T = TypeVar("T")
Then = Callable[[Any, Exception | None], None]
"""Called with the result when it is committed, or with the error that prevented it."""
HEARTBEAT_S = 10.0
LINGER_S = 0.004
"""Pause after a commit, in which the rows of the next one gather."""
FEW = 4
"""After a commit of fewer writes nobody waits: a single caller gets its answer at once."""
DISK_EVERY_S = 1.0


class GroupCommit:
    """Writes to a ledger from an event loop, in batches.

    Every commit outlives the death of the process, and is done at once in the loop's own
    thread: it takes microseconds, and a second thread would fight for the interpreter. Once a
    second a commit also waits for the disk, in another thread, so that a power cut can take
    no more than the last second with it. What arrives meanwhile makes the next batch.

    Dispatchers that share a ledger object share its group commit: use `enter` and `leave`.
    """

    _shared: ClassVar[dict[int, GroupCommit]] = {}

    @classmethod
    def enter(cls, ledger: Ledger) -> GroupCommit:
        """Return the group commit of this ledger, made for the first who enters."""
        commit = cls._shared.get(id(ledger))
        if commit is None:
            commit = cls._shared[id(ledger)] = cls(ledger)
        commit._users += 1
        return commit

    async def leave(self) -> None:
        """Leave; the last one waits until everything submitted is committed, and closes."""
        self._users -= 1
        if self._users:
            return
        del self._shared[id(self._ledger)]
        self.submit(lambda: None)  # the last commit waits for the disk
        self._closing = True
        self._wake.set()
        await self._task
        self._pool.shutdown()

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._loop = asyncio.get_running_loop()
        self._queue: list[tuple[Callable[[], Any], Then, bool]] = []
        self._kept: list[tuple[tuple[int, Sequence[DrawRow]], Then]] = []
        self._claims: list[tuple[LedgerClaim, Then]] = []
        self._wake = asyncio.Event()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="ledger")
        self._task = asyncio.create_task(self._run())
        self._closing = False
        self._users: int = 0
        self._unsafe = False
        self._on_disk = 0.0

    def submit(self, write: Callable[[], T], *, durable: bool = True) -> asyncio.Future[T]:
        """Return a future that is done when what `write` wrote is committed."""
        future: asyncio.Future[T] = self._loop.create_future()
        self._queue.append((write, _settle(future), durable))
        self._wake.set()
        return future

    def keep(self, attempt: int, rows: Sequence[DrawRow], then: Then) -> None:
        """Keep draws, then tell how many of them were new; see `Ledger.keep_all`.

        Calls come and go by the thousand a second: a function is called at once, where a
        future would take another turn of the loop.
        """
        self._kept.append(((attempt, rows), then))
        self._wake.set()

    def claim(self, claim: LedgerClaim, then: Then) -> None:
        """Note a call, then tell what `Ledger.claim_all` says of it."""
        self._claims.append((claim, then))
        self._wake.set()

    def claimed(self, claim: LedgerClaim) -> asyncio.Future[int | Refusal | None]:
        """Return a future of what `claim` tells."""
        future: asyncio.Future[int | Refusal | None] = self._loop.create_future()
        self.claim(claim, _settle(future))
        return future

    @property
    def _waiting(self) -> bool:
        return bool(self._queue or self._kept or self._claims)

    async def _run(self) -> None:
        beat = 0.0
        while self._waiting or not self._closing:
            if not self._waiting:
                self._wake.clear()
                await happens(self._wake, within_s=HEARTBEAT_S)
            now = time.monotonic()
            alive = now - beat > HEARTBEAT_S / 2
            if alive:
                beat = now
            if self._waiting or alive:
                busy = await self._flush(alive=alive) >= FEW
                await asyncio.sleep(LINGER_S if busy and not self._closing else 0.0)

    async def _flush(self, *, alive: bool) -> int:
        """Commit what waits, and return how much it was."""
        batch, self._queue = self._queue, []
        selection, self._kept = self._kept, []
        claims, self._claims = self._claims, []
        waiting = [item[1] for items in (batch, selection, claims) for item in items]
        self._unsafe = self._unsafe or bool(selection) or any(durable for _, _, durable in batch)
        now = time.monotonic()
        to_disk = self._unsafe and (self._closing or now - self._on_disk > DISK_EVERY_S)
        ledger = self._ledger
        try:
            ledger.begin(durable=to_disk)
            if alive:
                ledger.heartbeat()
            # Claims come last: a draw that is kept in this very batch is taken.
            results: list[Any] = [write() for write, _, _ in batch]
            results += ledger.keep_all([item for item, _ in selection]) if selection else []
            results += ledger.claim_all([claim for claim, _ in claims]) if claims else []
            if to_disk:
                await self._loop.run_in_executor(self._pool, ledger.commit)
                self._on_disk, self._unsafe = now, False
                if not self._closing:
                    self._pool.submit(ledger.checkpoint)
            else:
                ledger.commit()
        except Exception as error:  # noqa: BLE001 - handed on to everyone who waits
            with suppress(sqlite3.Error):  # a damaged file cannot be rolled back either
                ledger.rollback()
            failure = error
            if isinstance(error, sqlite3.Error | OSError):
                failure = storage_error(error, ledger.path)
            for then in waiting:
                then(None, failure)
            return len(waiting)
        for then, result in zip(waiting, results, strict=True):
            then(result, None)
        return len(waiting)


def storage_error(error: Exception, path: Path) -> Exception:
    """Return what to tell about a file that cannot be written; damage is told as damage."""
    notes = ledger_error(error, path) if isinstance(error, sqlite3.Error) else error
    if isinstance(notes, SchemaError | StorageError):
        return notes
    if isinstance(notes, InputError):
        return StorageError(notes.rule, source=notes.source, hint=notes.hint)
    return StorageError(f"the ledger cannot be written: {notes}", source=str(path))


def _settle(future: asyncio.Future[Any]) -> Then:
    """Return a function that settles the future, unless nobody waits for it any more."""

    def then(result: Any, error: Exception | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    return then
