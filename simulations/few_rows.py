"""Which interval for a mean of few large losses, and for a ranking, at few rows; writes its page.

The means and rankings have intervals in closed form, so that thousands of data sets cost little.
"""

from __future__ import annotations

import math
import os

import numpy as np
from benchmarks.harness import ROOT, machine, versions
from scipy import special

from calibrant.metrics.blocks.block import MetricBlock
from calibrant.metrics.inputs import check
from calibrant.metrics.registry import METRICS
from calibrant.metrics.stats.intervals import logit_interval, skewed_interval, wald_interval
from calibrant.metrics.stats.units import UnitInfluence
from simulations.metrics import WORLDS, truth

SETS = int(os.environ.get("CALIBRANT_REPEATS", "3000"))
LEVEL = 0.95
CELLS = (
    ("rare", 200), ("rare", 1000), ("one step", 200), ("over-confident", 200),
    ("too extreme", 1000),
)  # fmt: skip
USED = {"skewness-corrected", "jackknife of the logit, to first order"}


def mean_intervals(value, influence):
    """Yield intervals of a mean from the influences of its rows."""
    n = influence.size
    pulls = UnitInfluence(influence, None, n)
    error, lean = pulls.error, pulls.lean
    yield "Student", wald_interval(value, error, LEVEL, units=n)
    yield "skewness-corrected", skewed_interval(value, error, lean, LEVEL, units=n)
    ratio = wald_interval(0.0, error / value, LEVEL, units=n)
    yield "Student, log scale", (value * math.exp(ratio[0]), value * math.exp(ratio[1]))
    yield "Hall's transformation", hall(value, error, lean / error, n)


def hall(value, error, skew, n):
    """Return the interval of Hall (1992): Student's ratio through a cubic without skewness."""
    reach = float(special.stdtrit(n - 1, (1 + LEVEL) / 2))

    def back(x):
        return 3 / skew * (np.cbrt(1 + skew * (x - skew / 6)) - 1) if abs(skew) > 1e-9 else x

    return value - error * back(reach), value - error * back(-reach)


def ranking_intervals(name, value, influence, outcomes):
    """Yield intervals of a ranking measure; `outcomes` are sorted by falling confidence."""
    n, right = outcomes.size, outcomes.mean()
    pulls = UnitInfluence(influence, None, n)
    units = n if name == "e_aurc" else max(min(right, 1 - right) * n, 2.0)
    yield "influence, no transformation", wald_interval(value, pulls.error, LEVEL, units=units)
    yield "influence on the logit scale", logit_interval(value, pulls.error, LEVEL, units=units)
    error = pulls.logit_error(value)
    yield (
        "jackknife of the logit, to first order",
        logit_interval(value, error, LEVEL, units=units),
    )
    left_out = np.clip(LEFT_OUT[name](outcomes), value / 10, 1 - (1 - value) / 10)
    logits = special.logit(left_out)
    error = math.sqrt(logits.var() * (n - 1)) * value * (1 - value)
    yield "jackknife of the logit, exact", logit_interval(value, error, LEVEL, units=units)


def precision_left_out(y):
    """Return the average precision without each row, all confidences different."""
    place, hits = np.arange(1, y.size + 1), y.cumsum()
    at = y * hits / place
    fewer = np.maximum(place - 1, 1)
    later, each = (np.where(place > 1, part / fewer, 0.0) for part in (y * hits, y))
    after = later.sum() - later.cumsum() - y * (each.sum() - each.cumsum())
    return (at.cumsum() - at + after) / np.maximum(y.sum() - y, 1)


def excess_left_out(y):
    """Return the excess area under risk-coverage without each row."""
    n, place, wrong = y.size, np.arange(1, y.size + 1), 1 - y
    risk = wrong.cumsum() / place
    fewer = np.maximum(place - 1, 1)
    later, each = (np.where(place > 1, part / fewer, 0.0) for part in (wrong.cumsum(), 1.0))
    after = later.sum() - later.cumsum() - wrong * (each.sum() - each.cumsum())
    best = [
        (np.maximum(place[:-1] - right, 0) / place[:-1]).mean() for right in (y.sum(), y.sum() - 1)
    ]
    return (risk.cumsum() - risk + after) / (n - 1) - np.where(y == 1, best[1], best[0])


LEFT_OUT = {"auprc": precision_left_out, "e_aurc": excess_left_out}


def one_cell(world, n, seed):
    """Return the rows of the table of one cell."""
    rng, target = np.random.default_rng(seed), truth(world)
    confidence_of, rate_of = WORLDS[world]
    found, left_out = {}, 0
    for _ in range(SETS):
        c = confidence_of(rng.random(n))
        y = (rng.random(n) < rate_of(c)).astype(float)
        if 2 <= y.sum() <= n - 2:
            for key, ends in intervals_of(c, y):
                found.setdefault(key, []).append(ends)
        else:
            left_out += 1
    rows = []
    for (name, method), ends in found.items():
        low, high = np.array(ends).T
        below, above = (target[name] < low).mean(), (target[name] > high).mean()
        shown = f"**{method}**" if method in USED else method
        cells = (100 * (1 - below - above), 100 * below, 100 * above)
        numbers = " | ".join(f"{cell:.1f}" for cell in cells)
        rows.append(
            f"| {world} | {n:,} | {name} | {shown} | {numbers} | {(high - low).mean():.4f} |"
        )
    return rows, left_out


def intervals_of(c, y):
    """Yield ((metric, method), ends) of one data set."""
    block = MetricBlock.of(check(c, y))
    for name in ("brier", "log_loss"):
        for method, ends in mean_intervals(*METRICS[name].family.influence(block)):
            yield (name, method), ends
    ordered = y[np.argsort(-c)]
    for name in ("auprc", "e_aurc"):
        value, influence = METRICS[name].family.influence(block)
        if 0 < value < 1:
            for method, ends in ranking_intervals(name, value, influence, ordered):
                yield (name, method), ends


def main() -> None:
    lines = [
        "# Intervals at few rows: what was tried",
        "",
        f"Written by `python -m simulations few_rows` on {machine()}; "
        f"{versions(['numpy', 'scipy'])}. Nominal level 95 %, {SETS:,} data sets per cell (a "
        f"coverage of 95 % is then known to -+{196 * np.sqrt(0.95 * 0.05 / SETS):.1f} points), the "
        "worlds of the page on coverage. Bold is what is used. Below and above say how often the "
        "truth lies there: an interval is in its place where both are alike.",
        "",
        "| world | n | metric | interval | covers % | truth below % | above % | mean width |",
        "|" + " --- |" * 8,
    ]
    missing = []
    for number, (world, n) in enumerate(CELLS):
        rows, left_out = one_cell(world, n, seed=[number, n])
        lines += rows
        missing += [f"{left_out} of `{world}`, n = {n:,}"] if left_out else []
        print(f"   {world}, n = {n}", flush=True)
    lines += [
        "",
        "Data sets with fewer than two right or two wrong answers have no such interval and are "
        f"left out: {', '.join(missing) or 'none'}.",
        "",
        "Few large losses make the mean of a rare event: a sample without them has a low mean and "
        "a small error at once, and Student's interval ends too low. The first term of the "
        "Edgeworth series mends it at no cost, whichever way the losses lean. The log scale does "
        "so for losses that lean upwards only, and Hall's transformation makes wide intervals.",
        "",
        "A ranking where a few wrong answers decide is bent even on the logit scale. Leaving out "
        "each row and taking the logit then knows part of it; to first order that works with "
        "weights, units and ties alike. The exact version gains half a point more where the "
        "first order is short, needs a formula per metric, and has none for units. Both are "
        "longer than they need be for rare events at 200 rows.",
    ]
    text = "\n".join(lines) + "\n"
    (ROOT / "docs" / "simulations" / "few_rows.md").write_text(text, encoding="utf-8")
    print(text, flush=True)


if __name__ == "__main__":
    main()
