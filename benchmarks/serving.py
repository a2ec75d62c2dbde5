"""A served policy: what it adds to a request, what it pays, and whether its promise is kept."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import resource
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import aiohttp
import numpy as np
import polars as pl
from aiohttp import web

import calibrant as cal
from benchmarks._recorded_world import (
    STUDY,
    mace_rows,
    mmlu_rows,
    questions_of,
    recorded_answers,
    recorded_tokens,
)
from benchmarks.harness import DATA, Page, seconds
from calibrant.answers.semantics import grade_answers
from calibrant.apps.serve import open_front
from calibrant.data import Study
from calibrant.models.ledger import Ledger
from calibrant.trust.selective.policy import RawScore, SelectivePolicy
from calibrant.verbs.run import run

TOKEN = "secret"
LABELLED, UNSEEN, DRAWS = 2_000, 2_000, 10
ALPHA = {"verb": 0.3, "consistency": 0.25, "perplexity": 0.25}
"""Shares of wrong answers that these models can keep at all: right in 65 % and 72 % of all."""
REQUESTS, AT_A_TIME, FAULTS = 20_000, 50, 0.01
WARM = 2_000
"""Requests after which caches are filled: memory is looked at from then on."""
# A program of LiteLLM's proxy in an environment of its own; left out where it is not there.
LITELLM = os.environ.get("CALIBRANT_LITELLM", "")


# -- is the promise kept? --------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def _front(policy, folder, *, endpoints, measured_by=None):
    front = open_front(policy, endpoints=endpoints, keys={}, price={}, per_token=False,
                       ledger=folder / f"served-{time.monotonic_ns()}.sqlite", token=TOKEN,
                       measured_by=measured_by)  # fmt: skip
    address = await front.start()
    try:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with aiohttp.ClientSession(headers=headers) as client:
            yield client, address
    finally:
        await front.stop()


async def _all(client, address, bodies, at_a_time=8):
    """Ask everything, and return status and body of each in order."""
    places = asyncio.Semaphore(at_a_time)

    async def one(body):
        async with places, client.post(f"{address}/chat/completions", json=body) as reply:
            return reply.status, await reply.json()

    return await asyncio.gather(*map(one, bodies))


def _body(text, **known):
    return {"messages": [{"role": "user", "content": text}], "calibrant": known, "temperature": 0}


def _row(name, alpha, policy, answered, wrong, differences):
    return (
        name, f"{alpha:.0%}", f"{policy.threshold:.3f}" if policy.threshold else "none",
        f"{answered:,}", f"{wrong / answered:.1%}" if answered else "none",
        f"{max(differences):.1e}" if differences else "none",
    )  # fmt: skip


async def _stated_and_sampled(folder, labelled, unseen):
    """Certify DeepSeek-V3 on MACE and serve it; the product grades the answers that were given."""
    rows = mace_rows(DATA, labelled + unseen, DRAWS)
    found = []
    async with recorded_answers(rows) as url:
        studies = {}
        for name, part in (("labelled", rows[:labelled]), ("unseen", rows[labelled:])):
            study = folder / name
            study.mkdir()
            lines = "".join(json.dumps(row) + "\n" for row in questions_of(part))
            (study / "questions.jsonl").write_text(lines)
            (study / "study.toml").write_text(STUDY.format(draws=DRAWS, url=url))
            await asyncio.to_thread(run, study)
            studies[name] = study
        for method in ("verb", "consistency"):
            saved, alpha = folder / f"{method}.json", ALPHA[method]
            cal.decide(studies["labelled"], max_error=alpha, only_method=method,
                       on_invalid="drop", save=saved)  # fmt: skip
            offline = Study(studies["unseen"]).read("scores").filter(method=method)
            expected = dict(offline.select("question_id", "confidence").iter_rows())
            bodies = [_body(row["question"], question_id=row["id"]) for row in rows[labelled:]]
            async with _front(saved, folder, endpoints={}) as (client, address):
                answers = await _all(client, address, bodies)
            found.append((method, alpha, cal.load_policy(saved),
                          *_counted(rows[labelled:], answers, expected)))  # fmt: skip
    return found


def _counted(rows, answers, expected):
    """Return answers given, wrong ones among them, and distances to the offline confidence."""
    texts, references, texts_asked, differences = [], [], [], []
    for row, (status, body) in zip(rows, answers, strict=True):
        told = body["calibrant"]
        said, measured = expected.get(row["id"]), told["confidence"]
        assert (said is None) == (measured is None), (row["id"], said, measured)
        if said is not None:
            differences.append(abs(said - measured))
        if status == 200:
            texts.append(body["choices"][0]["message"]["content"])
            references.append([[reference] for reference in row["references"]])
            texts_asked.append(row["question"])
    grades = grade_answers(texts, references, questions=texts_asked)
    return len(texts), sum(grade is not True for grade in grades), differences


async def _token_probability(folder, labelled, unseen):
    rows = mmlu_rows(DATA, labelled + unseen)
    saved, alpha = folder / "tokens.json", ALPHA["perplexity"]
    table = pl.DataFrame(rows[:labelled]).with_columns(model=pl.lit("m"))
    cal.decide(table, max_error=alpha, save=saved)
    async with recorded_tokens(rows) as url:
        bodies = [_body(f"Question {row['question_id']}", question_id=str(row["question_id"]))
                  for row in rows[labelled:]]  # fmt: skip
        front = _front(saved, folder, endpoints={"m": url}, measured_by="perplexity")
        async with front as (client, address):
            answers = await _all(client, address, bodies)
    differences = [abs(row["confidence"] - body["calibrant"]["confidence"])
                   for row, (_, body) in zip(rows[labelled:], answers, strict=True)]  # fmt: skip
    given = [row for row, (status, _) in zip(rows[labelled:], answers, strict=True)
             if status == 200]  # fmt: skip
    wrong = sum(not row["correct"] for row in given)
    return [("perplexity", alpha, cal.load_policy(saved), len(given), wrong, differences)]


def kept_promise(labelled=LABELLED, unseen=UNSEEN):
    """Return per method: alpha, policy, answers given, wrong ones, distances to the offline one."""
    with tempfile.TemporaryDirectory() as name:
        found = asyncio.run(_stated_and_sampled(Path(name), labelled, unseen))
        found += asyncio.run(_token_probability(Path(name), labelled, unseen))
    return found


# -- what does it add to a request? ----------------------------------------------------------------


class Counting:
    """An endpoint that counts its answers, fails now and then, and takes five milliseconds."""

    def __init__(self) -> None:
        self.answered, self.failed = 0, 0
        self._rng = np.random.default_rng(0)
        self._first: set[str] = set()

    async def complete(self, request):
        body = json.loads(await request.read())
        await asyncio.sleep(0.005)
        text = body["messages"][-1]["content"]
        if text not in self._first and self._rng.random() < FAULTS:
            self._first.add(text)
            self.failed += 1
            return web.Response(status=500)
        self.answered += 1
        choice = {
            "index": 0, "message": {"role": "assistant", "content": "Lima"},
            "finish_reason": "stop",
            "logprobs": {"content": [{"token": "Lima", "logprob": -0.1, "top_logprobs": []}]},
        }  # fmt: skip
        used = {"prompt_tokens": 9, "completion_tokens": 1, "total_tokens": 10}
        return web.json_response({"id": f"c{self.answered}", "object": "chat.completion",
                                  "created": 1, "model": "m", "choices": [choice],
                                  "usage": used})  # fmt: skip


@contextlib.asynccontextmanager
async def _listening(handler):
    app = web.Application()
    app.router.add_post("/v1/chat/completions", handler)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def _bare_proxy(url):
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client:

        async def forward(request):
            raw = await request.read()
            async with client.post(f"{url}/chat/completions", data=raw) as reply:
                return web.Response(body=await reply.read(), status=reply.status,
                                    content_type="application/json")  # fmt: skip

        async with _listening(forward) as address:
            yield address


@contextlib.asynccontextmanager
async def _litellm(url, folder):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = folder / "litellm.yaml"
    settings.write_text(
        "model_list:\n  - model_name: calibrant\n    litellm_params:\n      model: openai/m\n"
        f"      api_base: {url}\n      api_key: none\nlitellm_settings:\n  telemetry: false\n"
    )
    program = subprocess.Popen(
        [LITELLM, "--config", str(settings), "--port", str(port)],
        # Without a key of its own it starts for nobody but a developer, which is what this is.
        env={
            **os.environ,
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            "LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY": "true",
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    address = f"http://127.0.0.1:{port}/v1"
    try:
        async with aiohttp.ClientSession() as client:
            for _ in range(300):
                await asyncio.sleep(1.0)
                with contextlib.suppress(aiohttp.ClientError):
                    await client.get(f"http://127.0.0.1:{port}/health/liveliness")
                    break
        yield address
    finally:
        program.terminate()
        program.wait(20)


def _megabytes():
    """Memory that this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1024**2


async def _times(address, count, *, headers=None, at_a_time=AT_A_TIME, memory=None):
    """Return the seconds of each request, and how many ended with each status."""
    times, statuses, numbers = [], {}, iter(range(count))

    async def worker(client):
        for number in numbers:
            body = {"model": "calibrant", "logprobs": True, "temperature": 0.5,
                    "messages": [{"role": "user", "content": f"Question {number}"}]}  # fmt: skip
            began = time.perf_counter()
            async with client.post(f"{address}/chat/completions", json=body) as reply:
                await reply.read()
            times.append(time.perf_counter() - began)
            if memory is not None and len(times) in (WARM, count):
                memory.append(_megabytes())
            statuses[reply.status] = statuses.get(reply.status, 0) + 1

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(headers=headers, connector=connector) as client:
        await asyncio.gather(*(worker(client) for _ in range(at_a_time)))
    return np.array(times), statuses


async def _overhead(folder, count, peer_count):
    rows = []
    policy = folder / "policy.json"
    promise = {"max_error": 0.1, "delta": 0.1, "certified": True}
    SelectivePolicy(RawScore(), 0.5, promise, "2026-11-17", 500, {"model": "m"}).save(policy)
    endpoint = Counting()
    async with _listening(endpoint.complete) as url:
        times, statuses = await _times(url, peer_count)
        rows.append(("the endpoint itself", peer_count, times, statuses))
        async with _bare_proxy(url) as address:
            times, statuses = await _times(address, peer_count)
            rows.append(("bare aiohttp proxy", peer_count, times, statuses))
        if LITELLM and shutil.which(LITELLM):
            async with _litellm(url, folder) as address:
                await _times(address, 200)
                times, statuses = await _times(address, peer_count)
            rows.append(("LiteLLM's proxy", peer_count, times, statuses))
        endpoint.answered = 0
        memory = [_megabytes()]
        front = open_front(policy, endpoints={"m": url}, keys={}, price={}, per_token=False,
                           ledger=folder / "served.sqlite", token=TOKEN,
                           measured_by="perplexity")  # fmt: skip
        address = await front.start()
        headers = {"Authorization": f"Bearer {TOKEN}"}
        times, statuses = await _times(address, count, headers=headers, memory=memory)
        await front.stop()
        rows.append(("calibrant serve", count, times, statuses))
    with Ledger(folder / "served.sqlite", read_only=True) as ledger:
        kept = ledger.totals()
    return rows, {"answered": endpoint.answered, "kept": kept["draws"], "memory": memory}


def overhead(count=REQUESTS, peer_count=5_000):
    """Return the times of each way to the endpoint, and what was paid and kept."""
    with tempfile.TemporaryDirectory() as name:
        return asyncio.run(_overhead(Path(name), count, peer_count))


def main() -> None:
    page = Page("serving", "A policy in front of its models", packages=["numpy", "aiohttp"])
    rows, paid = overhead()
    bare = float(np.median(rows[1][2]))
    page.table(
        f"{REQUESTS:,} requests, {AT_A_TIME} at a time, to an endpoint of 5 ms that fails 1 in 100",
        ["way", "requests", "p50", "p99", "p50 beyond a bare proxy", "statuses"],
        [
            (
                name, f"{count:,}", seconds(float(np.median(times))),
                seconds(float(np.quantile(times, 0.99))),
                seconds(float(np.median(times)) - bare) if name[0] in "Lc" else "",
                ", ".join(f"{status}: {n:,}" for status, n in sorted(statuses.items())),
            )
            for name, count, times, statuses in rows
        ],
    )  # fmt: skip
    page.text(
        f"The endpoint counts {paid['answered']:,} answers, the ledger {paid['kept']:,}: nothing "
        f"was paid twice or lost. The process held {paid['memory'][0]:,.0f} MB before, "
        f"{paid['memory'][1]:,.0f} MB after {WARM:,} requests and {paid['memory'][-1]:,.0f} MB "
        f"after {REQUESTS:,}."
    )
    found = kept_promise()
    page.table(
        f"{UNSEEN:,} unseen questions over HTTP, policies certified on {LABELLED:,} labels",
        ["method", "at most wrong", "threshold", "answers given", "wrong", "furthest from offline"],
        [_row(*one) for one in found],
    )
    page.text(
        "Stated confidence and consistency are recorded answers of DeepSeek-V3 to MACE questions, "
        "asked with the study's prompts and graded by rules; token probabilities are those of "
        "GPT-4o on MMLU-Pro with their recorded grades. The served confidence is held against "
        "the one that `run`, or the table, has for the same question."
    )
    page.write()


if __name__ == "__main__":
    main()
