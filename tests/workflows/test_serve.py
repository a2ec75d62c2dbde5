"""A policy in front of two models on loopback: what it promised is what it does."""

import asyncio
import math
import os

import aiohttp
import numpy as np
import pytest
from benchmarks._served_world import MODELS, chat, endpoint, saved_policy, session, world

from calibrant.apps.serve import open_front, serve
from calibrant.core import InputError
from calibrant.trust.selective.fit import Selective


def test_two_hundred_questions_cost_and_accuracy_as_promised(tmp_path):
    policy = saved_policy(tmp_path / "policy.json")
    fresh = world(200, 99)
    topics = fresh.features["topic"].to_list()

    async def act(client, address):
        got = []
        for row in range(200):
            async with client.post(f"{address}/chat/completions", json=chat(row, topics[row])) as r:
                assert r.status == 200
                got.append(await r.json())
        # The same question again is not paid for again.
        async with client.post(f"{address}/chat/completions", json=chat(0, topics[0])) as r:
            assert (await r.json())["calibrant"]["cost"] == 0
        async with client.get(f"{address}/calibrant") as r:
            totals = await r.json()
        return got, totals

    bodies, totals = asyncio.run(
        session(fresh, tmp_path / "policy.json", tmp_path / "served.sqlite", act)
    )
    right = np.array([b["choices"][0]["message"]["content"].startswith("right") for b in bodies])
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


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": "Bearer wrong"}, 401),
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
        for body in ({**chat(0, "easy"), "n": 2}, {"messages": []}, chat(0, None)):
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
            measured_by="perplexity",
        )  # fmt: skip
        address = await front.start()
        async with aiohttp.ClientSession(headers={"Authorization": "Bearer secret"}) as client:
            made = []
            for row in range(60):
                async with client.post(f"{address}/chat/completions", json=chat(row, "x")) as r:
                    made.append((await r.json())["calibrant"]["decision"])
        await front.stop()
        await runner.cleanup()
        return made

    made = asyncio.run(act())
    expected = [fitted.policy_.answers(c) for c in fresh.confidence[:, 0]]
    assert [decision == "answer" for decision in made] == expected
    assert 0 < sum(expected) < 60


def test_an_address_is_needed_for_every_model(tmp_path):
    saved_policy(tmp_path / "policy.json")
    with pytest.raises(InputError, match="'small' has no address"):
        serve(
            tmp_path / "policy.json",
            endpoint=["large=http://127.0.0.1:1/v1"],
            measured_by="perplexity",
        )
    with pytest.raises(InputError, match="no model 'smal'"):
        serve(tmp_path / "policy.json", endpoint=["smal=http://127.0.0.1:1/v1"])
    os.environ.pop("NO_SUCH_KEY", None)
    with pytest.raises(InputError, match="NO_SUCH_KEY holds no API key"):
        serve(
            tmp_path / "policy.json",
            endpoint=["small=http://127.0.0.1:1/v1", "large=http://127.0.0.1:2/v1"],
            key_env=["small=NO_SUCH_KEY"],
            measured_by="perplexity",
            ledger=tmp_path / "l.sqlite",
        )
