"""Intervals of a comparison, a cascade and a monitor at few rows, in worlds with a known truth."""

from __future__ import annotations

import os
from functools import lru_cache
from math import sqrt

import numpy as np

from calibrant.comparison.decision import decide_pairs
from calibrant.comparison.ece_interval import ece_estimate, gaps_of
from calibrant.core.arrays import Estimate
from calibrant.labels import leaderboard
from calibrant.labels.watching.batch import batch_estimates
from calibrant.trust.deferral.mixing import SplitMeans
from simulations._comparison_worlds import (
    BETAS,
    PAIRS,
    chances,
    drawn,
    evidence_of,
    moved,
    views_of,
)
from simulations._pieces import markdown_table, resumed, share_interval

# So few runs are a look, of a few minutes, that finds a broken rule; the page has more.
RUNS = int(os.environ.get("CALIBRANT_REPEATS", "10"))
ENOUGH_FOR_THE_PAGE = 50
GOAL = 0.4
RESAMPLES = 400
BINS = 15


def part(name, step, told_of):
    """Return the name of a part, and what runs it and returns the lines of its piece."""

    def run():
        found = resumed("comparison", name, RUNS, step)
        runs = min(map(len, found.values()))
        lines = told_of(found, runs)
        print("\n".join(lines), flush=True)
        return lines if runs >= ENOUGH_FOR_THE_PAGE else []

    return name, run


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


@lru_cache
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


def held(estimates, true):
    """Return, of each estimate, whether it holds the truth and how wide it is."""
    return [[int(e.low <= true <= e.high), round(float(e.high - e.low), 5)] for e in estimates]


def covers(drawn):
    """Return shares in per cent and mean widths of several estimates, as cells of a table."""
    means = np.mean(drawn, axis=0)
    return [cell for share, wide in means for cell in (f"{100 * share:.1f}", f"{wide:.3f}")]


def model_errors():
    def step(run):
        for number, world in enumerate(WORLDS):
            for n in (60, 200, 1000):
                rng = np.random.default_rng([number, n, run])
                p, y = answered(world, n, rng)
                _, both = views_of([p, p], [y, y], rng, resamples=RESAMPLES, target=GOAL)
                for view, true in zip(("raw", "da"), errors(world), strict=True):
                    scores = both[0][0].paper[view]
                    found = ece_estimate(scores.residuals, n), moved_back(scores.ece, n)
                    yield (world, n, view), held(found, true)

    def told_of(found, runs):
        return [
            f"## The ECE of one model, {runs} runs",
            "",
            "The interval in use against the percentiles of the resamples, moved back by their "
            "bias.",
            "",
            *markdown_table(
                (
                    "world", "questions", "view", "covers %", "mean width",
                    "percentiles: covers %", "width",
                ),
                [
                    (world, f"{n:,}", view.replace("da", "DA"), *covers(drawn))
                    for (world, n, view), drawn in found.items()
                ],
            ),
        ]  # fmt: skip

    return part("one_model", step, told_of)


def model_gaps():
    pairs = (
        ("calibrated", "calibrated"),
        ("over-confident", "over-confident"),
        ("calibrated", "over-confident"),
        ("calibrated", "over-confident in part"),
    )

    def step(run):
        for number, (first, second) in enumerate(pairs):
            wanted = np.array(errors(first)) - errors(second)
            for n in (200, 1000):
                rng = np.random.default_rng([7, number, n, run])
                both = [answered(world, n, rng) for world in (first, second)]
                confidence, correct = (np.stack(part) for part in zip(*both, strict=True))
                _, found = views_of(confidence, correct, rng, resamples=RESAMPLES, target=GOAL)
                for view, true in zip(("raw", "da"), wanted, strict=True):
                    gaps = found[0][1].paper[view].ece - found[1][0].paper[view].ece
                    both_ways = gaps_of(gaps[None])[0].estimate(n, level=0.95), moved_back(gaps, n)
                    yield (first, second, n, view), held(both_ways, true)

    def told_of(found, runs):
        return [
            f"## The gap between two models, {runs} runs",
            "",
            "First minus second, on the same questions. In use: percentiles with room for the bias "
            "that the two do not share; beside them the percentiles alone.",
            "",
            *markdown_table(
                (
                    "first", "second", "questions", "view", "covers %", "mean width",
                    "alone: covers %", "width",
                ),
                [
                    (first, second, f"{n:,}", view.replace("da", "DA"), *covers(drawn))
                    for (first, second, n, view), drawn in found.items()
                ],
            ),
        ]  # fmt: skip

    return part("two_models", step, told_of)


def splits():
    def step(run):
        for queries, rate in ((40, 0.05), (40, 0.5), (200, 0.02), (200, 0.7), (1000, 0.05)):
            rng = np.random.default_rng([queries, int(100 * rate), run])
            means, half = SplitMeans(queries // 2, 0.5), queries // 2
            outcome = (rng.random(queries) < rate).astype(float)
            parts = [outcome[rng.permutation(queries)[:half]].mean() for _ in range(20)]
            one, other = means.share(parts), means.plain(parts)
            outside = other.low < 0 or other.high > 1
            inside = [int(e.low <= rate <= e.high) for e in (one, other)]
            yield (queries, rate), (*inside, int(outside))

    def told_of(found, runs):
        return [
            f"## A share over random splits of the same queries, {runs} runs",
            "",
            "20 splits into halves, as in a cascade: an accuracy, or the share of queries that go "
            "on to the next model. Student's interval leaves [0, 1]; the score interval in use "
            "cannot.",
            "",
            *markdown_table(
                (
                    "queries", "share", "covers %", "Student: covers %",
                    "Student: impossible ends %",
                ),
                [
                    (f"{n:,}", rate, *(f"{100 * x:.1f}" for x in np.mean(drawn, axis=0)))
                    for (n, rate), drawn in found.items()
                ],
            ),
        ]  # fmt: skip

    return part("splits", step, told_of)


BATCHES = {
    "follow the outcome": (lambda rng, n: rng.random(n), lambda p: p, 0.0),
    "do not": (lambda rng, n: rng.random(n), lambda p: np.full(p.size, 0.5), 0.0),
    "constant": (lambda _, n: np.full(n, 0.9), lambda p: np.full(p.size, 0.7), -0.2),
    "rare successes": (lambda rng, n: rng.beta(2, 2, n), lambda p: np.full(p.size, 0.05), -0.45),
}


def batches():
    def step(run):
        for number, (name, (said, chance, wanted)) in enumerate(BATCHES.items()):
            for n in (5, 20, 100):
                rng = np.random.default_rng([number, n, 2, run])
                p = said(rng, n)
                y = (rng.random(n) < chance(p)).astype(float)
                gap = batch_estimates(p, y)["gap"]
                half = 1.96 * float((y - p).std()) / sqrt(n)
                normal = abs((y - p).mean() - wanted) <= half
                yield (name, n), (int(gap.low <= wanted <= gap.high), int(normal))

    def told_of(found, runs):
        return [
            f"## Accuracy minus confidence of a few labels, {runs} runs",
            "",
            "As a monitor shows of each batch; beside it the normal interval of the differences.",
            "",
            *markdown_table(
                ("confidences", "labels", "covers %", "normal: covers %"),
                [
                    (name, n, *(f"{100 * x:.1f}" for x in np.mean(drawn, axis=0)))
                    for (name, n), drawn in found.items()
                ],
            ),
        ]

    return part("batches", step, told_of)


FOOTINGS = ("raw", "os_a", "os_b", "sda", "sos")
COVERED = [PAIRS[i] for i in (0, 2, 6, 8, 10, 11, 17, 22, 35, 42, 50, 51)]


SHORT_ENDS = (
    "Where one model is calibrated and the other is not, what is missed lies as a rule further "
    "from no difference than the interval reaches: hold *too much* against what the columns miss. "
    "Noise adds to the error of the calibrated model. That bias is estimated from the same "
    "answers, by what the resamples lie above the data; it comes out too small, most of all where "
    "chance has already made the error large. So the calibrated model may lead by more than its "
    "interval says. A verdict needs six footings at once; its false rates stand above.",
)


@lru_cache
def true_gaps(number, size=100_000):
    """Return the gaps of ten bins without noise: every outcome is its own chance."""
    world = COVERED[number]
    rng = np.random.default_rng(7)
    rows = [(model.confidence, model.chance) for model in world.draw(rng, size)]
    (found,) = evidence_of(rows, rng, resamples=2)[1]
    return [found.gaps[name].value for name in FOOTINGS] + [found.lead]


def verdict_gaps(n=1_000):
    """Return the part: how often the intervals behind a verdict hold, and that of accuracies."""

    def step(run):
        for number, world in enumerate(COVERED):
            rng = np.random.default_rng([run, n, number, 11])
            rows = [(model.confidence, model.correct) for model in world.draw(rng, n)]
            (found,) = evidence_of(rows, rng, resamples=120)[1]
            ends = [(found.gaps[name].low, found.gaps[name].high) for name in FOOTINGS]
            reach = 1.96 * found.lead_sd
            ends.append((found.lead - reach, found.lead + reach))
            both = list(zip(ends, true_gaps(number), strict=True))
            held = [int(low - 1e-6 <= true <= high + 1e-6) for (low, high), true in both]
            # A difference is shown, and it is larger than there is, or there is none that way.
            above = [low > max(true, 0) + 1e-6 for (low, _), true in both]
            below = [high < min(true, 0) - 1e-6 for (_, high), true in both]
            yield (world.name,), [*held, int(any(above[:-1]) or any(below[:-1]))]

    def told_of(found, runs):
        shares = {name: 100 * np.mean(drawn, axis=0) for (name,), drawn in found.items()}
        table = np.array(list(shares.values()))
        lowest, most = table[:, :-1].min(axis=0), table[:, -1].max()
        ends = [share_interval(round(x * runs / 100), runs) for x in lowest]
        told = (
            f"{x:.1f} [{100 * low:.1f}, {100 * high:.1f}]"
            for x, (low, high) in zip(lowest, ends, strict=True)
        )
        return [
            f"## Intervals of the gaps behind a verdict, {n:,} questions, {runs} runs",
            "",
            "98 % intervals of each footing, 95 % of the difference in accuracy: how often they "
            "hold the gap of ten bins, or the difference, of all such questions, in per cent. "
            "*Too much*: on some footing a difference is shown that is larger than the true one.",
            "",
            *markdown_table(
                (
                    "world", "as answered", "at a's accuracy", "at b's", "equal shares", "mean",
                    "accuracy", "too much",
                ),
                [(name, *(f"{x:.1f}" for x in row)) for name, row in shares.items()],
            ),
            "Lowest: " + ", ".join(told) + f". Too much at most: {most:.1f}.",
            "",
            *SHORT_ENDS,
        ]  # fmt: skip

    return part("verdict_gaps", step, told_of)


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


def ranks(n=500):
    """Return the part: how often all rank intervals of ten models hold."""
    order = np.arange(10) // 2
    laws = {"calibrated": (0.0,), "half +1": (0.0, 1.0), "same law": None}

    def step(run):
        for name, moves in laws.items():
            rng = np.random.default_rng([run, n, 13, len(name)])
            rows = [(model.confidence, model.correct) for model in ten_models(rng, n, moves)]
            pairs, evidence = evidence_of(rows, rng, resamples=120)
            decided = zip(pairs, decide_pairs(evidence), strict=True)
            league = not any(
                decision.word == "better" and not truly_better(moves, a, b, decision.winner)
                for (a, b), decision in decided
            )
            board = leaderboard({str(k): row for k, row in enumerate(rows)}, resamples=20, seed=run)
            good, width = True, 0.0
            for entry in board["results"]:
                k = int(entry["model"])
                # Two of one accuracy share two places.
                first, last = 1 + (order > order[k]).sum(), 10 - (order < order[k]).sum()
                good &= bool(entry["rank_low"] <= first and last <= entry["rank_high"])
                width += (entry["rank_high"] - entry["rank_low"]) / 10
            yield (name,), (int(league), int(good), width)

    def told_of(found, runs):
        rows = []
        for (name,), values in found.items():
            table = np.array(values)
            cells = []
            for column in (0, 1):
                count = int(table[:, column].sum())
                low, high = share_interval(count, runs)
                cells.append(f"{100 * count / runs:.1f} [{100 * low:.1f}, {100 * high:.1f}]")
            rows.append((name, *cells, f"{table[:, 2].mean():.1f}"))
        return [
            f"## Rank intervals of ten models, {n:,} questions, {runs} runs",
            "",
            "Accuracies from 50 to 74 %, two models of each. Runs in which all ten intervals hold, "
            "in per cent: of the league (no model beats one that is not worse calibrated), and of "
            "`plan --rank accuracy`; then the mean width of its intervals.",
            "",
            *markdown_table(("world", "league holds", "accuracy holds", "mean width"), rows),
        ]

    return part("ranks", step, told_of)


def truly_better(moves, a, b, winner):
    """Return whether the winner is calibrated and the loser moved; else none is truly better."""
    if moves is None or len(moves) == 1:
        return False
    best, other = (a, b) if winner < 0 else (b, a)
    return moves[best % 2] == 0 and moves[other % 2] != 0


PARTS = (verdict_gaps(), ranks(), model_errors(), model_gaps(), splits(), batches())
