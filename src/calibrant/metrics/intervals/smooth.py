"""The interval of smooth ECE, by smoothed residuals and by bootstrap on a grid."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from calibrant.core.arrays import Floats, Mask
from calibrant.metrics.inputs import Checked
from calibrant.metrics.intervals.gap import LUCK, candidate_lines
from calibrant.metrics.smooth import Place, Published, Singles, SmoothGrids, SmoothTask
from calibrant.metrics.stats import binning
from calibrant.metrics.stats.bootstrap import halved

# More draws do not change the third digit of an end, and they cost most of the time.
MOST_DRAWS = 500
NARROWEST = 2 / 1024


def smooth_interval(task: SmoothTask, level: float, resamples: int) -> tuple[float, float, float]:
    """Return smooth ECE with its interval.

    Parameters
    ----------
    task
        The block.
    level, resamples
        Coverage of the interval; simulations behind it.
    """
    bandwidth, tail = task.grids.bandwidth, (1 - level) / 2
    published = Published(task, math.ceil(min(resamples, MOST_DRAWS) / 2))
    value, first = task.grids.error(bandwidth), _Candidates(Place.of(published, bandwidth))
    low, high = first.low(tail), first.high(tail)
    if low > 0:
        nearer = max(low, NARROWEST)
        end = _Candidates(Place.of(published, nearer)).low(tail)
        low = _meeting(bandwidth, low, nearer, end)
    if high > bandwidth:
        beyond = min(high, 1.0)
        end = _Candidates(Place.of(published, beyond)).high(tail)
        high = _meeting(bandwidth, high, beyond, end)
    return value, min(low, value), max(high, value)


def _meeting(first: float, end_first: float, second: float, end_second: float) -> float:
    """Return where the end equals the bandwidth, on the line through two points."""
    gap_first, gap_second = end_first - first, end_second - second
    if gap_first * gap_second >= 0:
        # No crossing between them: drawn noise moved the end, or it lies beyond.
        return second
    return first + gap_first / (gap_first - gap_second) * (second - first)


class _Candidates:
    """What would be observed at candidates, for a block at one bandwidth."""

    def __init__(self, place: Place) -> None:
        smoothed, density = place.smoothed, place.density
        self._observed = float(np.abs(smoothed).sum())
        # By point and draw: sums over points are then sums of whole rows.
        self._noise = np.zeros((smoothed.size, place.nodes.draws.shape[1]), np.float32)
        gap = np.divide(smoothed, density, out=np.zeros_like(smoothed), where=density > 0)
        # The largest variance of a residual on the way from the gap to half as much again: outcomes
        # vary by rate * (1 - rate), and rows with a gap vary in number. Candidates at the high end
        # have larger gaps than the observed one, and with them mostly larger variances.
        points = binning.even_steps(smoothed.size)
        rates = np.clip(points - np.array([[0.5], [1.0], [1.5]]) * gap, 0.0, 1.0)
        place.add_noise((rates * (1 - rates)).max(axis=0) + gap**2, self._noise)
        # Draws come in pairs of either sign: their mean is 0.
        error = np.sqrt(np.square(self._noise).mean(axis=-1))
        self._few, self._even = candidate_lines(smoothed, error, density)
        self._moves, self._room = np.empty_like(self._noise), np.empty_like(self._noise)

    def low(self, tail: float) -> float:
        """Return the least candidate along the line of few gaps that the observed sum allows."""
        observed = self._observed

        def at_least(value: float) -> float:
            # Without any error there is the noise alone, of either sign.
            sums = self._totals(self._few, value) if value else self._sizes
            return _share(sums >= observed)

        return halved(at_least, observed, 0.0, tail)

    def high(self, tail: float) -> float:
        """Return the largest candidate along the line of even gaps."""
        observed, sizes = self._observed, self._sizes
        reach = 5 * float(sizes.std()) + float(sizes.mean())

        def at_most(value: float) -> float:
            return _share(self._totals(self._even, value) <= observed)

        high = halved(at_most, observed, observed + reach, tail)
        if at_most(observed) < LUCK:
            # Less error than even the observed amount would mostly show, by luck.
            high = max(high, float(np.median(self._totals(self._even, observed))))
        return high

    @cached_property
    def _sizes(self) -> Singles:
        """Sums of the noise alone, by draw."""
        return np.asarray(np.abs(self._noise).sum(axis=0))

    def _totals(self, line: Floats, value: float) -> Singles:
        """Return what would be observed at a candidate, by sign and draw."""
        out = np.empty((2, self._noise.shape[1]), np.float32)
        # Written out first: adding one number to many, again and again, takes twice as long.
        self._moves[...] = (value * line).astype(np.float32)[:, None]
        for sums, shift in zip(out, (np.add, np.subtract), strict=True):
            shift(self._noise, self._moves, out=self._room)
            np.add.reduce(np.abs(self._room, out=self._room), axis=0, out=sums)
        return out


def _share(held: Mask) -> float:
    """Return the share of draws, of either sign, for which something holds."""
    return float(np.count_nonzero(held) / held.size)


# Replicates transformed together; more would only need more memory.
BATCH = 250


COARSE, FINE = 1001, 5121


# A multinomial number costs about as much as so many drawn rows.
ROWS_PER_CELL = 15


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
    return binning.at_points(whole, upper)


def _fixed_points(residual: Floats, weight: Floats, start: float) -> Floats:
    """Return the error of each replicate at the bandwidth that equals it.

    The search is that of `fixed_point_bandwidth`, for all replicates at once, from `start` on.
    """
    # The spectrum of a mirrored grid is real: a cosine transform.
    spectrum = _transformed(residual)
    steps, count = 1 << binning.HALVINGS, len(residual)
    low = np.full(count, math.floor(binning.FINEST_BANDWIDTH * steps))
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
        guess[open_] = near if looks < binning.HALVINGS // 2 else (low[open_] + high[open_]) // 2
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
        plan = binning.plan_on(max(float(bandwidth), binning.FINEST_BANDWIDTH), points)
        size = min(plan.left.size, points)
        filtered[choice, :size] = spectrum[choice, :size] * plan.spectrum.real[:size]
        density[choice] = plan.density_sum(weight[choice]) / plan.left.size
        places.setdefault(size, []).append(choice)
    for size, groups in places.items():
        choice = np.concatenate(groups)
        # Ten points per bandwidth: a Gaussian that wide has nothing left (e^-493) at the
        # frequencies that so many points cannot carry.
        smoothed = _transformed(filtered[choice, :size] / (2 * (points - 1)))
        out[choice] = np.abs(smoothed).mean(axis=1) / density[choice]
    return out


def _transformed(values: Floats) -> Floats:
    from scipy import fft  # loaded late: few blocks are drawn on a grid

    return np.asarray(fft.dct(values, type=1, axis=-1), dtype=np.float64)
