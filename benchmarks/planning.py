"""What the verification block, labelling, monitoring and ranking cost."""

import numpy as np

from benchmarks.harness import Page, median_seconds, seconds
from calibrant.labels import (
    CalibrationMonitor,
    LabelPool,
    choose_batch,
    leaderboard,
    perfect_region,
    pool_estimate,
    verification_block,
)
from calibrant.metrics.stats.multiplicity import CalibrationSequence


def _rows(n):
    rng = np.random.default_rng(0)
    p = rng.beta(6, 1, n)
    return p, (rng.random(n) < p - 0.1).astype(float)


def main() -> None:
    table = []
    for n in (10_000, 100_000, 1_000_000):
        p, y = _rows(n)
        units = np.arange(n) // 2
        known = np.where(np.arange(n) % 20 == 0, y, np.nan)
        pool = LabelPool(p, known)
        work = {
            "verification block": lambda p=p, y=y: verification_block(p, y),
            "verification block, two rows per question": (
                lambda p=p, y=y, u=units: verification_block(p, y, units=u)
            ),
            "next batch of 100, stratified": lambda pool=pool: choose_batch(pool, 100),
            "running estimate of a pool, 5 % labelled": lambda pool=pool: pool_estimate(pool),
            "confidence sequence, every label a peek": (
                lambda p=p, y=y: CalibrationSequence().update(p, y)
            ),
            "monitor, one batch": (
                lambda p=p, y=y: CalibrationMonitor(perfect_region()).update(p, y)
            ),
        }
        for name, call in work.items():
            table.append((name, f"{n:,}", seconds(median_seconds(call, budget=10))))
    scores = {f"model {k}": _rows(10_000) for k in range(8)}
    for metric in ("accuracy", "ece"):
        spent = median_seconds(
            lambda m=metric: leaderboard(scores, metric=m, resamples=200), budget=10
        )
        table.append(
            (f"leaderboard by {metric}, 8 models, 200 resamples", "10,000", seconds(spent))
        )
    page = Page("planning", "Planning")
    page.table("Time (median)", ("work", "rows", "time"), table)
    page.write()
