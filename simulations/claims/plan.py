"""Do plans keep their word, and leaderboards theirs? Worlds whose truth is known."""

from __future__ import annotations

from functools import partial

import msgspec
import numpy as np

from calibrant.core.document import plain
from calibrant.findings.claims.labels import leaderboard_claims, plan_claims
from calibrant.findings.documents import typed
from calibrant.findings.documents.plans import ClaimPlanEntry
from calibrant.labels.labelling.power import claim_chance, claim_for_labels, labels_for_claim
from calibrant.labels.ranking import leaderboard
from simulations.claims.harness import Said, World

# A forecast of 80 % is wrong where the claim is shown in fewer than 75 %.
LEAST = 0.75


def entry(p, needed, shows):
    about = {"model": "m", "method": "confidence", "group": None, "items": p.size}
    return msgspec.convert(plain({**about, "needed": needed, "shows": shows}), ClaimPlanEntry)


def forecasts(p, threshold, labels, other):
    """Plan for one pool; the chance that was promised is measured with other random numbers."""
    half = threshold / 2
    plans = {
        error: labels_for_claim(p, threshold, true_error=error, looking_on=False)
        for error in (0.0, half)
    }
    needed = {
        "threshold": threshold,
        "power": 0.8,
        "calibrated": plans[0.0],
        "half": plans[half],
    }
    (claim,) = plan_claims([entry(p, needed, None)])
    chance = [
        claim_chance(p, plan.one_look, threshold, true_error=error, seed=other)
        for error, plan in plans.items()
        if plan.one_look is not None
    ]
    yield Said(claim.id, claim.outcome == "depends", bool(chance) and min(chance) < LEAST)
    reach = claim_for_labels(p, labels)
    half_reach = claim_for_labels(p, labels, share=0.5)
    shows = {"labels": labels, "power": 0.8, "calibrated": reach, "half": half_reach}
    (claim,) = plan_claims([entry(p, None, {**shows, "chance": None})])
    chance = [
        claim_chance(p, labels, at, true_error=share * at, seed=other)
        for share, at in ((0.0, reach), (0.5, half_reach))
        if at is not None
    ]
    yield Said(claim.id, claim.outcome == "depends", bool(chance) and min(chance) < LEAST)


def kept(rng, *, pools, threshold, labels):
    other = int(rng.integers(1, 10**6))
    for draw in pools:
        yield from forecasts(draw(rng), threshold, labels, other)


def shaped(a, b, items=3000):
    return lambda rng: rng.beta(a, b, items)


def tied(rng):
    return rng.choice([0.8, 0.9, 0.95, 1.0], 3000, p=[0.1, 0.3, 0.3, 0.3])


def repeated(rng):
    """Five answers to a question that are given with one confidence."""
    return np.repeat(rng.beta(5, 2, 400), 5)


POOLS = (
    ("confidences near 1, threshold 8 points", [shaped(8, 1)], 0.08, 300),
    ("confidences spread out, threshold 8 points", [shaped(3, 2)], 0.08, 300),
    ("four confidences in all, threshold 5 points", [tied], 0.05, 300),
    ("errors are rare, threshold 3 points", [shaped(60, 1)], 0.03, 150),
    ("a pool of 200, threshold 15 points", [shaped(3, 2, 200)], 0.15, 60),
    ("five rows a question, threshold 8 points", [repeated], 0.08, 300),
    ("two groups and both together", [shaped(8, 1, 900), shaped(3, 2, 600), shaped(5, 2)],
     0.1, 250),
)  # fmt: skip


def truths(metric, models, rng):
    """Return each model's true value, on 200,000 answers where no formula gives it."""
    found = {}
    for draw, rate in models:
        if (draw, rate) in found:
            continue
        p = draw(rng, 200_000)
        r = np.clip(rate(p), 0, 1)
        if metric == "accuracy":
            found[draw, rate] = r.mean()
        elif metric == "brier":
            found[draw, rate] = (r * (1 - p) ** 2 + (1 - r) * p**2).mean()
        else:
            cell = np.minimum((p * 15).astype(int), 14)
            gaps = np.bincount(cell, weights=r - p, minlength=15)
            found[draw, rate] = np.abs(gaps).sum() / p.size
    return np.array([found[model] for model in models])


def ranked(rng, *, metric, models, n, together, truth):
    """A leaderboard; a pair told apart must differ in truth, and in this direction."""
    hard = rng.random(n)
    tables = {}
    for number, (draw, rate) in enumerate(models):
        p = draw(rng, n)
        luck = np.where(rng.random(n) < together, hard, rng.random(n))
        tables[str(number)] = (p, (luck < rate(p)).astype(float))
    board = leaderboard(tables, metric=metric, resamples=200, seed=int(rng.integers(10**6)))
    value = truth if metric == "accuracy" else -truth
    wrong = {
        (pair["a"], pair["b"])
        for pair in board["pairs"]
        if not pair["tie"] and value[int(pair["a"])] <= value[int(pair["b"])] + 1e-3
    }
    leader, order = leaderboard_claims(typed(plain(board)))
    first = leader.subject["model"]
    yield Said(leader.id, leader.outcome == "shown", any(a == first for a, _ in wrong))
    yield Said(order.id, order.outcome == "shown", bool(wrong))


def same(p):
    return p


def less(size):
    return lambda p: p - size


def beta(a, b):
    return lambda rng, n: rng.beta(a, b, n)


def values(*levels):
    return lambda rng, n: rng.choice(levels, n)


EQUAL = [(beta(6, 2), same)] * 5
# Calibrated all of them; the noise of their calibration errors differs by much.
CALIBRATED = [(beta(8, 1), same), (beta(2, 2), same), (values(0.7, 0.9), same), (beta(30, 1), same)]
# Errors of 5 points each: all over, all under, half of each, crowded or spread.
FIVE = [
    (values(0.6, 0.75, 0.9), less(0.05)),
    (lambda rng, n: rng.uniform(0.3, 0.9, n), less(-0.05)),
    (lambda rng, n: rng.uniform(0.2, 0.93, n), lambda p: p + np.where(p < 0.6, 0.05, -0.05)),
]
# Two that are equal lead, a third is behind.
AHEAD = [*EQUAL[:2], (beta(6, 2), less(0.2))]
APART = [(beta(6, 2), same), (beta(6, 2), less(0.15)), (beta(6, 2), less(0.3))]
BOARDS = (
    ("five equal models, 300 questions", "accuracy", EQUAL, 300, 0.0),
    ("five equal models that fail together", "accuracy", EQUAL, 300, 0.8),
    ("two equal models lead", "accuracy", AHEAD, 300, 0.3),
    ("two equal models lead", "brier", AHEAD, 300, 0.3),
    ("five equal models, 40 questions", "accuracy", EQUAL, 40, 0.3),
    ("errors are rare, 200 questions", "accuracy", [(beta(60, 1), same)] * 4, 200, 0.3),
    ("equal, four confidences in all", "brier", [(values(0.6, 0.8, 0.9, 1.0), same)] * 4, 300, 0.3),
    ("equal, errors are rare", "brier", [(beta(60, 1), same)] * 4, 200, 0.3),
    ("calibrated, spread otherwise", "ece", CALIBRATED, 400, 0.3),
    ("calibrated, spread otherwise, 100 questions", "ece", CALIBRATED, 100, 0.0),
    ("calibrated, spread otherwise, 5,000 questions", "ece", CALIBRATED, 5000, 0.3),
    ("errors of 5 points each", "ece", FIVE, 600, 0.3),
    ("errors of 5 points each, 4,000 questions", "ece", FIVE, 4000, 0.3),
    ("15 points apart, 500 questions", "accuracy", APART, 500, 0.5),
    ("15 points apart, 500 questions", "ece", APART, 500, 0.5),
)  # fmt: skip


def worlds():
    both = ("plan.labels_needed", "plan.labels_show")
    for name, pools, threshold, labels in POOLS:
        run = partial(kept, pools=pools, threshold=threshold, labels=labels)
        yield World(name, run, both)
    rng = np.random.default_rng(0)
    for name, metric, models, n, together in BOARDS:
        truth = truths(metric, models, rng)
        run = partial(ranked, metric=metric, models=models, n=n, together=together, truth=truth)
        power = ("plan.leader", "plan.order") if models is APART else ()
        yield World(f"leaderboard by {metric}: {name}", run, power)
