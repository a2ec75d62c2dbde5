"""How often is each sentence false? Worlds with a known truth, runs, rates with their intervals."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import beta

RESULTS = Path(__file__).parent / "results"
RUNS = int(os.environ.get("CALIBRANT_REPEATS", "1000"))
# Part of the name of the worlds to run; the results of the others stay as they are.
CHOSEN = os.environ.get("CALIBRANT_WORLDS", "")
# Stands for all sentences of one document together.
DOCUMENT = "document"


@dataclass(frozen=True)
class Said:
    """One claim that was made in a run.

    `asserts`: whether it says something that can be false (`undecided` does not).
    `false`: whether that is false in this world.
    """

    id: str
    asserts: bool
    false: bool


@dataclass(frozen=True)
class World:
    """A world: its name, what a run says in it, and which claim it measures the power of."""

    name: str
    run: Callable[[np.random.Generator], Iterable[Said]]
    power_of: tuple[str, ...] = ()
    runs: int | None = None


def measured(worlds: Iterable[World], seed: int = 1) -> dict[str, list[dict]]:
    """Return, by claim, a row per world: runs, runs with a false claim, and with a true one."""
    rows: dict[str, list[dict]] = defaultdict(list)
    for number, world in enumerate(worlds):
        if CHOSEN not in world.name:
            continue
        false, true = defaultdict(int), defaultdict(int)
        seen: set[str] = set()
        runs = world.runs or RUNS
        for run in range(runs):
            said = list(world.run(np.random.default_rng([seed, number, run])))
            seen |= {one.id for one in said}
            wrong = {one.id for one in said if one.asserts and one.false}
            for name in wrong | ({DOCUMENT} if wrong else set()):
                false[name] += 1
            for name in {one.id for one in said if one.asserts and not one.false}:
                true[name] += 1
        seen.add(DOCUMENT)
        for name in sorted(seen):
            rows[name].append(
                {
                    "world": world.name,
                    "runs": runs,
                    "false": false[name],
                    "true": true[name],
                    "power": name in world.power_of,
                }
            )
    return dict(rows)


def store(part: str, rows: dict[str, list[dict]]) -> None:
    """Keep the results of one part; the page is written from all of them."""
    RESULTS.mkdir(exist_ok=True)
    if CHOSEN:
        rows = _merged(json.loads((RESULTS / f"{part}.json").read_text()), rows)
    (RESULTS / f"{part}.json").write_text(json.dumps(rows, indent=1) + "\n")


def _merged(old: dict[str, list[dict]], new: dict[str, list[dict]]) -> dict[str, list[dict]]:
    found = {}
    for name in dict.fromkeys([*old, *new]):
        again = {row["world"]: row for row in new.get(name, [])}
        kept = [again.pop(row["world"], row) for row in old.get(name, [])]
        found[name] = [*kept, *again.values()]
    return found


def stored() -> dict[str, list[dict]]:
    """Return the results of all parts, by claim."""
    found: dict[str, list[dict]] = {}
    for path in sorted(RESULTS.glob("*.json")):
        for name, rows in json.loads(path.read_text()).items():
            found.setdefault(name, []).extend(rows)
    return found


def rate_interval(count: int, runs: int) -> tuple[float, float]:
    """Return the exact 95 % interval of a rate (Clopper and Pearson)."""
    low = 0.0 if count == 0 else float(beta.ppf(0.025, count, runs - count + 1))
    high = 1.0 if count == runs else float(beta.ppf(0.975, count + 1, runs - count))
    return low, high
