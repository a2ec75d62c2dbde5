"""The claims of `decide` in worlds whose truth is known."""

from __future__ import annotations

from functools import partial

import numpy as np

from calibrant.claims.decide import decide_claims
from calibrant.core.document import plain
from calibrant.epistemic.selective import Selective
from simulations.claims.harness import Said, World

GRID = np.linspace(0.0005, 0.9995, 1000)
# Chance of a wrong answer given the confidence, which is uniform.
WRONG = {
    "honest": lambda c: 0.4 * (1 - c),
    "flat: every threshold is at the limit": lambda c: np.full_like(c, 0.15),
    "flat, just above the limit": lambda c: np.full_like(c, 0.16),
    "most confident are worst": lambda c: np.where(c > 0.85, 0.5, 0.08),
    "wavy": lambda c: 0.15 + 0.1 * np.sin(12 * c),
}
LIMIT, DELTA = 0.15, 0.05
COSTS = {"wrong": 6.0, "ask": 1.0}


def _run(rng, *, name, n):
    said = rng.random(n)
    right = (rng.random(n) >= WRONG[name](said)).astype(float)
    seed = int(rng.integers(2**31))
    limited = Selective(max_error=LIMIT, delta=DELTA, seed=seed).fit(None, said, right)
    cheap = Selective(costs=COSTS, seed=seed).fit(None, said, right)
    for claim in _claims(limited, n):
        yield Said(claim.id, claim.outcome == "shown", _error(name, limited) > LIMIT)
    for claim in _claims(cheap, n):
        yield Said(claim.id, claim.outcome == "shown", _saved(name, cheap) <= 0)


def _claims(fit, n):
    cost = fit.cost_
    entry = {
        "model": "m", "method": "confidence", "n": n, "max_error": fit.max_error,
        "delta": fit.delta, "certified": fit.policy_.promise["certified"], "score": "confidence",
        "threshold": fit.policy_.threshold, "answered": fit.share_, "error": fit.error_,
        "labels_needed": fit.labels_needed_, "curve": fit.curve_,
        "cost": None if cost is None else {
            "policy": cost.policy, "always_answer": cost.always_answer,
            "always_ask": cost.always_ask, "saved": cost.saved,
        },
    }  # fmt: skip
    return decide_claims(plain(entry), named=False)


def _error(name, fit):
    at = fit.policy_.threshold
    given = (2.0 if at is None else at) <= GRID
    return float(WRONG[name](GRID)[given].mean()) if given.any() else 0.0


def _saved(name, fit):
    wrong = WRONG[name](GRID)
    at = fit.policy_.threshold
    given = (2.0 if at is None else at) <= GRID
    spent = np.where(given, COSTS["wrong"] * wrong, COSTS["ask"]).mean()
    return float(min(COSTS["wrong"] * wrong.mean(), COSTS["ask"]) - spent)


def worlds():
    """Yield all worlds."""
    for name in WRONG:
        for n in (300, 2000):
            power = ("decide.error_limit", "decide.cheaper") if name == "honest" else ()
            yield World(f"{name}, {n:,} labels", partial(_run, name=name, n=n), power)
