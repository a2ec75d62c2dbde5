"""The app on large inputs: ten million rows, and 68 models, over HTTP as a browser asks."""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
from aiohttp import ClientSession, CookieJar

from benchmarks.harness import DATA, Page, seconds
from calibrant.apps.browser.opened import AppData
from calibrant.apps.browser.server import AppServer

ROWS, MODELS, TURNS = 10_000_000, 68, 3
CLICKS = {
    "most confidently wrong first": "",
    "wrong ones": "grade=wrong",
    "most confident first": "sort=-confidence",
    "least confident first": "sort=confidence",
    "as in the file, from row 1,000,000": "sort=row&start=1000000",
    "as in the file, the last page": "sort=row&start=LAST",
    "one model": "model=MODEL&grade=wrong",
    "a range of confidence": "span=0.9:1",
    "one group": "group=GROUP&sort=confidence",
    "models disagree": "split=1",
    "words, until a page can be shown": "words=question+777",
}


def million_rows(path: Path, rows: int) -> None:
    """Write a table of questions that four models answer each, with texts and topics."""
    rng = np.random.default_rng(0)
    said, asked = rng.random(rows).round(2), np.arange(rows) // 4
    right = (rng.random(rows) < 0.8 * said).astype(np.int8)
    pl.DataFrame(
        {
            "question_id": asked,
            "model": pl.Series(np.arange(rows) % 4).cast(pl.String),
            "topic": pl.Series(asked % 7).cast(pl.String),
            "confidence": said,
            "correct": right,
        }
    ).with_columns(
        question=pl.format("Which number is question {}?", "question_id"),
        answer=pl.format("it is {}", pl.col("question_id") * 7),
    ).write_parquet(path)


def many_models(path: Path, models: int, confidence: str = "verbal_numerical_confidence") -> None:
    """Write 68 models by 12,032 questions: 16 of MMLU-Pro, the rest mixed of two each."""
    table = pl.read_parquet(DATA / "scores" / "mmlu_pro_16_models.parquet").select(
        "question_id", pl.col("model").cast(pl.String), "category",
        confidence=confidence, correct="correct",
    ).drop_nulls()  # fmt: skip
    rng = np.random.default_rng(0)
    names, parts = table["model"].unique(maintain_order=True).to_list(), [table]
    for number in range(models - len(names)):
        one, two = rng.choice(names, 2, replace=False)
        first = pl.col("question_id").hash(number) % 2 == 0
        mixed = table.filter(
            (first & (pl.col("model") == one)) | (~first & (pl.col("model") == two))
        )
        parts.append(mixed.with_columns(model=pl.lit(f"mix-{number:02}")))
    pl.concat(parts).write_parquet(path)


async def _clicks(path: Path, group: str):
    """Return seconds until the first tab, and of each click, the middle one of a few."""
    server = AppServer(AppData(str(path)))
    address = await server.start()
    base = address.split("/?")[0]
    try:
        async with ClientSession(cookie_jar=CookieJar(unsafe=True)) as session:
            async with session.get(address) as reply:
                await reply.read()

            async def got(place):
                began = time.perf_counter()
                while True:
                    async with session.get(base + place) as reply:
                        await reply.read()
                        if reply.status != 202:
                            assert reply.status == 200, (place, reply.status)
                            return time.perf_counter() - began
                    await asyncio.sleep(0.05)

            first = await got("/api/tab/overview")
            await asyncio.to_thread(server.data.rows().prepare)
            rows = server.data.rows()
            found = {}
            for words, query in CLICKS.items():
                query = query.replace("MODEL", rows.models[-1]).replace("GROUP", group)
                query = query.replace("LAST", str(rows.height - 25))
                times = [await got(f"/api/rows?{query}")]
                times += [await got(f"/api/rows?{query}") for _ in range(TURNS - 1)]
                found[words] = times
            found["one row with all about its question"] = [
                await got(f"/api/row/{place}") for place in (5, rows.height // 2)
            ]
            found["another model on the first tab"] = [
                await got(f"/api/tab/overview?model={name}") for name in rows.models[1:4]
            ]
    finally:
        await server.stop()
    return first, found


def looked_at(path: Path, group: str):
    """Return the first tab's seconds, the clicks', and the memory, in a process of its own."""
    program = (
        "import sys, json; from benchmarks.app import measured; "
        "print(json.dumps(measured(*sys.argv[1:])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(path), group],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


def measured(path: str, group: str):
    """Return what `looked_at` returns, of this process."""
    first, clicks = asyncio.run(_clicks(Path(path), group))
    return first, clicks, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _audited(path: Path) -> float:
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "calibrant", "audit", str(path)], check=True, capture_output=True
    )
    return time.perf_counter() - began


def _table(page: Page, heading: str, path: Path, group: str) -> None:
    command = _audited(path)
    first, clicks, memory = looked_at(path, group)
    rows = [(words, seconds(times[0]), seconds(sorted(times)[len(times) // 2]))
            for words, times in clicks.items()]  # fmt: skip
    page.table(heading, ["click", "first time", "middle of a few"], rows)
    page.text(
        f"First tab after {first:.1f} s; the command `calibrant audit` takes {command:.1f} s. The "
        f"app held {memory:,.0f} MB at most, beside the process that computes."
    )


def main() -> None:
    page = Page("app", "The app on large inputs", packages=["polars", "aiohttp"])
    page.text("Wall times of requests over HTTP, from another task of the same process.")
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "rows.parquet"
        million_rows(path, ROWS)
        _table(page, f"{ROWS:,} rows of four models", path, "topic%3D3")
        many_models(path, MODELS)
        _table(page, f"{MODELS} models, 12,032 questions", path, "category%3Dlaw")
    page.write()


if __name__ == "__main__":
    main()
