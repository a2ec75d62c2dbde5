"""Bootstrap replicates of smooth ECE from counts on a grid."""

import math
from functools import lru_cache

import numpy as np
from scipy import fft

from calibrant.core.arrays import Floats
from calibrant.metrics.inputs import Checked
from calibrant.metrics.smooth import SmoothGrids
from calibrant.metrics.stats.kernels import FINEST_BANDWIDTH, HALVINGS, at_points, plan_on

# Replicates transformed together; more would only need more memory.
BATCH = 250


COARSE, FINE = 1001, 5121


# A multinomial number costs about as much as so many drawn rows.
ROWS_PER_CELL = 15


# Evaluation points of all bandwidths from 0.05 up.
FEWEST = 200


def smooth_replicates(data: Checked, resamples: int, rng: np.random.Generator) -> Floats:
    """Return replicates of smooth ECE, each with its own bandwidth.

    Rows are counted by grid step and outcome; the counts are resampled exactly, and inside a
    step (1/1000 wide, or 1/5120 where bandwidths are small) rows are taken at their mean.
    """
    # Replicates have bandwidths near and above the data's own.
    bandwidth = SmoothGrids(data).bandwidth
    points = COARSE if bandwidth >= 0.012 else FINE
    counts, residual, upper, fraction = _step_means(data, points)
    batches = []
    for start in range(0, resamples, BATCH):
        size = min(BATCH, resamples - start)
        draws = _drawn_counts(counts, size, rng)
        grid_residual = _on_grid(draws * residual, draws * upper, points)
        grid_weight = _on_grid(draws, draws * fraction, points)
        batches.append(_fixed_points(grid_residual, grid_weight, bandwidth))
    return np.concatenate(batches)


def _drawn_counts(counts: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """Return resampled counts; row by row where that is cheaper, with the same law."""
    rows = int(counts.sum())
    if rows > ROWS_PER_CELL * counts.size:
        return rng.multinomial(rows, counts / rows, size=resamples).astype(np.float64)
    cell = np.repeat(np.arange(counts.size), counts.astype(np.intp))
    out = np.empty((resamples, counts.size))
    for row in out:
        row[:] = np.bincount(cell[rng.integers(0, rows, rows)], minlength=counts.size)
    return out


def _step_means(data: Checked, points: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Return rows, mean residual, mean fraction * residual and mean fraction per (step, outcome).

    The first half holds wrong rows, the second right ones.
    """
    steps = points - 1
    sums = np.zeros((4, 2 * points))
    piece = 16_384
    for start in range(0, data.rows, piece):
        c = data.confidence[start : start + piece].astype(np.float64, copy=False)
        y = data.correct[start : start + piece].astype(np.bool_, copy=False)
        where = c * steps
        step = np.minimum(where.astype(np.intp), steps - 1)
        part, remainder = where - step, c - y
        step += points * y
        for total, column in zip(sums, (None, remainder, remainder * part, part), strict=True):
            total += np.bincount(step, column, 2 * points)
    safe = np.maximum(sums[0], 1)
    return sums[0], sums[1] / safe, sums[2] / safe, sums[3] / safe


def _on_grid(whole: Floats, upper: Floats, points: int) -> Floats:
    """Return sums at grid points from sums over steps, both outcomes together."""
    whole, upper = (part[:, :points] + part[:, points:] for part in (whole, upper))
    return at_points(whole, upper)


def _fixed_points(residual: Floats, weight: Floats, start: float) -> Floats:
    """Return the error of each replicate at the bandwidth that equals it.

    The search is that of `fixed_point_bandwidth`, for all replicates at once, from `start` on.
    """
    # The spectrum of a mirrored grid is real: a cosine transform.
    spectrum = fft.dct(residual, type=1, axis=-1)
    steps, count = 1 << HALVINGS, len(residual)
    low = np.full(count, math.floor(FINEST_BANDWIDTH * steps))
    high, guess = np.full(count, steps), np.full(count, round(start * steps))
    error_at_high = np.full(count, np.nan)
    looks = 0
    while (open_ := np.flatnonzero(high - low > 1)).size:
        here = np.clip(guess[open_], low[open_] + 1, high[open_] - 1)
        value = _errors(spectrum[open_], weight[open_], here / steps)
        short = here / steps < value
        low[open_] = np.where(short, here, low[open_])
        high[open_] = np.where(short, high[open_], here)
        error_at_high[open_] = np.where(short, error_at_high[open_], value)
        looks += 1
        near = np.ceil(value * steps).astype(np.intp)
        guess[open_] = near if looks < HALVINGS // 2 else (low[open_] + high[open_]) // 2
    last = np.flatnonzero(np.isnan(error_at_high))
    if last.size:
        error_at_high[last] = _errors(spectrum[last], weight[last], high[last] / steps)
    return error_at_high


def _errors(spectrum: Floats, weight: Floats, bandwidths: Floats) -> Floats:
    """Return the error of each replicate at its own bandwidth."""
    points = weight.shape[1]
    out, filtered = np.empty(bandwidths.size), np.empty_like(spectrum)
    density = np.empty(bandwidths.size)
    places: dict[int, list[np.ndarray]] = {}
    for bandwidth in np.unique(bandwidths):
        choice = np.flatnonzero(bandwidths == bandwidth)
        plan = plan_on(max(float(bandwidth), FINEST_BANDWIDTH), points)
        size = min(plan.left.size, points)
        filtered[choice, :size] = spectrum[choice, :size] * plan.spectrum.real[:size]
        density[choice] = plan.density_sum(weight[choice]) / plan.left.size
        places.setdefault(size, []).append(choice)
    for size, groups in places.items():
        choice = np.concatenate(groups)
        smoothed = _band_limited(filtered[choice, :size] / (2 * (points - 1)))
        out[choice] = np.abs(smoothed).mean(axis=1) / density[choice]
    return out


def _band_limited(filtered: Floats) -> Floats:
    """Return smoothed values at the evaluation points, without the finer grid between them.

    There are ten points per bandwidth, and a Gaussian that wide has nothing left (e^-493) at
    the frequencies that so many points cannot carry.
    """
    # Most bandwidths have 200 points; a transform of that length has to do with the prime 199,
    # and the product with its matrix is faster.
    if filtered.shape[1] == FEWEST:
        return np.asarray(filtered @ _cosines(FEWEST))
    return np.asarray(fft.dct(filtered, type=1, axis=-1))


@lru_cache(maxsize=1)
def _cosines(size: int) -> Floats:
    """Return the matrix of the cosine transform."""
    return np.asarray(fft.dct(np.eye(size), type=1, axis=-1))
