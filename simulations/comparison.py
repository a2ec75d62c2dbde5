"""Is A better calibrated, or only more accurate? How often the verdict is false.

`CALIBRANT_PARTS=verdicts_200,many_10 CALIBRANT_REPEATS=200 CALIBRANT_SECONDS=300` runs some parts
in steps that go on where they stopped; see `simulations._pieces`.
"""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

import numpy as np
from scipy.special import expit
from threadpoolctl import threadpool_limits

from calibrant.comparison.decision import decide_pairs
from calibrant.comparison.entries import candidate_views, judges_entry, self_preference
from calibrant.comparison.league import is_uninformative
from calibrant.comparison.questions import CandidateTable, resample_counts
from simulations import _comparison_intervals as intervals
from simulations._comparison_intervals import part
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
from simulations._pieces import markdown_table, share_interval, write_page

TITLE = "How often the verdict of a comparison is false"
RESAMPLES = 120
SHORT = {
    "better": "better",
    "only more accurate": "only more accurate",
    "more accurate, alike": "more accurate, alike",
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


CHOSEN = [PAIRS[i] for i in (0, 2, 6, 8, 10, 11, 17, 22, 35, 42, 50, 51)]


def verdicts(name, n, title, worlds, **options):
    """Return the part that decides one pair of each world in every run."""

    def step(run):
        for world in worlds:
            yield (world.name,), said(world, n, run, **options)

    def told_of(found, runs):
        return rates_of(found, f"{title}, {runs} runs in each of {len(worlds)} worlds")

    return part(name, step, told_of)


def rates_of(found, title):
    """Return the table of what was said in every world, and of what was false."""
    rows, rates, true, by_word = [], [], [], Counter()
    for (name,), words in found.items():
        ok, runs = true_verdicts(facts(name)), len(words)
        counted = Counter(map(tuple, words))
        wrong = {v: k for v, k in counted.items() if v[0] != "undecided" and v not in ok}
        rates.append(sum(wrong.values()) / runs)
        true.append(1 - rates[-1] - counted["undecided", 0] / runs)
        for (word, _), k in wrong.items():
            by_word[word] = max(by_word[word], k / runs)
        names = ", ".join(sorted(SHORT[word] for word, _ in ok))
        rows.append((name, names, told(counted, runs), f"{100 * rates[-1]:.1f}"))
    worst = ", ".join(f"{SHORT[word]} {100 * rate:.1f}" for word, rate in by_word.items())
    low, high = share_interval(round(max(rates) * runs), runs)
    return [
        f"## {title}",
        "",
        *markdown_table(("world", "true verdicts", "said", "false"), rows),
        f"Worst false rate {100 * max(rates):.1f} % (95 % interval of one such world "
        f"{100 * low:.1f} to {100 * high:.1f}), mean {100 * np.mean(rates):.2f} %; a true verdict "
        f"in {100 * np.mean(true):.0f} % on average. Worst by verdict: {worst or 'none'}.",
    ]


LAWS = {"calibrated": (0.0,), "half +1": (0.0, 1.0), "same law": None}


def many(models):
    """Return the part of so many models of a few laws: is any verdict of all pairs false?"""

    def step(run):
        for name, moves in LAWS.items():
            for n in (500, 2_000):
                yield (name, n), several_decided(name, models, moves, n, run)

    def told_of(found, runs):
        rows = []
        for (name, n), values in found.items():
            table = np.array(values, float)
            low, high = share_interval(int(table[:, 0].sum()), runs)
            first = f"{100 * table[:, 0].mean():.1f} [{100 * low:.1f}, {100 * high:.1f}]"
            rest = (f"{100 * x:.1f}" for x in table[:, 1:].mean(axis=0))
            rows.append((name, f"{n:,}", first, *rest))
        return [
            f"## {models} models, {runs} runs",
            "",
            *markdown_table(
                (
                    "world", "questions", "any false 'better' %", "without Holm %", "any false %",
                    "pairs false %", "pairs with a true verdict %",
                ),
                rows,
            ),
        ]  # fmt: skip

    return part(f"many_{models}", step, told_of)


def several_decided(name, models, moves, n, run):
    """Return, of one run: any false 'better' with Holm and without, any false, shares of pairs."""
    rng, truth = np.random.default_rng([run, n, models, 5]), true_of_all(models, name)
    rows = [(m.confidence, m.correct) for m in several(rng, n, models, moves)]
    pairs, evidence = evidence_of(rows, rng, resamples=RESAMPLES)
    together = [verdict_of(d) for d in decide_pairs(evidence)]
    one_by_one = [verdict_of(decide_pairs([e])[0]) for e in evidence]

    def false(verdicts):
        both = zip(pairs, verdicts, strict=True)
        return [v[0] != "undecided" and v not in truth[pair] for pair, v in both]

    def better(verdicts):
        both = zip(false(verdicts), verdicts, strict=True)
        return any(wrong and v[0] == "better" for wrong, v in both)

    wrong = false(together)
    true = [v in truth[pair] for pair, v in zip(pairs, together, strict=True)]
    found = better(together), better(one_by_one), any(wrong), np.mean(wrong), np.mean(true)
    return [round(float(x), 4) for x in found]


@lru_cache
def true_of_all(models, name, size=60_000):
    """Return the true verdicts of every pair of several models."""
    large = several(np.random.default_rng(7), size, models, LAWS[name])
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


def league():
    """Return the part about the score of eight models, and who is flagged as saying nothing."""

    def step(run):
        for n in (300, 1_000):
            rng = np.random.default_rng([run, n, 3])
            models = league_models(rng, n)
            c, z = zip(*models.values(), strict=True)
            _, views = views_of(c, z, rng, resamples=RESAMPLES)
            for m, name in enumerate(models):
                own = views[m][m]
                flagged = is_uninformative(own.by_outcome[1], own.by_outcome[0])
                yield (n, name), (float(own.score[0]), flagged)

    def told_of(found, runs):
        means = {key: np.mean(drawn, axis=0) for key, drawn in found.items()}
        return [
            f"## The score of the league: eight models, {runs} runs",
            "",
            *markdown_table(
                ("questions", "model", "mean score", "flagged uninformative %"),
                [
                    (f"{n:,}", name, f"{score:+.2f}", f"{100 * flagged:.0f}")
                    for (n, name), (score, flagged) in means.items()
                ],
            ),
        ]

    return part("league", step, told_of)


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
    return CandidateTable(scores, correct, identity)


CANDIDATES = {
    "both judges calibrated, equal noise": {},
    "both calibrated, one sees less": {"noise": (0.4, 1.6)},
    "both +.8 log-odds": {"moved": (0.8, 0.8)},
    "both +.8, one sees less": {"moved": (0.8, 0.8), "noise": (0.4, 1.2)},
    "second +.5": {"moved": (0.0, 0.5)},
    "first +1, second sees less": {"moved": (1.0, 0.0), "noise": (0.4, 1.6)},
}


@lru_cache
def better_judge(world):
    """Return which judge has the smaller error on 200,000 questions: -1, 1, or 0 for a tie."""
    pool = pool_of(np.random.default_rng(7), 200_000, **CANDIDATES[world])
    counts = resample_counts(200_000, 1, 0)
    ends = [candidate_views(pool, counts, j, (0, 1), bins=15).statistics for j in (0, 1)]
    gap = ends[0].error[0] - ends[1].error[0]
    return 0 if abs(gap) < 0.0075 else int(np.sign(gap))


def candidates():
    """Return the part about two judges of the same answers."""

    def step(run):
        for number, (name, options) in enumerate(CANDIDATES.items()):
            for n in (300, 1_000):
                rng = np.random.default_rng([run, n, number, 9])
                pool = pool_of(rng, n, **options)
                counts = resample_counts(n, RESAMPLES, rng)
                both = [candidate_views(pool, counts, j, (0, 1), bins=15) for j in (0, 1)]
                yield (name, n), judges_entry(tuple(both), 0.95)["side"]

    def told_of(found, runs):
        rows = []
        for (name, n), sides in found.items():
            truth, counted = better_judge(name), Counter(sides)
            false = counted[-1] + counted[1] if truth == 0 else counted[-truth]
            shares = (f"{100 * k / runs:.1f}" for k in (counted[-1], counted[1], false))
            rows.append((name, f"{n:,}", ("tie", "second", "first")[truth], *shares))
        return [
            f"## The candidate-aligned view, {runs} runs",
            "",
            "Two judges score the same answers of two authors, so that accuracy is equal by "
            "design; the same two tests must agree. Truth from 200,000 questions, ties below "
            "0.0075.",
            "",
            *markdown_table(
                ("world", "questions", "truth", "first %", "second %", "false %"), rows
            ),
        ]

    return part("candidates", step, told_of)


def preferences():
    """Return the part about judges that prefer no one."""

    def step(run):
        for skills in ((0.4, 0.8), (0.3, 0.6, 0.9)):
            rng = np.random.default_rng([run, len(skills), 4])
            pool = knowing_judges(skills, 1_500, rng)
            counts = resample_counts(1_500, RESAMPLES, rng)
            rows = self_preference(pool, list(map(str, skills)), counts, level=0.95)
            for j, row in enumerate(rows):
                bias = row["bias"]
                holds = bool(bias.low <= 0 <= bias.high)
                yield (
                    (", ".join(f"{s:.0%}" for s in skills), f"{skills[j]:.0%}"),
                    (
                        paper_preference(pool, j),
                        float(bias.value),
                        holds,
                    ),
                )

    def told_of(found, runs):
        means = {key: np.mean(drawn, axis=0) for key, drawn in found.items()}
        return [
            f"## Self-preference of judges that have none, {runs} runs",
            "",
            "Judges of different skill either know the answer (95 % for the right one, 5 % for a "
            "wrong one) or do not (50 % for any); who gave the answer does not matter. Own minus "
            "others' at equal grade, as the paper has it, against the difference within a "
            "question.",
            "",
            *markdown_table(
                (
                    "skills", "judge", "paper's difference", "within the question",
                    "interval holds 0 %",
                ),
                [
                    (*key, f"{paper:+.2f}", f"{within:+.3f}", f"{100 * holds:.0f}")
                    for key, (paper, within, holds) in means.items()
                ],
            ),
        ]  # fmt: skip

    return part("preferences", step, told_of)


def knowing_judges(skills, n, rng):
    knows = rng.random((len(skills), n)) < np.array(skills)[:, None]
    answers = np.where(knows, 0, rng.integers(1, 40, (len(skills), n)))
    correct = (answers == 0).astype(float)
    sure = np.where(correct[None] == 1, 0.95, 0.05)
    noise = 0.05 * rng.standard_normal((len(skills), len(skills), n))
    scores = np.clip(np.where(knows[:, None], sure, 0.5) + noise, 0, 1)
    return CandidateTable(scores, correct, np.argmax(answers[:, None] == answers[None], axis=1))


def paper_preference(pool, judge):
    gaps = []
    for grade in (1.0, 0.0):
        graded = pool.correct == grade
        foreign = graded & (pool.identity != pool.identity[judge])
        own = pool.confidence[judge, judge][graded[judge]]
        gaps.append(own.mean() - pool.confidence[judge][foreign].mean())
    return float(np.mean(gaps))


FOUR = "500 questions, four rows each"
PARTS = dict(
    (
        *(
            verdicts(f"verdicts_{n}", n, f"{n:,} questions", PAIRS)
            for n in (200, 1_000, 5_000)
        ),
        verdicts("graded", 1_000, "Graded outcomes, 1,000 questions", CHOSEN, graded=True),
        verdicts("repeated", 2_000, f"Repeated questions: {FOUR}", CHOSEN, times=4),
        verdicts(
            "taken_apart", 2_000, f"Taken as 2,000 questions: {FOUR}", CHOSEN, times=4,
            clustered=False,
        ),
        many(10),
        many(20),
        league(),
        candidates(),
        preferences(),
        *intervals.PARTS,
    )
)  # fmt: skip


def main():
    words = (
        f"{RESAMPLES} resamples for verdicts. Each heading says how many runs: of 100 a rate of "
        "5 % is known to -+4.3 points, of 50 to -+6, of 10 hardly at all. Tables of verdicts have "
        "shares of runs in per cent; *false* counts every untrue verdict. Pairs of several models "
        "are decided together: *any false 'better'* are runs in which one of all pairs has it "
        "wrongly, with Holm's correction and without; the rest are shares of pairs."
    )
    with threadpool_limits(1):
        write_page("comparison", TITLE, PARTS, ["numpy", "scipy"], words)


if __name__ == "__main__":
    main()
