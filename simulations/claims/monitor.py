"""The alarm of a monitor in streams whose truth is known."""

from __future__ import annotations

from functools import partial

from calibrant.planning.watching.detector import ChangeDetector
from simulations._planning_monitor import CHANGE, WORLDS, stream
from simulations.claims.harness import Said, World

RUNS = 300


def watched(rng, *, options):
    """A year of labels: an alarm is false where nothing changed, or before it did."""
    batches = stream(rng, **options)
    detector = ChangeDetector()
    detector.set_baseline(*next(batches))
    for batch in batches:
        found = detector.update(*batch)
        if found is not None:
            changed = "shift" in options and found.batch >= CHANGE
            return [Said("monitor.alarm", True, not changed)]
    return [Said("monitor.alarm", False, False)]


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
        runs = 100 if power else RUNS
        yield World(f"{name}, one year", partial(watched, options=options), power, runs)
