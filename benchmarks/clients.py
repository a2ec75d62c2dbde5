"""Clients against an endpoint on the loopback, and a ledger of a million draws."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, cast

from benchmarks.harness import ROOT, Page

# The peers need conflicting packages, so they may live in environments of their own: a list of
# interpreters as in PATH. A peer that runs in none of them is left out.
PEERS = os.environ.get("CALIBRANT_BENCH_PEERS", sys.executable).split(os.pathsep)
NAMES = {
    "calibrant": "calibrant, ledger included",
    "bare": "aiohttp + orjson, bare",
    "openai": "openai client",
    "litellm": "litellm",
    "inspect": "Inspect",
}
CALLS = {"calibrant": 3000, "bare": 3000, "openai": 600, "litellm": 400, "inspect": 400}
ROUNDS = 3


@contextmanager
def endpoint(tokens: int, top: int) -> Iterator[tuple[str, int]]:
    """Run the endpoint in a process of its own; give its address and the size of a reply."""
    command = [sys.executable, "-m", "benchmarks._clients_server", str(tokens), str(top)]
    server = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    port, size = server.stdout.readline().split()
    try:
        yield f"http://127.0.0.1:{port}/v1", int(size)
    finally:
        server.kill()
        server.wait()
        server.stdout.close()


def measure(name: str, url: str, concurrency: int, calls: int) -> dict[str, float] | None:
    """Return calls per second, CPU per call and memory of one client in its own process."""
    script = str(ROOT / "benchmarks" / "_clients_peers.py")
    reason = "no interpreter"
    for python in [sys.executable] if name in ("calibrant", "bare") else PEERS:
        command = [python, script, name, url, str(concurrency), str(calls)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
        if done.returncode == 0:
            found = json.loads(done.stdout.strip().splitlines()[-1])
            return {
                "rate": calls / found["seconds"],
                "cpu_ms": 1e3 * found["cpu"] / calls,
                "memory_mb": found["memory_mb"],
            }
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
    print(f"   left out: {name} ({reason})", flush=True)
    return None


def compare(page: Page, url: str, size: int, concurrency: int, *, share: float = 1.0) -> None:
    """Measure every client in turn, several rounds, and write medians and ratios."""
    found: dict[str, list[dict[str, float]]] = {}
    names = list(NAMES)
    for _ in range(ROUNDS):
        for name in list(names):
            result = measure(name, url, concurrency, max(100, int(share * CALLS[name])))
            if result is None:
                names.remove(name)
            else:
                found.setdefault(name, []).append(result)
    medians = {
        name: {key: statistics.median(one[key] for one in results) for key in results[0]}
        for name, results in found.items()
    }
    own = medians["calibrant"]
    rows = [
        (
            NAMES[name],
            f"{one['rate']:.0f}",
            f"{own['rate'] / one['rate']:.2f}",
            f"{one['cpu_ms']:.2f}",
            f"{one['cpu_ms'] / own['cpu_ms']:.2f}",
            f"{one['memory_mb']:.0f}",
        )
        for name, one in medians.items()
    ]
    page.table(
        f"Concurrency {concurrency}, replies of {size / 1e3:.0f} kB after 50 ms",
        [
            "client",
            "calls / s",
            "calibrant's rate / its rate",
            "CPU ms / call",
            "its CPU / calibrant's",
            "memory MB",
        ],
        rows,
    )


SHAPES = ((50_000, 20, 1000), (1_000_000, 1, 200))
"""Requests, draws of each, and bytes of an answer: few requests of many draws, and the reverse."""


def big_ledgers(page: Page) -> None:
    """Fill a ledger with a million draws, then plan a rerun of all of it, in its own process."""
    rows = []
    for questions, draws, size in SHAPES:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "ledger.sqlite"
            fill(path, questions, draws, b"x" * size)
            code = (
                "from benchmarks.clients import plan_rerun; "
                f"plan_rerun({str(path)!r}, {questions}, {draws})"
            )
            done = subprocess.run(
                [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
            )
            seconds, cpu, memory = map(float, done.stdout.split())
            file_mb = path.stat().st_size / 1e6
        rows.append(
            (
                f"{questions:,} x {draws}",
                f"{file_mb:.0f}",
                f"{seconds:.2f}",
                f"{cpu:.2f}",
                f"{memory:.0f}",
            )
        )
    page.table(
        "A rerun over a full ledger",
        [
            "requests x draws",
            "file MB",
            "open and plan, s",
            "CPU s",
            "memory of the whole process, MB",
        ],
        rows,
    )


def make_asks(questions: int, draws: int) -> Iterator[Any]:
    from calibrant.models import Ask, Message, Request

    for number in range(questions):
        messages = (Message("user", f"Question {number}: what is the capital of Peru?"),)
        yield Ask(Request("bench", messages, logprobs=True, seed=0), "answer", draws, number)


def fill(path: Path, questions: int, draws: int, payload: bytes = b"x" * 1000) -> None:
    from calibrant.models import Dispatcher, open_client
    from calibrant.models.ledger import DrawRow, Ledger, LedgerClaim

    client = open_client({"kind": "vllm"})
    asks = make_asks(questions, draws)
    with Ledger(path) as ledger:
        dispatcher = Dispatcher(client, ledger)
        while keys := [dispatcher.prepare(ask)[1] for ask in islice(asks, 2000)]:
            with ledger.writing():
                requests = ledger.register(keys)
                claims = [LedgerClaim(request, 0, draws) for request in requests]
                attempts = cast("list[int]", ledger.claim_all(claims))
                ledger.keep_all(
                    [(attempt, [DrawRow(request, draw, attempt, payload, "bench", 9, 9, 0.0)
                                for draw in range(draws)])
                     for request, attempt in zip(requests, attempts, strict=True)]
                )  # fmt: skip


def plan_rerun(path: str, questions: int, draws: int) -> None:
    from calibrant.models import Dispatcher, open_client
    from calibrant.models.ledger import Ledger

    client = open_client({"kind": "vllm"})
    started, cpu = time.perf_counter(), time.process_time()
    with Ledger(path) as ledger:
        plan = Dispatcher(client, ledger).plan(make_asks(questions, draws))
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    assert plan.draws_held == plan.draws_wanted == questions * draws
    print(seconds, cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main() -> None:
    page = Page("clients", "Clients and ledger", packages=["aiohttp", "orjson", "msgspec"])
    page.text(
        "Every client runs in a process of its own against the same endpoint, a bare asyncio "
        "server with a prepared reply in another process. Rates are medians of "
        f"{ROUNDS} rounds in which the clients take turns. calibrant reads and checks the "
        "log-probs and commits the start and the end of every call and every draw to its "
        "ledger before it hands the draw on; the others only read the reply. At the latency "
        "of 50 ms the ideal is 1,280 calls a second at concurrency 64 and 5,120 at 256."
    )
    with endpoint(38, 2) as (url, size):
        for concurrency in (64, 256):
            compare(page, url, size, concurrency)
    with endpoint(100, 20) as (url, size):
        compare(page, url, size, 64, share=0.2)
    big_ledgers(page)
    page.write()


if __name__ == "__main__":
    main()
