"""Whole tables whose truth is known, through `groups`, `decide`, `compare` and `monitor`.

Each world draws a table, asks the product, and yields what was said by claim: whether something was
asserted, and whether that is false. Only the public verbs are called, so that an older version of
the package can be asked the same, for the columns 'before' of the page: with its folder first in
`PYTHONPATH` and `CALIBRANT_TALLIES=before`, call `tally`.
"""

from __future__ import annotations

import datetime as dt
import json
import os
from collections import Counter
from functools import partial

import numpy as np
import polars as pl
from benchmarks.harness import ROOT

import calibrant as cal
from simulations._pieces import markdown_table, share_interval, write_page

RUNS = int(os.environ.get("CALIBRANT_REPEATS", "100"))
TALLIES = os.environ.get("CALIBRANT_TALLIES", "now")
FOLDER = ROOT / "simulations" / "whole_tables_results"

_SAYS = np.array([0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99, 1.0])
_MEANS = np.array([0.5, 0.75, 0.45, 0.8, 0.5, 0.85, 0.55, 0.9, 0.5])


# -- groups ----------------------------------------------------------------------------------------


def stretch(rng, *, n, kind):
    """A confidence with a jump at .85; the feature repeats it, sharply or noisily: no group."""
    c = rng.beta(4, 2, n) * 0.6 + 0.4
    rate, high = c - 0.35 * (c > 0.85), c > 0.85
    if kind == "verbal":
        at = rng.integers(0, 9, n)
        c, rate = _SAYS[at], _MEANS[at]
        feature = {"style": np.where(rng.random(n) < np.where(at % 2 == 0, 0.8, 0.2), "x", "y"),
                   "band": np.where(c >= 0.9, "high", "low")}  # fmt: skip
    else:
        feature = {
            "sharp": lambda: {"sure": np.where(high, "yes", "no")},
            "noisy": lambda: {"sure": np.where(high ^ (rng.random(n) < 0.15), "yes", "no")},
            "number": lambda: {"length": 2.0 * high + rng.normal(0, 1, n)},
            "copy": lambda: {"length": c + rng.normal(0, 0.005, n)},
        }[kind]()
    return c, rate, feature


def group(rng, *, n, kind):
    """A group that is right less often than rows of equal confidence, or a number that tells."""
    c = rng.beta(4, 2, n) * 0.6 + 0.4
    if kind == "cont":
        length = rng.exponential(1, n)
        return c, c - 0.15 * (length > 1.6), {"length": length}
    inside = rng.random(n) < (0.2 if kind == "even" else np.where(c > 0.75, 0.6, 0.1))
    return c, c - 0.15 * inside, {"g": np.where(inside, "x", "y")}


def grouped(rng, *, draw, true):
    c, rate, feature = draw(rng)
    right = (rng.random(len(c)) < np.clip(rate, 0, 1)).astype(int)
    found = cal.groups({"confidence": c, "correct": right, **feature}, features=list(feature))
    yield "groups.stands_out", any(part["flagged"] for part in found["groups"]), not true
    yield "groups.grouping_loss", found["results"][0]["grouping_loss_at_least"] > 0, not true


# -- decide ----------------------------------------------------------------------------------------


def eight(rng, *, n, limit, wrong, methods=8):
    """Methods whose upper half is wrong in `wrong` of the cases, whatever the threshold in it."""
    share = 0.68
    right = rng.random(n) < share
    rates = (1 - wrong) / 2 / share, wrong / 2 / (1 - share)
    tables, broken = [], []
    for method in range(methods):
        top = rng.random(n) < np.where(right, *rates)
        said = np.where(top, rng.uniform(0.8, 1, n), rng.uniform(0.2, 0.8, n))
        columns = {"question_id": np.arange(n), "method": [f"m{method}"] * n}
        tables.append(pl.DataFrame({**columns, "confidence": said, "correct": right.astype(int)}))
    found = cal.decide(pl.concat(tables), max_error=limit)
    for entry in found["results"]:
        if entry["certified"]:
            below = max(0.0, 0.8 - entry["threshold"]) / 0.6
            given = 0.5 + 0.5 * below
            broken.append((0.5 * wrong + 0.5 * below * (1 - share - 0.5 * wrong) / 0.5) / given)
    yield "decide.error_limit", bool(broken), any(error > limit for error in broken)
    forecast = [entry["labels_needed"] for entry in found["results"]]
    yield "decide.forecast", any(of is not None for of in forecast), wrong > limit


# -- compare ---------------------------------------------------------------------------------------


def pair(rng, *, n, kind):
    """Two models: of the same laws, both calibrated, or one better calibrated than the other."""
    rates = (0.6, 0.75) if kind in ("laws", "calibrated") else (0.65, 0.65)
    parts = []
    for rate, name, over in zip(rates, "ab", (0.02, 0.12), strict=True):
        right = rng.random(n) < rate
        if kind == "laws":
            said = np.where(right, rng.beta(6, 1.5, n), rng.beta(5, 2, n))
        elif kind == "calibrated":
            said = rng.beta(6, 4 if name == "a" else 2, n)
            right = rng.random(n) < said
        else:
            chance = rng.beta(6, 3.2, n)
            right, said = rng.random(n) < chance, np.clip(chance + over, 0, 1)
        columns = {"question_id": np.arange(n), "model": [name] * n, "confidence": said}
        parts.append(pl.DataFrame({**columns, "correct": right.astype(int)}))
    verdict = cal.compare(pl.concat(parts))["pairs"][0]
    better = verdict["verdict"] == "better"
    yield "compare.better", better, kind != "apart" or verdict["winner"] != "a"
    alike = verdict["verdict"] in ("only more accurate", "more accurate, alike")
    yield "compare.alike", alike, kind == "apart"


# -- monitor ---------------------------------------------------------------------------------------

BASE, CHANGE = 42, 100


def effects(rng, kind, days):
    """Return what each day adds to the chance of a right answer."""
    if kind == "weekend":
        return np.where(np.arange(days) % 7 >= 5, -0.1, 0.04)
    if kind.startswith("sd"):
        return rng.normal(0, float(kind[2:]) / 100, days)
    if kind == "wander":
        steps, noise = np.zeros(days), rng.normal(0, 0.05, days)
        for day in range(1, days):
            steps[day] = 0.8 * steps[day - 1] + 0.6 * noise[day]
        return steps
    return np.zeros(days)


def year(rng, *, kind="none", per=50, drop=0.0):
    """A year of ordinary days; a drop, if any, is on day 100 after the baseline."""
    days = BASE + (365 if not drop else 250)
    day = np.repeat(np.arange(days), per)
    c = rng.beta(4, 1.5, len(day)) * 0.6 + 0.4
    user = np.tile(np.arange(per), days)
    shift = effects(rng, kind, days)[day]
    if kind == "users":
        # Ten users of a day, five questions each: right and wrong together.
        user = np.tile(np.arange(per) // 5, days)
        shift = rng.normal(0, 0.2, (days, per // 5))[day, user]
    right = rng.random(len(day)) < np.clip(c - 0.05 + shift - drop * (day >= BASE + CHANGE), 0, 1)
    dates = [dt.date(2026, 1, 1) + dt.timedelta(days=int(number)) for number in day]
    table = {"time": dates, "confidence": c, "correct": right.astype(int), "user": user}
    return pl.DataFrame(table), {"cluster": "user"} if kind == "users" else {}


def watched(rng, *, delays=None, **options):
    table, named = year(rng, **options)
    per = options.get("per", 50)
    table = table.with_columns(pl.col("user").cast(pl.String))
    found = cal.monitor(table, time="time", baseline_rows=BASE * per, **named)["results"][0]
    alarm = found["alarms"][0] if found["alarms"] else None
    early = True
    if alarm is not None and options.get("drop"):
        day = (dt.date.fromisoformat(alarm["when"][:10]) - dt.date(2026, 1, 1)).days
        early = day < BASE + CHANGE
        if delays is not None and not early:
            delays.append(day - BASE - CHANGE)
    yield "monitor.alarm", alarm is not None, early


WORLDS = {
    "groups": {
        **{
            f"a stretch of the confidence, {words}, n = {n:,}": partial(
                grouped, draw=partial(stretch, n=n, kind=kind), true=False
            )
            for kind, words in (
                ("sharp", "as yes and no"),
                ("noisy", "with 15 % noise"),
                ("number", "beneath a noisy number"),
                ("copy", "as a copy of the confidence"),
                ("verbal", "stated values whose truth goes up and down"),
            )
            for n in (1000, 3000)
        },
        **{
            f"a true difference of 15 points, {words}, n = 2,000": partial(
                grouped, draw=partial(group, n=2000, kind=kind), true=True
            )
            for kind, words in (
                ("even", "a group"), ("tied", "a group of the confident"), ("cont", "a length")
            )
        },
    },
    "decide": {
        **{
            f"eight methods that break the limit by a tenth, n = {n:,}": partial(
                eight, n=n, limit=0.2, wrong=0.22
            )
            for n in (100, 300, 1000)
        },
        "eight methods that keep the limit by half, n = 1,000": partial(
            eight, n=1000, limit=0.2, wrong=0.1
        ),
    },
    "compare": {
        f"two models, {words}, n = {n:,}": partial(pair, n=n, kind=kind)
        for kind, words in (
            ("laws", "the same laws, one more accurate"),
            ("calibrated", "both calibrated, one more accurate"),
            ("apart", "equally accurate, errors of 2 and 12 points"),
        )
        for n in (800, 3000)
    },
    "monitor": {
        "a year of days that are alike": partial(watched),
        "a year of days that differ by 5 points": partial(watched, kind="sd5"),
        "a year of days that differ by 3 points, 200 labels each": partial(
            watched, kind="sd3", per=200
        ),
        "a year whose weekends are 14 points worse": partial(watched, kind="weekend"),
        "a year of ten users a day, named as clusters": partial(watched, kind="users"),
        "a year that wanders (named limit)": partial(watched, kind="wander"),
        "a drop of 8 points among days that are alike": partial(watched, drop=0.08),
        "a drop of 8 points among days that differ by 5": partial(watched, kind="sd5", drop=0.08),
        "a drop of 8 points among weekends 14 points worse": partial(
            watched, kind="weekend", drop=0.08
        ),
    },
}  # fmt: skip


def tally(verbs=tuple(WORLDS)):
    """Run the worlds of some verbs with the package at hand, and keep what was counted."""
    FOLDER.mkdir(exist_ok=True)
    for verb in verbs:
        found = {}
        for number, (name, world) in enumerate(WORLDS[verb].items()):
            false, true, delays = Counter(), Counter(), []
            more = {"delays": delays} if "drop" in world.keywords else {}
            for run in range(RUNS):
                for claim, said, wrong in world(np.random.default_rng([1, number, run]), **more):
                    false[claim] += bool(said and wrong)
                    true[claim] += bool(said and not wrong)
            for claim in false:
                late = float(np.median(delays)) if delays else None
                found[f"{name}|{claim}"] = [RUNS, false[claim], true[claim], late]
        (FOLDER / f"{TALLIES}-{verb}.json").write_text(json.dumps(found, indent=1) + "\n")


def _read(which, verb):
    path = FOLDER / f"{which}-{verb}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def _told(counted, number):
    if counted is None:
        return ""
    low, high = share_interval(counted[number], counted[0])
    return f"{100 * counted[number] / counted[0]:.0f} [{100 * low:.0f}, {100 * high:.0f}]"


def table_of(verb):
    """Return the lines of one verb; its worlds are run first where that is asked for."""
    if os.environ.get("CALIBRANT_REPEATS") or not _read("now", verb):
        tally([verb])
    before, rows = _read("before", verb), []
    for key, counted in _read("now", verb).items():
        name, claim = key.split("|")
        old = before.get(key)
        late = "" if counted[3] is None else f"{counted[3]:.0f}"
        rows.append([name, claim, *(_told(of, n) for n in (1, 2) for of in (old, counted)), late])
    columns = [
        "world",
        "claim",
        "false before, %",
        "false",
        "true before, %",
        "true",
        "delay, days",
    ]
    return [f"## {verb}", "", *markdown_table(columns, rows)]


PARTS = {verb: partial(table_of, verb) for verb in WORLDS}


def main():
    words = (
        "Percent of tables in which a sentence is false, or true, with exact 95 % intervals. "
        "'Before' is the version that did not know of days, stretches and families."
    )
    title = "Sentences of groups, decide, compare and monitor, table by table"
    write_page("whole_tables", title, PARTS, ["numpy", "scipy"], words)


if __name__ == "__main__":
    main()
