"""What the front of a policy adds to a request: 200 questions through two loopback endpoints."""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks._served_world import chat, front_of_two, saved_policy, world
from benchmarks.harness import Page, seconds

QUESTIONS, PASSES = 200, 10


async def _timed(client, url, body):
    started = time.perf_counter()
    async with client.post(f"{url}/chat/completions", json=body) as response:
        assert response.status == 200
        answer = await response.json()
    return time.perf_counter() - started, answer


async def _one_pass(folder, number):
    """Return seconds of the front, of its calls, of a direct call, and what was answered."""
    asked = world(QUESTIONS, 99 + number)
    topics = asked.features["topic"].to_list()
    ledger = folder / f"served-{number}.sqlite"
    front, direct, answers = [], [], []
    async with front_of_two(asked, folder / "policy.json", ledger) as (client, address, urls):
        for row in range(QUESTIONS):
            body = chat(row, topics[row])
            spent, answer = await _timed(client, address, body)
            front.append(spent)
            answers.append(answer)
            direct.append((await _timed(client, urls[0], body))[0])
    with sqlite3.connect(ledger) as store:
        calls = sum(spent for (spent,) in store.execute("SELECT seconds FROM calls"))
    return front, direct, calls, answers


def _mean(values, digits):
    """Return the mean with its standard error."""
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    return f"{np.mean(values):.{digits}f} ± {error:.{digits}f}"


def main() -> None:
    page = Page("serving", "A policy in front of two models", packages=["numpy", "aiohttp"])
    rows, every_right, every_paid = [], [], []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        promise = saved_policy(folder / "policy.json").promise
        for number in range(PASSES):
            front, direct, calls, answers = asyncio.run(_one_pass(folder, number))
            right = [a["choices"][0]["message"]["content"] == "right" for a in answers]
            paid = [a["calibrant"]["cost"] for a in answers]
            every_right += right
            every_paid += paid
            asked = sum(len(a["calibrant"]["asked"]) for a in answers) / QUESTIONS
            own = (sum(front) - calls) / QUESTIONS
            rows.append(
                (
                    number + 1,
                    seconds(float(np.median(front))),
                    seconds(float(np.median(direct))),
                    f"{asked:.2f}",
                    seconds(own),
                    f"{np.mean(right):.3f}",
                    f"{np.mean(paid):.2f}",
                )
            )
    page.table(
        f"{QUESTIONS} questions one after the other",
        ["pass", "front, p50", "one endpoint asked directly, p50", "models asked", "front's own",
         "accuracy", "cost"],
        rows,
    )  # fmt: skip
    page.text(
        f"The policy promised an accuracy of {promise['accuracy'].value:.3f} and a cost of "
        f"{promise['cost'].value:.2f} per question; all passes together gave "
        f"{_mean(every_right, 3)} and {_mean(every_paid, 2)}. The front's own time is the mean of "
        "a request "
        "minus the calls that its ledger recorded: reading, deciding, writing the ledger."
    )
    page.write()


if __name__ == "__main__":
    main()
