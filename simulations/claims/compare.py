"""The claims of a comparison in worlds whose truth is known."""

from __future__ import annotations

from functools import partial

import numpy as np
import polars as pl
from scipy.special import expit

from calibrant.comparison.compare import compare_models
from calibrant.comparison.decision import adjusted, decide_pairs, missing_questions
from calibrant.comparison.entries import candidate_views, judges_entry
from calibrant.comparison.questions import QuestionBlock, resample_counts
from calibrant.comparison.survey import survey_block
from simulations._comparison_worlds import (
    MARGIN,
    PAIRS,
    RARE,
    chances,
    evidence_of,
    facts,
    true_verdicts,
    verdict_of,
)
from simulations.claims.harness import Said, World
from simulations.comparison import pool_of

RESAMPLES = 120
BETTER, ACCURATE = "compare.better_calibrated", "compare.more_accurate"
ALIKE = "compare.more_accurate_alike"
VERDICTS = {
    "better": BETTER,
    "only more accurate": "compare.only_more_accurate",
    "more accurate, alike": ALIKE,
    "reversal": "compare.reversal",
    "equivalent": "compare.equivalent",
    "depends": "compare.depends",
}
LEADS, MISSING = "compare.leads", "compare.missing_related"
JUDGES = "compare.judges_better"


def table_of(models, missing=()):
    parts = []
    for name, (c, z) in models.items():
        rows = pl.DataFrame({"question_id": np.arange(c.size), "confidence": c, "correct": z})
        lacks = dict(missing).get(name)
        rows = rows.with_columns(model=pl.lit(name))
        parts.append(rows if lacks is None else rows.filter(pl.Series(~lacks)))
    return pl.concat(parts)


def claims_of(models, rng, missing=()):
    found = compare_models(table_of(models, missing), resamples=RESAMPLES, margin=MARGIN, rng=rng)
    return found["claims"]


def pair(rng, *, world, n, accuracies):
    """Claims about two models, decided as `compare` does, without the rest of the document."""
    models = [(model.confidence, model.correct) for model in world.draw(rng, n)]
    _, (evidence,) = evidence_of(models, rng, resamples=RESAMPLES)
    (found,) = decide_pairs([evidence])
    false = verdict_of(found) not in true_verdicts(facts(world.name))
    for word, name in VERDICTS.items():
        yield Said(name, found.word == word, found.word == word and false)
    shown = adjusted([evidence.p_accuracy])[0] <= 0.05
    right = np.sign(evidence.lead) == np.sign(accuracies[0] - accuracies[1])
    yield Said(ACCURATE, shown, bool(shown and not right))


def calibrated(rng, n, odds, steps=0):
    """Calibrated models of these accuracies; `steps` rounds what they say, so that it ties."""
    d = rng.normal(0, 1.2, n)
    models = {}
    for number, level in enumerate(odds):
        p = chances(level, rng, d)
        if steps:
            p = np.clip(np.round(p * steps) / steps, 0.5 / steps, 1 - 0.5 / steps)
        models[f"m{number}"] = p, (rng.random(n) < p).astype(float)
    return models


def alike(rng, *, n, odds, steps=0):
    """Calibrated models of several accuracies: none is better calibrated, none leads."""
    for claim in claims_of(calibrated(rng, n, odds, steps), rng):
        if claim["id"] in VERDICTS.values():
            asserts = claim["outcome"] != "undecided"
            true = claim["id"] in ("compare.equivalent", "compare.only_more_accurate", ALIKE)
            yield Said(claim["id"], asserts, asserts and not true)
        elif claim["id"] == LEADS:
            yield Said(LEADS, claim["outcome"] == "shown", True)


def moved_models(rng, *, n, moves, accuracy=0.62, leader=True):
    """Models of one accuracy whose log-odds are moved; the first is the best, or ties with it."""
    d = rng.normal(0, 1.2, n)
    models = {}
    for number, moved in enumerate(moves):
        p = chances(accuracy, rng, d)
        said = expit(np.log(p / (1 - p)) + moved)
        models[f"m{number}"] = said, (rng.random(n) < p).astype(float)
    for claim in claims_of(models, rng):
        if claim["id"] == LEADS:
            shown = claim["outcome"] == "shown"
            yield Said(LEADS, shown, shown and not (leader and claim["text"].startswith("m0 ")))


def equal_accuracy(rng, *, n):
    d = rng.normal(0, 1.2, n)
    models = {}
    for name, moved in (("a", 0.0), ("b", 0.7)):
        p = chances(0.62, rng, d)
        said = expit(np.log(p / (1 - p)) + moved)
        models[name] = said, (rng.random(n) < p).astype(float)
    for claim in claims_of(models, rng):
        if claim["id"] == ACCURATE:
            yield Said(ACCURATE, claim["outcome"] == "shown", True)


def gaps_in_questions(rng, *, n, odds, share, related):
    """Several models; the first lacks some questions, at random or the hard ones."""
    d = rng.normal(0, 1.2, n)
    said = np.stack([chances(level, rng, d) for level in odds])
    right = (rng.random(said.shape) < said).astype(float)
    lacks = rng.random(n) < (expit(2 * d - 3.2) if related else share)
    said[0, lacks] = right[0, lacks] = np.nan
    names = tuple(f"m{at}" for at in range(len(odds)))
    block = QuestionBlock(names, np.arange(n).astype(str), said, right)
    rows = missing_questions(survey_block(block, resample_counts(n, 1, rng)), names)
    made = any(row.related for row in rows)
    yield Said(MISSING, made, made and not related)


def judges(rng, *, n, pool, side):
    """Two judges of the same answers; `side` says which is better calibrated, 0 neither."""
    pool = pool_of(rng, n, **pool)
    counts = resample_counts(n, RESAMPLES, rng)
    both = tuple(candidate_views(pool, counts, judge, (0, 1), bins=15) for judge in (0, 1))
    found = judges_entry(both, 0.95)
    shown = bool(found["side"]) and found["p_value"] <= 0.05
    yield Said(JUDGES, shown, shown and found["side"] != side)


def _pairs(world, n):
    drawn = world.draw(np.random.default_rng(7), 200_000)
    accuracies = [float(model.chance.mean()) for model in drawn]
    power = tuple(VERDICTS[word.partition(":")[0]] for word, _ in true_verdicts(facts(world.name)))
    power += (ACCURATE,) if world.name == "calibrated .50/.75" and n == 1_000 else ()
    run = partial(pair, world=world, n=n, accuracies=accuracies)
    yield World(f"{world.name}, n = {n:,}", run, power if n > 400 else ())


# Where a wrong rule errs most, and where each verdict is true.
_CHOSEN = (
    "calibrated .50/.75",
    "calibrated, round numbers up to 1.0",
    "both +1 log-odds",
    "shared conditionals .50/.75",
    "weak +.5",
    "strong +.5",
    "crossing: weak over low, strong over high",
    "same law, 3 values",
    "strong says .06 less",
    "verbal, weak calmer",
    "strong saturated .90, weak says .905 (.30)",
    "weak +1.1 (.40), strong says .99 (.85)",
    "few large / many small errors",
)


def worlds():
    known = {world.name: world for world in PAIRS}
    for name in _CHOSEN:
        for n in (400, 2_000):
            yield from _pairs(known[name], n)
    for name in ("calibrated .50/.75", "both +1 log-odds"):
        yield from _pairs(known[name], 40)
    yield from _pairs(RARE, 200)
    yield World("equal accuracy, n = 200", partial(equal_accuracy, n=200))
    odds = (0.3, 0.5, 0.75, 0.9)
    for name, n, levels, steps in (
        ("four calibrated models", 300, odds, 0),
        ("four calibrated models", 60, odds, 0),
        ("four calibrated models, heavy ties", 300, odds, 5),
        ("three calibrated models, rare errors", 300, (0.93, 0.95, 0.96), 0),
    ):
        run = partial(alike, n=n, odds=levels, steps=steps)
        yield World(f"{name}, n = {n}", run)
    for name, n, moves, leader in (
        ("one calibrated, two over", 500, (0.0, 1.5, 2.0), True),
        ("one calibrated, two under", 500, (0.0, -1.5, -2.0), True),
        ("two calibrated, two over", 300, (0.0, 0.0, 1.5, 2.0), False),
        ("three over alike", 300, (1.0, 1.0, 1.0), False),
        ("two over alike, one more", 2000, (0.7, 0.7, 1.5), False),
    ):
        run = partial(moved_models, n=n, moves=moves, leader=leader)
        yield World(f"{name}, n = {n:,}", run, (LEADS,) if leader else ())
    for name, n, pool, side in (
        ("two calibrated judges", 300, {}, 0),
        ("two calibrated judges", 40, {}, 0),
        ("two calibrated judges", 2000, {}, 0),
        ("two calibrated judges, one sees less", 300, {"noise": (0.4, 1.6)}, 0),
        ("two judges, both +.8", 300, {"moved": (0.8, 0.8)}, 0),
        ("two judges, both -.8", 300, {"moved": (-0.8, -0.8)}, 0),
        ("two calibrated judges of good answers", 300, {"skills": (2.5, 3.0)}, 0),
        ("two judges, second +.8", 300, {"moved": (0.0, 0.8)}, -1),
        ("first +1, second sees less", 300, {"moved": (1.0, 0.0), "noise": (0.4, 1.6)}, 1),
    ):
        run = partial(judges, n=n, pool=pool, side=side)
        yield World(f"{name}, n = {n:,}", run, (JUDGES,) if side else ())
    three, good = (0.5, 0.62, 0.75), (0.9, 0.95, 0.97)
    for name, n, levels, share, related in (
        ("a tenth of the questions missing at random", 400, three, 0.1, False),
        ("a tenth of the questions missing at random", 60, three, 0.1, False),
        ("a hundredth of the questions missing at random", 400, three, 0.01, False),
        ("a hundredth of the questions missing at random", 2000, three, 0.01, False),
        ("half of the questions missing at random", 400, three, 0.5, False),
        ("a tenth missing at random, rare errors", 400, good, 0.1, False),
        ("a hundredth missing at random, rare errors", 2000, good, 0.01, False),
        ("a tenth missing at random, two models", 400, three[:2], 0.1, False),
        ("a tenth missing at random, ten models", 400, (0.3, *three * 3), 0.1, False),
        ("the hard questions missing", 400, three, 0.0, True),
    ):
        run = partial(gaps_in_questions, n=n, odds=levels, share=share, related=related)
        yield World(f"{name}, n = {n:,}", run, (MISSING,) if related else ())
