"""Measure and write down: medians, peak memory, ratios, one Markdown page per part."""

from __future__ import annotations

import gc
import importlib
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs" / "benchmarks"
DATA = Path(os.environ.get("CALIBRANT_DATA", ROOT.parent / "shared" / "data"))


def median_seconds(
    work: Callable[[], Any], *, repeats: int = 5, warm: bool = True, budget: float = 60.0
) -> float:
    """Return the median wall time of `work()` over `repeats` runs.

    Very short work is looped so that one run takes at least a few milliseconds. After `budget`
    seconds no further run is started, so a slow peer is measured once or twice only.
    """
    started = begin = time.perf_counter()
    for _ in range(2 if warm else 0):
        begin = time.perf_counter()
        work()
    first = time.perf_counter() - begin
    loops = max(1, int(0.005 / max(first, 1e-7))) if warm else 1
    times: list[float] = []
    for _ in range(repeats):
        gc.collect()
        begin = time.perf_counter()
        for _ in range(loops):
            work()
        times.append((time.perf_counter() - begin) / loops)
        if time.perf_counter() - started > budget:
            break
    return statistics.median(times)


def interleaved_seconds(
    works: Mapping[str, Callable[[], Any]], *, repeats: int = 7, budget: float = 120.0
) -> dict[str, float]:
    """Return the median CPU time (of all threads) of each work, measured in turns.

    CPU time and taking turns make ratios hold on a busy machine too, where wall times do not. A
    work whose first run takes more than its share of the budget is measured once or a few times
    only.
    """
    times: dict[str, list[float]] = {name: [] for name in works}
    loops: dict[str, int] = {}
    allowed: dict[str, int] = {}
    for name, work in works.items():
        begin = time.process_time()
        work()
        first = max(time.process_time() - begin, 1e-7)
        if first < 0.1:
            # The first call fills caches; short work is judged by a second one.
            begin = time.process_time()
            work()
            first = max(time.process_time() - begin, 1e-7)
        loops[name] = max(1, int(0.02 / first))
        allowed[name] = max(1, min(repeats, int(budget / len(works) / first)))
        if allowed[name] == 1:
            times[name].append(first)
    for turn in range(repeats):
        gc.collect()
        for name, work in works.items():
            if len(times[name]) > turn or turn >= allowed[name]:
                continue
            begin = time.process_time()
            for _ in range(loops[name]):
                work()
            times[name].append((time.process_time() - begin) / loops[name])
    return {name: statistics.median(taken) for name, taken in times.items()}


def peak_bytes(work: Callable[[], Any]) -> int:
    """Return the most memory that `work()` held at once beyond what was there before it.

    numpy reports its buffers to tracemalloc, so arrays are counted exactly.
    """
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        work()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return max(0, peak - before)


@dataclass(frozen=True)
class Usage:
    """What a command took: wall and CPU seconds, peak memory in bytes."""

    wall: float
    cpu: float
    peak: int


def run_command(command: Sequence[str]) -> Usage:
    """Run a command of this environment to its end, and say what it took.

    A command that fails ends the benchmark with what it printed.
    """
    program = Path(sys.executable).parent / command[0]
    with tempfile.TemporaryFile() as printed:
        began = time.perf_counter()
        child = subprocess.Popen(
            [str(program), *command[1:]], stdout=printed, stderr=subprocess.STDOUT
        )
        _, status, used = os.wait4(child.pid, 0)
        wall = time.perf_counter() - began
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            printed.seek(0)
            raise RuntimeError(printed.read().decode(errors="replace")[-2000:])
    # Linux counts the peak in kilobytes, macOS in bytes.
    unit = 1 if sys.platform == "darwin" else 1024
    return Usage(wall, used.ru_utime + used.ru_stime, used.ru_maxrss * unit)


def peer(module: str) -> ModuleType | None:
    """Import a peer package, or print why it is left out and return None."""
    try:
        return importlib.import_module(module)
    except Exception as error:  # noqa: BLE001 - a broken peer is left out, never fatal
        print(f"   left out: {module} ({type(error).__name__}: {error})", flush=True)
        return None


def versions(names: Iterable[str]) -> str:
    """Return 'name version' of the installed ones among `names`."""
    found = []
    for name in names:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


def machine() -> str:
    """Return the machine in a few words: architecture, cores, Python."""
    return f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def seconds(value: float) -> str:
    """Return a time with a fitting unit.

    >>> seconds(0.00123)
    '1.23 ms'
    """
    if value >= 1:
        return f"{value:.3g} s"
    return f"{value * 1e3:.3g} ms" if value >= 1e-3 else f"{value * 1e6:.3g} µs"


@dataclass
class Page:
    """A benchmark page that grows while the benchmark runs and is written at its end.

    Examples
    --------
    page = Page("metrics", "Metrics", packages=["numpy", "relplot"])
    page.table("ECE", ["rows", "calibrant", "peer", "ratio"], rows)
    page.write()
    """

    part: str
    title: str
    packages: Sequence[str] = ("numpy",)
    lines: list[str] = field(default_factory=list)

    def text(self, words: str) -> None:
        """Add a paragraph."""
        print(words, flush=True)
        self.lines += [words, ""]

    def table(self, heading: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Add a heading and a table; numbers are written with three digits."""
        body = [" | ".join(_cell(value) for value in row) for row in rows]
        block = [
            "| " + " | ".join(columns) + " |",
            "|" + " --- |" * len(columns),
            *(f"| {line} |" for line in body),
        ]
        print("\n".join(["", heading, *block]), flush=True)
        self.lines += [f"## {heading}", "", *block, ""]

    def write(self) -> Path:
        """Write docs/benchmarks/<part>.md and return its path."""
        DOCS.mkdir(parents=True, exist_ok=True)
        path = DOCS / f"{self.part}.md"
        head = [
            f"# {self.title}",
            "",
            f"Written by `python -m benchmarks {self.part}` on {machine()};"
            f" {versions(self.packages)}. All numbers of one table come from one run.",
            "",
        ]
        path.write_text("\n".join([*head, *self.lines]).rstrip() + "\n", encoding="utf-8")
        print(f"   written: docs/benchmarks/{self.part}.md", flush=True)
        return path


def _cell(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
