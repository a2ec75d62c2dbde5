"""How many calls at a time: found out from what the endpoint answers."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable

CUT = 0.5
QUIET_S = 1.0
"""Refusals within this time belong to the same overload and cut once."""


class AdaptiveLimit:
    """A limit that grows while all is well and halves when the endpoint is overloaded.

    It starts low, gains one place with every answer until the first overload, and one place
    per round of answers after it.

    Parameters
    ----------
    most
        The highest limit.
    start
        The first limit.

    Examples
    --------
    >>> limit = AdaptiveLimit(64, start=8)
    >>> for _ in range(4):
    ...     limit.succeeded()
    >>> limit.allowed
    12
    >>> limit.overloaded(now=10.0)
    >>> limit.overloaded(now=10.1)
    >>> limit.allowed
    6
    """

    def __init__(self, most: int, *, start: int = 8) -> None:
        self._most = most
        self._limit = float(min(most, start))
        self._growing = True
        self._last_cut = float("-inf")
        self._in_use = 0
        self._paused_until = float("-inf")
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._listeners: list[Callable[[], None]] = []

    @property
    def allowed(self) -> int:
        """Calls allowed at the moment."""
        return int(self._limit)

    def succeeded(self) -> None:
        """Note an answer."""
        step = 1.0 if self._growing else 1.0 / self._limit
        self._limit = min(float(self._most), self._limit + step)

    def overloaded(self, *, now: float, retry_after: float | None = None) -> None:
        """Note a refusal; nobody starts a call before the time that the endpoint asks for."""
        self._growing = False
        if now - self._last_cut > QUIET_S:
            self._limit = max(1.0, self._limit * CUT)
            self._last_cut = now
        if retry_after is not None:
            self._paused_until = max(self._paused_until, now + retry_after)

    def paused_for(self) -> float:
        """Return the seconds until the time that the endpoint asked for; at most 0 without."""
        return self._paused_until - asyncio.get_running_loop().time()

    @property
    def free(self) -> int:
        """Places that a call could take now."""
        if self._waiting or self.paused_for() > 0:
            return 0
        return max(0, int(self._limit) - self._in_use)

    def try_acquire(self) -> bool:
        """Take a place if one is free and nobody has to wait."""
        if not self.free:
            return False
        self._in_use += 1
        return True

    async def acquire(self) -> None:
        """Wait for a place."""
        if self._waiting or self._in_use >= int(self._limit):
            place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(place)
            try:
                await place
            except asyncio.CancelledError:
                if place.done() and not place.cancelled():
                    self.release()  # it was handed over at this very moment
                elif place in self._waiting:
                    self._waiting.remove(place)
                raise
        else:
            self._in_use += 1
        try:
            await self.pause()
        except BaseException:
            self.release()
            raise

    async def pause(self) -> None:
        """Wait until the time that the endpoint asked for, if it did."""
        while (rest := self.paused_for()) > 0:
            await asyncio.sleep(rest)

    def release(self) -> None:
        """Give the place back: to one who waits, or to those who listen."""
        self._in_use -= 1
        while self._waiting and self._in_use < int(self._limit):
            place = self._waiting.popleft()
            if not place.done():
                self._in_use += 1
                place.set_result(None)
        if not self._waiting:
            for listener in self._listeners:
                listener()

    def listen(self, listener: Callable[[], None]) -> None:
        """Call `listener` whenever a place may be free; it takes it by `try_acquire`."""
        self._listeners.append(listener)

    def leave(self, listener: Callable[[], None]) -> None:
        """Call it no more."""
        self._listeners.remove(listener)


def backoff_s(attempt: int, *, rng: random.Random, first: float = 0.5, most: float = 30.0) -> float:
    """Return the seconds to wait before try `attempt` + 1: doubled each time, spread by chance.

    The spread keeps calls that failed together from coming back together.
    """
    longest = min(most, first * 2.0 ** (attempt - 1))
    return longest * rng.uniform(0.5, 1.0)
