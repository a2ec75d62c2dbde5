"""Strategies on many pools of models: fitted, chosen and measured on three parts of the rows."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from msgspec.structs import replace

from calibrant.trust.deferral.choice import per_question
from calibrant.trust.deferral.mixing import at_budget
from calibrant.trust.deferral.strategies import StrategyOptions, fit_strategies

BUDGETS = (0.25, 0.5, 0.75)
PARTS = (0.4, 0.1)
# Settings of the dial of a risk cascade: below 0 nothing stops, then the paper's tolerance 0.
PAPER = 1


@dataclass
class Measured:
    """What every strategy reaches, by (strategy, budget): one row per pool.

    `worth` holds the worth of each test question, `cost` the mean cost over that of the largest
    model. The paper's own setting stands under the budget None.
    """

    worth: dict = field(default_factory=dict)
    cost: dict = field(default_factory=dict)

    def add(self, key, pool, worth, cost):
        """Keep one pool."""
        self.worth.setdefault(key, {})[pool] = worth.astype(np.float16)
        self.cost.setdefault(key, {})[pool] = float(cost)

    def difference(self, one, other):
        """Return the mean of worth(one) - worth(other), its error, and the pools that have both.

        The error has two parts: over questions, which all pools share, and over models, by
        leaving out the pools of one model at a time.
        """
        pools = [pool for pool in self.worth[one] if pool in self.worth.get(other, {})]
        gaps = np.stack([_gap(self.worth[one][p], self.worth[other][p]) for p in pools])
        means = gaps.mean(axis=1)
        over_questions = gaps.mean(axis=0).std(ddof=1) / gaps.shape[1] ** 0.5
        return float(means.mean()), float(np.hypot(over_questions, _left_out(pools, means))), means

    def level(self, key):
        """Return mean worth and mean cost over the pools."""
        worth = [values.mean(dtype=float) for values in self.worth[key].values()]
        return float(np.mean(worth)), float(np.mean(list(self.cost[key].values())))


def _gap(one, other):
    return one.astype(np.float32) - other.astype(np.float32)


def _left_out(pools, means):
    names = sorted({name for pool in pools for name in pool})
    if len(names) == len(pools[0]):
        return 0.0
    kept = [np.array([name not in pool for pool in pools]) for name in names]
    found = np.array([means[rows].mean() for rows in kept if rows.any()])
    count = len(found)
    return float(np.sqrt((count - 1) / count * ((found - found.mean()) ** 2).sum()))


def measure(pools, options: StrategyOptions, seed=0) -> Measured:
    """Measure all strategies on every pool; `pools` yields names and aligned answers."""
    found = Measured()
    every = replace(options, strategies=(*options.strategies, "single"))
    for names, answers in pools:
        order = np.random.default_rng(seed).permutation(len(answers))
        cuts = [round(len(order) * share) for share in np.cumsum(PARTS)]
        train, choice, test = (answers.rows(rows) for rows in np.split(order, cuts))
        *fitted, singles = fit_strategies(train, [choice, test], every, seed)
        largest = float(choice.cost[:, -1].mean())
        found.add(("largest", None), names, singles.curves[1].right[-1], 1.0)
        for one in (*fitted, singles):
            chosen, judged = one.curves
            dear = float(test.cost[:, -1].mean())
            for budget in BUDGETS:
                mix = at_budget(chosen.cost, chosen.accuracy, budget * largest)
                if mix is not None:
                    worth = per_question(mix, judged.right)
                    spent = per_question(mix, judged.spent).mean()
                    found.add((one.name, budget), names, worth, spent / dear)
            if one.name in ("risk", "excess", "calibration"):
                found.add((one.name, None), names, judged.right[PAPER], judged.cost[PAPER] / dear)
                if one.name == "risk":
                    router = next(s for s in fitted if s.name == "router").curves
                    mix = at_budget(router[0].cost, router[0].accuracy, chosen.cost[PAPER])
                    if mix is not None:
                        worth = per_question(mix, router[1].right)
                        spent = per_question(mix, router[1].spent).mean()
                        found.add(("router", None), names, worth, spent / dear)
    return found
