"""Promises for whole units: documents of fields, agents that stop early, claims that are dropped.

`python -m simulations units`. The truth of a threshold is taken from a large population of the same
world, with the chance of each unit instead of its outcome where the world knows it.
"""

from __future__ import annotations

import numpy as np
import polars as pl
from benchmarks.harness import DATA
from scipy.special import expit

from calibrant.trust.selective.certify import certify
from calibrant.trust.units import backoff_threshold, run_rows, steps_saved, unit_rows
from calibrant.verbs.decide import decide
from simulations import _unit_sets
from simulations._pieces import RUNS, broken_rates, markdown_table, share_interval, write_page

TRUTH, TABLES = 400_000, 10
DELTA = 0.1
SEED = 62
FIELDS = np.array([0, 0, 0, 0, 0.5, 0.5, -1.2, -1.6])
"""Eight fields: two are harder than the model says."""


def documents(rng, count):
    """Stated confidences, outcomes, and the chance that a document has a wrong field."""
    hard = rng.normal(0, 1.2, count)[:, None]
    log_odds = 4.6 + FIELDS - hard + rng.normal(0, 0.8, (count, len(FIELDS)))
    wrong = rng.random(log_odds.shape) > expit(log_odds)
    stated = expit(0.8 * (log_odds - FIELDS) + 0.3 + rng.normal(0, 0.5, log_odds.shape))
    return np.clip(stated.round(2), 0.01, 0.99), wrong, 1 - expit(log_odds).prod(1)


def flat(stated, right):
    """A table of rows from one of documents."""
    unit = np.repeat(np.arange(len(stated)), stated.shape[1])
    return stated.ravel(), right.ravel().astype(float), unit


class TrueError:
    """The error among all units with a score of at least a threshold, and their share."""

    def __init__(self, score, chance):
        order = np.argsort(-score, kind="stable")
        self.score = -score[order]
        self.error = np.cumsum(chance[order]) / np.arange(1, len(score) + 1)

    def at(self, threshold):
        place = np.searchsorted(self.score, -threshold, side="right") - 1
        return (self.error[place], (place + 1) / len(self.score)) if place >= 0 else (0.0, 0.0)

    def best(self, limit):
        able = np.flatnonzero(self.error <= limit)
        return (able[-1] + 1) / len(self.score) if able.size else 0.0


def document_promises():
    """Product, least and mean of eight fields; the naive rules beside them."""
    rng = np.random.default_rng(SEED)
    stated, wrong, chance = documents(rng, TRUTH)
    truth, rows = {}, []
    for score in ("product", "min", "mean"):
        found = unit_rows(*flat(stated, ~wrong), score=score)
        truth[score] = TrueError(found.score, chance)
    least = TrueError(stated.min(1), chance)
    for limit in (0.1, 0.2):
        for count in (400, 1000, 3000):
            result = {}
            for _ in range(RUNS):
                c, y, unit = flat(*_right(documents(rng, count)))
                for score, world in truth.items():
                    units = unit_rows(c, y, unit, score=score)
                    at = certify(units.score, units.wrong, max_error=limit, delta=DELTA).threshold
                    error, share = world.at(at) if at is not None else (0.0, 0.0)
                    result.setdefault(score, []).append((error > limit, share))
                at = certify(c, 1 - y, max_error=limit, delta=DELTA).threshold
                error, share = least.at(at) if at is not None else (0.0, 0.0)
                result.setdefault("naive: each field", []).append((error > limit, share))
            for rule, runs in result.items():
                best = truth.get(rule, least).best(limit)
                rows.append([f"{limit:.0%}", count, rule, *broken_rates(runs), f"{best:.2f}"])
    return markdown_table(
        ["limit", "documents", "rule", "promise broken", "share answered", "best possible"], rows
    )


def _right(world):
    stated, wrong, _ = world
    return stated, ~wrong


def agents(rng, count):
    """Confidence per step, whether each run succeeds, and the run of each step."""
    steps, able = rng.integers(5, 21, count), rng.normal(0.6, 1.3, count)
    success = rng.random(count) < expit(able)
    fails_at = np.where(success, 99, rng.integers(0, 16, count))
    run = np.repeat(np.arange(count), steps)
    step = np.arange(len(run)) - np.repeat(np.cumsum(steps) - steps, steps)
    score = 1.2 + 0.5 * able[run] - 1.5 * (step >= fails_at[run]) + rng.normal(0, 0.8, len(run))
    return expit(score).round(2), success[run].astype(float), run


def stopping():
    """Stop at a low confidence: promise per run, and steps taken for rows beside it."""
    rng = np.random.default_rng(SEED + 1)
    c, y, run = agents(rng, TRUTH // 10)
    truth = run_rows(c, y, run)
    world, rows = TrueError(truth.score, truth.wrong), []
    limit = 0.2
    for count in (100, 300, 1000):
        result, saved = {}, []
        for _ in range(RUNS):
            c, y, run = agents(rng, count)
            units = run_rows(c, y, run)
            for rule, score, wrong in (
                ("per run", units.score, units.wrong),
                ("naive: steps as rows", 1 - c, y),
            ):
                at = certify(score, wrong, max_error=limit, delta=DELTA).threshold
                error, share = world.at(at) if at is not None else (0.0, 0.0)
                result.setdefault(rule, []).append((error > limit, share))
                if rule == "per run":
                    saved.append(0.0 if at is None else steps_saved(c, run, 1 - at))
        for rule, runs in result.items():
            words = f"{np.mean(saved):.2f}" if rule == "per run" else ""
            rows.append([count, rule, *broken_rates(runs), words])
    return markdown_table(["runs", "rule", "promise broken", "stopped", "steps saved"], rows)


def claims():
    """Drop claims below a confidence until few answers keep a wrong one."""
    rng = np.random.default_rng(SEED + 2)
    stated, wrong, _ = documents(rng, TRUTH)
    needed = np.sort(np.where(wrong, stated, 0.0).max(1))
    rows = []
    for limit in (0.1, 0.2):
        for count in (50, 100, 400):
            runs, conformal = [], []
            for _ in range(RUNS):
                c, y, unit = flat(*_right(documents(rng, count)))
                at = backoff_threshold(c, y, unit, max_error=limit, delta=DELTA)
                runs.append(_kept(at, needed, stated, limit))
                conformal.append(_kept(_conformal(c, y, unit, limit), needed, stated, limit))
            rows.append([f"{limit:.0%}", count, "with certainty", *broken_rates(runs)])
            rows.append([f"{limit:.0%}", count, "conformal, on average", *broken_rates(conformal)])
    return markdown_table(["limit", "answers", "rule", "promise broken", "claims kept"], rows)


def _kept(at, needed, stated, limit):
    if at is None:
        return False, 0.0
    error = 1 - np.searchsorted(needed, at, side="right") / len(needed)
    return error > limit, float((stated > at).mean())


def _conformal(c, y, unit, limit):
    """Conformal factuality: the promise holds on average over label sets, not for most of them."""
    needed = np.zeros(int(unit.max()) + 1)
    np.maximum.at(needed, unit, np.where(y < 1, c, 0.0))
    k = int(np.ceil((len(needed) + 1) * (1 - limit)))
    return float(np.sort(needed)[k - 1]) if k <= len(needed) else None


# Clusters, rows of each, how much the error rate differs between them, how much the score is shared
# in a cluster, and whether sizes are uneven.
CLUSTERED = (
    (100, 5, 0.0, 0.5, False),
    (60, 5, 0.3, 1.0, False),
    (150, 8, 0.5, 0.5, False),
    (150, 8, 0.9, 0.5, False),
    (150, 8, 0.5, 1.0, True),
    (400, 8, 0.3, 0.5, True),
    (150, 20, 0.3, 0.0, False),
)


def clustered(rng, world, limit):
    """Scores, errors and clusters where every threshold lies at the limit: all that pass break."""
    count, size, apart, shared, uneven = world
    rows = np.maximum(1, rng.poisson(size, count))
    if uneven:
        rows = np.minimum(1 + rng.geometric(1 / size, count), 60)
    unit = np.repeat(np.arange(count), rows)
    rate = np.full(count, limit)
    if apart:
        spread = (1 - apart) / apart
        rate = rng.beta(limit * spread, (1 - limit) * spread, count)
    wrong = (rng.random(unit.size) < rate[unit]).astype(float)
    score = np.sqrt(shared) * rng.normal(size=count)[unit]
    return score + np.sqrt(1 - shared) * rng.normal(size=unit.size), wrong, unit


def one_of_each(rng, unit):
    """One row of each unit, at random."""
    order = rng.permutation(unit.size)
    return order[np.unique(unit[order], return_index=True)[1]]


def thresholds(rng, score, wrong, unit, limit):
    """The threshold of rows as if independent, of one row per unit, and of the product."""
    one = one_of_each(rng, unit)
    given = {"max_error": limit, "delta": DELTA}
    return {
        "naive: rows": certify(score, wrong, **given).threshold,
        "one row per unit": certify(score[one], wrong[one], **given).threshold,
        "rows by clusters": certify(score, wrong, cluster=unit, **given).threshold,
    }


def row_promises():
    """A promise per row in 21 worlds whose rows hang together, at the limit itself."""
    rng = np.random.default_rng(SEED + 3)
    rows = []
    for limit in (0.05, 0.1, 0.2):
        for world in CLUSTERED:
            broken = {}
            for _ in range(RUNS):
                for rule, at in thresholds(rng, *clustered(rng, world, limit), limit=limit).items():
                    broken.setdefault(rule, []).append(at is not None)
            count, size, apart, shared, uneven = world
            told = f"{count} x {size}{' uneven' if uneven else ''}, {apart:g}, {shared:g}"
            rows.append([f"{limit:.0%}", told, *(_share(runs) for runs in broken.values())])
    heads = ["limit", "clusters x rows, errors alike, score shared", *broken]
    return markdown_table(heads, rows)


def _share(runs):
    low, high = share_interval(sum(runs), len(runs))
    return f"{100 * np.mean(runs):.1f} % [{100 * low:.1f}, {100 * high:.1f}]"


def real_rows():
    """Questions answered by four models in two prompts: rows of a question are alike."""
    table = pl.read_parquet(DATA / "scores" / "mcq_5_benchmarks_7_models.parquet")
    table = table.drop_nulls(["confidence", "correct"]).filter(
        pl.col("confidence").is_finite()
        & pl.col("model").is_in(["gpt-4-turbo", "gpt-3.5-turbo", "Yi-34b", "Mixtral"])
    )
    name = pl.concat_str("dataset", pl.lit("-"), pl.col("question_id").cast(pl.String))
    table = table.with_columns(unit=name.rank("dense").cast(pl.Int64) - 1).sort("unit")
    score = table["confidence"].cast(pl.Float64).to_numpy()
    wrong, unit = 1.0 - table["correct"].cast(pl.Float64).to_numpy(), table["unit"].to_numpy()
    start = np.searchsorted(unit, np.arange(unit[-1] + 2))
    world, rng, rows = TrueError(score, wrong), np.random.default_rng(SEED + 4), []
    for limit in (0.1, 0.2):
        for count in (60, 150, 400):
            result = {}
            for _ in range(RUNS):
                drawn = rng.choice(len(start) - 1, count, replace=False)
                at = np.concatenate([np.arange(start[n], start[n + 1]) for n in drawn])
                codes = np.repeat(np.arange(count), np.diff(start)[drawn])
                found = thresholds(rng, score[at], wrong[at], codes, limit)
                for rule, cut in found.items():
                    error, share = world.at(cut) if cut is not None else (0.0, 0.0)
                    result.setdefault(rule, []).append((error > limit, share))
            for rule, runs in result.items():
                rows.append([f"{limit:.0%}", count, rule, *broken_rates(runs)])
    return markdown_table(["limit", "questions", "rule", "promise broken", "share answered"], rows)


def real_claims():
    """995 claims in 150 answers: labels drawn with replacement, the 150 are the truth."""
    table = pl.read_parquet(DATA / "judges" / "claims_conformal_factuality.parquet")
    grade = pl.col("annotation").str.strip_chars().str.slice(0, 1)
    table = table.with_columns(grade=grade).filter(pl.col("grade").is_in(["Y", "N", "S", "U"]))
    said = table["both"].rank().to_numpy() / table.height
    right = (table["grade"] == "Y").to_numpy().astype(float)
    unit = table["unit"].rank("dense").cast(pl.Int64).to_numpy() - 1
    places = [np.flatnonzero(unit == n) for n in range(unit.max() + 1)]
    truth = {score: unit_rows(said, right, unit, score=score) for score in ("product", "min")}
    worlds = {score: TrueError(found.score, found.wrong) for score, found in truth.items()}
    needed = np.zeros(len(places))
    np.maximum.at(needed, unit, np.where(right < 1, said, 0.0))
    rng, rows = np.random.default_rng(SEED + 5), []
    for limit in (0.1, 0.2):
        result = {}
        for _ in range(RUNS):
            drawn = rng.integers(0, len(places), 150)
            at = np.concatenate([places[n] for n in drawn])
            codes = np.repeat(np.arange(150), [len(places[n]) for n in drawn])
            c, y, given = said[at], right[at], {"max_error": limit, "delta": DELTA}
            for score, world in worlds.items():
                units = unit_rows(c, y, codes, score=score)
                cut = certify(units.score, units.wrong, **given).threshold
                error, share = world.at(cut) if cut is not None else (0.0, 0.0)
                result.setdefault(f"answers pass by {score}", []).append((error > limit, share))
            cut = certify(c, 1 - y, **given).threshold
            error, share = worlds["min"].at(cut) if cut is not None else (0.0, 0.0)
            result.setdefault("naive: each claim", []).append((error > limit, share))
            for rule, cut in (
                ("claims dropped, with certainty", backoff_threshold(c, y, codes, **given)),
                ("claims dropped, conformal on average", _conformal(c, y, codes, limit)),
            ):
                kept = (False, 0.0) if cut is None else (
                    float((needed > cut).mean()) > limit, float((said > cut).mean())
                )  # fmt: skip
                result.setdefault(rule, []).append(kept)
        rows += [[f"{limit:.0%}", rule, *broken_rates(runs)] for rule, runs in result.items()]
    return markdown_table(["limit", "rule", "promise broken", "answers or claims kept"], rows)


def through_the_product():
    """`decide` on whole tables: does it let pass what the engine does that the other parts run?"""
    rng, same, limit = np.random.default_rng(SEED + 8), {}, 0.2
    for _ in range(TABLES):
        c, y, unit = flat(*_right(documents(rng, 400)))
        for score in ("product", "min", "mean"):
            units = unit_rows(c, y, unit, score=score)
            same.setdefault(f"documents, {score}", []).append(
                _same(
                    _certified(units, limit), _decided(c, y, unit, limit, score=score), units.score
                )
            )
        at = certify(c, 1 - y, max_error=0.1, delta=DELTA, cluster=unit).threshold
        decided = _decided(c, y, unit, 0.1, of="cluster")
        same.setdefault("rows by clusters", []).append(_same(at, decided, c))
        at = backoff_threshold(c, y, unit, max_error=limit, delta=DELTA)
        same.setdefault("claims dropped", []).append(
            _same(at, _decided(c, y, unit, limit, drop=True), c)
        )
        c, y, run = agents(rng, 300)
        units = run_rows(c, y, run)
        same.setdefault("runs that stop", []).append(
            _same(_certified(units, limit), _decided(c, y, run, limit, stop=True), units.score)
        )
    rows = [[kind, len(found), sum(found)] for kind, found in same.items()]
    return markdown_table(["promise", "tables", "same rows pass"], rows)


def _certified(units, limit):
    return certify(units.score, units.wrong, max_error=limit, delta=DELTA).threshold


def _decided(c, y, unit, limit, of="unit", **options):
    table = pl.DataFrame({"confidence": c, "correct": y.astype(int), "unit": unit.astype(str)})
    how = {of: "unit", "max_error": limit, "delta": DELTA, **options}
    (entry,) = decide(table, **how)["results"]
    return entry["threshold"]


def _same(a, b, score):
    """Return whether two thresholds, which may be written differently, let the same rows pass."""
    if a is None or b is None:
        return a is b
    return np.array_equal(score >= a - 1e-9, score >= b - 1e-9)


def documents_table(rng, count):
    """Rows of documents: confidence, outcome and document."""
    return flat(*_right(documents(rng, count)))


def whole_truth(c, y, unit, *, stop=False, drop=False):
    """Return what gives the error of a threshold among many units; documents pass by product."""
    if drop:
        needed = np.zeros(int(unit.max()) + 1)
        np.maximum.at(needed, unit, np.where(y < 1, c, 0.0))
        return lambda at: float((needed > at).mean())
    found = run_rows(c, y, unit) if stop else unit_rows(c, y, unit)
    world = TrueError(found.score, found.wrong)
    return lambda at: world.at(at)[0]


PARTS = {
    "documents": lambda: ["## Documents of eight fields", "", *document_promises()],
    "agents": lambda: ["## Agents: at most 20 % of the stopped would succeed", "", *stopping()],
    "claims": lambda: ["## Claims dropped until the answer passes", "", *claims()],
    "clusters": lambda: ["## Rows that hang together, at the limit", "", *row_promises()],
    "real_rows": lambda: ["## Real: questions x four models x two prompts", "", *real_rows()],
    "real_claims": lambda: ["## Real: 995 claims in 150 answers", "", *real_claims()],
    "sets": lambda: ["## Sets of classes that miss at most 10 %", "", *_unit_sets.class_sets()],
    "product": lambda: [
        "## The same through `calibrant decide`",
        "",
        *through_the_product(),
    ],
    "real_sets": lambda: [
        "## Real: options of HellaSwag",
        "",
        *_unit_sets.real_sets(),
        "gemma-3-27b gives the right option no probability at all in 19 % of its rows, so a "
        "promise of 10 % needs nearly all options. Sets by cumulated probability (aps) end before "
        "them.",
    ],
}


def main():
    write_page("units", "Promises for whole units", PARTS, ["numpy", "scipy"])


if __name__ == "__main__":
    main()
