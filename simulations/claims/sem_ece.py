"""The claims about calibration over meanings in worlds whose truth is known."""

from __future__ import annotations

from functools import partial

import numpy as np
from msgspec import convert

from calibrant.core.document import plain
from calibrant.findings.claims.margins import ERROR_MARGIN
from calibrant.findings.claims.sem_ece import meaning_claims
from calibrant.findings.documents.audits import SemanticEntry
from calibrant.findings.sem_ece import leading_answer
from calibrant.metrics.semantic import noise_floor, question_scores
from simulations._sem_ece_worlds import BEYOND_NULL, NULL_WORLDS, WORLDS, calibrated_mode, pool_of
from simulations.claims.harness import RUNS, Said, World

MANY = 20_000
DRAWS = 10
# Almost every draw agrees, and hardly any answer is wrong.
SURE = {"calibrated, hardly ever wrong": calibrated_mode(3, 0.02)}
CHOSEN = ("over-confident, 5 classes", "under-confident, 30 classes", "easy and hard")


def leading_gap(world):
    """Return E[c2 - a2] at this number of draws, from many questions."""
    rng = np.random.default_rng(11)
    scores = question_scores(pool_of(*world(MANY, rng), n=DRAWS, rng=rng), splits=20, rng=rng)
    return float((scores.sem2 - scores.label2).mean())


def block_of(pool, name, draws, rng):
    scores = question_scores(pool, splits=50, rng=rng)
    floor = noise_floor(pool, simulations=199, rng=rng).sem2
    estimate = {"value": 0.1, "low": 0.0, "high": 0.2, "n": pool.ids.size}
    return {
        "model": name,
        "group": None,
        "draws": draws,
        "sem2": estimate,
        "leading": leading_answer(scores),
        "noise_floor": {"sem2": None if floor is None else {"floor": floor.floor, "p": floor.p}},
    }


def run(rng, world, questions, gap, one_law, models=1, draws=DRAWS):
    blocks = [
        block_of(pool_of(*world(questions, rng), n=draws, rng=rng), f"m{k}", draws, rng)
        for k in range(models)
    ]
    for claim in meaning_claims(convert(plain(blocks), list[SemanticEntry]), [], ERROR_MARGIN):
        if claim.id.endswith("miscalibrated"):
            yield Said(claim.id, claim.outcome == "shown", one_law)
            continue
        if claim.outcome == "equivalent":
            yield Said(claim.id, True, abs(gap) > ERROR_MARGIN)
            continue
        right = gap > 0 if claim.id.endswith("over_confident") else gap < 0
        yield Said(claim.id, claim.outcome == "shown", not right)


def measured_power(gap):
    names = {
        "audit.meanings_over_confident": gap > 0.05,
        "audit.meanings_under_confident": gap < -0.05,
        "audit.meanings_miscalibrated": True,
    }
    return tuple(name for name, measured in names.items() if measured)


def null_worlds():
    """Worlds where every answer is right as often as it is drawn: small, tied, and several."""
    for name, world in NULL_WORLDS.items():
        made = partial(run, world=world, gap=0.0, one_law=True)
        yield World(f"{name}, 100 questions", partial(made, questions=100), (), 2 * RUNS)
        yield World(f"{name}, 30 questions", partial(made, questions=30))
        few = partial(made, questions=200, draws=4)
        yield World(f"{name}, heavy ties (4 draws), 200 questions", few)
    name = "calibrated, two close classes"
    three = partial(run, world=NULL_WORLDS[name], questions=100, gap=0.0, one_law=True, models=3)
    yield World(f"three models, {name}, 100 questions", three, (), 2 * RUNS)


def worlds():
    yield from null_worlds()
    known = {**BEYOND_NULL, **SURE, **{name: WORLDS[name] for name in CHOSEN}}
    for name, world in known.items():
        gap = leading_gap(world)
        for questions in (100, 300):
            made = partial(run, world=world, questions=questions, gap=gap, one_law=False)
            yield World(f"{name}, {questions} questions", made, measured_power(gap))
