"""Bootstrap replicates from sums over cells instead of rows.

Drawing n rows with replacement draws the numbers of rows per cell from a multinomial law,
exactly. What is summed inside a cell is exact where its rows are equal, and otherwise normal
with the cell's mean and variance, which n draws from a cell approach fast.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.stats.ranking import Ranked

__all__ = ["area_replicates", "cell_replicates", "mean_replicates"]

FloatArray: TypeAlias = NDArray[np.float64]


def cell_replicates(
    counts: NDArray[Any],
    mean: FloatArray,
    spread: FloatArray,
    resamples: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.int64], FloatArray]:
    """Return resampled counts and sums per cell, shape (resamples, cells).

    Parameters
    ----------
    counts, mean, spread
        Rows in each cell, and the mean and standard deviation of the quantity to sum.
    """
    rows = int(counts.sum())
    drawn = rng.multinomial(rows, counts / rows, size=resamples)
    sums = drawn * mean
    varied = spread > 0
    if varied.any():
        noise = rng.standard_normal((resamples, int(varied.sum())))
        sums[:, varied] += np.sqrt(drawn[:, varied]) * spread[varied] * noise
    return drawn, sums


def mean_replicates(
    values: FloatArray, resamples: int, rng: np.random.Generator, cells: int = 64
) -> FloatArray:
    """Return bootstrap replicates of a mean, from cells of similar values."""
    low, high = float(values.min()), float(values.max())
    if low == high:
        return np.full(resamples, low)
    cell = np.minimum((values - low) * (cells / (high - low)), cells - 1).astype(np.intp)
    counts = np.bincount(cell, minlength=cells)
    held = counts > 0
    safe = np.maximum(counts, 1)
    mean = np.bincount(cell, values, cells) / safe
    square = np.bincount(cell, values * values, cells) / safe
    spread = np.sqrt(np.maximum(square - mean**2, 0.0))
    _, sums = cell_replicates(counts[held], mean[held], spread[held], resamples, rng)
    return np.asarray(sums.sum(axis=1) / values.size)


def area_replicates(
    ranked: Ranked, correct: NDArray[Any], resamples: int, rng: np.random.Generator
) -> FloatArray:
    """Return exact bootstrap replicates of the area under the ROC curve, sorting only once.

    Rows are kept in order of their scores; a replicate needs only how often each was drawn.
    """
    order = np.argsort(ranked.group, kind="stable")
    hit = correct[order].astype(np.bool_)
    groups = ranked.weight.size
    rows = hit.size
    alone = groups == rows
    starts = None if alone else np.searchsorted(ranked.group[order], np.arange(groups))
    out = np.empty(resamples)
    kind = np.uint32 if rows < 2**32 else np.uint64
    for index in range(resamples):
        drawn = np.bincount(rng.integers(0, rows, rows, dtype=kind), minlength=rows)
        hits = drawn * hit
        misses = drawn - hits
        if starts is not None:
            hits, misses = np.add.reduceat(hits, starts), np.add.reduceat(misses, starts)
        # From the highest score down: each miss is beaten by the hits above it, and half by
        # those at its own score.
        above = np.cumsum(hits)
        right, wrong = float(above[-1]), float(rows - above[-1])
        pairs = float(above @ misses)
        if starts is not None:
            pairs -= float(hits @ misses) / 2
        out[index] = pairs / (right * wrong) if right * wrong > 0 else np.nan
    return out
