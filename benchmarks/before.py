"""Audits at a commit before and now, in turns: small, in memory, and streamed.

CALIBRANT_BEFORE names the commits, CALIBRANT_ROWS the sizes of streamed tables.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.harness import ROOT, Page, seconds
from benchmarks.scale import run, write_table
from benchmarks.weight import small_table, source_of

COMMITS = os.environ.get("CALIBRANT_BEFORE", "f2aa1e6,64c7832").split(",")
STREAMED = tuple(map(int, os.environ.get("CALIBRANT_ROWS", "10000000,100000000").split(",")))
TURNS = int(os.environ.get("CALIBRANT_TURNS", "5"))
AIM = 1.1
# The same environment, whichever code is run; older commands need other packages than Python does.
FROM_SOURCE = """
import sys
sys.path.insert(0, sys.argv[1])
import calibrant
calibrant.audit(sys.argv[2], **({"engine": "local"} if "streamed" in sys.argv else {}))
"""


def tables(folder: Path) -> dict[str, tuple[Path, list[str]]]:
    """Write the tables; return them with how they are audited."""
    found = {"1,000 rows, csv": (small_table(folder), [])}
    path = folder / "memory.parquet"
    write_table(path, 2_000_000)
    found["2,000,000 rows, in memory"] = (path, [])
    for rows in STREAMED:
        path = folder / f"{rows}.parquet"
        write_table(path, rows)
        found[f"{rows:,} rows, streamed"] = (path, ["streamed"])
    return found


def taken(sources: dict[str, Path], path: Path, options: list[str]) -> dict[str, tuple[float, ...]]:
    """Return the median CPU time and the median peak of every source, run in turns."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in sources}
    for turn in range(TURNS + 1):
        for name, source in sources.items():
            words = [str(source), str(path), *options]
            _, cpu, peak, _ = run([sys.executable, "-c", FROM_SOURCE, *words])
            # The first turn fills the disk's cache and compiles.
            if turn:
                found[name].append((cpu, peak))
    return {
        name: tuple(map(statistics.median, zip(*runs, strict=True))) for name, runs in found.items()
    }


def main() -> None:
    page = Page("before", "Audits before and now", packages=["numpy", "polars", "pyarrow"])
    rows = []
    with tempfile.TemporaryDirectory(prefix="calibrant-bench-") as place:
        folder = Path(place)
        sources = {commit: source_of(commit, folder) / "src" for commit in COMMITS}
        sources["now"] = ROOT / "src"
        for name, (path, options) in tables(folder).items():
            found = taken(sources, path, options)
            now = found["now"][0]
            times = [seconds(found[one][0]) for one in sources]
            ratios = [f"{now / found[commit][0]:.2f}" for commit in COMMITS]
            memory = [f"{found[one][1] / 1e6:.0f} MB" for one in sources]
            rows.append((name, *times, *ratios, *memory))
            print(rows[-1], flush=True)
    names = [*COMMITS, "now"]
    page.table(
        "CPU time and peak memory of whole audits",
        (
            "table",
            *(f"CPU, {name}" for name in names),
            *(f"now / {name}" for name in COMMITS),
            *(f"peak, {name}" for name in names),
        ),
        rows,
    )
    page.text(
        f"Medians of {TURNS} whole processes of each, in turns, after one that does not count. "
        f"CPU time is user and system time of all threads. Aim: at most {AIM} times. "
        "f2aa1e6 is the commit before claims rested on cells; 64c7832 made no claims yet."
    )
    page.write()


if __name__ == "__main__":
    main()
