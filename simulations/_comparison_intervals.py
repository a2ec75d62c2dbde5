"""Intervals of a comparison, a cascade and a monitor at few rows, in worlds with a known truth."""

from __future__ import annotations

import os
from math import sqrt

import numpy as np

from calibrant.comparison.ece_interval import ece_estimate, gaps_of
from calibrant.core.estimate import Estimate
from calibrant.epistemic.deferral.split_intervals import SplitMeans
from calibrant.planning.watching.batch import batch_estimates
from simulations._comparison_worlds import views_of

SETS = int(os.environ.get("CALIBRANT_REPEATS", "200"))
GOAL = 0.4
RESAMPLES = 400
BINS = 15


def spread_out(rng, n):
    return rng.beta(4, 2, n)


def rounded(rng, n):
    return rng.choice([0.5, 0.7, 0.8, 0.9, 0.95], n)


WORLDS = {
    "calibrated": (spread_out, lambda p: p),
    "over-confident": (spread_out, lambda p: np.clip(p - 0.15, 0, 1)),
    "over-confident in part": (spread_out, lambda p: np.where(p > 0.7, p - 0.2, p)),
    "too wavy": (spread_out, lambda p: np.clip(p + 0.1 * np.sin(12 * p), 0, 1)),
    "round numbers": (rounded, lambda p: 0.8 * p),
}


def errors(world, size=400_000):
    """Return the ECE that infinitely many rows would show, raw and at the common accuracy."""
    said, chance = WORLDS[world]
    p = said(np.random.default_rng(99), size)
    q = chance(p)
    cell = np.minimum((p * BINS).astype(int), BINS - 1)
    up, down = GOAL / q.mean(), (1 - GOAL) / (1 - q.mean())
    weighted = q * up * (p - 1) + (1 - q) * down * p
    return [np.abs(np.bincount(cell, part)).sum() / size for part in (p - q, weighted)]


def answered(world, n, rng):
    """Confidences and outcomes; drawn anew where all are alike, which no comparison takes."""
    said, chance = WORLDS[world]
    while True:
        p = said(rng, n)
        y = (rng.random(n) < chance(p)).astype(float)
        if 0 < y.mean() < 1:
            return p, y


def moved_back(replicates, n):
    """Return the percentiles of the resamples, moved back by their own bias."""
    value, drawn = float(replicates[0]), replicates[1:][np.isfinite(replicates[1:])]
    low, high = np.quantile(drawn - drawn.mean() + value, [0.025, 0.975])
    return Estimate(value, float(low), float(high), n)


def model_errors(lines):
    lines += [
        "## The ECE of one model",
        "",
        "The interval in use against the percentiles of the resamples, moved back by their bias.",
        "",
        "| world | questions | view | covers % | mean width | percentiles: covers % | width |",
        "|" + " --- |" * 7,
    ]
    for number, world in enumerate(WORLDS):
        wanted = errors(world)
        for n in (60, 200, 1000):
            rng = np.random.default_rng([number, n])
            inside, width = np.zeros((2, 2)), np.zeros((2, 2))
            for _ in range(SETS):
                p, y = answered(world, n, rng)
                _, both = views_of([p, p], [y, y], rng, resamples=RESAMPLES, target=GOAL)
                views = both[0][0].paper
                for row, view in enumerate(("raw", "da")):
                    scores = views[view]
                    found = (
                        ece_estimate(scores.residuals, n),
                        moved_back(scores.ece, n),
                    )
                    inside[row] += [e.low <= wanted[row] <= e.high for e in found]
                    width[row] += [e.high - e.low for e in found]
            for row, view in enumerate(("raw", "DA")):
                cover, wide = 100 * inside[row] / SETS, width[row] / SETS
                lines.append(
                    f"| {world} | {n:,} | {view} | {cover[0]:.1f} | {wide[0]:.3f} | "
                    f"{cover[1]:.1f} | {wide[1]:.3f} |"
                )
        print(f"   {world}", flush=True)
    lines.append("")


def model_gaps(lines):
    lines += [
        "## The gap between two models",
        "",
        "First minus second, on the same questions. In use: percentiles with room for the bias "
        "that the two do not share; beside them the percentiles alone.",
        "",
        "| first | second | questions | view | covers % | mean width | alone: covers % | width |",
        "|" + " --- |" * 8,
    ]
    pairs = (
        ("calibrated", "calibrated"),
        ("over-confident", "over-confident"),
        ("calibrated", "over-confident"),
        ("calibrated", "over-confident in part"),
    )
    for number, (first, second) in enumerate(pairs):
        wanted = np.array(errors(first)) - errors(second)
        for n in (200, 1000):
            rng = np.random.default_rng([7, number, n])
            inside, width = np.zeros((2, 2)), np.zeros((2, 2))
            for _ in range(SETS):
                both = [answered(world, n, rng) for world in (first, second)]
                confidence, correct = (np.stack(part) for part in zip(*both, strict=True))
                _, found = views_of(confidence, correct, rng, resamples=RESAMPLES, target=GOAL)
                for row, view in enumerate(("raw", "da")):
                    gaps = found[0][1].paper[view].ece - found[1][0].paper[view].ece
                    both_ways = gaps_of(gaps[None])[0].estimate(n, level=0.95), moved_back(gaps, n)
                    inside[row] += [e.low <= wanted[row] <= e.high for e in both_ways]
                    width[row] += [e.high - e.low for e in both_ways]
            for row, view in enumerate(("raw", "DA")):
                cover, wide = 100 * inside[row] / SETS, width[row] / SETS
                lines.append(
                    f"| {first} | {second} | {n:,} | {view} | {cover[0]:.1f} | {wide[0]:.3f} | "
                    f"{cover[1]:.1f} | {wide[1]:.3f} |"
                )
    lines.append("")
    print("   gaps", flush=True)


def splits(lines):
    lines += [
        "## A share over random splits of the same queries",
        "",
        "20 splits into halves, as in a cascade: an accuracy, or the share of queries that go on "
        "to the next model. Student's interval leaves [0, 1]; the score interval in use cannot.",
        "",
        "| queries | share | covers % | Student: covers % | Student: impossible ends % |",
        "|" + " --- |" * 5,
    ]
    for queries, rate in ((40, 0.05), (40, 0.5), (200, 0.02), (200, 0.7), (1000, 0.05)):
        rng = np.random.default_rng([queries, int(100 * rate)])
        means = SplitMeans(queries // 2, 0.5)
        score = student = outside = 0
        for _ in range(SETS):
            outcome = (rng.random(queries) < rate).astype(float)
            half = queries // 2
            parts = [outcome[rng.permutation(queries)[:half]].mean() for _ in range(20)]
            one, other = means.share(parts), means.plain(parts)
            score += one.low <= rate <= one.high
            student += other.low <= rate <= other.high
            outside += other.low < 0 or other.high > 1
        cells = (100 * count / SETS for count in (score, student, outside))
        lines.append(f"| {queries:,} | {rate:g} | " + " | ".join(f"{c:.1f}" for c in cells) + " |")
    lines.append("")


def batches(lines):
    lines += [
        "## Accuracy minus confidence of a few labels",
        "",
        "As a monitor shows of each batch; beside it the normal interval of the differences.",
        "",
        "| confidences | labels | covers % | normal: covers % |",
        "|" + " --- |" * 4,
    ]
    worlds = {
        "follow the outcome": (lambda rng, n: rng.random(n), lambda p: p, 0.0),
        "do not": (lambda rng, n: rng.random(n), lambda p: np.full(p.size, 0.5), 0.0),
        "constant": (lambda _, n: np.full(n, 0.9), lambda p: np.full(p.size, 0.7), -0.2),
        "rare successes": (
            lambda rng, n: rng.beta(2, 2, n), lambda p: np.full(p.size, 0.05), -0.45
        ),
    }  # fmt: skip
    for number, (name, (said, chance, wanted)) in enumerate(worlds.items()):
        for n in (5, 20, 100):
            rng = np.random.default_rng([number, n, 2])
            joined = normal = 0
            for _ in range(5 * SETS):
                p = said(rng, n)
                y = (rng.random(n) < chance(p)).astype(float)
                gap = batch_estimates(p, y)["gap"]
                half = 1.96 * float((y - p).std()) / sqrt(n)
                joined += gap.low <= wanted <= gap.high
                normal += abs((y - p).mean() - wanted) <= half
            share = 100 / (5 * SETS)
            lines.append(f"| {name} | {n} | {share * joined:.1f} | {share * normal:.1f} |")
    lines.append("")


SECTIONS = (model_errors, model_gaps, splits, batches)
