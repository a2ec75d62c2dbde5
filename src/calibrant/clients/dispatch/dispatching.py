"""What a run and its calls use of their dispatcher, so that they need not know who it is."""

from __future__ import annotations

from typing import Protocol

from calibrant.clients.asks import Ask
from calibrant.clients.dispatch.budget import Budget
from calibrant.clients.dispatch.limit import AdaptiveLimit
from calibrant.clients.dispatch.outage import Trouble
from calibrant.clients.dispatch.watch import EndpointWatch
from calibrant.clients.protocol import Client, ReplayingClient, Request
from calibrant.records.ledger import Ledger, LedgerKey


class Dispatching(Protocol):
    """Client, ledger, limits and counts; `Dispatcher` says what the numbers mean."""

    client: Client
    replaying: ReplayingClient | None
    ledger: Ledger
    limit: AdaptiveLimit
    budget: Budget
    watch: EndpointWatch
    trouble: Trouble
    counts: dict[str, int]
    max_attempts: int
    patience_s: float
    drain_s: float
    first_backoff_s: float
    retry_failures: bool

    @property
    def chunk(self) -> int:
        """Most draws in one call."""
        ...

    def prepare(self, ask: Ask) -> tuple[Request, LedgerKey]:
        """Return the request as it is sent and the key of its draws."""
        ...

    def notify(self, notice: str | None) -> None:
        """Hand a sentence to the user, if there is one."""
        ...

    def tell(self, *, force: bool = False) -> None:
        """Call back with the progress, unless that was done a moment ago."""
        ...
