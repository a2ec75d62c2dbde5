"""Load on a served policy beside a bare proxy: times, processor time, memory, what was kept."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import numpy as np
from aiohttp import web

from benchmarks._recorded_world import STUDY
from benchmarks.harness import ROOT, seconds
from calibrant.models.ledger import Ledger
from calibrant.models.study.prompts import study_recipe
from calibrant.trust.policy import RawScore, SelectivePolicy

TOKEN, DRAWS, FAULTS = "secret", 5, 0.01
REQUESTS, PEER_REQUESTS, TIMES = 20_000, 3_000, (50, 500)
WARM = 2_000
"""Requests after which caches are filled: memory is looked at from then on."""
PROMISE = {"max_error": 0.1, "delta": 0.1, "certified": True}
# A program of LiteLLM's proxy in an environment of its own; left out where it is not there.
LITELLM = os.environ.get("CALIBRANT_LITELLM", "")
_TICK = os.sysconf("SC_CLK_TCK")


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
        draws = body.get("n", 1)
        self.answered += draws
        choices = [
            {"index": k, "message": {"role": "assistant", "content": "Lima"},
             "finish_reason": "stop",
             "logprobs": {"content": [{"token": "Lima", "logprob": -0.1, "top_logprobs": []}]}}
            for k in range(draws)
        ]  # fmt: skip
        used = {"prompt_tokens": 9, "completion_tokens": draws, "total_tokens": 9 + draws}
        return web.json_response({"id": f"c{self.answered}", "object": "chat.completion",
                                  "created": 1, "model": body.get("model", "m"),
                                  "choices": choices, "usage": used})  # fmt: skip


@contextlib.asynccontextmanager
async def _listening(handler):
    app = web.Application()
    app.router.add_post("/v1/chat/completions", handler)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        await runner.cleanup()


async def bare_proxy(url: str) -> None:
    """Hand everything on to an endpoint, and say where."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as client:

        async def forward(request):
            raw = await request.read()
            async with client.post(f"{url}/chat/completions", data=raw) as reply:
                return web.Response(body=await reply.read(), status=reply.status,
                                    content_type="application/json")  # fmt: skip

        async with _listening(forward) as address:
            sys.stderr.write(f"Serving a proxy at {address} ()\n")
            sys.stderr.flush()
            await asyncio.Event().wait()


@dataclass
class Program:
    """A server in a process of its own, and what it has used."""

    process: subprocess.Popen
    address: str

    @property
    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICK

    @property
    def megabytes(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


@contextlib.contextmanager
def open_program(folder, *command):
    """Start a module, and wait until it says where it listens."""
    said = folder / f"stderr-{time.monotonic_ns()}"
    with said.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", *command],
            stderr=errors,
            stdout=subprocess.DEVNULL,
            cwd=ROOT,
            env={**os.environ, "CALIBRANT_TOKEN": TOKEN},
        )
    try:
        found = None
        while found is None and process.poll() is None:
            time.sleep(0.1)
            found = re.search(r" at (http://\S+) ", said.read_text())
        assert found, said.read_text()
        yield Program(process, found[1])
    finally:
        process.terminate()
        process.wait(60)


@contextlib.contextmanager
def _litellm(url, folder):
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
    try:
        for _ in range(300):
            time.sleep(1.0)
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
        yield Program(program, f"http://127.0.0.1:{port}/v1")
    finally:
        program.terminate()
        program.wait(20)


async def _times(address, count, at_a_time, *, study=False, seen=None):
    """Return the seconds of each request, and how many ended with each status."""
    times, statuses, numbers = [], Counter(), iter(range(count))
    more = {} if study else {"logprobs": True, "temperature": 0.5}

    async def worker(client):
        for number in numbers:
            body = {"model": "calibrant", **more, "calibrant": {"question_id": f"{number}"},
                    "messages": [{"role": "user", "content": f"Question {number}"}]}  # fmt: skip
            began = time.perf_counter()
            async with client.post(f"{address}/chat/completions", json=body) as reply:
                await reply.read()
            times.append(time.perf_counter() - began)
            statuses[reply.status] += 1
            if seen is not None and len(times) in (WARM, count):
                seen.append(len(times))

    headers = {"Authorization": f"Bearer {TOKEN}"}
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(headers=headers, connector=connector) as client:
        await asyncio.gather(*(worker(client) for _ in range(at_a_time)))
    return np.array(times), statuses


class _Memory(list):
    """What a program holds whenever something is noted."""

    def __init__(self, program):
        super().__init__()
        self._program = program

    def append(self, _):
        super().append(self._program.megabytes)


def _policies(folder, url):
    """Save a policy of a table and one of a study; return by name how each is served."""
    table, study = folder / "table.json", folder / "study.json"
    SelectivePolicy(RawScore(), 0.5, PROMISE, "2026-11-17", 500, {"model": "m"}).save(table)
    place = folder / "study"
    place.mkdir()
    (place / "study.toml").write_text(STUDY.format(draws=DRAWS, url=url))
    (place / "questions.jsonl").write_text("")
    recipe = study_recipe(place, "consistency", ("samples",))
    fitted = {"model": "deepseek", "method": "consistency", "asked": recipe}
    SelectivePolicy(RawScore(), 0.5, PROMISE, "2026-11-17", 500, fitted).save(study)
    asked = ("--endpoint", f"m={url}", "--measured-by", "perplexity")
    return {"serve, a policy of a table": (table, asked),
            f"serve, a policy of a study, {DRAWS} draws": (study, ())}  # fmt: skip


async def _measured(program, endpoint, count, at_a_time, *, study=False):
    """Return the row of one way under one load."""
    memory, before = _Memory(program), endpoint.answered
    cpu = program.cpu_s
    began = time.perf_counter()
    times, statuses = await _times(program.address, count, at_a_time, study=study, seen=memory)
    wall, cpu = time.perf_counter() - began, program.cpu_s - cpu
    return times, statuses, cpu / count, count / wall, memory, endpoint.answered - before


async def _loads(folder):
    rows, notes, endpoint = [], [], Counting()
    async with _listening(endpoint.complete) as url:
        for at_a_time in TIMES:
            times, statuses = await _times(url, PEER_REQUESTS, at_a_time)
            rows.append(("the endpoint itself", at_a_time, PEER_REQUESTS, times, statuses))
            command = ("benchmarks._serving_load", url)
            with open_program(folder, *command) as program:
                found = await _measured(program, endpoint, PEER_REQUESTS, at_a_time)
            rows.append(("bare aiohttp proxy", at_a_time, PEER_REQUESTS, *found))
            if LITELLM and shutil.which(LITELLM):
                with _litellm(url, folder) as program:
                    await _times(program.address, 200, at_a_time)
                    found = await _measured(program, endpoint, PEER_REQUESTS, at_a_time)
                rows.append(("LiteLLM's proxy", at_a_time, PEER_REQUESTS, *found))
        for name, (policy, asked) in _policies(folder, url).items():
            for at_a_time in TIMES:
                count = REQUESTS if at_a_time == TIMES[0] else PEER_REQUESTS
                ledger = folder / f"{policy.stem}-{at_a_time}.sqlite"
                command = ("calibrant", "serve", str(policy), *asked, "--ledger", str(ledger))
                with open_program(folder, *command) as program:
                    start = program.megabytes
                    found = await _measured(program, endpoint, count, at_a_time,
                                            study="study" in name)  # fmt: skip
                with Ledger(ledger, read_only=True) as kept:
                    draws = kept.totals()["draws"]
                lines = ledger.with_suffix(".jsonl").read_bytes().count(b"\n")
                rows.append((name, at_a_time, count, *found))
                memory, answered = found[-2:]
                notes.append(
                    f"{name}, {count:,} requests, {at_a_time} at a time: the endpoint counts "
                    f"{answered:,} answers, the ledger {draws:,}, and {lines:,} rows were written. "
                    f"The process held {start:,.0f} MB before, {memory[0]:,.0f} MB after {WARM:,} "
                    f"requests and {memory[-1]:,.0f} MB at the end."
                )
    return rows, notes


def load_tables():
    """Yield the table of loads and what was paid, kept and held in memory."""
    with tempfile.TemporaryDirectory() as name:
        rows, notes = asyncio.run(_loads(Path(name)))
    bare = {row[1]: float(np.median(row[3])) for row in rows if row[0].startswith("bare")}
    yield (
        "An endpoint of 5 ms that fails 1 in 100, asked by one process",
        ["way", "at a time", "requests", "p50", "p99", "p50 beyond a bare proxy",
         "processor time per request", "per second", "statuses"],
        [
            (
                way, at_a_time, f"{count:,}", seconds(float(np.median(times))),
                seconds(float(np.quantile(times, 0.99))),
                "" if way.startswith(("bare", "the")) else
                seconds(float(np.median(times)) - bare[at_a_time]),
                *((f"{more[0] * 1000:.1f} ms", f"{more[1]:,.0f}") if more else ("", "")),
                ", ".join(f"{status}: {n:,}" for status, n in sorted(statuses.items())),
            )
            for way, at_a_time, count, times, statuses, *more in rows
        ],
    )  # fmt: skip
    yield " ".join(notes)


if __name__ == "__main__":
    asyncio.run(bare_proxy(sys.argv[1]))
