"""A served year: labels come late, the model is exchanged in the middle, the policy is refitted."""

from __future__ import annotations

import asyncio
import datetime as dt
import tempfile
from pathlib import Path

import aiohttp
import numpy as np
import polars as pl

import calibrant as cal
from benchmarks._recorded_world import recorded_tokens, token_rows
from benchmarks.harness import DATA, Page
from calibrant.apps.serve import open_front

TOKEN = "secret"
ALPHA, LABELLED, PER_DAY, DAYS, EXCHANGED = 0.2, 2_000, 12, 364, 182
BEFORE, AFTER = "Qwen3-14B-think", "Qwen3-8B-think"
LOOK_EVERY, REFIT_DAYS, LEAST_LABELS = 7, 63, 500
START = dt.date(2026, 1, 1)


class Year:
    """One front at a time, its labels as they come in, and what became of every question."""

    def __init__(self, folder: Path, rows: list[dict], days: int) -> None:
        self.folder, self.rows, self.days = folder, rows, days
        self.labels, self.served = folder / "labels.csv", []
        late = np.random.default_rng(0).integers(1, 31, len(rows))
        self.due = [number // PER_DAY + int(late[number]) for number in range(len(rows))]
        self.policies = [folder / "policy-0.json"]
        self.events: list[tuple[int, str]] = []
        self.day = 0

    def _now(self) -> dt.datetime:
        """Return the time that rows get: noon of the day that is played."""
        return dt.datetime.combine(START + dt.timedelta(days=self.day), dt.time(12), dt.UTC)

    async def run(self, url: str) -> None:
        """Serve day by day; look at the labels every week; refit when the promise is broken."""
        day = 0
        while day < self.days:
            day = await self._serve(url, day)

    async def _serve(self, url: str, day: int) -> int:
        policy = self.policies[-1]
        # Labels of questions that an earlier policy answered are no evidence about this one.
        first, number = day * PER_DAY, len(self.policies)
        front = open_front(
            policy, endpoints={"m": url}, keys={}, price={}, per_token=False,
            ledger=self.folder / f"served-{number}.sqlite", token=TOKEN,
            measured_by="perplexity", watch=self.labels, clock=self._now,
        )  # fmt: skip
        address = await front.start()
        try:
            headers = {"Authorization": f"Bearer {TOKEN}"}
            async with aiohttp.ClientSession(headers=headers) as client:
                while day < self.days:
                    self.day = day
                    await asyncio.gather(
                        *(self._ask(client, address, n)
                          for n in range(day * PER_DAY, (day + 1) * PER_DAY))
                    )  # fmt: skip
                    day += 1
                    if day % LOOK_EVERY:
                        continue
                    self._label(first, day)
                    await front.watch.look()
                    if front.engine.standing.known.expired is None:
                        continue
                    if self.events[-1:] == [] or self.events[-1][1] != "broken":
                        self.events.append((day, "broken"))
                    if self._refit(day):
                        return day
        finally:
            await front.stop()
        return day

    async def _ask(self, client, address, number) -> None:
        row = self.rows[number]
        time = f"{START + dt.timedelta(days=number // PER_DAY)}T12:00:00Z"
        known = {"question_id": row["question_id"], "category": row["category"]}
        body = {"messages": [{"role": "user", "content": f"Question {row['question_id']}"}],
                "calibrant": known, "temperature": 0}  # fmt: skip
        async with client.post(f"{address}/chat/completions", json=body) as reply:
            told = (await reply.json())["calibrant"]
        self.served.append({
            **row, "day": number // PER_DAY, "answered": reply.status == 200, "time": time,
            "promised": told["promise"].startswith("at most"), "policy": len(self.policies) - 1,
            "number": number, "model": "m",
        })  # fmt: skip

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


def year(days: int = DAYS, exchanged: int = EXCHANGED) -> tuple[pl.DataFrame, list]:
    """Return every question of the year with what became of it, and when something happened."""
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
    return pl.DataFrame(world.served), world.events


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
    served, events = year()
    page = Page("serving_year", "A served year with an exchanged model", packages=["numpy"])
    page.table(
        f"{served.height:,} questions over HTTP, at most {ALPHA:.0%} wrong promised",
        ["stretch", "days", "answered", "wrong among answers", "answers with the promise"],
        stretches(served, events),
    )
    page.text(
        f"Recorded token probabilities and grades on MMLU-Pro: {BEFORE} is certified on "
        f"{LABELLED:,} labels and served; on day {EXCHANGED} the endpoint answers as {AFTER} under "
        "the same name. Labels come 1 to 30 days late and are looked at once a week. After the "
        f"promise is marked as broken, a new policy is fitted once {LEAST_LABELS} questions asked "
        "since then are labelled."
    )
    page.write()


if __name__ == "__main__":
    main()
