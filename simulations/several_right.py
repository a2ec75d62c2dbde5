"""ECE* where two or three answers are right: does the estimate cover, or refuse? Writes its page.

Worlds are drawn at random; none was looked at when refusal and widening were set. Five laws of the
draws, two or three right answers, few or many classes, flat or sharp, answers known or missed.
"""

from __future__ import annotations

import os
import sys

import numpy as np
from benchmarks.harness import ROOT, machine, versions

from calibrant.metrics.binned import ece
from calibrant.metrics.semantic import DrawPool, unlimited_draws_ece
from calibrant.metrics.stats.intervals import wilson_interval

SEED = 9103
WORLDS = int(os.environ.get("CALIBRANT_WORLDS", "60"))
RUNS = int(os.environ.get("CALIBRANT_REPEATS", "8"))
LAWS = ("Dirichlet", "Zipf", "log-normal", "right ones known", "one of them preferred")


def world_of(number):
    """Return the settings of one world."""
    rng = np.random.default_rng([SEED, number])
    return {
        "law": LAWS[number % len(LAWS)],
        "right": 2 + (number // len(LAWS)) % 2,
        "classes": int(rng.integers(5, 31)),
        "flat": float(np.exp(rng.uniform(np.log(0.1), np.log(6)))),
        "sharper": float(rng.uniform(0.4, 2.0)),
        "answered": float(rng.uniform(0.5, 1.0)),
        "known": float(rng.uniform(0.2, 0.9)),
        "questions": int(rng.choice([200, 1000])),
        "draws": int(rng.choice([20, 50])),
    }


def shares_of(world, questions, rng):
    """Return the chance of every class and which classes are right."""
    classes, right = world["classes"], world["right"]
    if world["law"] in LAWS[3:]:
        mass = rng.beta(3 * world["known"], 3 * (1 - world["known"]), questions)[:, None]
        equal = 8.0 if world["law"] == LAWS[3] else 0.4
        good = mass * rng.dirichlet(np.full(right, equal), questions)
        bad = (1 - mass) * rng.dirichlet(np.full(classes - right, world["flat"]), questions)
        correct = np.zeros((questions, classes), bool)
        correct[:, :right] = True
        return np.hstack([good, bad]), correct
    if world["law"] == "Dirichlet":
        shares = rng.dirichlet(np.full(classes, world["flat"]), questions)
    elif world["law"] == "Zipf":
        steep = rng.uniform(0.1, 2.5, questions)
        shares = np.arange(1, classes + 1)[None, :] ** -steep[:, None]
    else:
        shares = np.exp(rng.normal(0, 2 / (1 + world["flat"]), (questions, classes)))
    shares = shares / shares.sum(axis=1, keepdims=True)
    # Right answers are drawn without repetition, by the model's law to a power.
    race = world["sharper"] * np.log(shares + 1e-300) + rng.gumbel(size=shares.shape)
    place = np.argsort(np.argsort(-race, axis=1), axis=1)
    answered = rng.random((questions, 1)) < world["answered"]
    return shares, (place < right) & answered


def one_run(world, truth, run):
    """Return whether it refused and whether the truth is inside."""
    rng = np.random.default_rng([SEED, run, 11])
    shares, right = shares_of(world, world["questions"], rng)
    counts = rng.multinomial(world["draws"], shares)
    labels = np.where(counts > 0, right, np.nan)
    pool = DrawPool(np.arange(len(counts)), counts, labels, np.ones(counts.shape, bool), {})
    found = unlimited_draws_ece(pool, rng=rng)
    if found.ece is None:
        return np.nan, np.nan
    return found.ece.value - truth, float(found.ece.low <= truth <= found.ece.high)


def limit(world):
    """Return the error with unlimited draws."""
    shares, right = shares_of(world, 100_000, np.random.default_rng([SEED, 99]))
    mode = shares.argmax(axis=1)
    return ece(shares.max(axis=1), right[np.arange(len(mode)), mode].astype(float), bins=10)


def share(flags):
    hits, runs = int(np.sum(flags)), len(flags)
    if not runs:
        return "-"
    low, high = (float(end) for end in wilson_interval(hits / runs, runs))
    return f"{hits} of {runs}: {100 * hits / runs:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"


def main() -> None:
    worlds, results = [world_of(number) for number in range(WORLDS)], []
    for number, world in enumerate(worlds):
        truth = limit(world)
        found = np.array([one_run(world, truth, RUNS * number + run) for run in range(RUNS)])
        results.append((world, truth, found))
        kept = found[~np.isnan(found[:, 0])]
        print(number, world, f"{truth:.3f}", share(kept[:, 1]), file=sys.stderr, flush=True)
    write(results)


def write(results) -> None:
    lines = [
        "# ECE* where two or three answers are right",
        "",
        f"Written by `python -m simulations several_right` on {machine()}; "
        f"{versions(['numpy', 'scipy'])}. {len(results)} worlds drawn at random, {RUNS} runs each; "
        "200 or 1,000 questions, 20 or 50 draws. Refusal and widening were set on other worlds. "
        "'Covers' counts the runs that gave an interval.",
        "",
        "| right answers | law of the draws | worlds | refused | covers | "
        "worlds that cover in under 85 % of 6 runs or more |",
        "|" + " --- |" * 6,
    ]
    groups = [(k, law) for k in (2, 3) for law in LAWS] + [(2, None), (3, None), (None, None)]
    for k, law in groups:
        some = [
            (found, world)
            for world, _, found in results
            if k in (None, world["right"]) and law in (None, world["law"])
        ]
        every = np.concatenate([found for found, _ in some])
        kept = every[~np.isnan(every[:, 0])]
        per = [found[~np.isnan(found[:, 0]), 1] for found, _ in some]
        low = [flags for flags in per if len(flags) >= 6 and flags.mean() < 0.85]
        lines.append(
            f"| {k or '2 or 3'} | {law or 'all'} | {len(some)} | "
            f"{share(np.isnan(every[:, 0]))} | {share(kept[:, 1])} | {len(low)} |"
        )
    lines += [
        "",
        "Widening and refusal were set on 108 other worlds. Without widening, 6 of 48 that "
        "were run at least 11 times covered in under 85 %: four were too high, two too low. A "
        "limit of 60 % for close races missed where nearly flat right answers are boosted "
        "together. Splitting the right mass by what the wrong mass shows changed nothing.",
    ]
    text = "\n".join(lines) + "\n"
    (ROOT / "docs" / "simulations" / "several_right.md").write_text(text, encoding="utf-8")
    print(text, flush=True)


if __name__ == "__main__":
    main()
