"""Is A better calibrated, or only more accurate? How often the verdict is false."""

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
from calibrant.comparison.entries import judges_entry
from calibrant.comparison.league import is_uninformative
from calibrant.comparison.questions import resample_counts
from simulations import _comparison_intervals as intervals
from simulations._comparison_worlds import (
    BETAS,
    PAIRS,
    chances,
    drawn,
    evidence_of,
    facts,
    facts_of,
    moved,
    repeated,
    true_verdicts,
    verdict_of,
    views_of,
)

# So few runs are a look, of a few minutes, that finds a broken rule; the page has more.
RUNS = int(os.environ.get("CALIBRANT_REPEATS", "10"))
ENOUGH_FOR_THE_PAGE = 100
RESAMPLES = 120
SHORT = {
    "better": "better",
    "only more accurate": "only more accurate",
    "reversal": "reversal",
    "equivalent": "equivalent",
    "depends: footing": "footing",
    "depends: size of errors": "size",
    "depends: near-certain": "near-certain",
    "undecided": "undecided",
}
NAMES = {-1: " (weak)", 0: "", 1: " (strong)"}


def said(world, n, run, graded=False, times=1, clustered=True):
    """Return the verdict on one drawn pair."""
    rng = np.random.default_rng([run, n, PAIRS.index(world)])
    models = world.draw(rng, n // times)
    rows = [(m.confidence, rng.binomial(4, m.chance) / 4 if graded else m.correct) for m in models]
    cluster = None
    if times > 1:
        rows, cluster = repeated(models, rng, times)
    _, evidence = evidence_of(
        rows, rng, resamples=RESAMPLES, cluster=cluster if clustered else None
    )
    return verdict_of(decide_pairs(evidence)[0])


def told(found, runs):
    parts = [
        f"{SHORT[word]}{NAMES[side] if word in ('better', 'reversal') else ''} {100 * k / runs:.0f}"
        for (word, side), k in found.most_common()
    ]
    return ", ".join(parts)


def verdicts(lines):
    for n, runs in ((200, RUNS), (1_000, RUNS), (5_000, max(RUNS // 2, 10))):
        table(lines, n, runs, PAIRS, f"{n:,} questions, {runs} runs in each of {len(PAIRS)} worlds")


CHOSEN = [PAIRS[i] for i in (0, 2, 6, 8, 10, 11, 17, 22, 35, 42, 50, 51)]


def grades(lines):
    """Grades of four answers each: the mean of four outcomes with the same chance."""
    title = f"Graded outcomes, 1,000 questions, {RUNS} runs"
    table(lines, 1_000, RUNS, CHOSEN, title, graded=True)


def clusters(lines):
    """Every question asked four times, with and without knowing so."""
    runs = max(RUNS // 2, 10)
    for name, known in (("Repeated questions", True), ("Taken as 2,000 questions", False)):
        told = f"{name}: 500 questions, four rows each, {runs} runs"
        table(lines, 2_000, runs, CHOSEN, told, times=4, clustered=known)


def table(lines, n, runs, worlds, title, **options):
    lines += [
        f"## {title}",
        "",
        "Share of runs in per cent. *False* counts every untrue verdict.",
        "",
        "| world | true verdicts | said | false |",
        "|" + " --- |" * 4,
    ]
    rates, true, by_word = [], [], Counter()
    for world in worlds:
        ok = true_verdicts(facts(world.name))
        found = Counter(said(world, n, run, **options) for run in range(runs))
        wrong = {v: k for v, k in found.items() if v[0] != "undecided" and v not in ok}
        rates.append(sum(wrong.values()) / runs)
        true.append(1 - rates[-1] - found["undecided", 0] / runs)
        for (word, _), k in wrong.items():
            by_word[word] = max(by_word[word], k / runs)
        names = ", ".join(sorted(SHORT[word] for word, _ in ok))
        lines.append(f"| {world.name} | {names} | {told(found, runs)} | {100 * rates[-1]:.1f} |")
    worst = ", ".join(f"{SHORT[word]} {100 * rate:.1f}" for word, rate in by_word.items())
    lines += [
        "",
        f"Worst false rate {100 * max(rates):.1f} %, mean {100 * np.mean(rates):.2f} %; a true "
        f"verdict in {100 * np.mean(true):.0f} % on average. Worst by verdict: {worst or 'none'}.",
        "",
    ]
    print("   " + title, lines[-2], flush=True)


def many(lines):
    """Several models of a few laws: is any verdict of all pairs false?"""
    runs = max(RUNS // 4, 10)
    lines += [
        f"## Many models, {runs} runs",
        "",
        "All pairs are decided together. *Any false 'better'*: runs in which one of all pairs has "
        "it wrongly, with Holm's correction and without. The rest are shares of pairs.",
        "",
        "| world | models | questions | any false 'better' % | without Holm % | any false % | "
        "pairs false % | pairs with a true verdict % |",
        "|" + " --- |" * 8,
    ]
    for name, moves in (("calibrated", (0.0,)), ("half +1", (0.0, 1.0)), ("same law", None)):
        for models in (10, 20):
            truth = true_of_all(models, moves)
            for n in (500, 2_000):
                row = several_decided(truth, models, moves, n, runs)
                lines.append(
                    f"| {name} | {models} | {n:,} | " + " | ".join(f"{x:.1f}" for x in row) + " |"
                )
                print("  ", lines[-1], flush=True)
    lines.append("")


def several_decided(truth, models, moves, n, runs):
    """Return the rates of one line of the table of many models, in per cent."""
    better = alone = any_false = 0
    false = true = 0.0
    for run in range(runs):
        rng = np.random.default_rng([run, n, models, 5])
        rows = [(m.confidence, m.correct) for m in several(rng, n, models, moves)]
        pairs, evidence = evidence_of(rows, rng, resamples=RESAMPLES)
        together = [verdict_of(d) for d in decide_pairs(evidence)]
        one_by_one = [verdict_of(decide_pairs([e])[0]) for e in evidence]
        wrong = [
            v[0] != "undecided" and v not in truth[pair]
            for pair, v in zip(pairs, together, strict=True)
        ]
        better += any(w and v[0] == "better" for w, v in zip(wrong, together, strict=True))
        alone += any(
            v[0] == "better" and v not in truth[pair]
            for pair, v in zip(pairs, one_by_one, strict=True)
        )
        any_false += any(wrong)
        false += np.mean(wrong) / runs
        true += np.mean([v in truth[pair] for pair, v in zip(pairs, together, strict=True)]) / runs
    return [100 * x for x in (better / runs, alone / runs, any_false / runs, false, true)]


def true_of_all(models, moves, size=60_000):
    """Return the true verdicts of every pair of several models."""
    large = several(np.random.default_rng(7), size, models, moves)
    return {
        (a, b): true_verdicts(facts_of((large[a], large[b])))
        for a in range(models)
        for b in range(a + 1, models)
    }


def several(rng, n, models, moves):
    """Return models of different accuracy: some moved in log-odds, or all of one law."""
    d, found = rng.normal(0, 1.2, n), []
    for number, accuracy in enumerate(np.linspace(0.4, 0.85, models)):
        if moves is None:
            z = (rng.random(n) < accuracy).astype(float)
            found.append(BETAS(rng, z, accuracy))
        else:
            p = chances(round(float(accuracy), 4), rng, d)
            found.append(drawn(p, moved(moves[number % len(moves)]), rng))
    return found


def league_models(rng, n):
    """Three calibrated models, two over-confident ones, a timid, a constant and a noisy one."""
    d = rng.normal(0, 1.2, n)
    models = {}
    for name, accuracy, by in (
        ("calibrated .30", 0.3, 0.0), ("calibrated .62", 0.62, 0.0), ("calibrated .90", 0.9, 0.0),
        ("+1 at .50", 0.5, 1.0), ("+1 at .75", 0.75, 1.0),
    ):  # fmt: skip
        p = chances(accuracy, rng, d)
        said = expit(np.log(p / (1 - p)) + by)
        models[name] = said, (rng.random(n) < p).astype(float)
    right = (rng.random(n) < chances(0.75, rng, d)).astype(float)
    models["timid: always 10 %"] = np.full(n, 0.1), right
    models["constant: always 75 %"] = np.full(n, 0.75), right
    models["noise"] = rng.random(n), right
    return models


def league(lines):
    """The score of eight models, and who is flagged as saying nothing."""
    runs = max(RUNS // 4, 10)
    lines += [
        f"## The score of the league: eight models, {runs} runs",
        "",
        "| questions | model | mean score | flagged uninformative % |",
        "|" + " --- |" * 4,
    ]
    for n in (300, 1_000):
        flagged, scores = Counter(), Counter()
        for run in range(runs):
            rng = np.random.default_rng([run, n, 3])
            models = league_models(rng, n)
            c, z = zip(*models.values(), strict=True)
            _, views = views_of(c, z, rng, resamples=RESAMPLES)
            for m, name in enumerate(models):
                own = views[m][m]
                flagged[name] += is_uninformative(own.by_outcome[1], own.by_outcome[0])
                scores[name] += own.score[0] / runs
        lines += [
            f"| {n:,} | {name} | {scores[name]:+.2f} | {100 * flagged[name] / runs:.0f} |"
            for name in scores
        ]
    lines.append("")
    print("   league", flush=True)


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
    runs = max(RUNS // 2, 10)
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
            side_said = Counter()
            for run in range(runs):
                rng = np.random.default_rng([run, n, number, 9])
                pool = pool_of(rng, n, **options)
                counts = resample_counts(n, RESAMPLES, rng)
                both = [candidate_views(pool, counts, j, (0, 1), bins=15) for j in (0, 1)]
                side_said[judges_entry(tuple(both), 0.95)["side"]] += 1
            false = side_said[-1] + side_said[1] if side == 0 else side_said[-side]
            lines.append(
                f"| {name} | {n:,} | {['tie', 'second', 'first'][side]} | "
                f"{100 * side_said[-1] / runs:.1f} | {100 * side_said[1] / runs:.1f} | "
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
        for section in (
            verdicts,
            grades,
            clusters,
            many,
            league,
            candidates,
            preferences,
            *intervals.SECTIONS,
        ):
            section(lines)
    text = "\n".join(lines).rstrip("\n") + "\n"
    print(text, flush=True)
    if RUNS >= ENOUGH_FOR_THE_PAGE:
        (ROOT / "docs" / "simulations" / "comparison.md").write_text(text, encoding="utf-8")
    else:
        print(f"A look of {RUNS} runs; CALIBRANT_REPEATS={ENOUGH_FOR_THE_PAGE} writes the page.")


if __name__ == "__main__":
    main()
