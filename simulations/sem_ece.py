"""Sem-ECE in worlds with known truth: test, gap, estimate for unlimited draws; writes its page."""

from __future__ import annotations

import os
import sys
from functools import cache

import numpy as np
from benchmarks.harness import ROOT, machine, versions

from calibrant.metrics.binned import ece
from calibrant.metrics.semantic import (
    noise_floor,
    pool_gap,
    question_scores,
    theory,
    unlimited_draws_ece,
)
from calibrant.metrics.stats.intervals import wilson_interval
from simulations._sem_ece_recipe import plain_estimate, plain_test
from simulations._sem_ece_worlds import (
    BEYOND_NULL,
    FIRST_NINE,
    NULL_WORLDS,
    WORLDS,
    limit,
    pool_of,
)

RUNS = int(os.environ.get("CALIBRANT_REPEATS", "1000"))
STAR_RUNS = max(RUNS // 5, 4)
MANY_RUNS = max(STAR_RUNS // 2, 4)
# Known without simulation: the leading answer is right as often as it is drawn.
EXACT = {"calibrated, 5 classes", "calibrated, 20 classes", "calibrated mode, 5 classes"}


def rate(flags):
    """Return a share with its interval, in percent."""
    hits, runs = int(np.sum(flags)), len(flags)
    low, high = (float(end) for end in wilson_interval(hits / runs, runs))
    return f"{100 * hits / runs:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def test_rates():
    lines = [
        "## The test of 'each answer is right as often as the model gives it'",
        "",
        f"200 questions, {RUNS:,} runs per cell, 199 simulated tables per test. The first three "
        "worlds are so: there the test may reject in 5 % of runs. The last two are not, although "
        "their leading answer is calibrated: the answers behind it are right more often or less "
        "often than they are given, and the test is allowed to say so. 'Plain' is the lab script "
        "that the test was designed with, on the same tables.",
        "",
        "| world | draws | Sem1-ECE | its floor | rejects % | plain % | Sem2-ECE | its floor | "
        "rejects % | plain % |",
        "|" + " --- |" * 10,
    ]
    for name, world in {**NULL_WORLDS, **BEYOND_NULL}.items():
        for n in (10, 20):
            found = []
            for run in range(RUNS):
                rng = np.random.default_rng([run, n, 5])
                pool = pool_of(*world(200, rng), n, rng)
                floor = noise_floor(pool, rng=rng, simulations=199)
                found.append(
                    [
                        [t.observed, t.floor, t.p <= 0.05, plain <= 0.05]
                        for t, plain in zip((floor.sem1, floor.sem2), plain_test(pool), strict=True)
                    ]
                )
            table = np.array(found, dtype=float)
            means = table.mean(axis=0)
            cells = [
                f"{means[k, 0]:.3f} | {means[k, 1]:.3f} | {rate(table[:, k, 2])} | "
                f"{100 * means[k, 3]:.1f}"
                for k in (0, 1)
            ]
            lines.append(f"| {name} | {n} | {cells[0]} | {cells[1]} |")
            progress(lines[-1])
    return lines


def gaps():
    lines = [
        "## The predicted gap between Sem1 and Sem2",
        "",
        "Mean c1 - c2 over 1,500 questions. The published expansion has the two leading classes "
        "only; per question the larger of it and of the Poisson prediction for all classes is "
        "reported.",
        "",
        "| classes | Dirichlet | draws | measured | two classes | off by | reported | off by |",
        "|" + " --- |" * 8,
    ]
    for classes, alpha in (
        (2, 2.0),
        (3, 1.0),
        (5, 0.5),
        (10, 1.0),
        (30, 0.15),
        (30, 1.0),
        (60, 0.3),
    ):
        for n in (10, 20, 50):
            rng = np.random.default_rng([classes, n])
            shares = rng.dirichlet(np.full(classes, alpha), 1500)
            pool = pool_of(shares, np.full(1500, -1), n, rng)
            s = question_scores(pool, splits=100, rng=rng)
            actual = s.gap.mean()
            two = theory.predicted_gap(s.margin, s.mass, s.n, selection_n=s.selection_n)
            ours = pool_gap(pool, s.selection_n)
            lines.append(
                f"| {classes} | {alpha} | {n} | {actual:.4f} | {two:.4f} | {two / actual - 1:+.0%} "
                f"| {ours:.4f} | {ours / actual - 1:+.0%} |"
            )
    return lines


def one_run(world, truth, questions, n, run):
    """Errors of Sem1 and Sem2, whether the truth is between; then ours and the plain estimate."""
    rng = np.random.default_rng([run, n, questions, 7])
    pool = pool_of(*world(questions, rng), n=n, rng=rng)
    s = question_scores(pool, splits=50, rng=rng)
    first, second = ece(s.sem1, s.label1, bins=10), ece(s.sem2, s.label2, bins=10)
    found = unlimited_draws_ece(pool, rng=rng)
    errors = [first - truth, second - truth, min(first, second) <= truth <= max(first, second)]
    if found.ece is None:
        return errors + [np.nan] * 6
    ours = (found.ece.value, found.ece.low, found.ece.high)
    return errors + [
        number
        for value, low, high in (ours, plain_estimate(pool, n))
        for number in (value - truth, low <= truth <= high, high - low)
    ]


@cache
def known_error(name):
    return 0.0 if name in EXACT else limit(WORLDS[name])


def star_cell(name, questions, n, runs):
    """Return one line of the table, and the root mean square errors."""
    truth = known_error(name)
    table = np.array(
        [one_run(WORLDS[name], truth, questions, n, run) for run in range(runs)], float
    )
    refused = np.isnan(table[:, 3])
    kept = table[~refused]
    root = np.sqrt((table[:, :2] ** 2).mean(axis=0)).tolist()
    root += [float(np.sqrt((kept[:, k] ** 2).mean())) if len(kept) else np.nan for k in (3, 6)]
    bias = table.mean(axis=0)
    shown = [f"{bias[k]:+.3f} / {root[k]:.3f}" for k in (0, 1)]
    cells = ["refused", "", "", "refused", "", ""]
    if len(kept):
        means = kept.mean(axis=0)
        cells = [
            cell
            for k, r in ((3, 2), (6, 3))
            for cell in (
                f"{means[k]:+.3f} / {root[r]:.3f}",
                rate(kept[:, k + 1]),
                f"{means[k + 2]:.3f}",
            )
        ]
    line = (
        f"| {questions:,} | {n} | {name} | {truth:.3f} | {shown[0]} | {shown[1]} | "
        f"{100 * bias[2]:.0f} | {' | '.join(cells)} | {100 * refused.mean():.0f} |"
    )
    return line, root


def unlimited():
    lines = [
        "## The error with unlimited draws (ECE*)",
        "",
        "Bias / root mean square error against the known error with unlimited draws. 'Between' is "
        "how often that error lies between Sem1-ECE and Sem2-ECE: it cannot be relied on. Refused "
        "runs (tied leaders in more than half of the half-splits) are left out of the columns of "
        "the two estimates. 'Plain' is the lab script that the estimate was designed with, on the "
        "same pools.",
        "",
        "| questions | draws | world | ECE* | Sem1 | Sem2 | between % | model-based | covers % | "
        "width | plain | covers % | width | refused % |",
        "|" + " --- |" * 14,
    ]
    means = {}
    for questions, n, runs in (
        (200, 20, STAR_RUNS),
        (1000, 20, MANY_RUNS),
        (200, 50, STAR_RUNS),
    ):
        for name in WORLDS:
            line, root = star_cell(name, questions, n, runs)
            lines.append(line)
            progress(line)
            if name in FIRST_NINE:
                means.setdefault((questions, n), []).append(root)
    lines += ["", "Mean root mean square error over the first nine worlds:", ""]
    lines += ["| questions | draws | Sem1 | Sem2 | model-based | plain |", "|" + " --- |" * 6]
    for (questions, n), roots in means.items():
        found = np.nanmean(np.array(roots, dtype=float), axis=0)
        lines.append(f"| {questions:,} | {n} | " + " | ".join(f"{x:.3f}" for x in found) + " |")
    return lines


def progress(line):
    print(line, file=sys.stderr, flush=True)


def main() -> None:
    lines = [
        "# Sem-ECE in worlds with known truth",
        "",
        f"Written by `python -m simulations sem_ece` on {machine()}; "
        f"{versions(['numpy', 'scipy'])}. {STAR_RUNS} runs per cell for the error with "
        f"unlimited draws ({MANY_RUNS} with 1,000 questions), {RUNS:,} for the test.",
        "",
        *test_rates(),
        "",
        *gaps(),
        "",
        *unlimited(),
    ]
    text = "\n".join(lines) + "\n"
    (ROOT / "docs" / "simulations" / "sem_ece.md").write_text(text, encoding="utf-8")
    print(text, flush=True)


if __name__ == "__main__":
    main()
