"""Bootstrap replicates of smooth ECE from counts on a grid."""

from __future__ import annotations

import numpy as np

from calibrant.metrics.inputs import Checked
from calibrant.metrics.smooth import SmoothGrids
from calibrant.stats.binning import FloatArray
from calibrant.stats.kernels import FINEST_BANDWIDTH, HALVINGS, SmoothingPlan, plan_on

__all__ = ["smooth_replicates"]

# Replicates transformed together; more would only need more memory.
BATCH = 250
COARSE, FINE = 1001, 5121
# A multinomial number costs about as much as so many drawn rows.
ROWS_PER_CELL = 15


def smooth_replicates(data: Checked, resamples: int, rng: np.random.Generator) -> FloatArray:
    """Return replicates of smooth ECE, each with its own bandwidth.

    Rows are counted by grid step and outcome; the counts are resampled exactly, and inside a
    step (1/1000 wide, or 1/5120 where bandwidths are small) rows are taken at their mean.
    """
    # Replicates have bandwidths near and above the data's own.
    points = COARSE if SmoothGrids(data).bandwidth() >= 0.012 else FINE
    counts, residual, upper, fraction = _step_means(data, points)
    batches = []
    for start in range(0, resamples, BATCH):
        size = min(BATCH, resamples - start)
        drawn = _drawn_counts(counts, size, rng)
        grid_residual = _on_grid(drawn * residual, drawn * upper, points)
        grid_weight = _on_grid(drawn, drawn * fraction, points)
        batches.append(_fixed_points(grid_residual, grid_weight, points))
    return np.concatenate(batches)


def _drawn_counts(counts: FloatArray, resamples: int, rng: np.random.Generator) -> FloatArray:
    """Return resampled counts; row by row where that is cheaper, with the same law."""
    rows = int(counts.sum())
    if rows > ROWS_PER_CELL * counts.size:
        return rng.multinomial(rows, counts / rows, size=resamples).astype(np.float64)
    cell = np.repeat(np.arange(counts.size), counts.astype(np.intp))
    out = np.empty((resamples, counts.size))
    for row in out:
        row[:] = np.bincount(cell[rng.integers(0, rows, rows)], minlength=counts.size)
    return out


def _step_means(
    data: Checked, points: int
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
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
        part, rest = where - step, c - y
        step += points * y
        for total, column in zip(sums, (None, rest, rest * part, part), strict=True):
            total += np.bincount(step, column, 2 * points)
    safe = np.maximum(sums[0], 1)
    return sums[0], sums[1] / safe, sums[2] / safe, sums[3] / safe


def _on_grid(whole: FloatArray, upper: FloatArray, points: int) -> FloatArray:
    """Return sums at grid points from sums over steps, both outcomes together."""
    whole = whole[:, :points] + whole[:, points:]
    upper = upper[:, :points] + upper[:, points:]
    out = whole - upper
    out[:, 1:] += upper[:, :-1]
    return out


def _fixed_points(residual: FloatArray, weight: FloatArray, points: int) -> FloatArray:
    """Return the error of each replicate at the bandwidth that equals it."""
    spectrum = SmoothingPlan.transform(residual)
    low, high = np.zeros(len(residual)), np.ones(len(residual))
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        above = (middle < FINEST_BANDWIDTH) | (middle < _errors(spectrum, weight, middle, points))
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return _errors(spectrum, weight, high, points)


def _band_limited(spectrum: np.ndarray, plan: SmoothingPlan) -> FloatArray:
    """Return smoothed values at the evaluation points, without the finer grid between them.

    There are ten points per bandwidth, and a Gaussian that wide has nothing left (e^-493) at
    the frequencies that so many points cannot carry.
    """
    points = min(plan.left.size, plan.points)
    period = 2 * (points - 1)
    kept = spectrum[:, :points] * plan.spectrum[:points]
    smoothed = np.fft.irfft(kept, n=period, axis=-1)[:, :points]
    return np.asarray(smoothed * (period / (2 * (plan.points - 1))))


def _errors(
    spectrum: np.ndarray, weight: FloatArray, bandwidths: FloatArray, points: int
) -> FloatArray:
    out = np.empty(bandwidths.size)
    for bandwidth in np.unique(bandwidths):
        chosen = np.flatnonzero(bandwidths == bandwidth)
        plan = plan_on(max(float(bandwidth), FINEST_BANDWIDTH), points)
        smoothed = _band_limited(spectrum[chosen], plan)
        density = plan.density_sum(weight[chosen]) / plan.left.size
        out[chosen] = np.abs(smoothed).mean(axis=1) / density
    return out
