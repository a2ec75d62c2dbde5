"""A policy in front of two models on loopback: what it promised is what it does."""

import asyncio
import math
import os
import sqlite3
import statistics
import time

import aiohttp
import numpy as np
import polars as pl
import pytest
from aiohttp import web

from calibrant.core import InputError
from calibrant.epistemic.deferral.answers import Answers
from calibrant.epistemic.deferral.choice import Target, choose_policy
from calibrant.epistemic.deferral.policy import MixedPolicy
from calibrant.epistemic.deferral.strategies import StrategyOptions
from calibrant.epistemic.selective import Selective
from calibrant.verbs.serve import open_front, serve
from calibrant.verbs.serving.front import answer_confidence

MODELS = ("small", "large")
PRICE = {"small": 1.0, "large": 10.0}


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


def saved_policy(path, seed=0):
    answers = world(4000, seed)
    found = choose_policy(answers, StrategyOptions(), Target(budget=0.6), seed=0)
    promise = {"accuracy": found.accuracy, "cost": found.cost}
    policy = MixedPolicy(found.policy, found.dials, found.share, promise, "2026-01-01", 4000)
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
        return web.json_response(
            {
                "choices": [
                    {
                        "message": {"role": "assistant", "content": said},
                        "logprobs": {"content": [{"logprob": logprob}] * tokens},
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


async def session(answers, policy_path, ledger, act):
    runners = [await endpoint(answers, column) for column in range(2)]
    front = open_front(
        policy_path,
        endpoints={name: url for name, (_, url) in zip(MODELS, runners, strict=True)},
        keys={},
        price=PRICE,
        per_token=False,
        ledger=ledger,
        token="secret",
    )
    address = await front.start()
    try:
        headers = {"Authorization": "Bearer secret"}
        async with aiohttp.ClientSession(headers=headers) as client:
            return await act(client, address)
    finally:
        await front.stop()
        front.log.close()
        for runner, _ in runners:
            await runner.cleanup()


def chat(row, topic):
    return {
        "model": "calibrant",
        "messages": [{"role": "user", "content": f"Question {row}"}],
        "calibrant": {"question_id": str(row), "topic": topic},
    }


def test_two_hundred_questions_cost_and_accuracy_as_promised(tmp_path):
    policy = saved_policy(tmp_path / "policy.json")
    fresh = world(200, 99)
    topics = fresh.features["topic"].to_list()

    async def act(client, address):
        got = []
        for row in range(200):
            started = time.perf_counter()
            async with client.post(f"{address}/chat/completions", json=chat(row, topics[row])) as r:
                assert r.status == 200
                body = await r.json()
            got.append((body, time.perf_counter() - started))
        # The same question again is not paid for again.
        async with client.post(f"{address}/chat/completions", json=chat(0, topics[0])) as r:
            assert (await r.json())["calibrant"]["cost"] == 0
        async with client.get(f"{address}/calibrant") as r:
            totals = await r.json()
        return got, totals

    got, totals = asyncio.run(
        session(fresh, tmp_path / "policy.json", tmp_path / "served.sqlite", act)
    )
    bodies = [body for body, _ in got]
    right = np.array([b["choices"][0]["message"]["content"] == "right" for b in bodies])
    cost = np.array([b["calibrant"]["cost"] for b in bodies])
    promise = policy.promise
    assert abs(right.mean() - promise["accuracy"].value) < 3 * right.std() / math.sqrt(200)
    assert abs(cost.mean() - promise["cost"].value) < 3 * cost.std() / math.sqrt(200)
    assert totals["questions"] == 201
    assert totals["cost"] == pytest.approx(cost.sum())
    # The front decides as the policy does when it is called directly.
    for row in range(0, 200, 17):
        question = {"question_id": str(row), "topic": topics[row]}
        asked = {}
        while (step := policy.route(question, asked)).action == "ask":
            at = MODELS.index(step.model)
            tokens = int(fresh.answer_features[step.model]["tokens"][row])
            asked[step.model] = {"confidence": fresh.confidence[row, at], "tokens": tokens}
        assert bodies[row]["calibrant"]["answered_by"] == step.model
        assert bodies[row]["calibrant"]["asked"] == list(asked)
    calls = sqlite3.connect(tmp_path / "served.sqlite").execute("SELECT seconds FROM calls")
    spent = sum(seconds for (seconds,) in calls)
    overhead = (sum(seconds for _, seconds in got) - spent) / 200
    assert overhead < 0.05
    assert statistics.median(seconds for _, seconds in got) < 0.1


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": "Bearer wrong"}, 403),
        ({"Host": "evil.example"}, 403),
        ({"Origin": "http://evil.example"}, 403),
    ],
)
def test_strangers_are_turned_away(tmp_path, headers, status):
    saved_policy(tmp_path / "policy.json")

    async def act(client, address):
        async with client.post(
            f"{address}/chat/completions", json=chat(0, "easy"), headers=headers
        ) as r:
            return r.status, (await r.json())["error"]["message"]

    found, message = asyncio.run(
        session(world(10, 0), tmp_path / "policy.json", tmp_path / "l.sqlite", act)
    )
    assert found == status
    assert message


def test_requests_that_cannot_be_served_say_why(tmp_path):
    saved_policy(tmp_path / "policy.json")

    async def act(client, address):
        found = []
        for body in ({**chat(0, "easy"), "stream": True}, {"messages": []}, chat(0, None)):
            async with client.post(f"{address}/chat/completions", json=body) as r:
                found.append((r.status, (await r.json())["error"]["message"]))
        return found

    found = asyncio.run(session(world(9, 0), tmp_path / "policy.json", tmp_path / "l.sqlite", act))
    assert [status for status, _ in found] == [400] * 3
    assert "'topic' is missing" in found[2][1]


def test_a_policy_that_answers_alone_is_served_too(tmp_path):
    answers = world(3000, 0)
    fitted = Selective(max_error=0.15).fit(
        None, answers.confidence[:, 0], answers.correct[:, 0], fitted_on={"model": "small"}
    )
    fitted.policy_.save(tmp_path / "policy.json")
    fresh = world(60, 5)

    async def act():
        runner, url = await endpoint(fresh, 0)
        front = open_front(
            tmp_path / "policy.json", endpoints={"small": url}, keys={}, price={},
            per_token=False, ledger=tmp_path / "l.sqlite", token="secret",
        )  # fmt: skip
        address = await front.start()
        async with aiohttp.ClientSession(headers={"Authorization": "Bearer secret"}) as client:
            made = []
            for row in range(60):
                async with client.post(f"{address}/chat/completions", json=chat(row, "x")) as r:
                    made.append((await r.json())["calibrant"]["decision"])
        await front.stop()
        front.log.close()
        await runner.cleanup()
        return made

    made = asyncio.run(act())
    expected = [fitted.policy_.answers(c) for c in fresh.confidence[:, 0]]
    assert [decision == "answer" for decision in made] == expected
    assert 0 < sum(expected) < 60


def test_an_address_is_needed_for_every_model(tmp_path):
    saved_policy(tmp_path / "policy.json")
    with pytest.raises(InputError, match="'small' has no address"):
        serve(tmp_path / "policy.json", endpoint=["large=http://127.0.0.1:1/v1"])
    with pytest.raises(InputError, match="no model 'smal'"):
        serve(tmp_path / "policy.json", endpoint=["smal=http://127.0.0.1:1/v1"])
    os.environ.pop("NO_SUCH_KEY", None)
    with pytest.raises(InputError, match="NO_SUCH_KEY is not set"):
        serve(
            tmp_path / "policy.json",
            endpoint=["small=http://127.0.0.1:1/v1", "large=http://127.0.0.1:2/v1"],
            key_env=["small=NO_SUCH_KEY"],
        )


def test_confidence_of_a_response():
    assert answer_confidence({"calibrant": {"confidence": 0.4}}) == 0.4
    assert answer_confidence({"choices": [{"message": {}}]}) is None
