"""The claims of `decide` in worlds whose truth is known."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
import polars as pl

from calibrant.findings.claims.decide import decide_claims
from calibrant.trust.selective.fit import Selective
from calibrant.verbs.decide import decide
from simulations import units
from simulations.claims.harness import Said, World

GRID = np.linspace(0.0005, 0.9995, 1000)
# Chance of a wrong answer given the confidence, which is uniform.
CHANCES = {
    "honest": lambda c: 0.4 * (1 - c),
    "flat: every threshold is at the limit": lambda c: np.full_like(c, 0.15),
    "flat, just above the limit": lambda c: np.full_like(c, 0.16),
    "most confident are worst": lambda c: np.where(c > 0.85, 0.5, 0.08),
    "wavy": lambda c: 0.15 + 0.1 * np.sin(12 * c),
    "two groups, on average at the limit": lambda c: np.where(c * 100 % 2 < 1, 0.05, 0.25),
}
LIMIT, DELTA, TRUTH = 0.15, 0.05, 100_000
COSTS = {"wrong": 6.0, "ask": 1.0}


@dataclass(frozen=True)
class Answering:
    """Chance of a wrong answer given the confidence; how confidences tie; the limit asked for."""

    wrong: Callable
    ties: int = 0
    limit: float = LIMIT

    def said(self, uniform):
        """Return confidences from even ones: as they are, or in a few values."""
        return np.ceil(uniform * self.ties) / self.ties if self.ties else uniform


WORLDS = {name: Answering(wrong) for name, wrong in CHANCES.items()} | {
    "flat at the limit, four values": Answering(
        CHANCES["flat: every threshold is at the limit"], 4
    ),
    "honest, four values": Answering(CHANCES["honest"], 4),
    "errors are rare, at the limit of 2 %": Answering(lambda c: np.full_like(c, 0.02), limit=0.02),
}


def _run(rng, *, world, n):
    said = world.said(rng.random(n))
    right = (rng.random(n) >= world.wrong(said)).astype(float)
    seed = int(rng.integers(2**31))
    limited = Selective(max_error=world.limit, delta=DELTA, seed=seed).fit(None, said, right)
    cheap = Selective(costs=COSTS, seed=seed).fit(None, said, right)
    for claim in _claims(limited, right):
        yield Said(claim.id, claim.outcome == "shown", _error(world, limited) > world.limit)
    for claim in _claims(cheap, right):
        yield Said(claim.id, claim.outcome == "shown", _saved(world, cheap) <= 0)


def _claims(fit, right):
    return decide_claims(fit.entry("m", "confidence", right), named=False)


def _error(world, fit):
    said = world.said(GRID)
    at = fit.policy_.threshold
    given = (2.0 if at is None else at) <= said
    return float(world.wrong(said)[given].mean()) if given.any() else 0.0


def _saved(world, fit):
    said = world.said(GRID)
    wrong = world.wrong(said)
    at = fit.policy_.threshold
    given = (2.0 if at is None else at) <= said
    spent = np.where(given, COSTS["wrong"] * wrong, COSTS["ask"]).mean()
    return float(min(COSTS["wrong"] * wrong.mean(), COSTS["ask"]) - spent)


# Rows inside units: how `decide` is asked, how many units, what tells the truth.
UNITS = {
    "documents of eight fields": (units.documents_table, {}, 400),
    "runs that stop": (units.agents, {"stop": True}, 300),
    "claims that are dropped": (units.documents_table, {"drop": True}, 400),
}


@cache
def _truth(name):
    table, options, _ = UNITS[name]
    return units.whole_truth(*table(np.random.default_rng(0), TRUTH), **options)


def _run_units(rng, *, name):
    table, options, count = UNITS[name]
    c, y, unit = table(rng, count)
    rows = pl.DataFrame({"confidence": c, "correct": y.astype(int), "unit": unit.astype(str)})
    found = decide(rows, unit="unit", max_error=LIMIT, delta=DELTA, **options)
    (entry,), (claim,) = found["results"], found["claims"]
    at = entry["threshold"]
    error = _truth(name)(at) if at is not None else 0.0
    yield Said(claim["id"], claim["outcome"] == "shown", bool(error > LIMIT))


def worlds():
    """Yield all worlds."""
    for name, world in WORLDS.items():
        for n in (100, 300, 2000):
            power = ("decide.error_limit", "decide.cheaper") if name == "honest" else ()
            yield World(f"{name}, {n:,} labels", partial(_run, world=world, n=n), power)
    # Last, so that the worlds before them keep their draws.
    for name, (_, _, count) in UNITS.items():
        yield World(f"units: {name}, {count} units", partial(_run_units, name=name))
