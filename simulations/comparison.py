"""Which model is better calibrated? How often the verdict is false where the truth is known."""

from __future__ import annotations

import os
from collections import Counter
from math import sqrt

import numpy as np
from benchmarks.harness import ROOT, machine, versions
from scipy.special import expit
from threadpoolctl import threadpool_limits

from calibrant.comparison.candidates import Candidates, candidate_views, self_preference
from calibrant.comparison.decision import decide_pairs
from calibrant.comparison.evidence import pair_evidence, view_evidence
from calibrant.comparison.league import is_uninformative, score_z, standings
from calibrant.comparison.resampled import resample_counts
from simulations import _comparison_intervals as intervals
from simulations._comparison_worlds import (
    HARDEST,
    PAIRS,
    chances,
    contradiction,
    largest_gap,
    truth,
    views_of,
)

RUNS = int(os.environ.get("CALIBRANT_REPEATS", "400"))
RESAMPLES = 150
MARGIN = 0.05


def decided(world, n, run):
    """Return the decision about one drawn pair, and what the views of the paper prefer."""
    rng = np.random.default_rng([run, n, PAIRS.index(world)])
    weak, strong = world.draw(rng, n)
    views = views_of(
        [weak.confidence, strong.confidence],
        [weak.correct, strong.correct],
        rng,
        resamples=RESAMPLES,
    )
    evidence = pair_evidence(views[0][1], views[1][0], level=0.95, margin=MARGIN)
    aligned = evidence_of_paper(views)
    return decide_pairs([evidence], margin=MARGIN)[0], aligned


def evidence_of_paper(views):
    from calibrant.comparison.ece_interval import gap_estimate

    gap = gap_estimate(views[0][1].paper["da"].ece - views[1][0].paper["da"].ece, 0)
    return (gap.low > 0) - (gap.high < 0)


def is_false(world, decision):
    """Return whether what is said about the pair is not true."""
    if decision.outcome == "better":
        return decision.winner != truth(world.name)
    if decision.outcome == "equivalent":
        return largest_gap(world.name) >= MARGIN
    return decision.outcome == "depends" and not contradiction(world.name)


NAMES = {-1: "weak", 0: "none", 1: "strong"}


def verdicts(lines):
    for n, worlds, runs in (
        (200, PAIRS, RUNS),
        (1_000, PAIRS, RUNS),
        (5_000, HARDEST, max(RUNS // 2, min(RUNS, 200))),
    ):
        lines += [
            f"## {n:,} questions, {runs} runs in each world",
            "",
            "Share of runs in percent. *Better* is right only where one model is better in all "
            "four views; *false* counts every untrue claim: the wrong model, a model where neither "
            "is better, 'equivalent' beyond 5 points, 'depends' where no two views disagree. *DA "
            "alone* is what the distribution-aligned view of the paper would have said.",
            "",
            "| world | truth | weak better | strong better | equivalent | depends | false | "
            "DA alone: weak / strong |",
            "|" + " --- |" * 8,
        ]
        worst, power = 0.0, []
        for world in worlds:
            found = [decided(world, n, run) for run in range(runs)]
            share = {s: np.mean([d.winner == s for d, _ in found]) for s in (-1, 1)}
            told = Counter(d.outcome for d, _ in found)
            false = np.mean([is_false(world, d) for d, _ in found])
            paper = [100 * np.mean([p == s for _, p in found]) for s in (-1, 1)]
            side = truth(world.name)
            if side:
                power.append(share[side])
            worst = max(worst, false)
            lines.append(
                f"| {world.name} | {NAMES[side]} | {100 * share[-1]:.1f} | {100 * share[1]:.1f} | "
                f"{100 * told['equivalent'] / runs:.1f} | {100 * told['depends'] / runs:.1f} | "
                f"{100 * false:.1f} | {paper[0]:.0f} / {paper[1]:.0f} |"
            )
        strength = f", mean power {100 * np.mean(power):.0f} %" if power else ""
        lines += ["", f"Worst false rate {100 * worst:.1f} %{strength}.", ""]
        print(f"   n = {n}: worst {worst:.3f}{strength}", flush=True)


def league_models(rng, n):
    """Three calibrated models, two over-confident ones, a timid, a constant and a noisy one."""
    d = rng.normal(0, 1.2, n)
    models = {}
    for name, accuracy, moved in (
        ("calibrated .30", 0.3, 0.0), ("calibrated .62", 0.62, 0.0), ("calibrated .90", 0.9, 0.0),
        ("+1 at .50", 0.5, 1.0), ("+1 at .75", 0.75, 1.0),
    ):  # fmt: skip
        p = chances(accuracy, rng, d)
        said = expit(np.log(p / (1 - p)) + moved)
        models[name] = said, (rng.random(n) < p).astype(float)
    right = (rng.random(n) < chances(0.75, rng, d)).astype(float)
    models["timid: always 10 %"] = np.full(n, 0.1), right
    models["constant: always 75 %"] = np.full(n, 0.75), right
    models["noise"] = rng.random(n), right
    return models


def league(lines):
    runs = max(RUNS // 8, 25)
    lines += [
        f"## The league: eight models, {runs} runs",
        "",
        "| questions | model | mean score | in tier 1 % | flagged uninformative % |",
        "|" + " --- |" * 5,
    ]
    wrong = claims = 0
    true = {k: v for k, v in zip(*population(), strict=True)}
    for n in (300, 1_000):
        first, flagged, scores = Counter(), Counter(), Counter()
        for run in range(runs):
            rng = np.random.default_rng([run, n, 3])
            models = league_models(rng, n)
            c, z = zip(*models.values(), strict=True)
            views = views_of(c, z, rng, resamples=RESAMPLES)
            names = list(models)
            pairs = [(a, b) for a in range(len(names)) for b in range(a + 1, len(names))]
            z_scores = {(a, b): score_z(views[a][b].score, views[b][a].score) for a, b in pairs}
            for m, place in enumerate(standings(len(names), z_scores)):
                own = views[m][m]
                first[names[m]] += place.tier == 1
                flagged[names[m]] += is_uninformative(own.by_outcome[1], own.by_outcome[0])
                scores[names[m]] += own.score[0] / runs
                claims += len(place.beats)
                wrong += sum(true[names[m]] < true[names[o]] + 1e-3 for o in place.beats)
        lines += [
            f"| {n:,} | {name} | {scores[name]:+.2f} | {100 * first[name] / runs:.0f} | "
            f"{100 * flagged[name] / runs:.0f} |"
            for name in scores
        ]
    lines += [
        "",
        f"{wrong} of {claims:,} claims of the kind 'A scores higher than B' are wrong.",
        "",
    ]
    print(f"   league: {wrong} of {claims} wrong", flush=True)


def population(size=200_000):
    models = league_models(np.random.default_rng(11), size)
    scores = []
    for c, z in models.values():
        a = z.mean()
        moved = expit(np.log(np.clip(c, 0.005, 0.995) / np.clip(1 - c, 0.005, 0.995))
                      - np.log(a / (1 - a)))  # fmt: skip
        w = np.where(z == 1, 0.5 / a, 0.5 / (1 - a))
        scores.append(1 - (w @ (moved - z) ** 2) / size / 0.25)
    return list(models), scores


def pool_of(rng, n, *, moved=(0.0, 0.0), skills=(0.0, 1.2), noise=(0.8, 0.8)):
    """Two authors, two judges that see each answer's log-odds of being right with noise."""
    d = rng.normal(0, 1.2, n)
    odds = np.stack([skill - d + rng.normal(0, 0.8, n) for skill in skills])
    correct = (rng.random(odds.shape) < expit(odds)).astype(float)
    scores = np.empty((2, 2, n))
    for judge in range(2):
        # What a judge believes after a noisy look at log-odds of known spread: calibrated.
        total = odds.var(axis=1, keepdims=True)
        seen = odds + noise[judge] * rng.standard_normal(odds.shape)
        weight = total / (total + noise[judge] ** 2)
        mean = odds.mean(axis=1, keepdims=True)
        believed = mean + weight * (seen - mean)
        spread = np.sqrt(total * (1 - weight))
        grid = np.polynomial.hermite_e.hermegauss(9)
        p = sum(w * expit(believed + spread * x) for x, w in zip(*grid, strict=True))
        p = p / grid[1].sum()
        scores[judge] = expit(np.log(p / (1 - p)) + moved[judge])
    identity = np.tile(np.arange(2)[:, None], (1, n))
    return Candidates(scores, correct, identity)


CANDIDATES = {
    "both judges calibrated, equal noise": ({}, 0),
    "both calibrated, one sees less": ({"noise": (0.4, 1.6)}, 0),
    "both +.8 log-odds": ({"moved": (0.8, 0.8)}, 0),
    "both +.8, one sees less": ({"moved": (0.8, 0.8), "noise": (0.4, 1.2)}, None),
    "second +.5": ({"moved": (0.0, 0.5)}, -1),
    "first +1, second sees less": ({"moved": (1.0, 0.0), "noise": (0.4, 1.6)}, 1),
}


def candidates(lines):
    runs = RUNS // 2
    lines += [
        f"## The candidate-aligned view, {runs} runs",
        "",
        "Two judges score the same answers of two authors, so that accuracy is equal by design; "
        "the same two tests must agree. Truth from 200,000 questions, ties below 0.0075.",
        "",
        "| world | questions | truth | first % | second % | false % |",
        "|" + " --- |" * 6,
    ]
    for number, (name, (options, _)) in enumerate(CANDIDATES.items()):
        large = pool_of(np.random.default_rng(7), 200_000, **options)
        counts = resample_counts(200_000, 1, 0)
        ends = [candidate_views(large, counts, j, (0, 1), bins=15).statistics for j in (0, 1)]
        gap = ends[0].error[0] - ends[1].error[0]
        side = 0 if abs(gap) < 0.0075 else int(np.sign(gap))
        for n in (300, 1_000):
            said = Counter()
            for run in range(runs):
                rng = np.random.default_rng([run, n, number, 9])
                pool = pool_of(rng, n, **options)
                counts = resample_counts(n, RESAMPLES, rng)
                both = [candidate_views(pool, counts, j, (0, 1), bins=15) for j in (0, 1)]
                found = view_evidence(both[0].statistics, both[1].statistics, n, n, 0.95)
                said[found.side(0.95)] += 1
            false = (said[-1] + said[1]) if side == 0 else said[-side]
            lines.append(
                f"| {name} | {n:,} | {['tie', 'second', 'first'][side]} | "
                f"{100 * said[-1] / runs:.1f} | {100 * said[1] / runs:.1f} | "
                f"{100 * false / runs:.1f} |"
            )
    lines.append("")
    print("   candidates", flush=True)


def preferences(lines):
    lines += [
        "## Self-preference of judges that have none",
        "",
        "Judges of different skill either know the answer (95 % for the right one, 5 % for a wrong "
        "one) or do not (50 % for any); who gave the answer does not matter. Own minus others' at "
        "equal grade, as the paper has it, against the difference within a question.",
        "",
        "| skills | judge | paper's difference | within the question | interval holds 0 % |",
        "|" + " --- |" * 5,
    ]
    runs = max(RUNS // 8, 25)
    for skills in ((0.4, 0.8), (0.3, 0.6, 0.9)):
        paper, within, holds = np.zeros((3, len(skills)))
        for run in range(runs):
            rng = np.random.default_rng([run, len(skills), 4])
            pool = knowing_judges(skills, 1_500, rng)
            counts = resample_counts(1_500, RESAMPLES, rng)
            rows = self_preference(pool, list(map(str, skills)), counts, level=0.95)
            for j, row in enumerate(rows):
                within[j] += row["bias"].value / runs
                holds[j] += (row["bias"].low <= 0 <= row["bias"].high) / runs
                paper[j] += paper_preference(pool, j) / runs
        lines += [
            f"| {', '.join(f'{s:.0%}' for s in skills)} | {skill:.0%} | {paper[j]:+.2f} | "
            f"{within[j]:+.3f} | {100 * holds[j]:.0f} |"
            for j, skill in enumerate(skills)
        ]
    lines.append("")
    print("   self-preference", flush=True)


def knowing_judges(skills, n, rng):
    knows = rng.random((len(skills), n)) < np.array(skills)[:, None]
    answers = np.where(knows, 0, rng.integers(1, 40, (len(skills), n)))
    correct = (answers == 0).astype(float)
    sure = np.where(correct[None] == 1, 0.95, 0.05)
    noise = 0.05 * rng.standard_normal((len(skills), len(skills), n))
    scores = np.clip(np.where(knows[:, None], sure, 0.5) + noise, 0, 1)
    return Candidates(scores, correct, np.argmax(answers[:, None] == answers[None], axis=1))


def paper_preference(pool, judge):
    gaps = []
    for grade in (1.0, 0.0):
        graded = pool.correct == grade
        foreign = graded & (pool.identity != pool.identity[judge])
        own = pool.confidence[judge, judge][graded[judge]]
        gaps.append(own.mean() - pool.confidence[judge][foreign].mean())
    return float(np.mean(gaps))


def main():
    lines = [
        "# How often the verdict of a comparison is false",
        "",
        f"Written by `python -m simulations comparison` on {machine()}; "
        f"{versions(['numpy', 'scipy'])}. {RESAMPLES} resamples for verdicts, a false rate of 5 % "
        f"is known to -+{196 * sqrt(0.05 * 0.95 / RUNS):.1f} points at {RUNS} runs.",
        "",
    ]
    with threadpool_limits(1):
        for section in (verdicts, league, candidates, preferences, *intervals.SECTIONS):
            section(lines)
    text = "\n".join(lines).rstrip("\n") + "\n"
    (ROOT / "docs" / "simulations" / "comparison.md").write_text(text, encoding="utf-8")
    print(text, flush=True)


if __name__ == "__main__":
    main()
