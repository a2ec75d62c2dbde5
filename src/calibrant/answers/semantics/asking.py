"""Who carries requests to a judging model: a client, or a dispatcher that keeps a ledger."""

import asyncio
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

from calibrant.core.errors import BudgetError, ClientError
from calibrant.models.asks import Ask
from calibrant.models.dispatch.dispatcher import Dispatcher
from calibrant.models.protocol import Client, Request


class Asker(Protocol):
    """Gets texts for requests; None where there is no reply."""

    @property
    def client(self) -> Client:
        """Who is asked: what it takes and gives, and where it is."""

    async def texts(self, requests: Sequence[Request]) -> list[str | None]:
        """Return one text per request, in order."""


@dataclass
class ClientAsker:
    """Ask a client directly; nothing is remembered between runs."""

    client: Client
    concurrency: int = 8

    async def texts(self, requests: Sequence[Request]) -> list[str | None]:
        """Return one text per request, in order."""
        gate = asyncio.Semaphore(self.concurrency)

        async def one(request: Request) -> str | None:
            async with gate:
                try:
                    return (await self.client.ask(request))[0].text
                except ClientError:
                    return None

        return list(await asyncio.gather(*map(one, requests)))


@dataclass
class DispatcherAsker:
    """Ask through a dispatcher, so that every verdict is kept in the ledger and paid once.

    A cap that is reached ends the asking, not the work: `stopped` says which, replies that are
    there are used, and the rest stays without a reply.
    """

    dispatcher: Dispatcher
    stopped: str | None = None

    @property
    def client(self) -> Client:
        """Who is asked."""
        return self.dispatcher.client

    async def texts(self, requests: Sequence[Request]) -> list[str | None]:
        """Return one text per request, in order."""
        asks = [Ask(request, "judge", tag=place) for place, request in enumerate(requests)]
        texts: dict[Hashable, str] = {}
        try:
            if self.stopped is None:
                await self._gather(asks, texts)
        except BudgetError as error:
            self.stopped = str(error)
        if self.stopped is not None:
            # Everything paid for is used: what the ledger holds needs no budget.
            await self._gather(self._paid_for([ask for ask in asks if ask.tag not in texts]), texts)
        return [texts.get(place) for place in range(len(requests))]

    async def _gather(self, asks: Sequence[Ask], texts: dict[Hashable, str]) -> None:
        async for outcome in self.dispatcher.ask_all(asks):
            if outcome.draws:
                texts[outcome.ask.tag] = outcome.draws[0].completion.text

    def _paid_for(self, asks: Sequence[Ask]) -> list[Ask]:
        digests = [self.dispatcher.prepare(ask)[1].digest for ask in asks]
        paid = self.dispatcher.ledger.complete(digests, 1)
        return [ask for ask, digest in zip(asks, digests, strict=True) if digest in paid]
