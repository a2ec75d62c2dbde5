"""The alarm of a monitor in streams whose truth is known."""

from __future__ import annotations

from functools import partial

import numpy as np

from calibrant.labels.watching.batch import MixWatch
from calibrant.labels.watching.betting import PromiseWatch
from calibrant.labels.watching.detector import ChangeDetector
from simulations._monitor_years import made_rows, real_year, watched_together
from simulations._planning_monitor import CHANGE, DAYS, PER_DAY, WORLDS, stream
from simulations.claims.harness import Said, World


def watched(rng, *, options):
    """A year of labels: an alarm is false where nothing changed, or before it did."""
    batches = stream(rng, **options)
    detector = ChangeDetector()
    detector.set_baseline(*next(batches))
    return told(detector, batches, changed="shift" in options)


def told(detector, batches, *, changed=False):
    for batch in batches:
        found = detector.update(*batch)
        if found is not None:
            return [Said("monitor.alarm", True, not (changed and found.batch >= CHANGE))]
    return [Said("monitor.alarm", False, False)]


def days(rng, draw, rate, rows=PER_DAY):
    """A year of days on which nothing changes."""
    for _ in range(DAYS):
        p = draw(rng, rows)
        yield p, (rng.random(rows) < np.clip(rate(p), 0, 1)).astype(float)


def steady(rng, *, draw, rate, baseline=500, rows=PER_DAY):
    """Nothing changes; None as the baseline stands for perfect calibration."""
    detector = ChangeDetector()
    if baseline is None:
        detector.set_perfect()
    else:
        p = draw(rng, baseline)
        detector.set_baseline(p, (rng.random(baseline) < np.clip(rate(p), 0, 1)).astype(float))
    return told(detector, days(rng, draw, rate, rows))


def uneven(rng):
    """A baseline whose labels were drawn with chances from 0.05 to 0.6, weighted back."""
    p = rng.beta(6, 1, 3000)
    y = (rng.random(p.size) < p - 0.1).astype(float)
    pi = np.clip(0.05 + 2.5 * p * (1 - p), 0.05, 0.6)
    taken = rng.random(p.size) < pi
    detector = ChangeDetector()
    detector.set_baseline(p[taken], y[taken], weights=1 / pi[taken])
    return told(detector, days(rng, lambda rng, n: rng.beta(6, 1, n), lambda p: p - 0.1))


def mixed(rng):
    """Two groups, one 15 points over-confident and one 15 under, half of the rows each."""

    def batch(rows):
        p = rng.uniform(0.2, 0.8, rows)
        chance = p + np.where(rng.random(rows) < 0.5, 0.15, -0.15)
        return p, (rng.random(rows) < chance).astype(float)

    detector = ChangeDetector()
    detector.set_baseline(*batch(500))
    return told(detector, (batch(PER_DAY) for _ in range(DAYS)))


def recurring(rng, *, questions=300):
    """Every day asks some of the same questions, each with a difficulty of its own."""
    p = rng.beta(6, 2, questions)
    chance = np.clip(p + 0.2 * rng.standard_normal(questions), 0.02, 0.98)

    def batch(rows):
        which = rng.choice(questions, rows, replace=rows > questions)
        return p[which], (rng.random(rows) < chance[which]).astype(float), which

    detector = ChangeDetector()
    detector.set_baseline(*batch(500))
    return told(detector, (batch(PER_DAY) for _ in range(DAYS)))


def six_groups(rng, *, moved=False):
    """Six groups; from day 100 on half of them may keep a fifth of their share."""
    usual = np.array([0.3, 0.2, 0.2, 0.1, 0.1, 0.1])
    later = usual * np.where(np.isin(np.arange(6), rng.permutation(6)[:3]), 0.2, 1.0)

    def counts(rows, share):
        drawn = rng.multinomial(rows, share / share.sum())
        return {str(group): int(count) for group, count in enumerate(drawn)}

    watch = MixWatch(counts(2000, usual))
    for day in range(DAYS):
        changed = moved and day >= CHANGE
        if watch.update(str(day), counts(PER_DAY, later if changed else usual)):
            return [Said("monitor.mix", True, not changed)]
    return [Said("monitor.mix", False, False)]


def grouped(rng, *, steps=None, **options):
    """A year of a made-up model with six groups; at most the mix of its groups changes."""
    rows = made_rows(rng, 20_000, steps=steps)
    ((quality, mix, _),) = watched_together([real_year(rng, rows, **options)])
    moved = "moved" in options
    return [
        Said("monitor.alarm", quality is not None, True),
        Said("monitor.mix", mix is not None, not (moved and mix is not None and mix >= CHANGE)),
    ]


GROUPED = (
    ("confidences in tenths", {"steps": 10}),
    ("confidences in tenths, 20 labels a day", {"steps": 10, "per_day": 20}),
    ("200 labels a day", {"per_day": 200}),
    ("labels 1 to 30 days late", {"delay": "late"}),
    ("wrong answers labelled ten days later", {"delay": "wrong", "steps": 10}),
    ("only the mix, in tenths", {"moved": "fifth", "steps": 10}),
)


def tied(rng, rows):
    return rng.choice([0.8, 0.95, 1.0], rows, p=[0.2, 0.3, 0.5])


def sure(rng, rows):
    return rng.beta(60, 1, rows)


def promised(rng, *, rate, limit=0.1, rows=20, draws=1, later=None):
    """A year of answers given alone: wrong at this rate, and at another one from day 100 on."""
    watch = PromiseWatch(limit)
    for day in range(DAYS):
        chance = rate if later is None or day < CHANGE else later
        own = rng.random(rows * draws)
        question = np.repeat(np.arange(rows), draws)
        if draws > 1:
            own = np.where(rng.random(own.size) < 0.7, np.repeat(rng.random(rows), draws), own)
        if watch.update(str(day), own < chance, question if draws > 1 else None):
            kept = later is None or day < CHANGE
            return [Said("monitor.promise", True, kept)]
    return [Said("monitor.promise", False, False)]


PROMISES = (
    ("error as promised, 20 answers a day", {"rate": 0.1}),
    ("error as promised, 5 draws a question", {"rate": 0.1, "draws": 5, "rows": 10}),
    ("error as promised, 2 answers a day", {"rate": 0.1, "rows": 2}),
    ("error as promised, 1 %", {"rate": 0.01, "limit": 0.01, "rows": 50}),
    ("error as promised, 40 %", {"rate": 0.4, "limit": 0.4}),
    ("error below the promise", {"rate": 0.07}),
    ("error from 8 to 20 % on day 100, 10 % promised", {"rate": 0.08, "later": 0.2}),
    ("error from 8 to 14 % on day 100, 10 % promised", {"rate": 0.08, "later": 0.14}),
)


def worlds():
    wanted = (
        "nothing, baseline 500",
        "nothing, 5 draws a question, baseline 500",
        "only the mix, baseline 500",
        "-0.05, baseline 500",
    )
    for name in wanted:
        options = dict(WORLDS)[name]
        power = ("monitor.alarm",) if "shift" in options else ()
        yield World(f"{name}, one year", partial(watched, options=options), power)
    plain = {"draw": lambda rng, n: rng.beta(6, 1, n), "rate": lambda p: p - 0.1}
    for name, options in (
        ("nothing, three confidences in all", {"draw": tied, "rate": lambda p: p - 0.1}),
        ("nothing, errors are rare", {"draw": sure, "rate": lambda p: p}),
        ("nothing, baseline 120", {**plain, "baseline": 120}),
        ("nothing, 8 labels a day", {**plain, "rows": 8}),
        ("nothing, against perfect calibration",
         {"draw": plain["draw"], "rate": lambda p: p, "baseline": None}),
    ):  # fmt: skip
        yield World(f"{name}, one year", partial(steady, **options))
    yield World("nothing, a baseline drawn unevenly, one year", uneven)
    yield World("nothing, two groups over- and under-confident, one year", mixed)
    yield World("nothing, 300 questions that come again, one year", recurring)
    for name, options in PROMISES:
        power = ("monitor.promise",) if "later" in options else ()
        yield World(f"promise: {name}", partial(promised, **options), power)
    yield World("nothing, six groups, one year", six_groups)
    for name, options in GROUPED:
        power = ("monitor.mix",) if "moved" in options else ()
        yield World(f"groups: {name}, one year", partial(grouped, **options), power)
    yield World(
        "only the mix of six groups, one year", partial(six_groups, moved=True), ("monitor.mix",)
    )
    yield World("nothing, 60 questions that come again, one year", partial(recurring, questions=60))
