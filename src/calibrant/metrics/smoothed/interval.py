"""The interval of smooth ECE: the test of `gap_intervals`, on smoothed residuals.

At one bandwidth s the smoothed error is a sum of absolute values and its interval [L(s), U(s)]
follows by inverting a test. Smooth ECE is the bandwidth that equals its own error; since the
error falls as the bandwidth grows, the ends of its interval solve L(s) = s and U(s) = s.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from itertools import groupby
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant.metrics.gaps.intervals import LUCK
from calibrant.metrics.smoothed.smooth import SmoothGrids, chosen_bandwidths
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
TOGETHER = 200_000


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
    bandwidths = chosen_bandwidths([task.grids for task in tasks])
    blocks = [_Published(task, count) for task in tasks]
    values = [task.grids.error(at) for task, at in zip(tasks, bandwidths, strict=True)]

    def ends(asked: Mapping[int, float], *sides: Side) -> list[list[float]]:
        places = [_Place.of(blocks[number], at) for number, at in asked.items()]
        return _ends_of(places, sides, (1 - level) / 2)

    def met(first: Sequence[float], nearer: Mapping[int, float], side: Side) -> list[float]:
        found, pairs = list(first), zip(nearer.items(), *ends(nearer, side), strict=True)
        for (k, at), end in pairs:
            found[k] = _meeting(bandwidths[k], first[k], at, end)
        return found

    lows, highs = ends(dict(enumerate(bandwidths)), _Stack.lows, _Stack.highs)
    lows = met(lows, {k: max(low, 2 / 1024) for k, low in enumerate(lows) if low > 0}, _Stack.lows)
    beyond = {k: min(high, 1.0) for k, high in enumerate(highs) if high > bandwidths[k]}
    highs = met(highs, beyond, _Stack.highs)
    return [
        (value, min(low, value), max(high, value))
        for value, low, high in zip(values, lows, highs, strict=True)
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


class _Nodes(NamedTuple):
    """The places of a grid that hold rows: residuals, weights, weights for the variance, noise."""

    at: FloatArray
    residual: FloatArray
    weight: FloatArray
    drawn: FloatArray
    draws: NDArray[np.float32]


class _Published:
    """One block on its grids, each of which serves several bandwidths."""

    def __init__(self, task: SmoothTask, count: int) -> None:
        self._grids, self.scatter = task.grids, task.scatter
        # The same noise at every bandwidth, so that the ends change smoothly with it. Each number
        # stands for itself and its negative.
        self._draws = partial(_draws, int(task.stream.integers(2**63)), count)
        self._nodes: dict[tuple[int, int], _Nodes] = {}

    def nodes(self, bandwidth: float) -> _Nodes:
        """Return the places with rows of the grid that is fine enough for a bandwidth."""
        points = grid_points(max(bandwidth, 0.01))
        key = (points, _fewest_points(points, bandwidth))
        if key not in self._nodes:
            self._nodes[key] = self._made(*key)
        return self._nodes[key]

    def _made(self, points: int, fewest: int) -> _Nodes:
        whole = self._grids.sums(points)
        of_value = self._grids.sums(grid_points(self._grids.bandwidth()))
        sums = _as_published(whole, of_value)
        while sums.shape[1] > fewest:
            sums = every_other(sums)
        residual, weight, drawn = sums
        # Places of the grid without rows have no residual and no noise.
        held = np.flatnonzero(weight)
        return _Nodes(
            even_steps(weight.size)[held],
            residual[held],
            weight[held],
            np.maximum(drawn[held], 0.0) * whole.weight.sum(),
            self._draws(weight.size)[held],
        )


class _Place(NamedTuple):
    """One block at one bandwidth: where its rows are, and residuals and weights smoothed."""

    scatter: float
    nodes: _Nodes
    scale: float
    matrix: FloatArray
    density: FloatArray
    smoothed: FloatArray

    @classmethod
    def of(cls, block: _Published, bandwidth: float) -> _Place:
        nodes = block.nodes(bandwidth)
        matrix = smoothing_matrix(bandwidth, nodes.at)
        density = nodes.weight @ matrix
        scale = 1 / density.sum()
        smoothed = (nodes.residual @ matrix) * scale
        return cls(block.scatter, nodes, scale, matrix, density * scale, smoothed)

    def add_noise(self, variance: FloatArray, out: NDArray[np.float32]) -> None:
        """Write the smoothed noise by point and draw; a residual has this variance there."""
        node = np.interp(self.nodes.at, even_steps(variance.size), variance)
        error = np.sqrt(self.nodes.drawn * node * self.scatter)
        spreading = self.matrix * (self.scale * error[:, None])
        _product(spreading.astype(np.float32).T, self.nodes.draws, out)


def _ends_of(places: Sequence[_Place], sides: Sequence[Side], tail: float) -> list[list[float]]:
    """Return the ends by side and block, from stacks of about equally many points."""
    order = sorted(range(len(places)), key=lambda number: places[number].smoothed.size)
    found = [[math.nan] * len(places) for _ in sides]
    # Memory that is asked for again and again would be cleared each time.
    rooms = np.empty((4, max([TOGETHER, *map(_numbers, places)])), np.float32)
    for some in _cut([(number, _numbers(places[number])) for number in order]):
        stack = _Stack([places[number] for number in some], rooms)
        for ends, side in zip(found, sides, strict=True):
            for number, end in zip(some, side(stack, tail), strict=True):
                ends[number] = end
    return found


def _numbers(place: _Place) -> int:
    return int(place.smoothed.size * place.nodes.draws.shape[1])


def _cut(sized: Sequence[tuple[int, int]]) -> Iterator[list[int]]:
    """Yield neighbours, rising in size, whose padded noise is at most `TOGETHER` numbers."""
    some: list[int] = []
    for number, size in sized:
        if some and (len(some) + 1) * size > TOGETHER:
            yield some
            some = []
        some.append(number)
    if some:
        yield some


class _Stack:
    """Blocks at their bandwidths, padded to equally many points: a point more adds nothing.

    Parameters
    ----------
    places
        Their points rise.
    rooms
        Four times as much room as their noise needs.
    """

    def __init__(self, places: Sequence[_Place], rooms: NDArray[np.float32]) -> None:
        sizes = [place.smoothed.size for place in places]
        smoothed = _padded([place.smoothed for place in places])
        density = _padded([place.density for place in places])
        self._observed = _row_sums(np.abs(smoothed), sizes)
        # By point, block and draw: sums over points are then sums of whole tables.
        self._rooms = rooms
        self._shape = (sizes[-1], len(places), places[-1].nodes.draws.shape[1])
        self._noise = self._room(0, len(places))
        self._noise.fill(0.0)
        gap = np.divide(smoothed, density, out=np.zeros_like(smoothed), where=density > 0)
        spread = _largest_spread(_padded([even_steps(size) for size in sizes]), gap)
        for number, place in enumerate(places):
            place.add_noise(spread[number, : sizes[number]], self._noise[: sizes[number], number])
        # Draws come in pairs of either sign: their mean is 0.
        error = np.sqrt(np.square(self._noise).mean(axis=-1)).T
        self._few, self._even = _lines(smoothed, density, error, self._observed, sizes)
        self._every = list(range(len(places)))

    def lows(self, tail: float) -> list[float]:
        """Return the least candidates along the line of few gaps that the observed sums allow."""
        observed = self._observed

        def at_least(numbers: list[int], values: list[float]) -> list[float]:
            # Without any error there is the noise alone, of either sign.
            sums = (
                self._totals(numbers, self._few, values) if any(values) else self._sizes[:, numbers]
            )
            return _shares(sums >= observed[numbers, None])

        return side_by_side([halving(one, 0.0, tail) for one in observed.tolist()], at_least)

    def highs(self, tail: float) -> list[float]:
        """Return the largest candidates along the line of even gaps."""
        observed, sizes = self._observed, self._sizes[0]
        reach = 5 * sizes.std(axis=-1).astype(float) + sizes.mean(axis=-1).astype(float)
        # Of every block the share at what was observed, which is asked for first.
        nearest: dict[int, float] = {}

        def at_most(numbers: list[int], values: list[float]) -> list[float]:
            sums = self._totals(numbers, self._even, values)
            found = _shares(sums <= observed[numbers, None])
            for number, share in zip(numbers, found, strict=True):
                nearest.setdefault(number, share)
            return found

        lines = zip(observed.tolist(), (observed + reach).tolist(), strict=True)
        highs = side_by_side([halving(*ends, tail) for ends in lines], at_most)
        lucky = [number for number in self._every if nearest[number] < LUCK]
        if lucky:
            # Less error than even the observed amount would mostly show, by luck.
            shown = self._totals(lucky, self._even, observed[lucky].tolist())
            for place, number in enumerate(lucky):
                highs[number] = max(highs[number], float(np.median(shown[:, place])))
        return highs

    @cached_property
    def _sizes(self) -> NDArray[np.float32]:
        """Sums of the noise alone, by sign, block and draw."""
        sizes = np.abs(self._noise).sum(axis=0)
        return np.broadcast_to(sizes, (2, *sizes.shape))

    def _totals(
        self, numbers: list[int], line: FloatArray, values: Sequence[float]
    ) -> NDArray[np.float32]:
        """Return what would be observed, by sign, block and draw, each at its own candidate."""
        noise, moves, room = (self._room(place, len(numbers)) for place in (1, 2, 3))
        if numbers == self._every:
            noise = self._noise
        else:
            self._noise.take(numbers, axis=1, out=noise, mode="clip")
            line = line[numbers]
        moved = (np.array(values)[:, None] * line).astype(np.float32)
        out = np.empty((2, *noise.shape[1:]), np.float32)
        # Written out first: adding one number to many, again and again, takes twice as long.
        moves[...] = moved.T[..., None]
        for sums, shift in zip(out, (np.add, np.subtract), strict=True):
            shift(noise, moves, out=room)
            np.add.reduce(np.abs(room, out=room), axis=0, out=sums)
        return out

    def _room(self, place: int, blocks: int) -> NDArray[np.float32]:
        """Return room for the noise of so many blocks."""
        points, _, draws = self._shape
        return self._rooms[place, : points * blocks * draws].reshape(points, blocks, draws)


# Which end of a stack's intervals is wanted, with a share in the tail.
Side: TypeAlias = Callable[[_Stack, float], list[float]]


def _shares(held: NDArray[np.bool_]) -> list[float]:
    """Return the share of draws, of either sign, for which something holds."""
    signs, _, draws = held.shape
    return [float(np.count_nonzero(own) / (signs * draws)) for own in held.swapaxes(0, 1)]


def _padded(rows: Sequence[FloatArray]) -> FloatArray:
    """Return rows, rising in length, as one table with zeros after them."""
    if rows[0].size == rows[-1].size:
        return np.stack(rows)
    out = np.zeros((len(rows), rows[-1].size))
    for own, row in zip(out, rows, strict=True):
        own[: row.size] = row
    return out


def _row_sums(values: FloatArray, sizes: Sequence[int]) -> FloatArray:
    """Return the sum of each row without its padding.

    Zeros would change the order of summation, and with it the last digit.
    """
    out, start = np.empty(len(sizes)), 0
    for size, alike in groupby(sizes):
        stop = start + len(list(alike))
        values[start:stop, :size].sum(axis=-1, out=out[start:stop])
        start = stop
    return out


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
    smoothed: FloatArray,
    density: FloatArray,
    error: FloatArray,
    observed: FloatArray,
    sizes: Sequence[int],
) -> tuple[FloatArray, FloatArray]:
    """Return the two lines of candidates, as in `gap_intervals`; `sizes` are points per block."""
    whole = observed[:, None]
    size = np.maximum(np.abs(smoothed), 1e-300)
    noise = np.minimum(SET_ASIDE * error / size, 1.0)
    few = smoothed * (1 - noise**2)
    few = np.where(few.any(axis=-1, keepdims=True), few, smoothed)
    with np.errstate(divide="ignore", invalid="ignore"):
        even = np.where(smoothed < 0, -density, density) / 2 + smoothed / (2 * whole)
        few, even = (line / _row_sums(np.abs(line), sizes)[:, None] for line in (few, even))
    # Without any residual the line is the density itself.
    return np.where(whole > 0, few, density), np.where(whole > 0, even, density)


def _as_published(whole: GridSums, of_value: GridSums) -> FloatArray:
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
    sums = np.array([whole.residual, whole.weight, whole.weight])
    residual, weight = (
        column[:: column.size - 1] for column in (of_value.residual, of_value.weight)
    )
    ends = sums[:, :: sums.shape[1] - 1]
    for own, part in zip(ends, (0.5 * residual, 0.5 * weight, 0.75 * weight), strict=True):
        own -= part
    return sums


def _fewest_points(points: int, bandwidth: float) -> int:
    """Return the points of the coarsest grid, of every other point, that is fine enough."""
    steps = points - 1
    while steps % 2 == 0 and steps / 2 * bandwidth >= STEPS_PER_BANDWIDTH:
        steps //= 2
    return steps + 1
