"""The interval of smooth ECE: the test of `gap_intervals`, on smoothed residuals.

At one bandwidth s the smoothed error is a sum of absolute values and its interval [L(s), U(s)]
follows by inverting a test. Smooth ECE is the bandwidth that equals its own error; since the
error falls as the bandwidth grows, the ends of its interval solve L(s) = s and U(s) = s.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from calibrant.metrics.gaps.intervals import LUCK
from calibrant.metrics.smoothed.smooth import SmoothGrids
from calibrant.stats.binning import FloatArray
from calibrant.stats.bootstrap import normal_draws
from calibrant.stats.inversion import halving_end
from calibrant.stats.kernels import GridSums, coarsened, grid_points, smoothing_matrix

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
    rng: np.random.Generator,
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

    def ends(at: float) -> tuple[float, float]:
        # The same noise at every bandwidth, so that the ends change smoothly with it.
        return _ends_at(grids, at, rows, inflation, level, resamples, np.random.default_rng(seed))

    low, high = ends(bandwidth)
    if low > 0:
        nearer, _ = ends(max(low, 2 / 1024))
        low = _meeting(bandwidth, low, max(low, 2 / 1024), nearer)
    if high > bandwidth:
        _, nearer = ends(min(high, 1.0))
        high = _meeting(bandwidth, high, min(high, 1.0), nearer)
    return value, min(low, value), max(high, value)


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
    rows: int,
    inflation: float,
    level: float,
    resamples: int,
    rng: np.random.Generator,
) -> tuple[float, float]:
    whole = grids.sums(grid_points(max(bandwidth, 0.01)))
    total = whole.weight.sum()
    sums, drawn = _as_published(whole, grids.sums(grid_points(grids.bandwidth())), bandwidth)
    matrix = smoothing_matrix(bandwidth, sums.weight.size)
    density = sums.weight @ matrix
    scale = 1 / density.sum()
    smoothed = (sums.residual @ matrix) * scale
    observed = float(np.abs(smoothed).sum())
    at = np.linspace(0, 1, smoothed.size)
    gap = np.divide(smoothed, density * scale, out=np.zeros_like(smoothed), where=density > 0)
    spread = _largest_spread(at, gap)
    node = np.interp(np.linspace(0, 1, sums.weight.size), at, spread)
    error = np.sqrt(np.maximum(drawn, 0.0) * total * node * inflation / rows)
    draws = normal_draws(min(resamples, MOST_DRAWS), error.size, rng, np.float32)
    spreading = (matrix * scale * error[:, None]).astype(np.float32)
    noise = _product(draws.T, spreading)
    few, even = _lines(smoothed, density * scale, noise.std(axis=0), observed)
    sizes = np.abs(noise).sum(axis=1)
    reach = 5 * float(sizes.std()) + float(sizes.mean())
    tail = (1 - level) / 2

    def share(line: FloatArray, value: float, sign: int) -> float:
        totals = np.abs(noise + (value * line).astype(np.float32)).sum(axis=1)
        return float((sign * totals >= sign * observed).mean())

    low = halving_end(lambda v: share(few, v, 1), observed, 0.0, tail)
    high = halving_end(lambda v: share(even, v, -1), observed, observed + reach, tail)
    if share(even, observed, -1) < LUCK:
        # Less error than even the observed amount would mostly show, by luck.
        high = max(high, float(np.median(np.abs(noise + (observed * even)).sum(axis=1))))
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
    rows = max(250_000 // max(right.size, 1), 1)
    out = np.empty((left.shape[0], right.shape[1]), np.float32)
    for start in range(0, left.shape[0], rows):
        np.matmul(left[start : start + rows], right, out=out[start : start + rows])
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
) -> tuple[GridSums, FloatArray]:
    """Return the sums as smooth ECE counts them, and the weights that make their variance.

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

    def less(values: FloatArray, ends: FloatArray, part: float) -> FloatArray:
        out = values.copy()
        out[[0, -1]] -= part * ends[[0, -1]]
        return out

    counted = GridSums(
        less(whole.residual, of_value.residual, 0.5), less(whole.weight, of_value.weight, 0.5)
    )
    varied = GridSums(whole.residual, less(whole.weight, of_value.weight, 0.75))
    return _coarse_enough(counted, bandwidth), _coarse_enough(varied, bandwidth).weight


def _coarse_enough(sums: GridSums, bandwidth: float) -> GridSums:
    while (steps := sums.weight.size - 1) % 2 == 0 and steps / 2 * bandwidth >= STEPS_PER_BANDWIDTH:
        sums = coarsened(sums)
    return sums
