"""The claims of `groups` in worlds whose truth is known."""

from __future__ import annotations

from functools import partial

import numpy as np

from calibrant.claims.groups import GROUP_MARGIN, groups_claims
from calibrant.core.document import plain
from calibrant.epistemic.audit import GroupOptions, groups_entry
from calibrant.epistemic.loss.decision import CostMatrix, pointwise_risk
from simulations._epistemic_worlds import people
from simulations.claims.harness import RUNS, Said, World

COSTS = {"c10": 3.0, "c01": 1.0}
NAMED = ("women: sex=f", "men: sex=m")


def _run(rng, *, overall, plant, wavy, n):
    table, f, y, inside = people(n, rng, overall, plant, wavy=wavy)
    options = GroupOptions(group=NAMED, costs=COSTS, seed=int(rng.integers(2**31)))
    entry, _ = groups_entry(table, f, y, options=options)
    chance = np.clip((0.25 + 0.5 * np.sin(3 * f) ** 2 if wavy else f - overall), 0.01, 0.99)
    truth = np.clip(chance - plant * inside, 0.01, 0.99)
    risk = float(pointwise_risk(truth, f, CostMatrix(**COSTS)).mean())
    off = wavy or overall > 0 or plant > 0
    for claim in groups_claims(plain({"model": "m", **entry}), named=False, costs=True):
        yield Said(
            claim.id,
            claim.outcome in ("shown", "equivalent"),
            _false(claim, plant=plant, off=off, risk=risk),
        )


def _false(claim, *, plant, off, risk):
    if claim.id == "groups.recalibration":
        return claim.outcome == "shown" and not off
    if claim.id == "groups.grouping_loss":
        # The planted group holds an eighth of the rows times a bit more than a third.
        share = 0.125 * 23 / 62
        return claim.outcome == "shown" and (claim.low or 0) > plant**2 * share * (1 - share)
    if claim.id == "groups.decision_risk":
        return claim.outcome == "shown" and (claim.low or 0) > risk
    if claim.id == "groups.difference":
        return claim.outcome == "shown"
    if claim.outcome == "equivalent":
        return abs(_true_gap(claim, plant)) > GROUP_MARGIN
    return not plant or _true_gap(claim, plant) == 0


def _true_gap(claim, plant):
    """Return whether a rule can differ from rows of equal confidence: only with the plant."""
    rule = str(claim.subject.get("rule"))
    if rule in ("women", "men") or not plant:
        return 0.0
    return plant if "dept" in rule or "age" in rule else 0.0


def worlds():
    """Yield all worlds."""
    ids = ("groups.stands_out", "groups.grouping_loss", "groups.recalibration")
    for overall, plant, wavy, n in (
        (0.0, 0.0, False, 1000),
        (0.1, 0.0, False, 1000),
        (0.0, 0.0, True, 1000),
        (0.1, 0.25, False, 3000),
    ):
        name = f"{'wavy' if wavy else f'over by {overall:.2f}'}, planted {plant:g}, {n:,} rows"
        run = partial(_run, overall=overall, plant=plant, wavy=wavy, n=n)
        yield World(name, run, ids if plant else (), runs=max(RUNS // 5, 2))
