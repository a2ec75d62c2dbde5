"""What the search for rows that hang together costs: audits before it and now, in turns.

Tables of 2, 10 and 20 columns beside the confidence and the outcome: ids, categories, texts of 12
words, numbers and times, nothing in them hangs together. CALIBRANT_BEFORE names the commit before
the search, CALIBRANT_TURNS the number of turns.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np
import polars as pl

from benchmarks.before import TURNS, taken
from benchmarks.harness import ROOT, Page, seconds
from benchmarks.scale import write_table
from benchmarks.weight import source_of

# What is measured, and its libraries, work in one thread each: turns differ less.
ONE_THREAD = {"POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1"}
COMMIT = os.environ.get("CALIBRANT_BEFORE", "d66e99b9")
ROWS, COLUMNS = (1_000, 100_000), (2, 10, 20)
STREAMED = 10_000_000
AIM = 1.2
_WORDS, _DAYS = 20_000, 90
_Column: TypeAlias = Callable[[np.random.Generator, int], pl.Series]


def _ids(rng: np.random.Generator, rows: int) -> pl.Series:
    return pl.Series([f"q-{number}" for number in rng.permutation(rows)])


def _categories(rng: np.random.Generator, rows: int) -> pl.Series:
    return pl.Series([f"group {code}" for code in rng.integers(0, 30, rows)])


def _texts(rng: np.random.Generator, rows: int) -> pl.Series:
    common = 1 / np.arange(1, _WORDS + 1)
    drawn = rng.choice(_WORDS, (rows, 12), p=common / common.sum())
    return pl.Series([" ".join(f"word{code}" for code in text) for text in drawn.tolist()])


def _numbers(rng: np.random.Generator, rows: int) -> pl.Series:
    return pl.Series(rng.normal(size=rows))


def _times(rng: np.random.Generator, rows: int) -> pl.Series:
    start = np.datetime64("2026-01-01T00:00:00", "ms")
    return pl.Series(start + rng.integers(0, 86_400_000 * _DAYS, rows))


KINDS: tuple[_Column, ...] = (_ids, _categories, _texts, _numbers, _times)


def write_columns(path: Path, rows: int, columns: int) -> None:
    """Write a table of independent rows with so many further columns, of all kinds in turn."""
    rng = np.random.default_rng([rows, columns])
    confidence = rng.uniform(0.5, 0.92, rows).round(3)
    frame = {"confidence": confidence, "correct": (rng.random(rows) < confidence).astype(int)}
    further = {f"x{place}": KINDS[place % len(KINDS)](rng, rows) for place in range(columns)}
    pl.DataFrame({**frame, **further}).write_parquet(path)


def main() -> None:
    page = Page("dependence", "What the search for dependence costs", packages=["numpy", "polars"])
    lines = []
    os.environ.update(ONE_THREAD)
    with tempfile.TemporaryDirectory(prefix="calibrant-bench-") as place:
        folder = Path(place)
        sources = {"before": source_of(COMMIT, folder) / "src", "now": ROOT / "src"}
        path = folder / "table.parquet"
        for rows in (*ROWS, STREAMED):
            for columns in COLUMNS if rows < STREAMED else (1,):
                if rows < STREAMED:
                    write_columns(path, rows, columns)
                else:
                    write_table(path, rows)
                how = ["streamed"] if rows == STREAMED else []
                cpu = {name: found[0] for name, found in taken(sources, path, how).items()}
                ratio = f"{cpu['now'] / cpu['before']:.2f}"
                times = seconds(cpu["before"]), seconds(cpu["now"])
                lines.append((f"{rows:,}{', streamed' * bool(how)}", str(columns), *times, ratio))
                print(lines[-1], flush=True)
    page.table(
        "CPU time of whole audits",
        ("rows", "further columns", "before the search", "now", "now / before"),
        lines,
    )
    page.text(
        f"Medians of {TURNS} whole processes of each, in turns, after one that does not count: "
        "user and system time of one thread, with start-up. Rows are independent; columns are ids, "
        "categories, texts of 12 words, numbers and times in turn (streamed: the model). Before: "
        f"commit {COMMIT}, which searched nothing and read the columns of confidence and outcome "
        f"only; reading the others and telling models and questions by them is counted too. "
        f"Aim: at most {AIM} times. Other work on the machine moves single ratios by a fifth."
    )
    page.write()


if __name__ == "__main__":
    main()
