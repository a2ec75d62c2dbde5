"""The dispatcher: asks for what the ledger lacks, and lets nothing be used before it is kept."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping

from calibrant.clients.asks import (
    Ask,
    Caps,
    Finding,
    LedgeredDraw,
    Outcome,
    Plan,
    Price,
    Problem,
    Progress,
)
from calibrant.clients.protocol import Client
from calibrant.records.ledger import Ledger

__all__ = [
    "Ask",
    "Caps",
    "Dispatcher",
    "Finding",
    "LedgeredDraw",
    "Outcome",
    "Plan",
    "Price",
    "Problem",
    "Progress",
]


class Dispatcher:
    """Get draws from the ledger, and from the endpoint only those that are missing.

    Parameters
    ----------
    client
        Where missing draws come from.
    ledger
        Where every draw is kept before it is handed on.
    caps
        Limits of this run; a call that could exceed one raises BudgetError, after the calls
        that are under way have been kept.
    prices
        Model name -> Price. A cap on money without a price is an error.
    max_concurrency
        Most calls at a time; the dispatcher finds out how many of them the endpoint takes.
    max_attempts
        Tries per call before it is given up for this run.
    retry_failures
        Ask again for what an earlier run set aside as permanent.
    progress
        Called with a Progress after every commit (many draws at once), at most ten times a
        second; it must return quickly.
    """

    def __init__(
        self,
        client: Client,
        ledger: Ledger,
        *,
        caps: Caps | None = None,
        prices: Mapping[str, Price] | None = None,
        max_concurrency: int = 64,
        max_attempts: int = 8,
        retry_failures: bool = False,
        progress: Callable[[Progress], None] | None = None,
    ) -> None:
        raise NotImplementedError

    def plan(self, asks: Iterable[Ask]) -> Plan:
        """Return what is missing and what it would take, without sending anything.

        Raises CapabilityError where the endpoint cannot give what is asked for.
        """
        raise NotImplementedError

    def ask_all(self, asks: Iterable[Ask]) -> AsyncIterator[Outcome]:
        """Yield one Outcome per ask, in the order in which they are complete.

        The asks are read lazily, a window at a time, so that a million of them need little
        memory. Everything yielded is committed in the ledger. Leaving the loop early or
        cancelling the task stops dispatching; calls under way get a moment to arrive and be
        kept, and the rest is noted as abandoned.
        """
        raise NotImplementedError

    @property
    def findings(self) -> list[Finding]:
        """What the endpoint was seen to do that a reader of the results must know."""
        raise NotImplementedError

    @property
    def progress(self) -> Progress:
        """Counts of this dispatcher so far."""
        raise NotImplementedError
