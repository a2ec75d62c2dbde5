"""The claims of `cascade` in worlds whose truth is known."""

from __future__ import annotations

from functools import partial

import numpy as np
import polars as pl

from calibrant.claims.cascade import cascade_claims
from calibrant.core.document import plain
from calibrant.epistemic.deferral.answers import Answers
from calibrant.epistemic.deferral.choice import Target, choose_policy
from calibrant.epistemic.deferral.policy import AlwaysOne
from calibrant.epistemic.deferral.strategies import StrategyOptions
from simulations.claims.harness import Said, World

MODELS = ("small", "large")
OPTIONS = StrategyOptions(strategies=("value",))
MARGIN, DELTA = 0.05, 0.05
# How much the large model knows beyond the small one, and how much the confidences tell.
SKILL = {"large is better": (1.0, 1.0), "both alike": (0.0, 1.0), "nobody is told": (0.5, 0.0)}
TARGETS = {"in budget": Target(budget=0.5), "guarantee": Target(margin=MARGIN, delta=DELTA)}


def _answers(rng, n, skill, told, *, exact=False):
    topic = rng.choice(["a", "b"], n)
    ease = np.where(topic == "a", 1.0, 0.0)[:, None] + rng.normal(0, 1, (n, 2))
    chance = 1 / (1 + np.exp(-(ease + np.array([0.0, skill]))))
    said = np.clip(0.5 + told * (chance - 0.5), 0.01, 0.99)
    right = chance if exact else (rng.random((n, 2)) < chance).astype(float)
    cost = np.broadcast_to([1.0, 8.0], (n, 2)).copy()
    return Answers(MODELS, pl.DataFrame({"topic": topic}), said, right, cost)


def _gain(found, answers):
    """Return the true gain over the largest model."""
    value = np.zeros(len(answers))
    shares = (1 - found.share, found.share)
    for dial, share in zip(found.dials, shares, strict=True):
        policy = found.policy.with_dial(dial)
        if isinstance(policy, AlwaysOne):
            who = np.full(len(answers), MODELS.index(policy.name))
        else:
            prepared = policy.model.prepare(answers)
            who, _ = policy.model.run(prepared, policy.money, direct=policy.direct)
        value += share * answers.correct[np.arange(len(who)), who]
    return float((value - answers.correct[:, -1]).mean())


def _run(rng, *, skill, told, target, n):
    seen = _answers(rng, n, skill, told)
    found = choose_policy(seen, OPTIONS, target, seed=int(rng.integers(2**31)))
    truth = _gain(found, _answers(rng, 5_000, skill, told, exact=True))
    certified = found.certified
    promise = {
        "accuracy": found.accuracy,
        "gain": found.gain,
        "relative_cost": {"value": found.cost.value / 8.0},
        "guarantee": None
        if certified is None
        else {"margin": target.margin, "delta": target.delta, "certified": certified > 0},
    }
    policy = {"rule": found.strategy, "words": found.strategy, "promise": promise}
    entry = {"policy": policy, "largest": "large", "models": [{"model": m} for m in MODELS]}
    for claim in cascade_claims(plain(entry)):
        yield Said(claim.id, claim.outcome in ("shown", "equivalent"), _false(claim, truth))


def _false(claim, truth):
    if claim.id == "cascade.guarantee":
        return truth < -MARGIN
    if claim.outcome == "equivalent":
        return abs(truth) > (claim.margin or 0)
    return truth * (claim.value or 0) < 0


def worlds():
    """Yield all worlds."""
    for name, (skill, told) in SKILL.items():
        for goal, target in TARGETS.items():
            run = partial(_run, skill=skill, told=told, target=target, n=1000)
            power = ("cascade.beats_largest", "cascade.guarantee") if skill == 1.0 else ()
            yield World(f"{name}, {goal}, 1,000 questions", run, power)
