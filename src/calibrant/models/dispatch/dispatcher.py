"""The dispatcher: asks for what the ledger lacks, and lets nothing be used before it is kept."""

import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice

import msgspec

from calibrant.models.asks import (
    Ask,
    EndpointNote,
    Outcome,
    Plan,
    Price,
    RunProgress,
    check_request,
    split_draws,
)
from calibrant.models.codec import canonical_request
from calibrant.models.dispatch.limits import AdaptiveLimit, Budget, Trouble, prompt_tokens_estimate
from calibrant.models.dispatch.run import Run
from calibrant.models.dispatch.watch import EndpointWatch
from calibrant.models.endpoints.provider import ProviderClient
from calibrant.models.endpoints.refused import Refusals
from calibrant.models.ledger import Caps, Ledger, LedgerKey
from calibrant.models.protocol import Client, PreparingClient, ReplayingClient, Request

WINDOW = 128
"""Asks that are looked up together; bounds the memory of a run."""
PROGRESS_EVERY_S = 0.1


class Dispatcher:
    """Get draws from the ledger, and from the endpoint only those that are missing.

    Parameters
    ----------
    client
        Where missing draws come from.
    ledger
        Where every draw is kept before it is handed on.
    caps
        Limits of the ledger, all runs and processes together; a call that could exceed one
        raises BudgetError, after the calls that are under way have been kept.
    prices
        Model name -> Price. A cap on money without a price is an error.
    max_concurrency
        Most calls at a time and endpoint; the dispatcher finds out how many of them the
        endpoint takes.
    start_concurrency
        Calls at a time to begin with.
    max_attempts
        Tries per call before it is given up for this run. Refusals for the rate (429) are not
        counted as tries; they end after `patience_s`.
    patience_s
        Seconds for which a call may be put off by rate limits.
    drain_s
        Seconds that calls under way get when the run is stopped: Ctrl-C ends within a second.
    retry_failures
        Ask again for what an earlier run set aside as permanent.
    progress
        Called with a Progress, at most ten times a second; it must return quickly.
    first_backoff_s
        Seconds before the second try; doubled for each further one.
    unkept
        Called with the number of draws that were paid for and cannot be kept; they are handed on
        all the same. Without it such a run ends.
    """

    def __init__(
        self,
        client: Client,
        ledger: Ledger,
        *,
        caps: Caps | None = None,
        prices: Mapping[str, Price] | None = None,
        max_concurrency: int = 64,
        start_concurrency: int = 8,
        max_attempts: int = 8,
        patience_s: float = 900.0,
        drain_s: float = 0.5,
        retry_failures: bool = False,
        progress: Callable[[RunProgress], None] | None = None,
        first_backoff_s: float = 0.5,
        unkept: Callable[[int], None] | None = None,
    ) -> None:
        members = getattr(client, "members", [client])
        concurrency = client.capabilities.concurrency or max_concurrency
        most = min(max_concurrency, concurrency) * len(members)
        self.client = client
        # Asked once: a check against a protocol takes longer than reading an answer.
        self._preparing = client if isinstance(client, PreparingClient) else None
        self.replaying = client if isinstance(client, ReplayingClient) else None
        self.ledger = ledger
        self.learning = [item for item in members if isinstance(item, ProviderClient)]
        for learner in self.learning:
            # What earlier runs on this ledger have learned.
            for model, value in ledger.notes(f"refused {learner.endpoint} ").items():
                if model not in learner.refused:
                    learner.recall(model, msgspec.json.decode(value, type=Refusals))
        self.max_attempts = max_attempts
        self.patience_s = patience_s
        self.drain_s = drain_s
        self.first_backoff_s = first_backoff_s
        self.retry_failures = retry_failures
        self.unkept = unkept
        if self.replaying is not None:
            # Nothing is overloaded by waiting for a batch, or by reading a ledger.
            most = start_concurrency = client.capabilities.concurrency or most
        self.limit = AdaptiveLimit(most, start=start_concurrency)
        self.budget = Budget(caps or Caps(), prices or {})
        self.watch = EndpointWatch()
        self.counts = Counter[str]()
        """What `RunProgress` counts of asks, draws and retries."""
        self._callback = progress
        self._started = time.monotonic()
        self._told = 0.0
        self.trouble = Trouble(client.endpoint)
        self._notice: str | None = None

    # -- planning --------------------------------------------------------------------------

    def plan(self, asks: Iterable[Ask]) -> Plan:
        """Return what is missing and what it would take, without sending anything.

        Raises CapabilityError where the endpoint cannot give what is asked for.
        """
        total = Counter[str]()
        cost: float | None = 0.0
        for window in windows(asks):
            total["asks"] += len(window)
            total["draws_wanted"] += sum(ask.draws for ask in window)
            for request, missing, failed in self._missing(window):
                total["draws_missing"] += len(missing)
                if failed:
                    continue
                calls = len(split_draws(missing, self.chunk))
                prompt = calls * prompt_tokens_estimate(request)
                completion = len(missing) * request.most_tokens
                total["calls"] += calls
                total["prompt_tokens"] += prompt
                total["completion_tokens"] += completion
                price = self.budget.prices.get(request.model)
                if cost is not None:
                    cost = None if price is None else cost + price.cost(prompt, completion)
        held_draws = total["draws_wanted"] - total.pop("draws_missing", 0)
        return Plan(**total, draws_held=held_draws, cost=cost)

    def _missing(self, window: Sequence[Ask]) -> Iterator[tuple[Request, list[int], bool]]:
        """Yield the requests that lack draws, those draws, and whether they were set aside."""
        prepared = [self.prepare(ask) for ask in window]
        digests = [key.digest for _, key in prepared]
        targets: dict[int, list[bytes]] = {}
        for ask, digest in zip(window, digests, strict=True):
            targets.setdefault(ask.draws, []).append(digest)
        complete = {draws: self.ledger.complete(subset, draws) for draws, subset in targets.items()}
        short = [
            (ask, *pair)
            for ask, digest, pair in zip(window, digests, prepared, strict=True)
            if digest not in complete[ask.draws]
        ]
        if not short:
            return
        ids = self.ledger.find([key for _, _, key in short])
        known_ids = [id_ for id_ in ids if id_ is not None]
        held_draws = self.ledger.held_by_id(known_ids)
        failed = {} if self.retry_failures else self.ledger.failures_by_id(known_ids)
        for (ask, request, _), id_ in zip(short, ids, strict=True):
            have = held_draws.get(id_, set()) if id_ is not None else set()
            missing = [draw for draw in range(ask.draws) if draw not in have]
            yield request, missing, id_ in failed

    def prepare(self, ask: Ask) -> tuple[Request, LedgerKey]:
        """Return the request as it is sent and the key of its draws."""
        client, request = self._preparing, ask.request
        if client is not None:
            request = client.prepare(request)
            model = client.resolve(request.model)
        else:
            check_request(request, self.client.capabilities, endpoint=self.client.endpoint)
            model = request.model
        body = canonical_request(request)
        return request, LedgerKey(self.client.endpoint, model, ask.purpose, body)

    def insist_on(self, setting: str) -> None:
        """Raise CapabilityError, rather than go on without, where this setting is refused."""
        for client in self.learning:
            client.essential.add(setting)

    @property
    def chunk(self) -> int:
        """Most draws in one call."""
        return max(1, self.client.capabilities.native_n)

    # -- running ---------------------------------------------------------------------------

    async def ask_all(self, asks: Iterable[Ask]) -> AsyncIterator[Outcome]:
        """Yield one Outcome per ask, in the order in which they are complete.

        The asks are read lazily, a window at a time, so that a million of them need little
        memory. Everything yielded is committed in the ledger. Leaving the loop early or
        cancelling the task stops dispatching; calls under way get a moment to arrive and be
        kept, and the rest is noted as abandoned.

        Raises
        ------
        CapabilityError
            Before anything of the ask is sent.
        BudgetError
            When a cap is reached; all that was under way is kept and yielded first.
        EndpointRefusedError
            When the endpoint refuses everything (wrong key, no such model, no credit).
        """
        run = Run(self, windows(asks))
        try:
            async for outcome in run.outcomes():
                self.counts["asks_done"] += 1
                self.counts["failures"] += outcome.problem is not None
                self.watch.see(outcome.ask, outcome.draws)
                self.tell()
                yield outcome
                self.watch.check()
        finally:
            await run.finish()
            self.tell(force=True)

    def notify(self, notice: str | None) -> None:
        """Hand a sentence to the user, if there is one."""
        if notice is not None:
            self._notice = notice
            self.tell(force=True)
            self._notice = None

    def tell(self, *, force: bool = False) -> None:
        """Call back with the progress, unless that was done a moment ago."""
        now = time.monotonic()
        if self._callback is not None and (force or now - self._told >= PROGRESS_EVERY_S):
            self._told = now
            self._callback(self.progress)

    @property
    def findings(self) -> list[EndpointNote]:
        """What the endpoint was seen to do that a reader of the results must know."""
        return self.watch.findings()

    @property
    def progress(self) -> RunProgress:
        """Counts of this dispatcher so far."""
        return RunProgress(
            **self.counts,
            calls=self.budget.calls,
            prompt_tokens=self.budget.prompt_tokens,
            completion_tokens=self.budget.completion_tokens,
            cost=self.budget.money,
            concurrency=self.limit.allowed,
            elapsed_s=time.monotonic() - self._started,
            notice=self._notice,
        )


def windows(asks: Iterable[Ask]) -> Iterator[list[Ask]]:
    """Yield the asks in lists of bounded length."""
    source = iter(asks)
    while window := list(islice(source, WINDOW)):
        yield window
