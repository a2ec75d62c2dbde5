"""What `pip install calibrant` weighs and how long a short audit takes, now and at a commit.

Both are installed into new environments outside the project, in one run, and timed in turns.
CALIBRANT_BEFORE names the commit to compare with.
"""

import csv
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness import ROOT, Page, seconds

BEFORE = os.environ.get("CALIBRANT_BEFORE", "64c7832")
RUNS = 7
ROWS = 1_000
NAMED = 8
SMALL = "confidence,correct\n"
LIBRARIES = "import numpy, scipy, polars"
TOOLS = frozenset({"pip", "setuptools", "wheel"})
LISTED = """
import json
from importlib.metadata import distributions
from importlib.util import cache_from_source
from pathlib import Path

def size(found):
    places = {Path(found.locate_file(file)) for file in found.files or ()}
    # pip lists compiled files, other installers do not.
    places |= {Path(cache_from_source(str(place))) for place in places if place.suffix == ".py"}
    return sum(place.stat().st_size for place in places if place.is_file())

def licence(about):
    named = [line.rpartition(" :: ")[2] for line in about.get_all("Classifier") or ()
             if line.startswith("License ::")]
    return about.get("License-Expression") or ", ".join(named) or (about.get("License") or "")[:40]

print(json.dumps([[d.metadata["Name"], d.version, size(d), licence(d.metadata)]
                  for d in distributions()]))
"""


@dataclass(frozen=True)
class Installed:
    """An environment with calibrant in it: its commands, and (name, version, bytes, licence)."""

    name: str
    commands: Path
    packages: list[tuple[str, str, int, str]]

    @property
    def bytes(self) -> int:
        return sum(size for _, _, size, _ in self.packages)

    @property
    def copyleft(self) -> list[str]:
        return [f"{name} ({told})" for name, _, _, told in self.packages if "GPL" in told]


def install(name: str, source: Path, folder: Path) -> Installed:
    """Install a source tree into a new environment."""
    place = folder / f"env-{name}"
    python = place / "bin" / "python"
    if uv := shutil.which("uv"):
        # The same files as pip installs, compiled as pip compiles them, in a tenth of the time.
        subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, place], check=True)
        words = [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", python, source]
    else:
        subprocess.run([sys.executable, "-m", "venv", place], check=True)
        words = [python, "-m", "pip", "install", "--quiet", source]
    subprocess.run(words, check=True, stderr=subprocess.DEVNULL)
    told = subprocess.run([python, "-c", LISTED], check=True, capture_output=True, text=True).stdout
    packages = [tuple(row) for row in json.loads(told) if row[0].lower() not in TOOLS]
    return Installed(name, place / "bin", packages)


def source_of(commit: str, folder: Path) -> Path:
    """Unpack the tree of a commit, or of the working tree where there is none."""
    place = folder / f"source-{commit or 'now'}"
    if commit:
        place.mkdir()
        packed = subprocess.run(
            ["git", "archive", commit], cwd=ROOT, check=True, capture_output=True
        ).stdout
        subprocess.run(["tar", "x", "-C", place], input=packed, check=True)
    else:
        left_out = shutil.ignore_patterns(".*", "docs", "tests", "dist", "site", "__pycache__")
        shutil.copytree(ROOT, place, ignore=left_out)
    return place


def small_table(folder: Path) -> Path:
    path = folder / "small.csv"
    rows = [((i * 37 % 100) / 100, int(i * 61 % 100 < i * 37 % 100)) for i in range(ROWS)]
    with path.open("w", newline="") as file:
        file.write(SMALL)
        csv.writer(file).writerows(rows)
    return path


def taken(command: list[str | Path]) -> tuple[float, float]:
    """Return wall and CPU seconds of a command and its children."""
    began, before = time.perf_counter(), os.times()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = os.times()
    cpu = after.children_user + after.children_system
    return time.perf_counter() - began, cpu - before.children_user - before.children_system


def timed(both: list[Installed], words: list[str | Path]) -> list[list[tuple[float, float]]]:
    """Return (wall, CPU) per run of each environment, measured in turns after a warm-up.

    The first of the words is a command of the environment.
    """
    found: list[list[tuple[float, float]]] = [[] for _ in both]
    for turn in range(RUNS + 1):
        for one, runs in zip(both, found, strict=True):
            used = taken([one.commands / words[0], *words[1:]])
            if turn:
                runs.append(used)
    return found


def row(name: str, runs: list[list[tuple[float, float]]]) -> list[str]:
    least = [min(wall for wall, _ in one) for one in runs]
    cpus = [statistics.median(cpu for _, cpu in one) for one in runs]
    least_cpu = [min(cpu for _, cpu in one) for one in runs]
    cells = [seconds(value) for pair in (cpus, least_cpu, least) for value in pair]
    return [name, *cells, f"{cpus[0] / cpus[1]:.2f}x"]


def biggest(one: Installed) -> list[list[str]]:
    ordered = sorted(one.packages, key=lambda found: -found[2])[:NAMED]
    return [[f"{n} {v}", f"{size / 1e6:.0f} MB", told] for n, v, size, told in ordered]


def main() -> None:
    page = Page("weight", "Weight of an installation", packages=["numpy", "scipy", "polars"])
    with tempfile.TemporaryDirectory(prefix="calibrant-weight-") as name:
        folder = Path(name)
        before = install("before", source_of(BEFORE, folder), folder)
        now = install("now", source_of("", folder), folder)
        both = [before, now]
        page.table(
            "`pip install calibrant`, without extras",
            ["", f"before ({BEFORE})", "now"],
            [
                ["size", *(f"{one.bytes / 1e6:.0f} MB" for one in both)],
                ["packages", *(str(len(one.packages)) for one in both)],
                ["copyleft", *(", ".join(one.copyleft) or "none" for one in both)],
            ],
        )
        page.text(
            "Bytes of all installed files, compiled ones included, without pip and setuptools. "
            "Both were installed in the same run, with the newest versions that they allow."
        )
        page.table("The biggest packages now", ["package", "size", "licence"], biggest(now))
        table = small_table(folder)
        columns = ["command", "CPU before", "CPU now", "least CPU before", "least CPU now"]
        page.table(
            "Start",
            [*columns, "least wall before", "least wall now", "CPU before / now"],
            [
                row("`--help`", timed(both, ["calibrant", "--help"])),
                row(
                    f"`audit` of {ROWS:,} rows in a CSV", timed(both, ["calibrant", "audit", table])
                ),
                row(f"`{LIBRARIES}` alone", timed(both, ["python", "-c", LIBRARIES])),
            ],
        )
        page.text(
            f"Medians and least of {RUNS} runs, the two in turns. CPU time counts all threads; on "
            "a quiet machine the wall time is about the same, on a busy one it says little. Load "
            f"at the start: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores. The last line "
            "loads the libraries and does nothing with them; an audit of so few rows loads no more "
            "of scipy than that."
        )
    page.write()


if __name__ == "__main__":
    main()
