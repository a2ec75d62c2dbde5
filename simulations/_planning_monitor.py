"""Streams with and without a change: false alarms in a year, and days until a change is found."""

import numpy as np

from calibrant.core.arrays import named_stream
from calibrant.labels.watching.detector import ChangeDetector

DAYS, PER_DAY, CHANGE = 365, 50, 100


def stream(rng, *, draws=1, together=0.5, baseline=500, shift=None, mix=None, rate=None):
    """Yield the baseline, then one batch a day: confidence, outcome, question."""

    def batch(rows, day):
        questions = rows // draws
        shape = mix if mix is not None and day >= CHANGE else 5.0
        p = np.repeat(rng.random(questions) ** (1 / shape), draws)
        chance = p - 0.05 if rate is None else rate(p)
        if shift is not None and day >= CHANGE:
            chance = chance + shift(p) if callable(shift) else chance - shift
        own = rng.random(p.size)
        if draws > 1:
            shared = np.repeat(rng.random(questions), draws)
            own = np.where(rng.random(p.size) < np.sqrt(together), shared, own)
        return (
            p,
            (own < np.clip(chance, 0, 1)).astype(float),
            np.repeat(np.arange(questions), draws),
        )

    yield batch(baseline, -1)
    for day in range(DAYS):
        yield batch(PER_DAY, day)


def watch(world, runs, *, seed=0):
    """Return false alarms before the change, found, median days, and alarms after the reset."""
    name, options = world
    changed = "shift" in options
    early, days, again, starts = 0, [], 0, []
    for run in range(runs):
        rng = named_stream(seed, "monitor", name, run)
        batches = stream(rng, **options)
        detector = ChangeDetector()
        detector.set_baseline(*next(batches))
        first = None
        for batch in batches:
            found = detector.update(*batch)
            if found is None:
                continue
            if first is None:
                first = found
                if not changed or found.batch < CHANGE:
                    early += 1
                    break
                days.append(found.batch - CHANGE + 1)
                starts.append(found.since - CHANGE)
            else:
                again += 1
                break
    late = days + [np.inf] * (runs - len(days))
    return {
        "early": early / runs,
        "found": len(days) / runs,
        "median": float(np.median(late)),
        "again": again / runs,
        "start": float(np.median(starts)) if starts else float("nan"),
    }


WORLDS = (
    ("nothing, baseline 500", {}),
    ("nothing, 5 draws a question, baseline 500", {"draws": 5}),
    ("nothing, 5 draws a question, baseline 2,000", {"draws": 5, "baseline": 2000}),
    ("only the mix, baseline 500", {"mix": 2.0, "rate": lambda p: 0.75 * p + 0.1}),
    (
        "only the mix, baseline 2,000",
        {"mix": 2.0, "rate": lambda p: 0.75 * p + 0.1, "baseline": 2000},
    ),
    ("-0.05, baseline 500", {"shift": 0.05}),
    ("-0.05, baseline 2,000", {"shift": 0.05, "baseline": 2000}),
    ("-0.10, baseline 500", {"shift": 0.10}),
    ("-0.05, 5 draws a question, baseline 500", {"shift": 0.05, "draws": 5}),
    ("-0.05, 5 draws a question, baseline 2,000", {"shift": 0.05, "draws": 5, "baseline": 2000}),
    (
        "up and down, cancelling, baseline 2,000",
        {"shift": lambda p: np.where(p < 0.87, 0.15, -0.1), "baseline": 2000},
    ),
)
