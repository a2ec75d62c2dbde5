"""Rows that hang together and nobody said so: `python -m simulations dependence`.

Whole tables through audit, decide, mend, groups and compare, as they are and with the cluster
named. Confidences are calibrated and models alike, so that everything shown is false. Only public
verbs are called, so that an older version of the package can be asked the same: with its folder
first in `PYTHONPATH` and `CALIBRANT_TALLIES=before`. `CALIBRANT_REPEATS` sets the runs of a world
with 1,000 rows, `CALIBRANT_WORLDS` a part of the names of the worlds, `CALIBRANT_SECONDS` when to
stop; results go to `simulations/dependence_results`, and `make simulate claims` puts them on
docs/claims.md.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from functools import cache, partial
from pathlib import Path

import numpy as np
import polars as pl
from benchmarks.harness import DATA
from scipy.special import expit

import calibrant as cal
from simulations.claims.harness import rate_interval

FOLDER = Path(__file__).parent / "dependence_results"
TALLIES = os.environ.get("CALIBRANT_TALLIES", "now")
RUNS = int(os.environ.get("CALIBRANT_REPEATS", "60"))
ENDS = time.monotonic() + float(os.environ.get("CALIBRANT_SECONDS", "inf"))
CHOSEN = os.environ.get("CALIBRANT_WORLDS", "")
SIZES = (1_000, 200, 5_000)
POWER = "over by 5, no dependence"
LIMIT, TOP, OVER = 0.22, 0.92, 0.08
# At thresholds below this more than the limit of the answers is wrong.
LOWEST = 2 * (1 - LIMIT) - TOP


def said_of(rng, n):
    return np.round(rng.uniform(0.5, TOP, n), 3)


def names(letter, codes):
    return [f"{letter}{code}" for code in codes]


def effects(rng, codes, sd):
    return rng.normal(0, sd, int(codes.max()) + 1)[codes]


def answered(rng, columns, chance, said):
    right = (rng.random(said.size) < np.clip(chance, 0, 1)).astype(int)
    return pl.DataFrame({**columns, "confidence": said, "correct": right})


def none(rng, n):
    """Columns that say nothing."""
    said = said_of(rng, n)
    customers = rng.integers(0, max(6, n // 15), n)
    columns = {"topic": names("t", rng.integers(0, 12, n)), "customer": names("u", customers)}
    columns["question_id"] = [f"q{k}-{rng.integers(9)}" for k in range(n)]
    return answered(rng, columns, said, said), "topic"


def idle(rng, n):
    """Fifty columns that say nothing."""
    said, columns = said_of(rng, n), {}
    for number in range(50):
        count = int(rng.choice([2, 3, 5, 12, 40, n // 10, n // 3]))
        share = 1 / np.arange(1, count + 1) ** (number % 3 * 0.7)
        columns[f"x{number}"] = names("v", rng.choice(count, n, p=share / share.sum()))
    return answered(rng, columns, said, said), "x0"


def over(rng, n):
    """Over by 5, rows independent: what the search costs in power."""
    table, _ = none(rng, n)
    said = table["confidence"].to_numpy()
    right = (rng.random(n) < said - 0.05).astype(int)
    return table.with_columns(correct=pl.Series(right)), "topic"


def grouped(column, count, sd):
    def world(rng, n):
        said, codes = said_of(rng, n), rng.integers(0, count, n)
        chance = said + effects(rng, codes, sd)
        return answered(rng, {column: names("g", codes)}, chance, said), column

    return world


def half(rng, n):
    """One customer has half the rows."""
    said, others = said_of(rng, n), max(10, n // 20)
    codes = np.where(np.arange(n) < n // 2, 0, 1 + np.arange(n) % others)
    table = answered(rng, {"customer": names("u", codes)}, said + effects(rng, codes, 0.1), said)
    return table.sample(n, shuffle=True, seed=int(rng.integers(2**31))), "customer"


def repeated(rng, n):
    """Ten prompts of each question: chances of a question, its confidence to a point."""
    asked = np.arange(n) // 10
    base = rng.uniform(0.5, TOP, n // 10)
    said = np.clip(base[asked] + rng.normal(0, 0.01, n), 0, 1).round(3)
    return asked, rng.beta(1.5 * base, 1.5 * (1 - base))[asked], said


def prompts(rng, n):
    asked, chance, said = repeated(rng, n)
    order = rng.permutation(n)
    columns = {"question_id": [f"q{q}-v{k % 10}" for k, q in zip(order, asked[order], strict=True)]}
    columns["source"] = names("s", asked[order])
    return answered(rng, columns, chance[order], said[order]), "source"


def near_texts(rng, n):
    asked, chance, said = repeated(rng, n)
    vocabulary = np.array([f"w{k}" for k in range(400)])
    common = 1 / np.arange(1, 401)
    whole = rng.choice(vocabulary, (n // 10, 9), p=common / common.sum())

    def varied(words):
        words, place = list(words), int(rng.integers(9))
        kind = rng.integers(3)
        if kind == 0:
            words.insert(place, str(rng.choice(["please", "now", "so", "well", "quickly"])))
        elif kind == 1:
            words.pop(place)
        else:
            words[place] = str(rng.choice(vocabulary))
        return " ".join(words)

    order = rng.permutation(n)
    columns = {"text": [varied(whole[q]) for q in asked[order]], "source": names("s", asked[order])}
    return answered(rng, columns, chance[order], said[order]), "source"


def drift(rng, n):
    """Accuracy drifts while answers are collected."""
    said, keep = said_of(rng, n), np.exp(-12 / n)
    moved = np.empty(n)
    moved[0] = rng.normal()
    for row, step in enumerate(rng.normal(size=n - 1) * np.sqrt(1 - keep**2), 1):
        moved[row] = keep * moved[row - 1] + step
    table = answered(rng, {}, said + 0.1 * moved, said)
    sixths = names("b", np.arange(n) * 6 // n)
    return table.with_columns(part=pl.Series(sixths)), "part"


def two_way(rng, n):
    said, topic, who = said_of(rng, n), rng.integers(0, 15, n), rng.integers(0, 15, n)
    chance = said + effects(rng, topic, 0.07) + effects(rng, who, 0.07)
    columns = {"subject_area": names("t", topic), "graded_by": names("a", who)}
    return answered(rng, columns, chance, said), "subject_area"


def among_many(rng, n):
    table, column = grouped("area", 20, 0.08)(rng, n)
    counts = [int(rng.choice([3, 12, n // 10])) for _ in range(20)]
    more = {f"x{k}": names("v", rng.integers(0, count, n)) for k, count in enumerate(counts)}
    return table.with_columns(**{name: pl.Series(cells) for name, cells in more.items()}), column


WORLDS = {
    "no dependence": none,
    "50 idle columns": idle,
    "12 topics, sd 8": grouped("subject_area", 12, 0.08),
    "a customer has half the rows": half,
    "10 prompts a question": prompts,
    "10 nearly equal texts a question": near_texts,
    "drift while collecting": drift,
    "8 annotators, sd 8": grouped("graded_by", 8, 0.08),
    "two ways, 15 by 15": two_way,
    "30 areas, sd 3": grouped("area", 30, 0.03),
    "1 of 21 columns": among_many,
    "4 regions, sd 8": grouped("region", 4, 0.08),
}
INDEPENDENT = ("no dependence", "50 idle columns")
REAL = {"real pools, columns of other rows": True, "real pools, 14 categories": False}
PROMISED = [name for name in [*WORLDS][:7] if name != "50 idle columns"]
# Columns that are there to be named; no table would have them.
_UNNAMED = ("source", "part")


def ways(table, cluster):
    """Yield how a table is looked at: as it is, and with the cluster named."""
    yield "as it is", table.drop([name for name in _UNNAMED if name in table.columns]), {}
    if TALLIES == "now":
        yield "named", table, {"cluster": cluster}


def audited(table, how):
    """Return whether something false is said, and whether the search fired."""
    document = cal.audit(table, resamples=20, **how)
    made = {claim["id"]: claim["outcome"] for claim in document["claims"]}
    wrong = any(
        made.get(f"audit.{name}") == "shown"
        for name in ("over_confident", "under_confident", "miscalibrated")
    )
    fired = any(one["id"] == "data.dependent" for one in document["data"]["warnings"])
    return {"false": wrong, "over": made.get("audit.over_confident") == "shown", "fires": fired}


def decided(table, how):
    found = cal.decide(table, max_error=LIMIT, **how)["results"][0]
    at = found["threshold"] if found["certified"] else None
    share = 0.0 if at is None else min(max((TOP - at) / (TOP - 0.5), 0.0), 1.0)
    return {"promised": at is not None, "broken": at is not None and at < LOWEST - 0.005,
            "share": share}  # fmt: skip


def mended(table, how):
    """Return whether the promise about the map fails, of confidences stated 8 points too high."""
    stated = table.with_columns(pl.min_horizontal(pl.col("confidence") + OVER, 1.0))
    found = cal.mend(stated, **how)["results"][0]
    promised = found["promise"]["off_by"]
    if promised is None:
        return {"promised": False, "broken": False}
    odds = np.interp(stated["confidence"], found["map"]["knots"], found["map"]["log_odds"])
    means = expit(odds)
    off = np.abs(means - table["confidence"].to_numpy()).mean()
    return {"promised": True, "broken": bool(off > promised)}


def plans(rng, n):
    """Customers with a chance of their own, each on one of three plans: the plan says nothing."""
    said, codes = said_of(rng, n), rng.integers(0, 40, n)
    plan = rng.permutation(np.arange(40) % 3)[codes]
    columns = {"customer": names("u", codes), "plan": names("p", plan)}
    return answered(rng, columns, said + effects(rng, codes, 0.1), said), "customer"


def flagged(table, how):
    found = cal.groups(table, features=["plan"], **how)
    return {"false": any(group["flagged"] for group in found["groups"])}


def pairs(count, sd):
    def world(rng, n):
        """Two models that are alike over topics, each better at its own."""
        said, topic = said_of(rng, n), rng.integers(0, count, n)
        columns = {"question_id": np.arange(n), "topic": names("t", topic)}
        parts = [
            answered(rng, columns, said + (effects(rng, topic, sd) if sd else 0), said)
            for _ in range(2)
        ]
        named = [
            part.with_columns(model=pl.lit(name)) for name, part in zip("ab", parts, strict=True)
        ]
        return pl.concat(named), "topic"

    return world


def compared(table, how):
    document = cal.compare(table, resamples=200, **how)
    made = {claim["id"]: claim["outcome"] for claim in document["claims"]}
    wrong = (made.get(f"compare.{name}") for name in ("more_accurate", "better_calibrated"))
    fired = any(one["id"] == "data.dependent" for one in document["data"]["warnings"])
    return {"false": "shown" in wrong, "fires": fired}


@cache
def pools():
    """Return confidence, outcome, category and length of the answers of real models."""
    frame = pl.read_parquet(DATA / "scores" / "mmlu_pro_16_models.parquet")
    found = []
    for stated in ("verbal_numerical_confidence", "logit_perplexity_confidence"):
        for _, rows in frame.group_by("model", maintain_order=True):
            columns = rows.select(
                pl.col(stated).cast(pl.Float64).alias("confidence"), pl.col("correct").cast(int),
                pl.col("category").cast(str), "token_length",
            )  # fmt: skip
            told = columns.filter(pl.col("confidence").is_between(0, 1), pl.col("correct") >= 0)
            if told.height >= 11_500 and told["confidence"].std() > 0.005:
                found.append(told)
    return found


def real(rng, n, *, shuffled):
    """Answers drawn from a real pool; their categories and lengths, or those of other rows."""
    pool = pools()[rng.integers(len(pools()))]
    gap = pool["confidence"].mean() - pool["correct"].mean()
    rows = pool[rng.choice(pool.height, n, replace=False)]
    if shuffled:
        order = rng.permutation(n)
        users = names("u", rng.integers(0, n // 8, n))
        rows = rows.with_columns(rows[name][order] for name in ("category", "token_length"))
        rows = rows.with_columns(user=pl.Series(users))
    return rows.with_columns(pool_gap=pl.lit(gap)), "category"


def audited_pool(table, how):
    """Return whether the interval of the gap misses that of the whole pool, and what fired."""
    document = cal.audit(table.drop("pool_gap"), resamples=20, **how)
    gap = document["results"][0]["metrics"]["confidence_gap"]
    fired = any(one["id"] == "data.dependent" for one in document["data"]["warnings"])
    return {"false": not gap["low"] <= table["pool_gap"][0] <= gap["high"], "fires": fired}


def counted(key, runs, done, world, verb):
    """Return runs, and how often something was found by way, with those that are stored."""
    tally = {way: Counter(counts) for way, counts in done.get("counts", {}).items()}
    run = done.get("runs", 0)
    while run < runs and time.monotonic() < ENDS:
        rng = np.random.default_rng([59, key["n"], sum(map(ord, key["world"])), run])
        table, cluster = world(rng, key["n"])
        for way, rows, how in ways(table, cluster):
            found = verb(rows, how)
            tally.setdefault(way, Counter()).update({name: float(x) for name, x in found.items()})
        run += 1
    return {"runs": run, "counts": {way: dict(counts) for way, counts in tally.items()}}


def parts():
    """Yield every simulation, the most telling first: verb, world, rows, runs, how it is made."""
    yield "audit", POWER, 1_000, 3 * RUNS, (over, audited)
    for n in SIZES:
        for name, world in WORLDS.items():
            runs = RUNS if n == SIZES[0] else RUNS // 2
            yield "audit", name, n, 3 * runs if name in INDEPENDENT else runs, (world, audited)
        for name, shuffled in REAL.items():
            yield "audit", name, n, 2 * RUNS, (partial(real, shuffled=shuffled), audited_pool)
        if n == SIZES[0]:
            for name in PROMISED:
                yield "decide", name, n, RUNS, (WORLDS[name], decided)
                yield "mend", name, n, RUNS // 2, (WORLDS[name], mended)
            yield "groups", "plans of 40 customers, sd 10", 2 * n, RUNS // 2, (plans, flagged)
            for count, sd in ((12, 0.0), (12, 0.1), (40, 0.1)):
                kind = f"{count} topics, sd {100 * sd:g} apart" if sd else "no dependence"
                yield "compare", kind, n, RUNS // 2, (pairs(count, sd), compared)


def stored(which):
    path = FOLDER / f"{which}.json"
    return json.loads(path.read_text()) if path.exists() else []


def main() -> None:
    """Run every simulation that is not stored with as many runs, and print its rates."""
    FOLDER.mkdir(exist_ok=True)
    rows = stored(TALLIES)
    for verb, name, n, runs, how in parts():
        key = {"verb": verb, "world": name, "n": n}
        done = next((row for row in rows if key.items() <= row.items()), {})
        if CHOSEN not in f"{verb}: {name}" or done.get("runs", 0) >= runs:
            continue
        row = {**key, **counted(key, runs, done, *how)}
        rows = [other for other in rows if other is not done] + [row] * (row["runs"] > 0)
        (FOLDER / f"{TALLIES}.json").write_text(json.dumps(rows, indent=1) + "\n")
        told = {way: {k: rate(x, row["runs"]) for k, x in c.items()}
                for way, c in row["counts"].items()}  # fmt: skip
        sys.stdout.write(f"{verb} {name} {n} {row['runs']} runs: {told}\n")
        sys.stdout.flush()


def rate(count, runs, *, interval=False) -> str:
    """Return a rate in percent, with its interval where it is asked for."""
    low, high = rate_interval(round(count), runs)
    ends = f" [{100 * low:.0f}, {100 * high:.0f}]" if interval else ""
    return f"{100 * count / runs:.0f}{ends}"


if __name__ == "__main__":
    main()
