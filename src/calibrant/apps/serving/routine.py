"""Work that is done again and again, whatever becomes of one round."""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

ROUNDS = 3
"""Rounds without success after which nobody relies on the last one."""
_STEP_S = 1.0


@dataclass
class Routine:
    """Does its work every so many seconds; what goes wrong is told once, and tried again.

    Parameters
    ----------
    name
        What is done, for the message.
    work
        One round.
    every_s
        Seconds between two rounds.
    """

    name: str
    work: Callable[[], Awaitable[None]]
    every_s: float
    problem: str | None = None
    """Why the last round failed."""
    succeeded: float = 0.0
    """When a round succeeded last, in seconds since 1970; 0 for never."""
    _at: float | None = None
    _task: asyncio.Task[None] | None = None
    _looking: asyncio.Lock = field(default_factory=asyncio.Lock)

    def start(self) -> None:
        """Begin to do it."""
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Do it no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        began = time.monotonic()
        while True:
            await asyncio.sleep(min(_STEP_S, self.every_s))
            if time.monotonic() - began >= self.every_s:
                began = time.monotonic()
                await self.once()

    async def once(self) -> None:
        """Do one round; only what ends the program gets out of it."""
        async with self._looking:
            try:
                await self.work()
            except (asyncio.CancelledError, KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # noqa: BLE001 - libraries panic with errors of their own
                self._failed(f"{error}" or type(error).__name__)
            else:
                if self.problem is not None:
                    sys.stderr.write(f"calibrant serve: {self.name}: it works again\n")
                self.problem, self.succeeded, self._at = None, time.time(), time.monotonic()

    def _failed(self, problem: str) -> None:
        if problem != self.problem:
            line = " ".join(problem.split())
            sys.stderr.write(f"calibrant serve: {self.name}: {line}; it is tried again\n")
        self.problem = problem

    @property
    def late(self) -> bool:
        """Whether no round has succeeded for too long, also where one hangs."""
        if self._at is None:
            return True
        return time.monotonic() - self._at > ROUNDS * self.every_s + _STEP_S
