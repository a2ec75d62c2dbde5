"""Short ways to ask the fake endpoint."""

import asyncio

from calibrant.models import Ask, Dispatcher, Message, Request
from calibrant.models.endpoints.provider import ProviderClient


def question(number, **options):
    """A request with a seed, so that the server's answers are a function of the draw."""
    settings = {"seed": 0, "max_tokens": 16, **options}
    return Request("m", (Message("user", f"Question {number}?"),), **settings)


def questions(count, draws=1, purpose="answer", **options):
    return [Ask(question(number, **options), purpose, draws, number) for number in range(count)]


def client_of(server, *, preset="vllm", timeout_s=5.0, **options):
    return ProviderClient(
        preset=preset, base_url=server.url + "/v1", timeout_s=timeout_s, **options
    )


class Session:
    """Runs a dispatcher over asks and keeps what came of it."""

    def __init__(self, server, ledger, *, client=None, client_options=None, **options):
        self.client = client or client_of(server, **(client_options or {}))
        self.dispatcher = Dispatcher(self.client, ledger, **{"first_backoff_s": 0.01, **options})
        self.outcomes = {}

    def run(self, asks):
        async def go():
            try:
                async for outcome in self.dispatcher.ask_all(asks):
                    self.outcomes[outcome.ask.tag] = outcome
            finally:
                await self.client.close()

        asyncio.run(go())
        return self.outcomes

    @property
    def findings(self):
        return {finding.kind: finding for finding in self.dispatcher.findings}


def texts(outcomes):
    return {tag: [draw.completion.text for draw in one.draws] for tag, one in outcomes.items()}
