"""Do plan, label and audit agree on the number of labels? Calibrated pools, labelled for real."""

import numpy as np

from calibrant.core.arrays import named_stream
from calibrant.labels.labelling.estimates import pool_estimate
from calibrant.labels.labelling.power import labels_for_claim
from simulations._planning_audit import audit_block
from simulations._planning_labels import Loop

# Labels made, as a share of those planned.
SHARES = (0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.35, 1.5)


def shown(p, labels, threshold, rng):
    """Whether `label` and `audit` show the claim with so many labels of a calibrated pool."""
    y = (rng.random(p.size) < p).astype(float)
    loop = Loop(p, y, None, "stratified", rng)
    while loop.count < labels:
        loop.draw(min(50, labels - loop.count))
        loop.label(50)
    pool = loop.pool()
    block = audit_block(pool, rng)
    upper = block.cell_error.interval(0.9)[1]
    return pool_estimate(pool).ece_upper < threshold, upper < threshold


def needed(made, chances, power):
    """Labels at which the chance passes the power, between those that were tried."""
    rising = np.maximum.accumulate(chances)
    return float(np.interp(power, rising, made))


def agreement(pools, runs, *, threshold=0.05, power=0.8, seed=0):
    """Labels planned, for the pool and for answers to come, and those that are needed."""
    table = {}
    for name, p in pools.items():
        plans = {
            target: labels_for_claim(
                p, threshold, power=power, target=target, looking_on=False, seed=seed
            ).one_look
            for target in ("pool", "population")
        }
        made = np.array([round(share * plans["pool"]) for share in SHARES])
        rng = named_stream(seed, "agreement", name)
        chances = np.array(
            [
                np.mean([shown(p, labels, threshold, rng) for _ in range(runs)], axis=0)
                for labels in made
            ]
        )
        found = [needed(made, chances[:, side], power) for side in (0, 1)]
        table[name] = (plans["pool"], plans["population"], *found)
    return table
