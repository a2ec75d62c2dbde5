"""Bootstrap replicates from sums over cells instead of rows.

Drawing n rows with replacement draws the numbers of rows per cell from a multinomial law,
exactly. What is summed inside a cell is exact where its rows are equal, and otherwise normal
with the cell's mean and variance, which n draws from a cell approach fast.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

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
    score: NDArray[Any], positive: NDArray[np.bool_], resamples: int, rng: np.random.Generator
) -> FloatArray:
    """Return exact bootstrap replicates of the area under the ROC curve, sorting only once.

    How many of the drawn rows are positive is binomial; given that, positives and negatives are
    drawn apart. Counted positives, summed up in order of score, answer for every drawn negative
    how many drawn positives lie below it.
    """
    high, low = np.sort(score[positive]), np.sort(score[~positive])
    # For every negative: positives below it, and positives not above it.
    below = np.searchsorted(high, low, side="left")
    through = np.searchsorted(high, low, side="right")
    tied = bool((below != through).any())
    rows, positives = positive.size, high.size
    out = np.empty(resamples)
    reached = np.zeros(positives + 1, np.int64)
    for index in range(resamples):
        right = int(rng.binomial(rows, positives / rows))
        wrong = rows - right
        if right == 0 or wrong == 0:
            out[index] = np.nan
            continue
        counts = np.bincount(rng.integers(0, positives, right), minlength=positives)
        np.cumsum(counts, out=reached[1:])
        drawn = rng.integers(0, low.size, wrong)
        beaten = float(reached[below[drawn]].sum())
        if tied:
            beaten = (beaten + float(reached[through[drawn]].sum())) / 2
        out[index] = 1 - beaten / (right * wrong)
    return out
