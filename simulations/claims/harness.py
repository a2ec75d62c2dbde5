"""How often is each sentence false? Worlds with a known truth, runs, rates with their intervals."""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy.stats import beta

RESULTS = Path(__file__).parent / "results"
RUNS = int(os.environ.get("CALIBRANT_REPEATS", "1000"))
# Part of the name of the worlds to run; the results of the others stay as they are.
CHOSEN = os.environ.get("CALIBRANT_WORLDS", "")
AFRESH = bool(os.environ.get("CALIBRANT_AFRESH"))
# A world whose claims are known to be false in less than this share of runs needs no more of them.
BAR = 0.05
# One that seems to be above it after as many runs as wanted has so many times as many.
_BATCH, _LEAST, _DOUBTFUL = 100, 150, 4
# Stands for all sentences of one document together.
DOCUMENT = "document"

Rows = dict[str, list[dict]]


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
    """A world: its name, what a run says in it, and which claim it measures the power of.

    `alone`: says one claim only, in less time, for so many further runs that its rate is known
    more narrowly than that of the others.
    """

    name: str
    run: Callable[[np.random.Generator], Iterable[Said]]
    power_of: tuple[str, ...] = ()
    runs: int | None = None
    alone: tuple[str, Callable[[np.random.Generator], Said], int] | None = None


def measured(worlds: Iterable[World], before: Rows, seed: int = 1) -> Rows:
    """Return, by claim, a row per world: runs, runs with a false claim, and with a true one.

    A world goes on from the runs that are stored of it (none where CALIBRANT_AFRESH is set). It
    ends when no claim of it can be false in 5 % of runs, or after as many runs as are wanted; up to
    four times as many where more than 5 % of these had a false claim.
    """
    rows: Rows = defaultdict(list)
    for number, world in enumerate(worlds):
        if CHOSEN not in world.name:
            continue
        tally = Tally.of_rows({} if AFRESH else before, world.name)
        while not tally.bounded and tally.runs < tally.wanted(world.runs or RUNS):
            for run in range(tally.runs, tally.runs + _BATCH):
                tally.add(world.run(np.random.default_rng([seed, number, run])))
        if world.alone is not None:
            name, run, most = world.alone
            for count in range(tally.runs + tally.further[name], most):
                tally.add_alone(run(np.random.default_rng([seed, number, count])))
        print(f"{tally.runs:5d} {tally.false[DOCUMENT]:4d} {world.name}", flush=True)
        for name, row in tally.rows(world):
            rows[name].append(row)
    return dict(rows)


@dataclass
class Tally:
    """Runs of one world, and in how many of them each claim was false, or true."""

    runs: int = 0
    further: Counter = field(default_factory=Counter)
    seen: set[str] = field(default_factory=lambda: {DOCUMENT})
    false: Counter = field(default_factory=Counter)
    true: Counter = field(default_factory=Counter)

    @classmethod
    def of_rows(cls, before: Rows, world: str) -> Tally:
        """Return what is stored of a world."""
        found = cls()
        for row in before.get(DOCUMENT, ()):
            if row["world"] == world:
                found.runs = row["runs"]
        for name, rows in before.items():
            for row in rows:
                if row["world"] == world:
                    found.further[name] = row["runs"] - found.runs
                    found.seen.add(name)
                    found.false[name], found.true[name] = row["false"], row["true"]
        return found

    def add_alone(self, claim: Said) -> None:
        """Take in a run that says one claim."""
        self.further[claim.id] += 1
        self.seen.add(claim.id)
        self.false[claim.id] += bool(claim.asserts and claim.false)
        self.true[claim.id] += bool(claim.asserts and not claim.false)

    def add(self, claims: Iterable[Said]) -> None:
        """Take in the claims of one run."""
        said = list(claims)
        self.runs += 1
        self.seen |= {one.id for one in said}
        wrong = {one.id for one in said if one.asserts and one.false}
        self.false.update(wrong | ({DOCUMENT} if wrong else set()))
        self.true.update({one.id for one in said if one.asserts and not one.false})

    @property
    def bounded(self) -> bool:
        """Whether a document with a false sentence is known to be rarer than 5 %."""
        return self.runs >= _LEAST and rate_interval(self.false[DOCUMENT], self.runs)[1] <= BAR

    def wanted(self, most: int) -> int:
        """Return how many runs there shall be: more where the first ones seem to be too bad."""
        doubtful = self.runs == most and self.false[DOCUMENT] > BAR * most
        return _DOUBTFUL * most if doubtful or self.runs > most else most

    def rows(self, world: World) -> Iterable[tuple[str, dict]]:
        """Return a row per claim."""
        for name in sorted(self.seen):
            yield (
                name,
                {
                    "world": world.name,
                    "runs": self.runs + self.further[name],
                    "false": self.false[name],
                    "true": self.true[name],
                    "power": name in world.power_of,
                },
            )


def store(part: str, rows: dict[str, list[dict]]) -> None:
    """Keep the results of one part; the page is written from all of them."""
    RESULTS.mkdir(exist_ok=True)
    if CHOSEN:
        rows = _merged(stored(part), rows)
    (RESULTS / f"{part}.json").write_text(json.dumps(rows, indent=1) + "\n")


def _merged(old: dict[str, list[dict]], new: dict[str, list[dict]]) -> dict[str, list[dict]]:
    found = {}
    for name in dict.fromkeys([*old, *new]):
        again = {row["world"]: row for row in new.get(name, [])}
        kept = [again.pop(row["world"], row) for row in old.get(name, [])]
        found[name] = [*kept, *again.values()]
    return found


def stored(part: str = "*") -> Rows:
    """Return the results of one part, or of all, by claim."""
    found: Rows = {}
    for path in sorted(RESULTS.glob(f"{part}.json")):
        for name, rows in json.loads(path.read_text()).items():
            found.setdefault(name, []).extend(rows)
    return found


def rate_interval(count: int, runs: int) -> tuple[float, float]:
    """Return the exact 95 % interval of a rate (Clopper and Pearson)."""
    low = 0.0 if count == 0 else float(beta.ppf(0.025, count, runs - count + 1))
    high = 1.0 if count == runs else float(beta.ppf(0.975, count + 1, runs - count))
    return low, high
