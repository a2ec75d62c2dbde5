"""What is said of unlabelled traffic, in years of weeks whose truth is known."""

from __future__ import annotations

from functools import partial

import numpy as np
import polars as pl

from calibrant.trust.traffic_shift import Profile
from simulations.claims.harness import Said, World

WEEKS, ROWS, FIT = 52, 700, 2000


def rows(rng, n, *, groups=14, atoms=False, power=1.0, tilt=0.0):
    """Return rows; `power` makes confidences lower, `tilt` makes the later groups more frequent."""
    weight = 1 + tilt * np.arange(groups) / groups
    group = rng.choice(groups, n, p=weight / weight.sum())
    said = rng.beta(6, 2, n) ** power * (1 - 0.02 * group)
    if atoms:
        said = np.round(said * 5) / 5
    length = rng.lognormal(5 + 0.05 * group, 1.0)
    table = {"confidence": said, "length": length}
    return pl.DataFrame({**table, "topic": group.astype(str)} if groups > 1 else table)


def year(rng, *, change=None, **world):
    """Look every week; a change comes in week 10, where there is one."""
    profile = Profile.of(rows(rng, FIT, **world), "topic" if world.get("groups", 14) > 1 else None)
    for week in range(WEEKS):
        late = change is not None and week >= 10
        seen = profile.check(rows(rng, ROWS, **{**world, **(change if late else {})}))
        if seen.changes:
            return [Said("monitor.traffic", True, not late)]
    return [Said("monitor.traffic", False, False)]


def worlds():
    yield World("nothing, 14 groups, one year", year)
    yield World("nothing, no groups, one year", partial(year, groups=1))
    yield World("nothing, five confidences in all, one year", partial(year, atoms=True))
    yield World("nothing, 60 groups, one year", partial(year, groups=60))
    for name, change in (
        ("later groups twice as frequent from week 10 on", {"tilt": 2.0}),
        ("lower confidences from week 10 on", {"power": 1.3}),
    ):
        yield World(name, partial(year, change=change), ("monitor.traffic",))
