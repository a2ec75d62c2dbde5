"""The claims of a comparison in worlds whose truth is known."""

from __future__ import annotations

from functools import partial

import numpy as np
import polars as pl
from scipy.special import expit

from calibrant.comparison.candidates import candidate_views
from calibrant.comparison.compare import compare_models
from calibrant.comparison.decision import decide_pairs
from calibrant.comparison.evidence import accuracy_p_value, pair_evidence, view_evidence
from calibrant.comparison.resampled import resample_counts
from simulations._comparison_worlds import (
    HARDEST,
    PAIRS,
    chances,
    contradiction,
    largest_gap,
    truth,
    views_of,
)
from simulations.claims.harness import Said, World
from simulations.comparison import pool_of

MARGIN = 0.05
RESAMPLES = 120
BETTER, ACCURATE = "compare.better_calibrated", "compare.more_accurate"
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
    models = world.draw(rng, n)
    views = views_of(
        [m.confidence for m in models], [m.correct for m in models], rng, resamples=RESAMPLES
    )
    first, second = views[0][1], views[1][0]
    (found,) = decide_pairs([pair_evidence(first, second, level=0.95, margin=MARGIN)])
    false = {
        "better": found.winner != truth(world.name),
        "equivalent": largest_gap(world.name) >= MARGIN,
        "depends": not contradiction(world.name),
    }.get(found.outcome, False)
    yield Said(BETTER, found.outcome != "undecided", false)
    gap = first.accuracy - second.accuracy
    shown = accuracy_p_value(gap) <= 0.05
    right = np.sign(gap[0]) == np.sign(accuracies[0] - accuracies[1])
    yield Said(ACCURATE, shown, bool(shown and not right))


def alike(rng, *, n, odds):
    """Calibrated models of several accuracies: none is better calibrated, none leads."""
    d = rng.normal(0, 1.2, n)
    models = {}
    for number, level in enumerate(odds):
        p = chances(level, rng, d)
        models[f"m{number}"] = p, (rng.random(n) < p).astype(float)
    for claim in claims_of(models, rng):
        if claim["id"] == BETTER:
            asserts = claim["outcome"] != "undecided"
            yield Said(BETTER, asserts, claim["outcome"] in ("shown", "depends"))
        elif claim["id"] == LEADS:
            yield Said(LEADS, claim["outcome"] == "shown", True)


def one_leads(rng, *, n):
    d = rng.normal(0, 1.2, n)
    models = {}
    for number, moved in enumerate((0.0, 1.5, 2.0)):
        p = chances(0.62, rng, d)
        said = expit(np.log(p / (1 - p)) + moved)
        models[f"m{number}"] = said, (rng.random(n) < p).astype(float)
    for claim in claims_of(models, rng):
        if claim["id"] == LEADS:
            shown = claim["outcome"] == "shown"
            yield Said(LEADS, shown, shown and not claim["text"].startswith("m0 "))


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


def gaps_in_questions(rng, *, n, related):
    """Three models; the first lacks a tenth of the questions, at random or the hard ones."""
    d = rng.normal(0, 1.2, n)
    models = {}
    for number, level in enumerate((0.5, 0.62, 0.75)):
        p = chances(level, rng, d)
        models[f"m{number}"] = p, (rng.random(n) < p).astype(float)
    lacks = rng.random(n) < (expit(2 * d - 3.2) if related else 0.1)
    made = [c for c in claims_of(models, rng, {"m0": lacks}.items()) if c["id"] == MISSING]
    yield Said(MISSING, bool(made), bool(made) and not related)


def judges(rng, *, n, moved, side):
    """Two judges of the same answers; `side` says which is better calibrated, 0 neither."""
    pool = pool_of(rng, n, moved=moved)
    counts = resample_counts(n, RESAMPLES, rng)
    both = [candidate_views(pool, counts, judge, (0, 1), bins=15).statistics for judge in (0, 1)]
    found = view_evidence(*both, n, n, 0.95)
    shown = bool(found.side(0.95)) and max(found.p_gap, found.p_square) <= 0.05
    yield Said(JUDGES, shown, shown and found.side(0.95) != side)


def worlds():
    sizes = {world.name: world for world in (*HARDEST, PAIRS[10], PAIRS[11])}
    for world in sizes.values():
        drawn = world.draw(np.random.default_rng(7), 200_000)
        accuracies = [float(model.chance.mean()) for model in drawn]
        power = (BETTER,) if truth(world.name) else ()
        power += (ACCURATE,) if world.name == "calibrated .50/.75" else ()
        yield World(
            f"{world.name}, n = 400",
            partial(pair, world=world, n=400, accuracies=accuracies),
            power,
        )
    yield World("equal accuracy, n = 200", partial(equal_accuracy, n=200))
    odds = (0.3, 0.5, 0.75, 0.9)
    yield World("four calibrated models, n = 300", partial(alike, n=300, odds=odds))
    leads = partial(one_leads, n=500)
    yield World("one calibrated, two over, n = 500", leads, (LEADS,))
    for name, moved, side in (
        ("two calibrated judges", (0.0, 0.0), 0),
        ("two judges, both +.8", (0.8, 0.8), 0),
        ("two judges, second +.8", (0.0, 0.8), -1),
    ):
        found = partial(judges, n=300, moved=moved, side=side)
        yield World(f"{name}, n = 300", found, (JUDGES,) if side else ())
    for related in (False, True):
        label = "the hard ones" if related else "at random"
        yield World(
            f"a tenth of the questions missing {label}, n = 400",
            partial(gaps_in_questions, n=400, related=related),
            (MISSING,) if related else (),
        )
