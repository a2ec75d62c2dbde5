"""One client against the endpoint, in a process of its own: prints seconds and CPU seconds.

Arguments: name of the client, base address, concurrency, number of calls. Only the client that
is named is imported, so that the peers may live in another environment than calibrant.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

Ask = Callable[[int], Awaitable[Any]]


def prompt(number: int) -> list[dict[str, str]]:
    return [{"role": "user", "content": f"Question {number}: what is the capital of Peru?"}]


SETTINGS = {"max_tokens": 64, "temperature": 1.0, "logprobs": True, "top_logprobs": 2}


async def many(ask: Ask, concurrency: int, calls: int) -> None:
    """Keep `concurrency` calls under way until all are done."""
    numbers = iter(range(calls))

    async def worker() -> None:
        for number in numbers:
            await ask(number)

    await asyncio.gather(*(worker() for _ in range(concurrency)))


async def bare(url: str, concurrency: int, calls: int) -> None:
    import aiohttp
    import orjson

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def ask(number: int) -> Any:
            body = orjson.dumps({"model": "bench", "messages": prompt(number), **SETTINGS})
            headers = {"Content-Type": "application/json"}
            async with session.post(url + "/chat/completions", data=body, headers=headers) as reply:
                return orjson.loads(await reply.read())["choices"][0]["message"]["content"]

        await many(ask, concurrency, calls)


async def calibrant(url: str, concurrency: int, calls: int) -> None:
    from calibrant.models import Ask, Dispatcher, Message, Request, open_client
    from calibrant.models.ledger import Ledger

    def asks() -> Any:
        for number in range(calls):
            messages = tuple(Message(**message) for message in prompt(number))
            request = Request("bench", messages, max_tokens=64, logprobs=True, top_logprobs=2)
            yield Ask(request, "answer", 1, number)

    client = open_client({"kind": "vllm", "base_url": url})
    with (
        tempfile.TemporaryDirectory() as folder,
        Ledger(Path(folder) / "ledger.sqlite") as ledger,
    ):
        dispatcher = Dispatcher(
            client, ledger, max_concurrency=concurrency, start_concurrency=concurrency
        )
        done = 0
        async for outcome in dispatcher.ask_all(asks()):
            done += len(outcome.draws)
        assert done == calls == ledger.totals()["draws"]
    await client.close()


async def openai(url: str, concurrency: int, calls: int) -> None:
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=url, api_key="none", max_retries=0)

    async def ask(number: int) -> Any:
        done = await client.chat.completions.create(
            model="bench", messages=prompt(number), **SETTINGS
        )
        return done.choices[0].message.content

    await many(ask, concurrency, calls)
    await client.close()


async def litellm(url: str, concurrency: int, calls: int) -> None:
    import litellm as module

    async def ask(number: int) -> Any:
        done = await module.acompletion(
            model="openai/bench",
            api_base=url,
            api_key="none",
            messages=prompt(number),
            **SETTINGS,
        )
        return done.choices[0].message.content

    await many(ask, concurrency, calls)


async def inspect(url: str, concurrency: int, calls: int) -> None:
    from inspect_ai.model import GenerateConfig, get_model

    config = GenerateConfig(
        max_connections=concurrency, max_tokens=64, temperature=1.0, logprobs=True, top_logprobs=2
    )
    model = get_model(
        "openai/bench", base_url=url, api_key="none", config=config, responses_api=False
    )

    async def ask(number: int) -> Any:
        return (await model.generate(prompt(number)[0]["content"])).completion

    await many(ask, concurrency, calls)


CLIENTS = {
    "bare": bare,
    "calibrant": calibrant,
    "openai": openai,
    "litellm": litellm,
    "inspect": inspect,
}


def main() -> None:
    name, url, concurrency, calls = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    run = CLIENTS[name]

    async def timed() -> tuple[float, float]:
        # The first calls pay for imports and connections.
        await run(url, concurrency, 2 * concurrency)
        usage = resource.getrusage(resource.RUSAGE_SELF)
        started, cpu = time.perf_counter(), usage.ru_utime + usage.ru_stime
        await run(url, concurrency, calls)
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return time.perf_counter() - started, usage.ru_utime + usage.ru_stime - cpu

    seconds, cpu = asyncio.run(timed())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "cpu": cpu, "memory_mb": memory}))


if __name__ == "__main__":
    main()
