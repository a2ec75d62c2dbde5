"""Parts of a long simulation: each runs alone, goes on where it was stopped, and has its piece.

`CALIBRANT_PARTS=one,two` runs some parts, `CALIBRANT_SECONDS=300` stops each after so much CPU
time; the page is written from the pieces of all parts that were ever run.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from pathlib import Path

import numpy as np
from benchmarks.harness import ROOT, machine, versions
from scipy.stats import beta

RUNS = int(os.environ.get("CALIBRANT_REPEATS", "400"))
SECONDS = float(os.environ.get("CALIBRANT_SECONDS", "inf"))
_SAVED_EVERY = 60.0


def resumed(simulation, name, total, step):
    """Run the steps that were not done yet, until time is up; return all findings by key.

    Raw findings are kept in the folder for temporary files. `step` gets the number of a step and
    yields keys (tuples) with a finding each.
    """
    folder = Path(tempfile.gettempdir()) / f"calibrant_{simulation}"
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.json"
    state = json.loads(path.read_text()) if path.exists() else {"done": 0, "found": {}}
    began = saved = time.process_time()
    while state["done"] < total and time.process_time() - began < SECONDS:
        for key, told in list(step(state["done"])):
            state["found"].setdefault(json.dumps(key), []).append(told)
        state["done"] += 1
        if time.process_time() - saved > _SAVED_EVERY:
            path.write_text(json.dumps(state))
            saved = time.process_time()
    path.write_text(json.dumps(state))
    print(f"   {name}: {state['done']} of {total} steps", flush=True)
    return {tuple(json.loads(key)): told for key, told in state["found"].items()}


def write_page(simulation, title, parts, libraries, words=""):
    """Run the wanted parts, functions that return the lines of a piece; write the page.

    A part that returns nothing leaves its piece as it was.
    """
    pieces = ROOT / "simulations" / f"{simulation}_results"
    pieces.mkdir(exist_ok=True)
    wanted = os.environ.get("CALIBRANT_PARTS", ",".join(parts)).split(",")
    for name in filter(None, wanted):
        started = time.perf_counter()
        lines = parts[name]()
        if lines:
            text = "\n".join(lines).rstrip() + "\n"
            (pieces / f"{name}.md").write_text(text, encoding="utf-8")
        print(f"   {name}: {time.perf_counter() - started:.0f} s", flush=True)
    head = [
        f"# {title}",
        "",
        f"Written by `python -m simulations {simulation}` on {machine()}; {versions(libraries)}."
        + f" {words}".rstrip(),
        "",
    ]
    kept = [pieces / f"{name}.md" for name in parts]
    page = ROOT / "docs" / "simulations" / f"{simulation}.md"
    texts = [path.read_text(encoding="utf-8") for path in kept if path.exists()]
    page.write_text("\n".join([*head, *texts]).rstrip() + "\n", encoding="utf-8")


def markdown_table(columns, rows):
    """Return a table in Markdown, and an empty line."""
    return [
        "| " + " | ".join(columns) + " |",
        "|" + " --- |" * len(columns),
        *("| " + " | ".join(str(value) for value in row) + " |" for row in rows),
        "",
    ]


def broken_rates(runs):
    """Return how often a promise broke, with its interval, and the mean of what it gave.

    `runs` are pairs of whether it broke and how much was answered, kept or in a set.
    """
    broken, share = np.array(runs, dtype=float).T
    low, high = share_interval(int(broken.sum()), len(broken))
    return f"{100 * broken.mean():.1f} % [{100 * low:.1f}, {100 * high:.1f}]", f"{share.mean():.2f}"


def share_interval(count, runs):
    """Return the exact 95 % interval of a share."""
    low = beta.ppf(0.025, count, runs - count + 1) if count else 0.0
    high = beta.ppf(0.975, count + 1, runs - count) if count < runs else 1.0
    return low, high
