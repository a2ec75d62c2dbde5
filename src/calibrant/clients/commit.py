"""Many writers, one commit: rows of calls that end together reach the disk together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar, TypeVar

from calibrant.records.ledger import Ledger

__all__ = ["GroupCommit"]

T = TypeVar("T")
HEARTBEAT_S = 10.0
LINGER_S = 0.001
"""Pause after a commit, in which the rows of the next one gather."""
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
        """Wait until everything submitted is committed; the last one closes."""
        self._users -= 1
        if self._users == 0:
            del self._shared[id(self._ledger)]
            await self._close()
        else:
            await self.submit(lambda: None)

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._queue: list[tuple[Callable[[], Any], asyncio.Future[Any], bool]] = []
        self._wake = asyncio.Event()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="ledger")
        self._task = asyncio.create_task(self._run())
        self._closing = False
        self._users = 0
        self._unsafe = False
        self._on_disk = 0.0

    def submit(self, write: Callable[[], T], *, durable: bool = True) -> asyncio.Future[T]:
        """Return a future that is done when what `write` wrote is committed."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._queue.append((write, future, durable))
        self._wake.set()
        return future

    async def _close(self) -> None:
        self.submit(lambda: None)  # the last commit waits for the disk
        self._closing = True
        self._wake.set()
        await self._task
        self._pool.shutdown(wait=False)

    async def _run(self) -> None:
        beat = 0.0
        while self._queue or not self._closing:
            if not self._queue:
                self._wake.clear()
                try:
                    async with asyncio.timeout(HEARTBEAT_S):
                        await self._wake.wait()
                except TimeoutError:
                    pass
            now = time.monotonic()
            alive = now - beat > HEARTBEAT_S / 2
            if alive:
                beat = now
            if self._queue or alive:
                await self._flush(alive=alive)
                await asyncio.sleep(0.0 if self._closing else LINGER_S)

    async def _flush(self, *, alive: bool) -> None:
        batch, self._queue = self._queue, []
        self._unsafe = self._unsafe or any(durable for _, _, durable in batch)
        now = time.monotonic()
        to_disk = self._unsafe and (self._closing or now - self._on_disk > DISK_EVERY_S)
        try:
            self._ledger.begin(durable=to_disk)
            if alive:
                self._ledger.heartbeat()
            results = [write() for write, _, _ in batch]
            if to_disk:
                loop = asyncio.get_running_loop()
                await loop.run_in_executor(self._pool, self._ledger.commit)
                self._on_disk, self._unsafe = now, False
            else:
                self._ledger.commit()
        except Exception as error:  # noqa: BLE001 - handed on to everyone who waits
            self._ledger.rollback()
            for _, future, _ in batch:
                if not future.done():
                    future.set_exception(error)
            return
        for (_, future, _), result in zip(batch, results, strict=True):
            if not future.done():
                future.set_result(result)
