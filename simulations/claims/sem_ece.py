"""The claims about calibration over meanings in worlds whose truth is known."""

from __future__ import annotations

from functools import partial

import numpy as np

from calibrant.claims.margins import ERROR_MARGIN
from calibrant.claims.sem_ece import meaning_claims
from calibrant.core.document import plain
from calibrant.metrics.semantic import leading_answer, noise_floor, question_scores
from simulations._sem_ece_worlds import BEYOND_NULL, NULL_WORLDS, WORLDS, calibrated_mode, pool_of
from simulations.claims.harness import RUNS, Said, World

MANY = 20_000
DRAWS = 10
# Almost every draw agrees, and hardly any answer is wrong.
SURE = {"calibrated, hardly ever wrong": calibrated_mode(3, 0.02)}
# Worlds where the right answer is one more draw.
ONE_LAW = frozenset(NULL_WORLDS)
CHOSEN = ("over-confident, 5 classes", "under-confident, 30 classes", "easy and hard")


def leading_gap(world):
    """Return E[c2 - a2] at this number of draws, from many questions."""
    rng = np.random.default_rng(11)
    scores = question_scores(pool_of(*world(MANY, rng), DRAWS, rng), splits=20, rng=rng)
    return float((scores.sem2 - scores.label2).mean())


def block_of(pool, name, rng):
    scores = question_scores(pool, splits=50, rng=rng)
    floor = noise_floor(pool, simulations=199, rng=rng).sem2
    estimate = {"value": 0.1, "low": 0.0, "high": 0.2, "n": pool.ids.size}
    return {
        "model": name,
        "group": None,
        "draws": DRAWS,
        "sem2": estimate,
        "leading": leading_answer(scores),
        "noise_floor": {"sem2": None if floor is None else {"floor": floor.floor, "p": floor.p}},
    }


def run(rng, world, questions, gap, one_law, models=1):
    blocks = [
        block_of(pool_of(*world(questions, rng), DRAWS, rng), f"m{k}", rng) for k in range(models)
    ]
    for claim in meaning_claims(plain(blocks), [], ERROR_MARGIN):
        if claim.id.endswith("one_law"):
            yield Said(claim.id, claim.outcome == "shown", one_law)
            continue
        if claim.outcome == "equivalent":
            yield Said(claim.id, True, abs(gap) > ERROR_MARGIN)
            continue
        right = gap > 0 if claim.id.endswith("over_confident") else gap < 0
        yield Said(claim.id, claim.outcome == "shown", not right)


def worlds():
    known = {**NULL_WORLDS, **BEYOND_NULL, **SURE, **{name: WORLDS[name] for name in CHOSEN}}
    for name, world in known.items():
        # Exact where the right answer is one more draw.
        gap = 0.0 if name in ONE_LAW else leading_gap(world)
        power = []
        if gap > 0.05:
            power.append("audit.meanings_over_confident")
        if gap < -0.05:
            power.append("audit.meanings_under_confident")
        if name not in ONE_LAW:
            power.append("audit.meanings_not_one_law")
        null = name in ONE_LAW
        made = partial(run, world=world, questions=100, gap=gap, one_law=null)
        # A rate of exactly 5 % is told from 6.5 % by some thousands of runs.
        runs = 2 * RUNS if null else max(RUNS // 8, 1)
        yield World(f"{name}, 100 questions", made, tuple(power), runs)
        if not null:
            made = partial(run, world=world, questions=300, gap=gap, one_law=False)
            yield World(f"{name}, 300 questions", made, tuple(power), max(RUNS // 8, 1))
    name = "calibrated, two close classes"
    two = partial(run, world=NULL_WORLDS[name], questions=100, gap=0.0, one_law=True, models=3)
    yield World(f"three models, {name}, 100 questions", two, (), 2 * RUNS)
