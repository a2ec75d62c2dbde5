"""The claims of labelling in worlds whose truth is known, looked at again and again."""

from __future__ import annotations

from functools import partial

import numpy as np

from calibrant.claims.label import label_claims
from calibrant.core.document import plain
from calibrant.planning.labelling.estimates import pool_estimate
from calibrant.planning.labelling.stopping import claim_bounds, stop_decision
from simulations._planning_labels import Loop, judged, outcome_rate
from simulations.claims.harness import Said, World

ITEMS = 1500
RUNS = 500


def pool_of(rng, world, judge, design):
    p = rng.beta(6, 1, ITEMS)
    y = (rng.random(ITEMS) < outcome_rate(world, p)).astype(float)
    return Loop(p, y, judged(judge, y, rng), design, rng)


def claims_of(loop, goals):
    """Return the claims after the labels made so far, by the rules of the document."""
    pool = loop.pool()
    found = pool_estimate(pool)
    entry = {
        "model": "m",
        "method": "confidence",
        "labelled": loop.count,
        "claimed_accuracy": pool_estimate(pool, level=0.97).accuracy,
        "stop": stop_decision(pool, estimate=found, **goals),
        "more_labels": None,
        "more_for_precision": None,
    }
    return label_claims(plain([entry]), goals)


def bounded(loop, goals):
    """Return an entry with the bounds alone: no other number decides the claim."""
    low, high = claim_bounds(loop.pool(), budget=goals["budget"])
    bounds = {"value": (low + high) / 2, "low": low, "high": high, "n": loop.count}
    return {
        "model": "m",
        "method": "confidence",
        "labelled": loop.count,
        "stop": {"bounds": bounds},
        "more_labels": None,
    }


def precise(rng, *, world, judge, design):
    """Label until the goal is reached; then the accuracy told must hold the true one."""
    loop = pool_of(rng, world, judge, design)
    goals = {"precision": 0.06, "threshold": None, "budget": None}
    while loop.count < 600:
        if not loop.queue:
            loop.draw(40)
        loop.label(20)
        if loop.count < 80:
            continue
        (claim,) = claims_of(loop, goals)
        if claim.outcome == "shown":
            false = not claim.low <= loop.y.mean() <= claim.high
            return [Said(claim.id, True, false)]
    return [Said("label.precision_reached", False, False)]


def decided(rng, *, world, judge, design, share, budget):
    """Look after every part; the threshold is the truth itself, or a share of it."""
    loop = pool_of(rng, world, judge, design)
    truth = loop.truth()[3]
    threshold = float(np.clip(truth * share, 0.005, 0.99))
    goals = {"precision": None, "threshold": threshold, "budget": budget}
    while loop.count < 400:
        if not loop.queue:
            loop.draw(50)
        loop.label(25)
        if loop.count < 50:
            continue
        (claim,) = label_claims(plain([bounded(loop, goals)]), goals)
        if claim.outcome == "shown":
            below = "below" in claim.text
            return [Said(claim.id, True, below == (truth >= threshold))]
    return [Said("label.claim", False, False)]


def worlds():
    for world, judge, design in (
        ("over-confident", "none", "stratified"),
        ("calibrated", "none", "stratified"),
    ):
        name = f"{world}, judge {judge}, {design}: stop at 6 points"
        run = partial(precise, world=world, judge=judge, design=design)
        yield World(name, run, ("label.precision_reached",), RUNS)
    for world, judge, design, budget in (
        ("over-confident", "none", "stratified", None),
        ("over-confident", "90 %", "pps", 400),
        ("wavy", "none", "stratified", 400),
    ):
        told = "any number of labels" if budget is None else f"budget {budget}"
        name = f"{world}, judge {judge}, {design}: error at the threshold, {told}"
        run = partial(decided, world=world, judge=judge, design=design, share=1.0, budget=budget)
        yield World(name, run, (), RUNS)
    run = partial(
        decided, world="over-confident", judge="none", design="stratified", share=2.0, budget=400
    )
    yield World("over-confident: half of the threshold, budget 400", run, ("label.claim",), RUNS)
