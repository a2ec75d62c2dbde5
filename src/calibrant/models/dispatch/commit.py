"""Many writers, one commit: rows of calls that end together reach the disk together."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from calibrant.core.errors import InputError, SchemaError, StorageError
from calibrant.models.dispatch.limits import happens
from calibrant.models.ledger import DrawRow, Ledger, LedgerClaim, Refusal
from calibrant.models.ledger.repair import ledger_error

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
