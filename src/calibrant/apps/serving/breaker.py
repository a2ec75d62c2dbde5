"""An endpoint that fails again and again is left alone for a while."""

from dataclasses import dataclass

FAILURES = 5
"""Failures in a row after which a model is left alone for a while."""
LEFT_ALONE_S = 20.0
LONGEST_S = 300.0


@dataclass
class Breaker:
    """Leaves an endpoint alone that fails again and again; one call then finds out if it is back.

    Examples
    --------
    >>> breaker = Breaker()
    >>> for _ in range(5):
    ...     breaker.failed(now=0.0)
    >>> breaker.closed_for(now=1.0), breaker.closed_for(now=21.0)
    (19.0, 0.0)
    """

    failures: int = 0
    until: float = 0.0
    pause_s: float = LEFT_ALONE_S

    def closed_for(self, now: float) -> float:
        """Return the seconds for which nothing is sent."""
        return max(0.0, self.until - now)

    def failed(self, now: float) -> None:
        """Note a failure."""
        self.failures += 1
        if self.failures >= FAILURES:
            self.until = now + self.pause_s
            self.pause_s = min(LONGEST_S, 2 * self.pause_s)

    def answered(self) -> None:
        """Note that it is back."""
        self.failures, self.until, self.pause_s = 0, 0.0, LEFT_ALONE_S
