"""Cascades of real models with token costs: what they cost on later questions."""

from __future__ import annotations

import numpy as np
import polars as pl

from calibrant.core.errors import InputError
from calibrant.trust.deferral.answers import Answers
from calibrant.trust.deferral.cascade import Cascade, choose
from calibrant.trust.deferral.choice import choose_policy
from calibrant.trust.deferral.policy import AlwaysOne, ValuePolicy
from calibrant.trust.deferral.strategies import StrategyOptions, Target

NEXT = 2000
OPTIONS = StrategyOptions(strategies=("value", "confidence"))


class Pools:
    """Models of one table, question by question."""

    def __init__(self, path):
        table = pl.read_parquet(path).sort("question_id")
        self.models = {}
        for (name,), rows in table.partition_by("model", as_dict=True).items():
            said = {
                column: rows[column].cast(pl.Float64).to_numpy()
                for column in ("logit_perplexity_confidence", "verbal_numerical_confidence")
            }
            inside = {n: np.isfinite(v) & (v >= 0) & (v <= 1) for n, v in said.items()}
            column = max(said, key=lambda n: (inside[n].mean() > 0.95, len(np.unique(said[n]))))
            tokens = rows["token_length"].cast(pl.Float64).fill_null(0.0).to_numpy()
            right = rows["correct"].cast(pl.Float64).fill_null(0.0).to_numpy()
            if inside[column].mean() < 0.9 or tokens.mean() <= 0 or not right.any():
                continue
            confidence = np.where(inside[column], said[column], np.nan)
            self.models[name] = (confidence, right, np.nan_to_num(tokens))
        self.topic = rows["category"].cast(pl.String)

    def draw(self, rng, tails):
        """Return the answers of two or three models, dearer ones costing more, and a budget."""
        names = sorted(self.models)
        while True:
            count = int(rng.integers(2, 4))
            picked = sorted(rng.choice(names, count, replace=False),
                            key=lambda name: self.models[name][1].mean())  # fmt: skip
            price = np.array([1.0, 4.0, 12.0])[-count:] * rng.uniform(0.7, 1.4, count)
            said, right, tokens = (np.stack([self.models[name][part] for name in picked], axis=1)
                                   for part in range(3))  # fmt: skip
            cost = tokens * price
            mean = cost.mean(axis=0)
            spread = float((cost.std(axis=0) / mean).max())
            if tails and spread < 2:
                continue
            dearer = (np.diff(mean) > 0).all() and mean[0] < 0.4 * mean[-1]
            if dearer and right[:, -1].mean() > 0.4:
                break
        budget = float(rng.uniform(max(0.3, 1.2 * mean[0] / mean[-1]), 0.9))
        frame = pl.DataFrame({"category": self.topic})
        return Answers(tuple(picked), frame, said, right, cost), budget, spread


def one_pool(rng, pools, number):
    """Choose a policy on questions drawn from a pool, and hold it against later ones.

    Returns questions, spread, budget, cost said with its ends, cost of the next 2,000, true mean
    cost and accuracy, whether a single model is truly both cheaper and better, and the strategy;
    None where no setting is surely in budget.
    """
    answers, budget, spread = pools.draw(rng, number % 2)
    n = int(rng.choice([500, 1000, 3000]))
    fitted = answers.rows(rng.integers(0, len(answers), n))
    try:
        found = choose_policy(fitted, OPTIONS, Target(budget=budget), seed=int(rng.integers(2**31)))
    except InputError:
        return None
    spent, right = _truth(found, answers)
    later = rng.integers(0, len(answers), NEXT)
    largest = float(answers.cost[:, -1].mean())
    singles = zip(answers.cost.mean(axis=0), answers.correct.mean(axis=0), strict=True)
    beaten = any(c <= spent.mean() and a >= right.mean() + 0.01 for c, a in singles)
    said = found.cost
    return [n, spread, budget * largest, said.value, said.low, said.high,
            float(spent[later].mean()), float(spent.mean()), float(right.mean()),
            bool(beaten), found.strategy]  # fmt: skip


def _truth(found, answers):
    """Return expected cost and worth of every question of the pool."""
    spent, right = np.zeros(len(answers)), np.zeros(len(answers))
    for dial, share in zip(found.dials, (1 - found.share, found.share), strict=True):
        if not share:
            continue
        who, paid = who_answers(found.policy.with_dial(dial), answers)
        spent += share * paid
        right += share * answers.correct[np.arange(len(who)), who]
    return spent, right


def who_answers(policy, answers):
    """Return which model answers each question under a policy, and what that costs."""
    every = np.arange(len(answers))
    if isinstance(policy, AlwaysOne):
        who = np.full(len(answers), answers.models.index(policy.name))
        return who, answers.cost[every, who]
    if isinstance(policy, ValuePolicy):
        prepared = policy.model.prepare(answers)
        found = policy.model.run(prepared, np.array([policy.money]), direct=policy.direct)
        return tuple(part[0] for part in found)
    assert isinstance(policy, Cascade)
    step = choose(policy.risk(answers), policy.tolerance, fallback=policy.fallback)
    return step.chosen, answers.cost.cumsum(axis=1)[every, step.asked - 1]
