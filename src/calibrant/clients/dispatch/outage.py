"""What to tell a user who waits: which endpoint fails, how, and when it is tried again."""

from __future__ import annotations

import time
from dataclasses import dataclass

AFTER_S = 3.0
"""Seconds without any answer before a user is told."""
EVERY_S = 10.0
NOBODY_S = 4.5
"""Seconds after which an address where nobody ever answered is given up."""
SHORT = 160


@dataclass(slots=True)
class Trouble:
    """Failures since the last answer.

    Examples
    --------
    >>> trouble = Trouble("http://127.0.0.1:80/v1")
    >>> trouble.failed("Cannot connect", wait_s=0.5, now=100.0)
    >>> trouble.failed("Cannot connect", wait_s=4.0, now=104.0)
    'http://127.0.0.1:80/v1: no answer for 4 s (Cannot connect); 2 retries so far, next try in 4 s'
    >>> trouble.answered(now=109.0)
    'http://127.0.0.1:80/v1 answers again after 9 s'
    """

    endpoint: str
    retries: int = 0
    since: float = 0.0
    next_try: float = 0.0
    told: float = float("-inf")
    began: float | None = None
    ever_answered: bool = False

    def begin(self) -> None:
        """Note that the first call is about to be sent."""
        if self.began is None:
            self.began = time.monotonic()

    def is_dead(self, *, wait_s: float, most_s: float) -> bool:
        """Whether nothing was there from the start, or is any more, so that waiting is for nothing.

        Where nobody ever answered the address is wrong; where somebody did, the server may be back.
        """
        if not self.ever_answered and self.began is not None:
            return time.monotonic() + wait_s > self.began + NOBODY_S
        return self.silent_s() >= most_s

    def failed(self, error: str, *, wait_s: float, now: float | None = None) -> str | None:
        """Note a failure; return a sentence where it is time for one."""
        now = time.monotonic() if now is None else now
        if not self.retries:
            self.since, self.next_try, self.told = now, float("inf"), float("-inf")
        self.retries += 1
        self.next_try = now + wait_s if self.next_try <= now else min(self.next_try, now + wait_s)
        if now - self.since < AFTER_S or now - self.told < EVERY_S:
            return None
        self.told = now
        reason = error if len(error) <= SHORT else error[:SHORT] + "..."
        return (
            f"{self.endpoint}: no answer for {now - self.since:.0f} s ({reason}); "
            f"{self.retries:,} {'retry' if self.retries == 1 else 'retries'} so far, "
            f"next try in {max(0.0, self.next_try - now):.0f} s"
        )

    def silent_s(self, *, now: float | None = None) -> float:
        """Return for how many seconds every try has failed; 0 where the last one did not."""
        now = time.monotonic() if now is None else now
        return now - self.since if self.retries else 0.0

    def answered(self, *, now: float | None = None) -> str | None:
        """Note an answer; return a sentence where the user had been told of trouble."""
        self.ever_answered = True
        if not self.retries:
            return None
        now = time.monotonic() if now is None else now
        told, self.retries = self.told > float("-inf"), 0
        if not told:
            return None
        return f"{self.endpoint} answers again after {now - self.since:.0f} s"
