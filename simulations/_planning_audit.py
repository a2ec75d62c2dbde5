"""Does an audit of stored labels cover? Every design, with and without a judge."""

import numpy as np

from calibrant.core.arrays import named_stream
from calibrant.labels.labelling.pools import spread_shares
from calibrant.metrics.blocks.row_block import DrawnBlock, DrawSpread
from simulations._planning_labels import (
    DESIGNS,
    JUDGES,
    Loop,
    confidences,
    judged,
    outcome_rate,
)

QUANTITIES = ("gap", "accuracy", "Brier", "ECE", "ECE upper")
BINS = 15


def expected(world):
    """The values that audits estimate, those of answers without end: gap, accuracy, Brier, ECE."""
    p = confidences(world, 2_000_000, named_stream(0, "audit truth", world))
    rate = outcome_rate(world, p)
    cell = np.minimum((p * BINS).astype(int), BINS - 1)
    ece = np.abs(np.bincount(cell, weights=rate - p, minlength=BINS)).sum() / p.size
    brier = (rate * (1 - p) ** 2 + (1 - rate) * p**2).mean()
    return (p - rate).mean(), rate.mean(), brier, ece


def audit_block(pool, rng):
    """The block that an audit of a pool works on, as `calibrant.inputs.labelled` has it."""
    taken, weight = pool.labelled, pool.weights()
    # Equal weights are none.
    uneven = weight if np.ptp(weight) > 1e-6 * weight.max() else None
    spread = DrawSpread(pool.draws.along[taken], spread_shares(pool.draws)[taken])
    return DrawnBlock(
        pool.confidence[taken], pool.correct[taken], uneven, None, probability=True, bins=BINS,
        level=0.95, resamples=500, rng=rng, spread=spread,
    )  # fmt: skip


def audited(world, judge, design, waves, rng, truth, *, items=2000, labels=200):
    """Whether each interval of an audit holds the truth in one run; waves come back in part."""
    p = confidences(world, items, rng)
    y = (rng.random(items) < outcome_rate(world, p)).astype(float)
    loop = Loop(p, y, judged(judge, y, rng), design, rng)
    sizes = [labels] if waves == 1 else [int(0.4 * labels)] + [int(0.3 * labels)] * 2
    for size in sizes:
        loop.draw(size)
        loop.label(size if waves == 1 else int(0.7 * size))
    block = audit_block(loop.pool(), rng)
    found = block.estimates(("accuracy", "brier", "ece", "confidence_gap"))
    names = ("confidence_gap", "accuracy", "brier", "ece")
    pairs = zip((found[name] for name in names), truth, strict=True)
    inside = [one.low - 1e-12 <= value <= one.high + 1e-12 for one, value in pairs]
    upper = block.cell_error.interval(0.9)[1]
    width = found["confidence_gap"].high - found["confidence_gap"].low
    return [*inside, upper >= truth[3], width]


def audit_coverage(runs, *, worlds=("over-confident", "shifted"), judges=JUDGES, seed=0):
    """Coverage of every quantity of an audit per world, design and judge."""
    table = {}
    for world in worlds:
        truth = expected(world)
        for design, waves in DESIGNS:
            for judge in judges:
                rng = named_stream(seed, "audit coverage", world, design, waves, judge)
                found = [audited(world, judge, design, waves, rng, truth) for _ in range(runs)]
                mean = np.array(found, dtype=float).mean(axis=0)
                table[world, design, waves, judge] = mean.tolist()
    return table
