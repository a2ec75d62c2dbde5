"""The watch behind a promise: it outlives damaged files, and nobody reads more than it knows."""

import asyncio
import json
import time

import numpy as np
import polars as pl
import pytest

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.data.label_schema import ItemKey
from calibrant.data.label_store import LabelStore
from clients.server import Endpoint
from workflows.test_serve_loop import CERTAIN
from workflows.test_serve_promise import question, saved, served


@pytest.fixture
def endpoint():
    with Endpoint() as server:
        server.behaviour.logprob = lambda position: CERTAIN
        yield server


def asked(number, **more):
    return question(f"What is {number}?", calibrant={"question_id": str(number), **more})


async def ask_many(ask, numbers, **more):
    numbers = list(numbers)
    for start in range(0, len(numbers), 20):
        await asyncio.gather(*(ask(asked(n, **more)) for n in numbers[start : start + 20]))


async def promised(ask, number=900):
    """Return what the next caller reads."""
    return (await ask(asked(number)))[1]["calibrant"]["promise"]


async def until(condition, within_s=15.0):
    end = time.monotonic() + within_s
    while not (found := await condition()) and time.monotonic() < end:
        await asyncio.sleep(0.1)
    return found


def all_wrong(numbers):
    rows = "".join(f"{n},0\n" for n in numbers)
    return f"question_id,correct\n{rows}".encode()


DAMAGES = {
    "an empty file": lambda whole: b"",
    "half a header": lambda whole: b"questi",
    "a wrong column": lambda whole: whole.replace(b"correct", b"korrect"),
    "an open quote": lambda whole: whole.replace(b"7,0", b'"7,0'),
    "a torn line of the rows": None,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_damaged_does_not_end_the_watch(tmp_path, endpoint, damage, capfd):
    policy, labels = saved(tmp_path / "policy.json"), tmp_path / "labels.csv"
    labels.write_bytes(b"question_id,correct\n")

    async def act():
        async with served(tmp_path, policy, endpoint.url, watch=labels) as (ask, front):
            front.watch.every_s = 0.2
            await ask_many(ask, range(300))
            whole = all_wrong(range(300))
            if DAMAGES[damage] is None:
                with (tmp_path / "served.jsonl").open("ab") as rows:
                    rows.write(b'{"question_id": "x", "answer": "Li')
                await ask_many(ask, range(300, 310))
            else:
                labels.write_bytes(DAMAGES[damage](whole))
                await asyncio.sleep(2.5)
                meanwhile = await promised(ask)
                assert meanwhile.startswith("none: not verified since "), meanwhile
                assert "calibrant_watch_up 0" in (await ask(None, "/metrics", "GET", raw=True))[1]
                assert (await ask(None, "/ready", "GET"))[0] == 503
            labels.write_bytes(whole)

            async def broken():
                said = await promised(ask)
                return said if "wrong" in said and said.startswith("none") else None

            return await until(broken)

    said = asyncio.run(act())
    assert said
    assert "not verified" not in said
    logged = capfd.readouterr().err
    if DAMAGES[damage] is not None:
        assert "labels.csv" in logged
        assert logged.count("\n") < 8, "the same trouble is told once"


def test_a_watch_that_cannot_look_defers_where_that_was_chosen(tmp_path, endpoint):
    policy, labels = saved(tmp_path / "policy.json"), tmp_path / "labels.csv"
    labels.write_bytes(b"question_id,correct\n")

    async def act():
        async with served(tmp_path, policy, endpoint.url, watch=labels, on_shift="defer") as (
            ask,
            front,
        ):
            front.watch.every_s = 0.2
            before = (await ask(asked(1)))[0]
            labels.write_bytes(b"")
            await asyncio.sleep(2.5)
            return before, (await ask(asked(2)))[0]

    assert asyncio.run(act()) == (200, 409)


def test_a_watch_whose_work_has_ended_is_seen_by_callers_and_probes(tmp_path, endpoint):
    """It fails in no round: it has no rounds any more."""
    policy, labels = saved(tmp_path / "policy.json"), tmp_path / "labels.csv"
    labels.write_bytes(b"question_id,correct\n")

    async def act():
        async with served(tmp_path, policy, endpoint.url, watch=labels) as (ask, front):
            front.watch.every_s = 0.2
            before = await promised(ask), (await ask(None, "/ready", "GET"))[0]
            await front.watch.labelled.stop()
            await asyncio.sleep(2.0)
            metrics = (await ask(None, "/metrics", "GET", raw=True))[1]
            return before, (await promised(ask), (await ask(None, "/ready", "GET"))[0]), metrics

    before, after, metrics = asyncio.run(act())
    assert (before[0][:7], before[1]) == ("at most", 200)
    assert after[0].startswith("none: not verified since ")
    assert after[1] == 503
    assert "calibrant_watch_up 0" in metrics


def test_a_known_breach_is_told_to_the_first_caller_after_a_restart(tmp_path, endpoint):
    policy, labels = saved(tmp_path / "policy.json"), tmp_path / "labels.csv"

    async def act():
        async with served(tmp_path, policy, endpoint.url, watch=labels) as (ask, _):
            await ask_many(ask, range(300))
        labels.write_bytes(all_wrong(range(300)))
        async with served(tmp_path, policy, endpoint.url, watch=labels) as (ask, _):
            first = await promised(ask)
        labels.unlink()
        # Whoever takes the labels away does not mend the promise.
        async with served(tmp_path, policy, endpoint.url) as (ask, _):
            return first, await promised(ask)

    first, second = asyncio.run(act())
    assert first.startswith("none: ")
    assert "not verified" not in first, "the labels were looked at, not waited for"
    assert second == first


def test_a_known_shift_is_told_to_the_first_caller_after_a_restart(tmp_path, endpoint):
    rng = np.random.default_rng(0)
    said = rng.uniform(0.6, 1.0, 1200)
    table = pl.DataFrame({"confidence": said, "correct": (rng.random(1200) < said).astype(int)})
    policy = tmp_path / "policy.json"
    cal.decide(table.with_columns(model=pl.lit("m")), max_error=0.3, save=policy)

    async def act():
        async with served(tmp_path, policy, endpoint.url) as (ask, front):
            await ask_many(ask, range(220))
            await front.watch.look()
            before = (await ask(asked(900)))[1]["calibrant"]["shift"]
        async with served(tmp_path, policy, endpoint.url) as (ask, _):
            return before, (await ask(asked(901)))[1]["calibrant"]

    before, after = asyncio.run(act())
    assert before
    assert after["shift"] == before


@pytest.mark.parametrize("kind", ["labels.csv", "labels.sqlite"])
@pytest.mark.parametrize("order", ["right first", "wrong first"])
def test_a_label_belongs_to_an_answer(tmp_path, endpoint, order, kind):
    """Every question is answered twice, Lima and Cusco; Lima is right, so half are wrong."""
    policy, labels = saved(tmp_path / "policy.json"), tmp_path / kind
    at = []

    def fault(number, body):
        from aiohttp import web

        at.append(body["messages"][-1]["content"])
        text = "Lima" if at.count(at[-1]) == 1 else "Cusco"
        token = {"token": text, "logprob": CERTAIN, "top_logprobs": []}
        choice = {"index": 0, "message": {"role": "assistant", "content": text},
                  "logprobs": {"content": [token]}, "finish_reason": "stop"}  # fmt: skip
        usage = {"prompt_tokens": 1, "completion_tokens": 1}
        return web.json_response({"id": "1", "choices": [choice], "usage": usage})

    endpoint.behaviour.fault = fault
    verdicts = [("Lima", 1), ("Cusco", 0)]
    if order == "wrong first":
        verdicts.reverse()

    async def act():
        async with served(tmp_path, policy, endpoint.url, watch=labels) as (ask, front):
            for _ in range(2):
                await ask_many(ask, range(120))
            if kind.endswith(".csv"):
                lines = [f"{n},{answer},{right}" for n in range(120) for answer, right in verdicts]
                labels.write_text("question_id,answer,correct\n" + "\n".join(lines) + "\n")
            else:
                store = LabelStore(labels)
                keys = [ItemKey(str(n), answer) for n in range(120) for answer, _ in verdicts]
                store.add_wave(keys, [1.0] * len(keys), design="random", frame=len(keys))
                while items := store.take("ann"):
                    for item in items:
                        right = item.key.answer == "Lima"
                        store.label(item.id, "ann", "right" if right else "wrong")
                store.close()
            await front.watch.look()
            return await promised(ask)

    said = asyncio.run(act())
    assert said.startswith("none: ")
    assert "50 %" in said
    lines = (tmp_path / "served.jsonl").read_text().splitlines()
    ids = [json.loads(line)["id"] for line in lines]
    assert len(set(ids)) == len(ids) == 241


# -- what callers send -----------------------------------------------------------------------------


@pytest.mark.parametrize("field", [{"correct": 1}, {"label": "right"}, {"time": "never"}])
def test_a_caller_cannot_keep_a_broken_promise_alive(tmp_path, endpoint, field):
    policy, labels = saved(tmp_path / "policy.json"), tmp_path / "labels.csv"

    async def act():
        async with served(tmp_path, policy, endpoint.url, watch=labels) as (ask, front):
            await ask_many(ask, range(300), **field)
            labels.write_bytes(all_wrong(range(300)))
            await front.watch.look()
            return await promised(ask)

    assert asyncio.run(act()).startswith("none: ")


def test_callers_cannot_certify_the_policy_that_serves_them(tmp_path, endpoint):
    policy = saved(tmp_path / "policy.json")

    async def act():
        async with served(tmp_path, policy, endpoint.url) as (ask, _):
            await ask_many(ask, range(300), correct=1, category="law", confidence=1.0)

    asyncio.run(act())
    rows = pl.read_ndjson(tmp_path / "served.jsonl")
    assert "correct" not in rows.columns
    assert rows["caller.category"].unique().to_list() == ["law"]
    assert rows["confidence"].max() < 1
    with pytest.raises(InputError):
        cal.decide(tmp_path / "served.jsonl", max_error=0.05)
