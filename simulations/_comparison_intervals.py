"""Intervals of a comparison, a cascade and a monitor at few rows, in worlds with a known truth."""

from __future__ import annotations

import os
from math import sqrt

import numpy as np

from calibrant.comparison.decision import decide_pairs
from calibrant.comparison.ece_interval import ece_estimate, gaps_of
from calibrant.core.estimate import Estimate
from calibrant.epistemic.deferral.split_intervals import SplitMeans
from calibrant.planning import leaderboard
from calibrant.planning.watching.batch import batch_estimates
from simulations._comparison_worlds import (
    BETAS,
    PAIRS,
    chances,
    drawn,
    evidence_of,
    moved,
    views_of,
)

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


FOOTINGS = ("raw", "os_a", "os_b", "sda", "sos")
COVERED = [PAIRS[i] for i in (0, 2, 6, 8, 10, 11, 17, 22, 35, 42, 50, 51)]


def true_gaps(world, size=100_000):
    """Return the gaps of ten bins without noise: every outcome is its own chance."""
    rng = np.random.default_rng(7)
    rows = [(model.confidence, model.chance) for model in world.draw(rng, size)]
    (found,) = evidence_of(rows, rng, resamples=2)[1]
    return [found.gaps[name].value for name in FOOTINGS] + [found.lead]


def verdict_gaps(lines, n=1_000):
    """How often the intervals behind a verdict hold, and that of the difference in accuracy."""
    lines += [
        f"## Intervals of the gaps behind a verdict, {n:,} questions, {SETS} runs",
        "",
        "98 % intervals of each footing, 95 % of the difference in accuracy: how often they hold "
        "the gap of ten bins, or the difference, of all such questions, in per cent.",
        "",
        "| world | as answered | at a's accuracy | at b's | equal shares | mean | accuracy |",
        "|" + " --- |" * 7,
    ]
    worst = np.full(len(FOOTINGS) + 1, 100.0)
    for number, world in enumerate(COVERED):
        wanted, held = true_gaps(world), np.zeros(len(FOOTINGS) + 1)
        for run in range(SETS):
            rng = np.random.default_rng([run, n, number, 11])
            rows = [(model.confidence, model.correct) for model in world.draw(rng, n)]
            (found,) = evidence_of(rows, rng, resamples=120)[1]
            ends = [(found.gaps[name].low, found.gaps[name].high) for name in FOOTINGS]
            reach = 1.96 * found.lead_sd
            ends.append((found.lead - reach, found.lead + reach))
            held += [
                low - 1e-6 <= true <= high + 1e-6
                for (low, high), true in zip(ends, wanted, strict=True)
            ]
        covers = 100 * held / SETS
        worst = np.minimum(worst, covers)
        lines.append(f"| {world.name} | " + " | ".join(f"{x:.1f}" for x in covers) + " |")
    lines += ["", "Lowest: " + ", ".join(f"{x:.1f}" for x in worst) + ".", ""]
    print("   gaps of a verdict:", lines[-2], flush=True)


def ten_models(rng, n, moves):
    """Return ten models in pairs of equal accuracy, some moved in log-odds, or all of one law."""
    d, found = rng.normal(0, 1.2, n), []
    for number in range(10):
        accuracy = 0.5 + 0.06 * (number // 2)
        if moves is None:
            found.append(BETAS(rng, (rng.random(n) < accuracy).astype(float), accuracy))
        else:
            p = chances(round(accuracy, 4), rng, d)
            found.append(drawn(p, moved(moves[number % len(moves)]), rng))
    return found


def ranks(lines, n=500):
    """How often all rank intervals of ten models hold: of a league, and of a leaderboard."""
    lines += [
        f"## Rank intervals of ten models, {n:,} questions, {SETS} runs",
        "",
        "Accuracies from 50 to 74 %, two models of each. Runs in which all ten intervals hold, in "
        "per cent: of the league (no model beats one that is not worse calibrated), and of "
        "`plan --rank accuracy`; then the mean width of its intervals.",
        "",
        "| world | league holds | accuracy holds | mean width |",
        "|" + " --- |" * 4,
    ]
    order = np.arange(10) // 2
    for name, moves in (("calibrated", (0.0,)), ("half +1", (0.0, 1.0)), ("same law", None)):
        league = held = 0
        width = 0.0
        for run in range(SETS):
            rng = np.random.default_rng([run, n, 13, len(name)])
            models = ten_models(rng, n, moves)
            rows = [(model.confidence, model.correct) for model in models]
            pairs, evidence = evidence_of(rows, rng, resamples=120)
            decided = zip(pairs, decide_pairs(evidence), strict=True)
            league += not any(
                decision.word == "better" and not truly_better(moves, a, b, decision.winner)
                for (a, b), decision in decided
            )
            board = leaderboard({str(k): row for k, row in enumerate(rows)}, resamples=20, seed=run)
            good = True
            for entry in board["results"]:
                k = int(entry["model"])
                # Two of one accuracy share two places.
                first, last = 1 + (order > order[k]).sum(), 10 - (order < order[k]).sum()
                good &= entry["rank_low"] <= first and last <= entry["rank_high"]
                width += (entry["rank_high"] - entry["rank_low"]) / 10 / SETS
            held += good
        lines.append(
            f"| {name} | {100 * league / SETS:.1f} | {100 * held / SETS:.1f} | {width:.1f} |"
        )
        print("  ", lines[-1], flush=True)
    lines.append("")


def truly_better(moves, a, b, winner):
    """Return whether the winner is calibrated and the loser moved; else none is truly better."""
    if moves is None or len(moves) == 1:
        return False
    best, other = (a, b) if winner < 0 else (b, a)
    return moves[best % 2] == 0 and moves[other % 2] != 0


SECTIONS = (verdict_gaps, ranks, model_errors, model_gaps, splits, batches)
