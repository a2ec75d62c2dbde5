"""The interval of smooth ECE: the test of `gap_intervals`, on smoothed residuals.

At one bandwidth s the smoothed error is a sum of absolute values and its interval [L(s), U(s)]
follows by inverting a test. Smooth ECE is the bandwidth that equals its own error; since the
error falls as the bandwidth grows, the ends of its interval solve L(s) = s and U(s) = s.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from calibrant.core.arrays import Floats, Mask
from calibrant.metrics.intervals.gap import LUCK
from calibrant.metrics.smooth import Place, Published, Singles, SmoothTask
from calibrant.metrics.stats.inversion import halving, searched
from calibrant.metrics.stats.kernels import even_steps

# More draws do not change the third digit of an end, and they cost most of the time.
MOST_DRAWS = 500
SET_ASIDE = 2.0
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
        place.add_noise(_largest_spread(even_steps(smoothed.size), gap), self._noise)
        # Draws come in pairs of either sign: their mean is 0.
        error = np.sqrt(np.square(self._noise).mean(axis=-1))
        self._few, self._even = _lines(smoothed, density, error, self._observed)
        self._moves, self._room = np.empty_like(self._noise), np.empty_like(self._noise)

    def low(self, tail: float) -> float:
        """Return the least candidate along the line of few gaps that the observed sum allows."""
        observed = self._observed

        def at_least(value: float) -> float:
            # Without any error there is the noise alone, of either sign.
            sums = self._totals(self._few, value) if value else self._sizes
            return _share(sums >= observed)

        return searched(halving(observed, 0.0, tail), at_least)

    def high(self, tail: float) -> float:
        """Return the largest candidate along the line of even gaps."""
        observed, sizes = self._observed, self._sizes
        reach = 5 * float(sizes.std()) + float(sizes.mean())

        def at_most(value: float) -> float:
            return _share(self._totals(self._even, value) <= observed)

        high = searched(halving(observed, observed + reach, tail), at_most)
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


def _largest_spread(place: Floats, gap: Floats) -> Floats:
    """Return the largest variance of a residual on the way from the gap to half as much again.

    Outcomes vary by rate * (1 - rate), and rows with a gap vary in number. Candidates at the
    high end have larger gaps than the observed one, and with them mostly larger variances.
    """
    rates = [np.clip(place - part * gap, 0.0, 1.0) for part in (0.5, 1.0, 1.5)]
    first, second, third = (rate * (1 - rate) for rate in rates)
    return np.asarray(np.maximum(np.maximum(first, second), third) + gap**2)


def _lines(
    smoothed: Floats, density: Floats, error: Floats, observed: float
) -> tuple[Floats, Floats]:
    """Return the two lines of candidates, as in `gap_intervals`."""
    if observed == 0:
        # Without any residual the line is the density itself.
        return density, density
    size = np.maximum(np.abs(smoothed), 1e-300)
    noise = np.minimum(SET_ASIDE * error / size, 1.0)
    sparse = smoothed * (1 - noise**2)
    sparse = sparse if sparse.any() else smoothed
    even = np.where(smoothed < 0, -density, density) / 2 + smoothed / (2 * observed)
    return sparse / np.abs(sparse).sum(), even / np.abs(even).sum()
