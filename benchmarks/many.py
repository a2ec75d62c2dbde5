"""Thousands of models with a few rows each: what one more model costs an audit, as ratios."""

from __future__ import annotations

import time

import numpy as np
import polars as pl

import calibrant as cal
from benchmarks.harness import Page, interleaved_seconds, seconds
from calibrant.core.machine import usable_cores

ROWS = 20
SIZES = (100, 200, 400)
ALONE = 20
MANY = (1_000, 5_000)


def table(models: int) -> pl.DataFrame:
    """Return calibrated models that answered the same questions."""
    rng = np.random.default_rng(models)
    said = rng.uniform(0.3, 1.0, models * ROWS).round(2)
    return pl.DataFrame(
        {
            "model": np.repeat([f"m{number}" for number in range(models)], ROWS),
            "question_id": np.tile(np.arange(ROWS), models),
            "confidence": said,
            "correct": (rng.random(said.size) < said).astype(int),
        }
    )


def main() -> None:
    """Measure audits of more and more models, beside audits of each alone and of one large one."""
    page = Page("many", "Many models of few rows", packages=["numpy", "polars"])
    whole = {models: table(models) for models in SIZES}
    each = table(ALONE).partition_by("model")
    large = whole[SIZES[-1]].with_columns(
        model=pl.lit("one"), question_id=pl.int_range(SIZES[-1] * ROWS)
    )
    works = {f"{models}": lambda rows=rows: cal.audit(rows) for models, rows in whole.items()}
    works["alone"] = lambda: [cal.audit(rows) for rows in each]
    works["large"] = lambda: cal.audit(large)
    taken = interleaved_seconds(works, repeats=3)
    alone = taken["alone"] / ALONE
    page.table(
        f"CPU of an audit, {ROWS} rows a model",
        ["models", "CPU", "a model", "over an audit of each alone"],
        [
            [models, seconds(taken[f"{models}"]), seconds(taken[f"{models}"] / models), ratio]
            for models in SIZES
            for ratio in [taken[f"{models}"] / models / alone]
        ],
    )
    few, most = SIZES[0], SIZES[-1]
    growth = taken[f"{most}"] / taken[f"{few}"] / (most / few)
    page.text(
        f"From {few} to {most} models the CPU of a model grows by a factor of {growth:.2f}. "
        f"One model with the {most * ROWS:,} rows of all {most} takes {seconds(taken['large'])}, "
        f"{taken['large'] / taken[f'{most}']:.3f} of what they take."
    )
    by_clock(page)
    page.write()


def by_clock(page: Page) -> None:
    """Measure audits that are shared out over the cores, by the clock: other processes have CPU."""
    taken = {}
    for models in MANY:
        rows, start = table(models), time.perf_counter()
        cal.audit(rows)
        taken[models] = time.perf_counter() - start
    page.table(
        f"Wall clock of one audit, {ROWS} rows a model, {usable_cores()} cores",
        ["models", "wall clock", "a model"],
        [[models, seconds(whole), seconds(whole / models)] for models, whole in taken.items()],
    )
