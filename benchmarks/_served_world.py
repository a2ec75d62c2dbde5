"""Two models behind loopback endpoints, and a policy in front of them: for benchmark and test."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp
import numpy as np
import polars as pl
from aiohttp import web

from calibrant.apps.serve import open_front
from calibrant.trust.deferral.answers import Answers
from calibrant.trust.deferral.choice import choose_policy
from calibrant.trust.deferral.policy import MixedPolicy
from calibrant.trust.deferral.strategies import StrategyOptions, Target

MODELS = ("small", "large")
PRICE = {"small": 1.0, "large": 10.0}
TOKEN = "secret"


def world(n, seed):
    """A small model that knows easy topics and says so, and a large one that knows most."""
    rng = np.random.default_rng(seed)
    topic = rng.choice(["easy", "mixed", "hard"], n)
    base = np.select([topic == "easy", topic == "mixed"], [0.92, 0.7], 0.35)
    sure = np.clip(base + rng.normal(0, 0.15, n), 0.02, 0.98)
    right = np.column_stack([rng.random(n) < sure, rng.random(n) < 0.9]).astype(float)
    said = np.column_stack([sure, np.clip(0.9 + rng.normal(0, 0.05, n), 0.02, 0.98)])
    tokens = rng.integers(5, 50, (n, 2))
    cost = np.broadcast_to([1.0, 10.0], (n, 2)).copy()
    extra = {m: pl.DataFrame({"tokens": tokens[:, k]}) for k, m in enumerate(MODELS)}
    return Answers(MODELS, pl.DataFrame({"topic": topic}), said, right, cost, extra)


def policy_of_two(seed=0):
    """Choose a policy for 60 % of the cost on 4,000 questions."""
    answers = world(4000, seed)
    found = choose_policy(answers, StrategyOptions(), Target(budget=0.6), seed=0)
    promise = {"accuracy": found.accuracy, "cost": found.cost}
    return MixedPolicy(found.policy, found.dials, found.share, promise, "2026-01-01", 4000)


def saved_policy(path, seed=0):
    """Save such a policy."""
    policy = policy_of_two(seed)
    policy.save(path)
    return policy


async def endpoint(answers, column):
    """Serve one model: its recorded confidence as log-probs, its grade as the answer."""

    async def complete(request):
        body = await request.json()
        row = int(body["messages"][-1]["content"].split()[-1])
        tokens = int(answers.answer_features[MODELS[column]]["tokens"][row])
        logprob = math.log(answers.confidence[row, column])
        said = "right" if answers.correct[row, column] else "wrong"
        pieces = [said, *("." * (tokens - 1))]
        return web.json_response(
            {
                "choices": [
                    {
                        "message": {"role": "assistant", "content": "".join(pieces)},
                        "logprobs": {
                            "content": [{"token": piece, "logprob": logprob} for piece in pieces]
                        },
                    }
                ],
                "usage": {"completion_tokens": tokens},
            }
        )

    app = web.Application()
    app.router.add_post("/v1/chat/completions", complete)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return runner, f"http://127.0.0.1:{runner.addresses[0][1]}/v1"


def chat(row, topic):
    """Return the request of one question."""
    return {
        "model": "calibrant",
        "messages": [{"role": "user", "content": f"Question {row}"}],
        "calibrant": {"question_id": str(row), "topic": topic},
    }


@asynccontextmanager
async def front_of_two(answers, policy_path, ledger):
    """Start both endpoints and the front; yield its client, its address and the endpoints'."""
    runners = [await endpoint(answers, column) for column in range(2)]
    urls = [url for _, url in runners]
    front = open_front(
        policy_path,
        endpoints=dict(zip(MODELS, urls, strict=True)),
        keys={},
        price=PRICE,
        per_token=False,
        ledger=ledger,
        token=TOKEN,
        measured_by="perplexity",
        reuse=True,
    )
    address = await front.start()
    try:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with aiohttp.ClientSession(headers=headers) as client:
            yield client, address, urls
    finally:
        await front.stop()
        for runner, _ in runners:
            await runner.cleanup()


async def session(answers, policy_path, ledger, act: Callable[..., Awaitable]):
    """Run `act(client, address)` in front of the two models."""
    async with front_of_two(answers, policy_path, ledger) as (client, address, _):
        return await act(client, address)
