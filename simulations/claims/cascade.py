"""The claims of `cascade` in worlds whose truth is known."""

from __future__ import annotations

from functools import partial

import numpy as np
import polars as pl
from scipy.special import expit

from calibrant.core.arrays import EstimateEntry
from calibrant.findings.claims.decide import cascade_claims
from calibrant.findings.documents.decisions import CascadePolicy, CascadePromise, Guarantee
from calibrant.trust.deferral.answers import Answers
from calibrant.trust.deferral.choice import choose_policy
from calibrant.trust.deferral.strategies import StrategyOptions, Target
from simulations._cascade_pools import who_answers
from simulations.claims.harness import Said, World

MODELS = ("small", "large")
BEATS, PROMISE = "cascade.beats_largest", "cascade.guarantee"
OPTIONS = StrategyOptions(strategies=("value",))
MARGIN, DELTA = 0.05, 0.05
# How much the large model knows beyond the small one, and how much the confidences tell.
SKILL = {
    "large is better": {"skill": 1.0},
    "both alike": {"skill": 0.0},
    "nobody is told": {"skill": 0.5, "told": 0.0},
    "large is worse": {"skill": -0.5},
    "both over-confident": {"skill": 0.5, "shift": 1.0},
    "heavy ties": {"skill": 0.5, "steps": 4},
    "errors are rare": {"skill": 0.5, "ease": 3.0},
    "mixed by topic": {"skill": 0.5, "told": -0.5},
}
TARGETS = {"in budget": Target(budget=0.5), "guarantee": Target(margin=MARGIN, delta=DELTA)}


def _answers(rng, n, skill, *, told=1.0, shift=0.0, steps=0, ease=0.0, exact=False):
    """`told`: how much confidence follows the chance; `shift` moves it, `steps` rounds it."""
    topic = rng.choice(["a", "b"], n)
    odds = ease + np.where(topic == "a", 1.0, 0.0)[:, None] + rng.normal(0, 1, (n, 2))
    odds = odds + np.array([0.0, skill])
    chance = expit(odds)
    said = np.clip(0.5 + told * (expit(odds + shift) - 0.5), 0.01, 0.99)
    if steps:
        said = np.round(said * steps) / steps
    right = chance if exact else (rng.random((n, 2)) < chance).astype(float)
    cost = np.broadcast_to([1.0, 8.0], (n, 2)).copy()
    return Answers(MODELS, pl.DataFrame({"topic": topic}), said, right, cost)


def _gain(found, answers):
    """Return the true gain over the largest model."""
    value = np.zeros(len(answers))
    shares = (1 - found.share, found.share)
    for dial, share in zip(found.dials, shares, strict=True):
        who, _ = who_answers(found.policy.with_dial(dial), answers)
        value += share * answers.correct[np.arange(len(who)), who]
    return float((value - answers.correct[:, -1]).mean())


def _run(rng, *, made, target, n):
    seen = _answers(rng, n, **made)
    found = choose_policy(seen, OPTIONS, target, seed=int(rng.integers(2**31)))
    truth = _gain(found, _answers(rng, 5_000, **made, exact=True))
    certified = found.certified
    guarantee = None
    if certified is not None:
        guarantee = Guarantee(margin=target.margin, delta=target.delta, certified=certified > 0)
    promise = CascadePromise(
        accuracy=found.accuracy, cost=found.cost, gain=found.gain, budget=None, guarantee=guarantee,
        relative_cost=EstimateEntry(value=found.cost.value / 8.0),
    )  # fmt: skip
    policy = CascadePolicy(
        rule=found.strategy, words=found.strategy, tolerance=None, chosen="", single=None,
        promise=promise, path=None,
    )  # fmt: skip
    for claim in cascade_claims(policy, MODELS, n):
        yield Said(claim.id, claim.outcome in ("shown", "equivalent"), _false(claim, truth))


def _false(claim, truth):
    if claim.id == PROMISE:
        return truth < -MARGIN
    if claim.outcome == "equivalent":
        return abs(truth) > (claim.margin or 0)
    return truth * (claim.value or 0) < 0


def worlds():
    """Yield all worlds."""
    for name, made in SKILL.items():
        for goal, target in TARGETS.items():
            run = partial(_run, made=made, target=target, n=1000)
            power = (BEATS, PROMISE) if made["skill"] == 1.0 else ()
            yield World(f"{name}, {goal}, 1,000 questions", run, power)
    for goal, target in TARGETS.items():
        run = partial(_run, made={"skill": 0.0}, target=target, n=300)
        yield World(f"both alike, {goal}, 300 questions", run)
