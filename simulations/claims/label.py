"""The claims of labelling in worlds whose truth is known, looked at again and again."""

from __future__ import annotations

from functools import partial

import msgspec
import numpy as np

from calibrant.core.document import plain
from calibrant.findings.claims.labels import label_claims
from calibrant.findings.documents.labels import LabelEntry
from calibrant.labels.labelling.estimates import pool_estimate
from calibrant.labels.labelling.stopping import claim_bounds, stop_decision
from simulations._planning_audit import audit_block
from simulations._planning_labels import Loop, outcome_rate
from simulations._planning_labels import judged as judged_by
from simulations.claims.audit import claims_of_blocks
from simulations.claims.audit import judged as audited
from simulations.claims.audit_worlds import CALIBRATED, MARGIN_OR_MORE, OFF
from simulations.claims.harness import Said, World

ITEMS = 1500


def pool_of(rng, world, judge, design, pool):
    """A pool that nobody has labelled yet; `pool` gives the confidences."""
    p = POOLS[pool](rng)
    y = (rng.random(p.size) < outcome_rate(world, p)).astype(float)
    if pool == "shared answers":
        # Three models gave the same answer with the same confidence: all are right, or none.
        y = np.repeat(y[::3], 3)
    return Loop(p, y, judged_by(judge, y, rng), design, rng)


POOLS = {
    "near 1": lambda rng: rng.beta(6, 1, ITEMS),
    "three confidences": lambda rng: rng.choice([0.6, 0.8, 0.95], ITEMS),
    "rare errors": lambda rng: rng.beta(60, 1, ITEMS),
    "300 answers": lambda rng: rng.beta(4, 2, 300),
    "shared answers": lambda rng: np.repeat(rng.beta(6, 1, ITEMS // 3), 3),
}


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
    return told(entry, goals)


def told(entry, goals):
    """Return the claims about one entry."""
    whole = {"n": ITEMS, "labelled": 0, "mean_confidence": 0.0, **entry}
    read = msgspec.convert(plain([whole]), list[LabelEntry])
    return label_claims(read, precision=goals["precision"], threshold=goals["threshold"])


def bounded(loop, goals):
    """Return an entry with the bounds alone: no other number decides the claim."""
    low, high = claim_bounds(loop.pool(), budget=goals["budget"])
    bounds = {"value": (low + high) / 2, "low": low, "high": high, "n": loop.count}
    return {
        "model": "m",
        "method": "confidence",
        "labelled": loop.count,
        "stop": {"stop": False, "reason": "", "half_width": (high - low) / 2, "interval": bounds}
        | {"bounds": bounds},
        "more_labels": None,
    }


def precise(rng, *, world, judge, design, pool):
    """Label until the goal is reached; then the accuracy told must hold the true one."""
    loop = pool_of(rng, world, judge, design, pool)
    goals = {"precision": 0.06, "threshold": None, "budget": None}
    while loop.count < min(600, loop.p.size):
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


def decided(rng, *, world, judge, design, pool, share, budget):
    """Look after every part; the threshold is the truth itself, or a share of it."""
    loop = pool_of(rng, world, judge, design, pool)
    truth = loop.truth()[3]
    threshold = float(np.clip(truth * share, 0.005, 0.99))
    goals = {"precision": None, "threshold": threshold, "budget": budget}
    while loop.count < min(400, 0.8 * loop.p.size):
        if not loop.queue:
            loop.draw(50)
        loop.label(25)
        if loop.count < 50:
            continue
        (claim,) = told(bounded(loop, goals), goals)
        if claim.outcome == "shown":
            below = "below" in claim.text
            return [Said(claim.id, True, below == (truth >= threshold))]
    return [Said("label.claim", False, False)]


def drawn(rng, *, world, judge, design):
    """An audit of 300 labels drawn from 2,000 answers, along a judge's verdicts."""
    p, y = world.rows(rng, 2000)
    loop = Loop(p, y, judged_by(judge, y, rng), design, rng)
    for size in (150, 75, 75):
        loop.draw(size)
        loop.label(size)
    return audited(claims_of_blocks([audit_block(loop.pool(), rng)]), [world.truth])


def worlds():
    audited_worlds = CALIBRATED | OFF | MARGIN_OR_MORE
    for name in ("calibrated, beta(8, 1)", "calibrated, rare errors", "nine values, all over by 2",
                 "over by 4, continuous", "wavy by 8"):  # fmt: skip
        for judge, design in (("90 %", "stratified"), ("70 %", "pps")):
            run = partial(drawn, world=audited_worlds[name], judge=judge, design=design)
            yield World(f"{name}, labels drawn by {design}, judge {judge}", run)
    for world, judge, design, pool in (
        ("over-confident", "none", "stratified", "near 1"),
        ("calibrated", "none", "stratified", "near 1"),
        ("over-confident", "90 %", "pps", "near 1"),
        ("over-confident", "biased", "stratified", "near 1"),
        ("shifted", "none", "stratified", "three confidences"),
        ("calibrated", "none", "stratified", "rare errors"),
        ("shifted", "none", "random", "300 answers"),
        ("wavy", "none", "pps", "shared answers"),
    ):
        name = f"{world}, {pool}, judge {judge}, {design}: stop at 6 points"
        run = partial(precise, world=world, judge=judge, design=design, pool=pool)
        yield World(name, run, ("label.precision_reached",))
    for world, judge, design, pool, budget in (
        ("over-confident", "none", "stratified", "near 1", None),
        ("over-confident", "90 %", "pps", "near 1", 400),
        ("wavy", "none", "stratified", "near 1", 400),
        ("shifted", "none", "stratified", "three confidences", 400),
        ("shifted", "70 %", "pps", "three confidences", None),
        ("shifted", "none", "stratified", "rare errors", 400),
        ("shifted", "none", "random", "300 answers", None),
        ("over-confident", "none", "stratified", "shared answers", 400),
    ):
        told = "any number of labels" if budget is None else f"budget {budget}"
        name = f"{world}, {pool}, judge {judge}, {design}: error at the threshold, {told}"
        run = partial(
            decided, world=world, judge=judge, design=design, pool=pool, share=1.0, budget=budget
        )
        yield World(name, run)
    run = partial(
        decided, world="over-confident", judge="none", design="stratified", pool="near 1",
        share=2.0, budget=400,
    )  # fmt: skip
    yield World("over-confident: half of the threshold, budget 400", run, ("label.claim",))
