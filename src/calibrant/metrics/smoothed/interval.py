"""The interval of smooth ECE: the test of `gap_intervals`, on smoothed residuals.

At one bandwidth s the smoothed error is a sum of absolute values and its interval [L(s), U(s)]
follows by inverting a test. Smooth ECE is the bandwidth that equals its own error; since the
error falls as the bandwidth grows, the ends of its interval solve L(s) = s and U(s) = s.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.metrics.gaps.intervals import LUCK
from calibrant.metrics.smoothed.smooth import SmoothGrids
from calibrant.stats.binning import FloatArray
from calibrant.stats.few.draws import Stream
from calibrant.stats.inversion import halving, side_by_side
from calibrant.stats.kernels import GridSums, even_steps, every_other, grid_points, smoothing_matrix

__all__ = ["SmoothTask", "smooth_intervals"]

# More draws do not change the third digit of an end, and they cost most of the time.
MOST_DRAWS = 500
# Grid steps per bandwidth that are fine enough for an interval.
STEPS_PER_BANDWIDTH = 3
SET_ASIDE = 2.0
# Numbers of simulated noise that are worked on at a time.
TOGETHER = 30_000


class SmoothTask(NamedTuple):
    """One block: its data on grids, the scatter of a row, and its stream of random numbers.

    `scatter` is by how much the variance of the data's units exceeds that of rows, over their
    number.
    """

    grids: SmoothGrids
    scatter: float
    stream: Stream


def smooth_intervals(
    tasks: Sequence[SmoothTask], *, level: float, resamples: int
) -> list[tuple[float, float, float]]:
    """Return smooth ECE with its interval, for one block or for many that are worked on together.

    Parameters
    ----------
    tasks
        The blocks; none changes what another one gets.
    level, resamples
        Coverage of the intervals; simulations behind them.
    """
    count = math.ceil(min(resamples, MOST_DRAWS) / 2)
    # The same noise at every bandwidth, so that the ends change smoothly with it. Each number
    # stands for itself and its negative.
    draws = [partial(_draws, int(task.stream.integers(2**63)), count) for task in tasks]
    bandwidths = [task.grids.bandwidth() for task in tasks]
    values = [task.grids.error(at) for task, at in zip(tasks, bandwidths, strict=True)]

    def ends(asked: Sequence[tuple[int, float]]) -> list[tuple[float, float]]:
        places = [_Place.of(tasks[number], at, draws[number]) for number, at in asked]
        return _ends_of(places, level)

    first = ends(list(enumerate(bandwidths)))
    lows = {k: max(low, 2 / 1024) for k, (low, _) in enumerate(first) if low > 0}
    highs = {k: min(high, 1.0) for k, (_, high) in enumerate(first) if high > bandwidths[k]}
    nearer = iter(ends([*lows.items(), *highs.items()]))
    met_low = {
        k: _meeting(bandwidths[k], first[k][0], at, next(nearer)[0]) for k, at in lows.items()
    }
    met_high = {
        k: _meeting(bandwidths[k], first[k][1], at, next(nearer)[1]) for k, at in highs.items()
    }
    return [
        (value, min(met_low.get(k, first[k][0]), value), max(met_high.get(k, first[k][1]), value))
        for k, value in enumerate(values)
    ]


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


class _Place(NamedTuple):
    """One block at one bandwidth: residuals and weights where rows are, and both smoothed."""

    scatter: float
    nodes: FloatArray
    drawn: FloatArray
    scale: float
    matrix: FloatArray
    density: FloatArray
    smoothed: FloatArray
    draws: NDArray[np.float32]

    @classmethod
    def of(
        cls, task: SmoothTask, bandwidth: float, draws: Callable[[int], NDArray[np.float32]]
    ) -> _Place:
        grids = task.grids
        whole = grids.sums(grid_points(max(bandwidth, 0.01)))
        residual, weight, drawn = _as_published(
            whole, grids.sums(grid_points(grids.bandwidth())), bandwidth
        )
        # Places of the grid without rows have no residual and no noise.
        held = np.flatnonzero(weight)
        nodes = even_steps(weight.size)[held]
        matrix = smoothing_matrix(bandwidth, nodes)
        density = weight[held] @ matrix
        scale = 1 / density.sum()
        return cls(
            task.scatter,
            nodes,
            np.maximum(drawn[held], 0.0) * whole.weight.sum(),
            scale,
            matrix,
            density * scale,
            (residual[held] @ matrix) * scale,
            draws(weight.size)[held],
        )


def _ends_of(places: Sequence[_Place], level: float) -> list[tuple[float, float]]:
    """Return the ends of each block at its bandwidth, from stacks of equally many points."""
    alike: defaultdict[int, list[int]] = defaultdict(list)
    for number, place in enumerate(places):
        alike[place.smoothed.size].append(number)
    found: dict[int, tuple[float, float]] = {}
    for points, numbers in alike.items():
        most = max(TOGETHER // (points * places[numbers[0]].draws.shape[1]), 1)
        for start in range(0, len(numbers), most):
            some = numbers[start : start + most]
            ends = _stacked_ends([places[number] for number in some], level)
            found |= dict(zip(some, ends, strict=True))
    return [found[number] for number in range(len(places))]


def _stacked_ends(places: Sequence[_Place], level: float) -> list[tuple[float, float]]:
    smoothed = np.stack([place.smoothed for place in places])
    density = np.stack([place.density for place in places])
    observed = np.abs(smoothed).sum(axis=-1)
    at = even_steps(smoothed.shape[-1])
    gap = np.divide(smoothed, density, out=np.zeros_like(smoothed), where=density > 0)
    spread = _largest_spread(at, gap)
    noise = np.empty((*smoothed.shape, places[0].draws.shape[1]), np.float32)
    for own, place, variance in zip(noise, places, spread, strict=True):
        node = np.interp(place.nodes, at, variance)
        error = np.sqrt(place.drawn * node * place.scatter)
        spreading = place.matrix * (place.scale * error[:, None])
        _product(spreading.astype(np.float32).T, place.draws, own)
    # Draws come in pairs of either sign: their mean is 0.
    few, even = _lines(smoothed, density, np.sqrt(np.square(noise).mean(axis=-1)), observed)
    return _inverted(noise, few, even, observed, level)


def _inverted(
    noise: NDArray[np.float32],
    few: FloatArray,
    even: FloatArray,
    observed: FloatArray,
    level: float,
) -> list[tuple[float, float]]:
    """Return the ends of the candidates along two lines that the observed sums allow."""
    sizes = np.abs(noise).sum(axis=-2)
    reach = 5 * sizes.std(axis=-1).astype(float) + sizes.mean(axis=-1).astype(float)
    tail, draws = (1 - level) / 2, 2 * noise.shape[-1]
    every = list(range(noise.shape[0]))

    def totals(numbers: list[int], line: FloatArray, values: Sequence[float]) -> Any:
        some = numbers if numbers != every else slice(None)
        moved = (np.array(values)[:, None] * line[some]).astype(np.float32)[..., None]
        own, out = noise[some], np.empty((2, len(numbers), noise.shape[-1]), np.float32)
        room = np.empty_like(own)
        for sums, shift in zip(out, (np.add, np.subtract), strict=True):
            shift(own, moved, out=room)
            np.add.reduce(np.abs(room, out=room), axis=-2, out=sums)
        return out

    def counted(held: NDArray[np.bool_]) -> list[float]:
        return [float(np.count_nonzero(own) / draws) for own in held.swapaxes(0, 1)]

    def at_least(numbers: list[int], values: list[float]) -> list[float]:
        return counted(totals(numbers, few, values) >= observed[numbers, None])

    # Of every block the share at what was observed, which is asked for first.
    nearest: dict[int, float] = {}

    def at_most(numbers: list[int], values: list[float]) -> list[float]:
        found = counted(totals(numbers, even, values) <= observed[numbers, None])
        for number, share in zip(numbers, found, strict=True):
            nearest.setdefault(number, share)
        return found

    seen = observed.tolist()
    lows = side_by_side([halving(one, 0.0, tail) for one in seen], at_least)
    farthest = (observed + reach).tolist()
    highs = side_by_side(
        [halving(*ends, tail) for ends in zip(seen, farthest, strict=True)], at_most
    )
    lucky = [number for number in every if nearest[number] < LUCK]
    if lucky:
        # Less error than even the observed amount would mostly show, by luck.
        shown = totals(lucky, even, observed[lucky].tolist())
        for place, number in enumerate(lucky):
            highs[number] = max(highs[number], float(np.median(shown[:, place])))
    return list(zip(lows, highs, strict=True))


def _largest_spread(at: FloatArray, gap: FloatArray) -> FloatArray:
    """Return the largest variance of a residual on the way from the gap to half as much again.

    Outcomes vary by rate * (1 - rate), and rows with a gap vary in number. Candidates at the
    high end have larger gaps than the observed one, and with them mostly larger variances.
    """
    rates = [np.clip(at - part * gap, 0.0, 1.0) for part in (0.5, 1.0, 1.5)]
    first, second, third = (rate * (1 - rate) for rate in rates)
    return np.asarray(np.maximum(np.maximum(first, second), third) + gap**2)


def _product(
    left: NDArray[np.float32], right: NDArray[np.float32], out: NDArray[np.float32]
) -> None:
    """Write left @ right, in pieces too small for BLAS to split over threads.

    On a busy machine waiting for a second thread costs a hundred times the product itself.
    """
    columns = max(250_000 // max(left.size, 1), 1)
    for start in range(0, right.shape[1], columns):
        out[:, start : start + columns] = left @ right[:, start : start + columns]


def _lines(
    smoothed: FloatArray, density: FloatArray, error: FloatArray, observed: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the two lines of candidates, as in `gap_intervals`."""
    whole = observed[:, None]
    size = np.maximum(np.abs(smoothed), 1e-300)
    noise = np.minimum(SET_ASIDE * error / size, 1.0)
    few = smoothed * (1 - noise**2)
    few = np.where(few.any(axis=-1, keepdims=True), few, smoothed)
    with np.errstate(divide="ignore", invalid="ignore"):
        even = np.where(smoothed < 0, -density, density) / 2 + smoothed / (2 * whole)
        few, even = (line / np.abs(line).sum(axis=-1, keepdims=True) for line in (few, even))
    # Without any residual the line is the density itself.
    return np.where(whole > 0, few, density), np.where(whole > 0, even, density)


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
