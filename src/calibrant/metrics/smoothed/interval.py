"""The interval of smooth ECE: the test of `gap_intervals`, on smoothed residuals.

At one bandwidth s the smoothed error is a sum of absolute values and its interval [L(s), U(s)]
follows by inverting a test. Smooth ECE is the bandwidth that equals its own error; since the
error falls as the bandwidth grows, the ends of its interval solve L(s) = s and U(s) = s.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from calibrant.metrics.gaps.intervals import LUCK
from calibrant.metrics.smoothed.smooth import SmoothGrids
from calibrant.stats.binning import FloatArray
from calibrant.stats.few.draws import Stream
from calibrant.stats.inversion import halving_end
from calibrant.stats.kernels import GridSums, even_steps, every_other, grid_points, smoothing_matrix

__all__ = ["smooth_interval"]

# More draws do not change the third digit of an end, and they cost most of the time.
MOST_DRAWS = 500
# Grid steps per bandwidth that are fine enough for an interval.
STEPS_PER_BANDWIDTH = 3
SET_ASIDE = 2.0


def smooth_interval(
    grids: SmoothGrids,
    *,
    rows: int,
    inflation: float,
    level: float,
    resamples: int,
    rng: Stream,
) -> tuple[float, float, float]:
    """Return smooth ECE with its interval.

    Parameters
    ----------
    grids
        The data on grids.
    rows, inflation
        Number of rows, and how much the variance of the data's units exceeds that of rows.
    """
    bandwidth = grids.bandwidth()
    value = grids.error(bandwidth)
    seed = int(rng.integers(2**63))

    # The same noise at every bandwidth, so that the ends change smoothly with it. Each number
    # stands for itself and its negative.
    draws = partial(_draws, seed, math.ceil(min(resamples, MOST_DRAWS) / 2))

    def ends(at: float) -> tuple[float, float]:
        return _ends_at(grids, at, inflation / rows, level, draws)

    low, high = ends(bandwidth)
    if low > 0:
        nearer, _ = ends(max(low, 2 / 1024))
        low = _meeting(bandwidth, low, max(low, 2 / 1024), nearer)
    if high > bandwidth:
        _, nearer = ends(min(high, 1.0))
        high = _meeting(bandwidth, high, min(high, 1.0), nearer)
    return value, min(low, value), max(high, value)


@lru_cache(maxsize=8)
def _draws(seed: int, count: int, points: int) -> NDArray[np.float32]:
    """Return normal numbers; the last ones are kept, for other bandwidths and other models."""
    return np.random.default_rng(seed).standard_normal((points, count), dtype=np.float32)


def _meeting(first: float, end_first: float, second: float, end_second: float) -> float:
    """Return where the end equals the bandwidth, on the line through two points."""
    gap_first, gap_second = end_first - first, end_second - second
    if gap_first == gap_second:
        return end_second
    part = gap_first / (gap_first - gap_second)
    met = first + part * (second - first)
    return min(max(met, min(first, second)), max(first, second))


def _ends_at(
    grids: SmoothGrids,
    bandwidth: float,
    scatter: float,
    level: float,
    draws: Callable[[int], NDArray[np.float32]],
) -> tuple[float, float]:
    """Return the ends at one bandwidth; `scatter` is the inflation of the variance over rows."""
    whole = grids.sums(grid_points(max(bandwidth, 0.01)))
    total = whole.weight.sum()
    residual, weight, drawn = _as_published(
        whole, grids.sums(grid_points(grids.bandwidth())), bandwidth
    )
    # Places of the grid without rows have no residual and no noise.
    held = np.flatnonzero(weight)
    nodes = even_steps(weight.size)[held]
    matrix = smoothing_matrix(bandwidth, nodes)
    density = weight[held] @ matrix
    scale = 1 / density.sum()
    smoothed = (residual[held] @ matrix) * scale
    observed = float(np.abs(smoothed).sum())
    at = even_steps(smoothed.size)
    gap = np.divide(smoothed, density * scale, out=np.zeros_like(smoothed), where=density > 0)
    node = np.interp(nodes, at, _largest_spread(at, gap))
    error = np.sqrt(np.maximum(drawn[held], 0.0) * total * node * scatter)
    spreading = (matrix * (scale * error[:, None])).astype(np.float32)
    noise = _product(spreading.T, draws(weight.size)[held])
    # Draws come in pairs of either sign: their mean is 0.
    few, even = _lines(smoothed, density * scale, np.sqrt(np.square(noise).mean(axis=1)), observed)
    return _inverted(noise, few, even, observed, level)


def _inverted(
    noise: NDArray[np.float32], few: FloatArray, even: FloatArray, observed: float, level: float
) -> tuple[float, float]:
    """Return the ends of the candidates along two lines that the observed sum allows."""
    sizes = np.abs(noise).sum(axis=0)
    reach = 5 * float(sizes.std()) + float(sizes.mean())
    tail = (1 - level) / 2

    room, draws = np.empty_like(noise), 2 * noise.shape[1]

    def totals(line: FloatArray, value: float) -> NDArray[np.float32]:
        moved = (value * line).astype(np.float32)[:, None]
        out = np.empty((2, noise.shape[1]), np.float32)
        for sums, shift in zip(out, (np.add, np.subtract), strict=True):
            shift(noise, moved, out=room)
            np.add.reduce(np.abs(room, out=room), axis=0, out=sums)
        return out.ravel()

    @cache
    def at_least(value: float) -> float:
        return float(np.count_nonzero(totals(few, value) >= observed) / draws)

    @cache
    def at_most(value: float) -> float:
        return float(np.count_nonzero(totals(even, value) <= observed) / draws)

    low = halving_end(at_least, observed, 0.0, tail)
    high = halving_end(at_most, observed, observed + reach, tail)
    if at_most(observed) < LUCK:
        # Less error than even the observed amount would mostly show, by luck.
        high = max(high, float(np.median(totals(even, observed))))
    return low, high


def _largest_spread(at: FloatArray, gap: FloatArray) -> FloatArray:
    """Return the largest variance of a residual on the way from the gap to half as much again.

    Outcomes vary by rate * (1 - rate), and rows with a gap vary in number. Candidates at the
    high end have larger gaps than the observed one, and with them mostly larger variances.
    """
    rates = [np.clip(at - part * gap, 0.0, 1.0) for part in (0.5, 1.0, 1.5)]
    largest: FloatArray = np.max([rate * (1 - rate) for rate in rates], axis=0) + gap**2
    return largest


def _product(left: NDArray[np.float32], right: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return left @ right, in pieces too small for BLAS to split over threads.

    On a busy machine waiting for a second thread costs a hundred times the product itself.
    """
    columns = max(250_000 // max(left.size, 1), 1)
    out = np.empty((left.shape[0], right.shape[1]), np.float32)
    for start in range(0, right.shape[1], columns):
        out[:, start : start + columns] = left @ right[:, start : start + columns]
    return out


def _lines(
    smoothed: FloatArray, density: FloatArray, error: FloatArray, observed: float
) -> tuple[FloatArray, FloatArray]:
    """Return the two lines of candidates, as in `gap_intervals`."""
    if observed == 0:
        return density, density
    size = np.maximum(np.abs(smoothed), 1e-300)
    noise = np.minimum(SET_ASIDE * error / size, 1.0)
    few = smoothed * (1 - noise**2)
    few = smoothed if not few.any() else few
    even = np.where(smoothed < 0, -density, density) / 2 + smoothed / (2 * observed)
    return few / np.abs(few).sum(), even / np.abs(even).sum()


def _as_published(
    whole: GridSums, of_value: GridSums, bandwidth: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return residuals and weights as smooth ECE counts them, and weights for their variance.

    The published mirrored grid has its two end points once, all others twice, so that rows at
    exactly 0 or 1 count half. The interval has to count them alike, or it is one of another
    number than the value. A sum that is halved has a quarter of its variance.

    Parameters
    ----------
    whole
        Sums on the grid of the interval.
    of_value
        Sums on the grid of the value; its end points are what is halved.
    """
    sums = np.stack([whole.residual, whole.weight, whole.weight])
    ends = np.stack([0.5 * of_value.residual, 0.5 * of_value.weight, 0.75 * of_value.weight])
    sums[:, [0, -1]] -= ends[:, [0, -1]]
    # As few steps as are fine enough.
    while (steps := sums.shape[1] - 1) % 2 == 0 and steps / 2 * bandwidth >= STEPS_PER_BANDWIDTH:
        sums = every_other(sums)
    residual, weight, drawn = sums
    return residual, weight, drawn
