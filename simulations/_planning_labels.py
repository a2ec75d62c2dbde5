"""Worlds with known truth for labels: coverage per design and judge, looks, partial returns."""

import numpy as np

from calibrant.core.arrays import named_stream
from calibrant.labels.labelling.designs import draw_wave
from calibrant.labels.labelling.estimates import pool_estimate
from calibrant.labels.labelling.pools import LabelDraws, LabelPool, pool_cells
from calibrant.labels.labelling.stopping import FEWEST_LABELS, claim_bounds, stop_decision

JUDGES = ("none", "50 %", "70 %", "90 %", "biased")
DESIGNS = (("random", 1), ("stratified", 1), ("stratified", 3), ("pps", 3))
QUANTITIES = ("gap", "accuracy", "Brier", "ECE", "ECE upper", "gap, population")


def outcome_rate(world, p):
    """Chance of a right answer at confidence p."""
    if world == "calibrated":
        return p
    if world == "over-confident":
        return np.clip(np.where(p > 0.9, p - 0.05, p - 0.4), 0, 1)
    if world == "shifted":
        return np.clip(p - 0.05, 0, 1)
    return np.clip(p + 0.1 * np.sin(8 * p), 0, 1)


def confidences(world, n, rng):
    """Confidences that crowd near 1, or spread over the upper part of the scale."""
    return rng.uniform(0.3, 1.0, n) if world == "shifted" else rng.beta(8, 1, n)


def judged(kind, y, rng):
    """A judge's verdicts: right this often, or one that passes a third of the wrong answers."""
    if kind == "none":
        return None
    if kind == "biased":
        passed = np.maximum(y, rng.random(y.size) < 0.3)
        return np.where(rng.random(y.size) < 0.85, passed, 1 - y)[:, None]
    quality = float(kind.removesuffix(" %")) / 100
    return np.where(rng.random(y.size) < quality, y, 1 - y)[:, None]


class Loop:
    """A pool that is labelled wave by wave; a wave may come back in part."""

    def __init__(self, p, y, side, design, rng, bins=15):
        self.p, self.y, self.side, self.design, self.rng, self.bins = p, y, side, design, rng, bins
        n = p.size
        self.known, self.wave = np.full(n, np.nan), np.zeros(n, dtype=np.intp)
        self.pi, self.order = np.zeros(n), np.zeros(n, dtype=np.intp)
        self.along = np.full(n, np.nan)
        self.waves, self.made, self.queue, self.count = [], [], [], 0

    def pool(self):
        draws = LabelDraws(
            self.wave, self.pi, tuple(self.waves), tuple(self.made), self.order, self.along
        )
        return LabelPool(self.p, self.known, self.side, self.bins, draws)

    def draw(self, size):
        found = draw_wave(self.pool(), size, design=self.design, rng=self.rng)
        self.wave[found.index], self.pi[found.index] = len(self.waves) + 1, found.pi
        self.along[found.index] = found.along
        self.waves.append(found.wave)
        self.made.append(0)
        self.queue = list(found.index)

    def label(self, many):
        for _ in range(min(many, len(self.queue))):
            item = self.queue.pop(0)
            self.known[item] = self.y[item]
            self.made[-1] += 1
            self.count += 1
            self.order[item] = self.count

    def truth(self):
        gap = self.p - self.y
        cell = pool_cells(self.p, self.bins)
        ece = np.abs(np.bincount(cell, weights=gap)).sum() / self.p.size
        return gap.mean(), self.y.mean(), (gap**2).mean(), ece


def covered(world, judge, design, waves, rng, *, items=2000, labels=200, part=1.0):
    """Whether each interval holds its truth in one run, and the width of the gap's interval."""
    p = confidences(world, items, rng)
    y = (rng.random(items) < outcome_rate(world, p)).astype(float)
    loop = Loop(p, y, judged(judge, y, rng), design, rng)
    sizes = [labels] if waves == 1 else [int(0.4 * labels)] + [int(0.3 * labels)] * 2
    for size in sizes:
        loop.draw(size)
        loop.label(max(1, int(part * size)))
    found = pool_estimate(loop.pool())
    wide = pool_estimate(loop.pool(), target="population")
    gap, accuracy, brier, ece = loop.truth()
    pairs = [(found.mean_gap, gap), (found.accuracy, accuracy), (found.brier, brier)]
    pairs += [(found.ece, ece)]
    inside = [part.low <= value <= part.high for part, value in pairs]
    inside += [found.ece_upper >= ece]
    expected = _expected_gap(world)
    inside += [wide.mean_gap.low <= expected <= wide.mean_gap.high]
    return inside, found.mean_gap.high - found.mean_gap.low


_EXPECTED = {}


def _expected_gap(world):
    if world not in _EXPECTED:
        rng = named_stream(0, "expected", world)
        p = confidences(world, 2_000_000, rng)
        _EXPECTED[world] = float((p - outcome_rate(world, p)).mean())
    return _EXPECTED[world]


def design_coverage(
    runs, *, worlds=("over-confident", "shifted"), judges=JUDGES, designs=DESIGNS, seed=0
):
    """Coverage of every quantity per world, design and judge; three waves come back in part."""
    table = {}
    for world in worlds:
        for design, waves in designs:
            for judge in judges:
                rng = named_stream(seed, "coverage", world, design, waves, judge)
                part = 0.7 if waves > 1 else 1.0
                found = [covered(world, judge, design, waves, rng, part=part) for _ in range(runs)]
                inside = np.array([row[0] for row in found], dtype=float).mean(axis=0)
                width = float(np.mean([row[1] for row in found]))
                table[world, design, waves, judge] = (*inside.tolist(), width)
    return table


def precision_stop(pools, runs, *, goal=0.05, step=5, most=1500, seed=0):
    """Labels at which a precision goal stops, and whether gap and ECE are covered there."""
    table = {}
    for name, (p, y, side, design) in pools.items():
        rng = named_stream(seed, "precision", name)
        rows = []
        for _ in range(runs):
            loop = Loop(p, y, side, design, rng)
            gap, _, _, ece = loop.truth()
            while True:
                if not loop.queue:
                    loop.draw(50)
                loop.label(step)
                if loop.count < FEWEST_LABELS:
                    continue
                found = pool_estimate(loop.pool())
                stop = stop_decision(loop.pool(), precision=goal, estimate=found)["stop"]
                if stop or loop.count >= most:
                    break
            held = (
                found.mean_gap.low <= gap <= found.mean_gap.high,
                found.ece.low <= ece <= found.ece.high,
            )
            rows.append((loop.count, *held))
        table[name] = np.array(rows, dtype=float).mean(axis=0).tolist()
    return table


def ever_missed(pools, runs, *, labels=600, step=10, budget=None, seed=0):
    """Share of runs in which a bound that holds at all times ever fails; parts come back."""
    table = {}
    for name, (p, y, side, design) in pools.items():
        rng = named_stream(seed, "ever", name, budget)
        high_failed = low_failed = 0
        for _ in range(runs):
            loop = Loop(p, y, side, design, rng)
            ece = loop.truth()[3]
            above = below = False
            while loop.count < labels:
                if not loop.queue:
                    loop.draw(50)
                loop.label(step)
                if loop.count < FEWEST_LABELS:
                    continue
                low, high = claim_bounds(loop.pool(), budget=budget)
                above |= high < ece - 1e-9
                below |= low > ece + 1e-9
            high_failed += above
            low_failed += below
        table[name] = (high_failed / runs, low_failed / runs)
    return table
