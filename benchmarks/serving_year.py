"""A served year: labels come late, the model is exchanged, the server and its watch are killed."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import re
import signal
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import aiohttp
import numpy as np
import polars as pl

import calibrant as cal
from benchmarks._recorded_world import recorded_tokens, token_rows
from benchmarks._serving_load import TOKEN, Program, open_program
from benchmarks.harness import DATA, Page
from calibrant.apps.serve import open_front

ALPHA, LABELLED, PER_DAY, DAYS, EXCHANGED = 0.2, 2_000, 12, 364, 182
BEFORE, AFTER = "Qwen3-14B-think", "Qwen3-8B-think"
LOOK_EVERY, REFIT_DAYS, LEAST_LABELS = 7, 63, 500
START = dt.date(2026, 1, 1)
ROUND_S = 0.5
"""Seconds between two looks of the watch: a year takes minutes."""
KILLS, WATCH_KILLS = 16, 4
"""Days on which the server is killed amid its answers, and on which its watch alone ends."""


async def serve_days(policy: str, url: str, labels: str, ledger: str, today: str) -> None:
    """Serve on the day that a file names; SIGUSR1 ends the watch and nothing else."""

    def now() -> dt.datetime:
        day = START + dt.timedelta(days=int(Path(today).read_text() or 0))
        return dt.datetime.combine(day, dt.time(12), dt.UTC)

    front = open_front(
        policy, endpoints={"m": url}, keys={}, price={}, per_token=False, ledger=ledger,
        token=TOKEN, measured_by="perplexity", watch=labels, clock=now,
    )  # fmt: skip
    for routine in front.watch.routines:
        routine.every_s = ROUND_S
    loop, ended, ends = asyncio.get_running_loop(), asyncio.Event(), set()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    loop.add_signal_handler(signal.SIGUSR1, lambda: ends.add(loop.create_task(front.watch.stop())))
    sys.stderr.write(f"Serving at {await front.start()} ()\n")
    sys.stderr.flush()
    await ended.wait()
    await front.stop()


class Year:
    """One server at a time, its labels as they come in, and what became of every question."""

    def __init__(self, folder: Path, rows: list[dict], days: int) -> None:
        self.folder, self.rows, self.days = folder, rows, days
        self.labels, self.today, self.served = folder / "labels.csv", folder / "today", []
        rng = np.random.default_rng(0)
        late = rng.integers(1, 31, len(rows))
        self.due = [number // PER_DAY + int(late[number]) for number in range(len(rows))]
        ended = rng.choice(days, KILLS + WATCH_KILLS, replace=False).tolist()
        self.kills, self.watch_kills = set(ended[:KILLS]), set(ended[KILLS:])
        self.policies = [folder / "policy-0.json"]
        self.events: list[tuple[int, str]] = []
        self._program: Program | None = None
        self._opened = ExitStack()

    @property
    def ledger(self) -> Path:
        """Where the server of the present policy keeps what it asks."""
        return self.folder / f"served-{len(self.policies)}.sqlite"

    async def run(self, url: str) -> None:
        """Serve day by day; look at the labels every week; refit when the promise is broken."""
        day, headers = 0, {"Authorization": f"Bearer {TOKEN}"}
        async with aiohttp.ClientSession(headers=headers) as client:
            try:
                while day < self.days:
                    day = await self._serve(client, url, day)
            finally:
                await asyncio.to_thread(self._opened.close)

    async def _start(self, url: str, *, kill: bool = False) -> None:
        """Start the server anew, after it was stopped or killed."""
        if kill:
            self._program.process.kill()
        await asyncio.to_thread(self._opened.close)
        given = (self.policies[-1], url, self.labels, self.ledger, self.today)
        opened = open_program(self.folder, "benchmarks.serving_year", *map(str, given))
        self._program = await asyncio.to_thread(self._opened.enter_context, opened)

    async def _serve(self, client, url: str, day: int) -> int:
        """Serve one policy until another one is fitted, and return the day."""
        # Labels of questions that an earlier policy answered are no evidence about this one.
        first = day * PER_DAY
        self._label(first, day)
        self.today.write_text(str(day))
        await self._start(url)
        while day < self.days:
            self.today.write_text(str(day))
            await self._play(client, url, day)
            day += 1
            if day % LOOK_EVERY:
                continue
            self._label(first, day)
            if not await self._broken(client):
                continue
            if self.events[-1:] == [] or self.events[-1][1] != "broken":
                self.events.append((day, "broken"))
            if self._refit(day):
                break
        return day

    async def _play(self, client, url: str, day: int) -> None:
        """Ask the questions of a day; callers whose server was killed ask again."""
        if watch_ends := day in self.watch_kills:
            self._program.process.send_signal(signal.SIGUSR1)
            await self._until(client, "calibrant_watch_up 0")
        numbers = range(day * PER_DAY, (day + 1) * PER_DAY)
        asks = [asyncio.create_task(self._ask(client, number)) for number in numbers]
        if day in self.kills:
            await asyncio.wait(asks, return_when=asyncio.FIRST_COMPLETED)
            await self._start(url, kill=True)
        await asyncio.gather(*asks)
        if watch_ends:
            # As a supervisor does with a server that is not ready any more.
            await self._start(url, kill=True)

    async def _metrics(self, client) -> str:
        async with client.get(self._program.address.replace("/v1", "/metrics")) as reply:
            return await reply.text()

    async def _until(self, client, line: str) -> None:
        while line not in await self._metrics(client):
            await asyncio.sleep(ROUND_S / 5)

    async def _broken(self, client) -> bool:
        """Return what the watch has found, once it has looked at the labels as they are now."""
        seen: set[str] = set()
        # A round that was under way may have read the labels before.
        while len(seen) < 3:
            told = await self._metrics(client)
            seen.add(re.search(r"last_success_timestamp_seconds ([0-9.]+)", told)[1])
            await asyncio.sleep(ROUND_S / 5)
        return "calibrant_promise_expired 1" in told

    async def _ask(self, client, number: int) -> None:
        row, day = self.rows[number], number // PER_DAY
        known = {"question_id": row["question_id"], "category": row["category"]}
        body = {"messages": [{"role": "user", "content": f"Question {row['question_id']}"}],
                "calibrant": known, "temperature": 0}  # fmt: skip
        while True:
            try:
                url = f"{self._program.address}/chat/completions"
                async with client.post(url, json=body) as reply:
                    told, status = (await reply.json())["calibrant"], reply.status
                break
            except aiohttp.ClientError:
                await asyncio.sleep(ROUND_S / 5)
        self.served.append({
            **row, "day": day, "answered": status == 200, "id": told["id"],
            "promised": told["promise"].startswith("at most"), "policy": len(self.policies) - 1,
            "number": number, "model": "m", "unwatched": day in self.watch_kills,
        })  # fmt: skip

    def lost(self) -> int:
        """Return how many answers that callers have read have no row of their own."""
        kept = [json.loads(line)["id"] for path in self.folder.glob("served-*.jsonl")
                for line in path.read_bytes().splitlines()]  # fmt: skip
        assert len(set(kept)) == len(kept), "a row stands twice"
        return len({row["id"] for row in self.served} - {*kept})

    def _label(self, first: int, day: int) -> None:
        known = [n for n in range(first, day * PER_DAY) if self.due[n] <= day]
        rows = [(self.rows[n]["question_id"], self.rows[n]["correct"]) for n in known]
        schema = {"question_id": pl.String, "correct": pl.Float64}
        pl.DataFrame(rows, schema=schema, orient="row").write_csv(self.labels)

    def _refit(self, day: int) -> bool:
        """Fit anew on what was asked of late and is labelled by now, where that is enough."""
        since = max(day - REFIT_DAYS, self.events[-1][0] - LOOK_EVERY)
        late = [r for r in self.served if r["day"] >= since and self.due[r["number"]] <= day]
        if len(late) < LEAST_LABELS:
            return False
        table = pl.DataFrame(late).select("question_id", "model", "confidence", "correct")
        following = self.folder / f"policy-{len(self.policies)}.json"
        cal.decide(table, max_error=ALPHA, save=following)
        self.policies.append(following)
        self.events.append((day, "refitted"))
        return True


def year(days: int = DAYS, exchanged: int = EXCHANGED) -> tuple[pl.DataFrame, list, int]:
    """Return every question of the year, when something happened, and how many rows were lost."""
    before, after = token_rows(DATA, BEFORE, seed=1), token_rows(DATA, AFTER, seed=2)
    own = before[LABELLED : LABELLED + exchanged * PER_DAY]
    rows = own + [{**r, "question_id": f"b{r['question_id']}"}
                  for r in after[: (days - exchanged) * PER_DAY]]  # fmt: skip
    with tempfile.TemporaryDirectory() as name:
        world = Year(Path(name), rows, days)
        table = pl.DataFrame(before[:LABELLED]).with_columns(model=pl.lit("m"))
        cal.decide(table.drop("category"), max_error=ALPHA, save=world.policies[0])

        async def served() -> None:
            async with recorded_tokens(rows) as url:
                await world.run(url)

        asyncio.run(served())
        return pl.DataFrame(world.served), world.events, world.lost()


def stretches(served: pl.DataFrame, events: list, exchanged: int = EXCHANGED) -> list[tuple]:
    """Return per stretch of the year: days, share answered, share wrong of the answers promised."""
    words = {"broken": "marked as broken", "refitted": "refitted"}
    named = [(day, words[kind]) for day, kind in events]
    began = sorted([(0, "as certified"), (exchanged, "exchanged, not yet seen"), *named])
    ends = [*(day for day, _ in began[1:]), int(served["day"].max()) + 1]
    found = []
    for (low, name), high in zip(began, ends, strict=True):
        part = served.filter(pl.col("day").is_between(low, high, closed="left"))
        given = part.filter("answered")
        found.append((
            name, f"{low} to {high}", f"{given.height / part.height:.0%}",
            f"{1 - given['correct'].mean():.1%}" if given.height else "none",
            f"{given['promised'].mean():.0%}" if given.height else "none",
        ))  # fmt: skip
    return found


def main() -> None:
    served, events, lost = year()
    page = Page("serving_year", "A served year with an exchanged model", packages=["numpy"])
    page.table(
        f"{served.height:,} questions over HTTP, at most {ALPHA:.0%} wrong promised",
        ["stretch", "days", "answered", "wrong among answers", "answers with the promise"],
        stretches(served, events),
    )
    unwatched = served.filter("unwatched")
    page.text(
        f"Recorded token probabilities and grades on MMLU-Pro: {BEFORE} is certified on "
        f"{LABELLED:,} labels and served; on day {EXCHANGED} the endpoint answers as {AFTER} under "
        "the same name. Labels come 1 to 30 days late and are looked at once a week. After the "
        f"promise is marked as broken, a new policy is fitted once {LEAST_LABELS} questions asked "
        "since then are labelled."
    )
    page.text(
        f"The server is a process. On {KILLS} days it is killed amid its answers, and callers ask "
        f"again: {lost} of {served.height:,} answers that they have read have no row. On "
        f"{WATCH_KILLS} days its watch alone is ended: of {unwatched.height} questions asked from "
        f"three rounds later on, {unwatched['promised'].sum()} were answered with the promise."
    )
    page.write()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(serve_days(*sys.argv[1:]))
    else:
        main()
