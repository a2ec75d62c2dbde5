"""Coverage where intervals are hard: skewed weights, few errors with ties, unequal questions.

Writes its page. `BEFORE` holds what the intervals of version 0.1 covered in the same worlds.
"""

from __future__ import annotations

import os
import warnings

import numpy as np
from benchmarks.harness import ROOT, machine, versions

from calibrant.core.errors import UndefinedMetricWarning
from calibrant.metrics import auroc
from calibrant.metrics.blocks.row_block import RowBlock

SETS = int(os.environ.get("CALIBRANT_REPEATS", "1000"))
MANY = 2_000_000
NAMES = ("brier", "accuracy", "confidence_gap", "ece", "auroc")
# Measured before the intervals were changed, in the same worlds.
BEFORE = {
    "weights lognormal, sigma 1, n = 200": (0.895, 0.920, 0.932, 0.998, 0.930),
    "weights lognormal, sigma 2, n = 200": (0.738, 0.850, 0.875, 1.0, 0.835),
    "weights lognormal, sigma 2, n = 1,000": (0.815, 0.922, 0.920, 0.995, 0.907),
    "2 % errors, two values, n = 100": (None, None, None, None, 0.760),
    "2 % errors, two values, n = 200": (None, None, None, None, 0.816),
    "5 questions of 200 rows, 300 of 1": (None, 0.80, 0.78, None, None),
}


def shifted(rng, n):
    c = rng.beta(4, 2, n)
    return c, (rng.random(n) < np.clip(c - 0.1, 0, 1)).astype(float)


def two_values(errors):
    def made(rng, n):
        y = (rng.random(n) > errors).astype(float)
        return np.where(rng.random(n) < np.where(y == 1, 0.8, 0.4), 0.9, 0.6), y

    return made


def spread_scores(errors):
    def made(rng, n):
        y = (rng.random(n) > errors).astype(float)
        return 1 / (1 + np.exp(-(rng.normal(size=n) + 1.2 * y))), y

    return made


def truths(c, y):
    cell = np.minimum((c * 15).astype(int), 14)
    return {
        "brier": ((c - y) ** 2).mean(),
        "accuracy": y.mean(),
        "confidence_gap": (c - y).mean(),
        "ece": np.abs(np.bincount(cell, c - y, 15)).sum() / c.size,
        "auroc": auroc(c, y),
    }


def weighted(sigma, n):
    truth = truths(*shifted(np.random.default_rng(0), MANY))

    def run(rng):
        c, y = shifted(rng, n)
        return (c, y, np.exp(sigma * rng.normal(size=n)), None), truth

    return run


def rare(made, n):
    truth = truths(*made(np.random.default_rng(0), MANY))

    def run(rng):
        c, y = made(rng, n)
        while y.min() == y.max():
            c, y = made(rng, n)
        return (c, y, None, None), truth

    return run


def questions(sizes, *, shift=0.0, alike=2.0):
    """Rows of a question share its rate, which lies around the stated confidence plus `shift`.

    The smaller `alike`, the more do the rows of a question have the same outcome.
    """

    def made(rng, count):
        base = rng.beta(4, 2, count)
        centre = np.clip(base + shift, 0.02, 0.98)
        return base, rng.beta(centre * alike, (1 - centre) * alike)

    rng = np.random.default_rng(0)
    base, own = made(rng, MANY)
    truth = truths(base, (rng.random(MANY) < own).astype(float))
    codes = np.repeat(np.arange(len(sizes)), sizes)

    def run(rng):
        base, own = made(rng, len(sizes))
        y = (rng.random(codes.size) < own[codes]).astype(float)
        return (base[codes], y, None, codes), truth

    return run


WORLDS = {
    "weights lognormal, sigma 1, n = 200": weighted(1, 200),
    "weights lognormal, sigma 2, n = 200": weighted(2, 200),
    "weights lognormal, sigma 2, n = 1,000": weighted(2, 1_000),
    "2 % errors, two values, n = 50": rare(two_values(0.02), 50),
    "2 % errors, two values, n = 100": rare(two_values(0.02), 100),
    "2 % errors, two values, n = 200": rare(two_values(0.02), 200),
    "2 % errors, spread scores, n = 50": rare(spread_scores(0.02), 50),
    "5 questions of 200 rows, 300 of 1": questions([200] * 5 + [1] * 300),
    "10 questions of 50 rows, 500 of 1": questions([50] * 10 + [1] * 500),
    "200 questions of 5 rows": questions([5] * 200),
    "5 x 200 + 300 x 1, rows less alike": questions([200] * 5 + [1] * 300, alike=20.0),
    "5 x 200 + 300 x 1, confidence too low": questions([200] * 5 + [1] * 300, shift=0.15),
    "5 x 200 + 300 x 1, confidence too high": questions([200] * 5 + [1] * 300, shift=-0.15),
    "3 x 100 + 200 x 1": questions([100] * 3 + [1] * 200),
    "1 x 200 + 300 x 1": questions([200] + [1] * 300),
    "100 questions of 300, 150, 100, 75 .. rows": questions(
        [max(1, 300 // (place + 1)) for place in range(100)]
    ),
}


def covered(world, number):
    """Return, by metric, the share of data sets whose interval holds the truth."""
    held = dict.fromkeys(NAMES, 0)
    for run in range(SETS):
        rng = np.random.default_rng([number, run])
        (c, y, weights, units), truth = world(rng)
        block = RowBlock(
            c, y, weights, units, probability=True, bins=15, level=0.95, resamples=100, rng=rng
        )
        found = block.estimates(("brier", "accuracy", "ece", "auroc", "confidence_gap"))
        for name in NAMES:
            ends = found[name]
            held[name] += bool(ends.low - 1e-12 <= truth[name] <= ends.high + 1e-12)
    return {name: count / SETS for name, count in held.items()}


def main() -> None:
    lines = [
        "# Intervals in hard cases",
        "",
        f"Written by `python -m simulations hard_cases` on {machine()}; "
        f"{versions(['numpy', 'scipy'])}. Share of {SETS:,} data sets whose 95 % interval holds "
        "the truth; in brackets, where it was measured, that of version 0.1. Worlds with 2 % "
        "errors leave out data sets without an error, since AUROC has no value there; their "
        "accuracy and gap are thereby below the truth on average, and cover less often.",
        "",
        "| world | Brier | accuracy | mean gap | ECE | AUROC |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        for number, (name, world) in enumerate(WORLDS.items()):
            now, before = covered(world, number), BEFORE.get(name, (None,) * len(NAMES))
            cells = [
                f"{100 * now[metric]:.1f}" + (f" ({100 * old:.0f})" if old else "")
                for metric, old in zip(NAMES, before, strict=True)
            ]
            lines.append(f"| {name} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    lines += [
        "",
        "Rows of unequal weight and questions with unequally many rows are the same difficulty: a "
        "heavy unit draws the value to itself. Its own residual is put right by its share, and the "
        "number of equal units that would tell as much (Kish) decides how wide the interval is. "
        "For means the degrees of freedom are Satterthwaite's (Bell, McCaffrey 2002): few large "
        "questions make up the variance, however many small ones there are. "
        "Few wrong answers with tied scores may hide their spread; the interval of the AUROC then "
        "also holds what continuous scores would give.",
    ]
    path = ROOT / "docs" / "simulations" / "hard_cases.md"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
