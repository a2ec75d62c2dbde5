"""The interval of smooth ECE: the test of `gap_intervals`, on smoothed residuals.

At one bandwidth s the smoothed error is a sum of absolute values and its interval [L(s), U(s)]
follows by inverting a test. Smooth ECE is the bandwidth that equals its own error; since the
error falls as the bandwidth grows, the ends of its interval solve L(s) = s and U(s) = s.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import TypeAlias

import numpy as np

from calibrant.core.arrays import Floats, Mask
from calibrant.metrics.intervals.gap import LUCK
from calibrant.metrics.smooth import Place, Published, Singles, SmoothTask, chosen_bandwidths
from calibrant.metrics.stats.inversion import halving, side_by_side
from calibrant.metrics.stats.kernels import even_steps

# More draws do not change the third digit of an end, and they cost most of the time.
MOST_DRAWS = 500


SET_ASIDE = 2.0


# Numbers of simulated noise that are worked on at a time.
TOGETHER = 200_000


def smooth_intervals(
    tasks: Sequence[SmoothTask], level: float, resamples: int
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
    blocks = [Published(task, count) for task in tasks]
    values = [task.grids.error(at) for task, at in zip(tasks, bandwidths, strict=True)]

    def ends(asked: Mapping[int, float], *sides: Side) -> list[list[float]]:
        places = [Place.of(blocks[number], at) for number, at in asked.items()]
        return _ends_of(places, sides, (1 - level) / 2)

    def met(first: Sequence[float], nearer: Mapping[int, float], side: Side) -> list[float]:
        meetings, pairs = list(first), zip(nearer.items(), *ends(nearer, side), strict=True)
        for (k, at), end in pairs:
            meetings[k] = _meeting(bandwidths[k], first[k], at, end)
        return meetings

    lows, highs = ends(dict(enumerate(bandwidths)), _Stack.lows, _Stack.highs)
    lows = met(lows, {k: max(low, 2 / 1024) for k, low in enumerate(lows) if low > 0}, _Stack.lows)
    beyond = {k: min(high, 1.0) for k, high in enumerate(highs) if high > bandwidths[k]}
    highs = met(highs, beyond, _Stack.highs)
    return [
        (value, min(low, value), max(high, value))
        for value, low, high in zip(values, lows, highs, strict=True)
    ]


def _meeting(first: float, end_first: float, second: float, end_second: float) -> float:
    """Return where the end equals the bandwidth, on the line through two points."""
    gap_first, gap_second = end_first - first, end_second - second
    if gap_first * gap_second >= 0:
        # No crossing between them: drawn noise moved the end, or it lies beyond.
        return second
    return first + gap_first / (gap_first - gap_second) * (second - first)


def _ends_of(places: Sequence[Place], sides: Sequence[Side], tail: float) -> list[list[float]]:
    """Return the ends by side and block, from stacks of about equally many points."""
    order = sorted(range(len(places)), key=lambda number: places[number].smoothed.size)
    by_side = [[math.nan] * len(places) for _ in sides]
    # Memory that is asked for again and again would be cleared each time.
    rooms = np.empty((4, max([TOGETHER, *map(_numbers, places)])), np.float32)
    for some in _cut([(number, _numbers(places[number])) for number in order]):
        stack = _Stack([places[number] for number in some], rooms)
        for ends, side in zip(by_side, sides, strict=True):
            for number, end in zip(some, side(stack, tail), strict=True):
                ends[number] = end
    return by_side


def _numbers(place: Place) -> int:
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

    def __init__(self, places: Sequence[Place], rooms: Singles) -> None:
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
            shares = _shares(sums <= observed[numbers, None])
            for number, share in zip(numbers, shares, strict=True):
                nearest.setdefault(number, share)
            return shares

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
    def _sizes(self) -> Singles:
        """Sums of the noise alone, by sign, block and draw."""
        sizes = np.abs(self._noise).sum(axis=0)
        return np.broadcast_to(sizes, (2, *sizes.shape))

    def _totals(self, numbers: list[int], line: Floats, values: Sequence[float]) -> Singles:
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

    def _room(self, place: int, blocks: int) -> Singles:
        """Return room for the noise of so many blocks."""
        points, _, draws = self._shape
        return self._rooms[place, : points * blocks * draws].reshape(points, blocks, draws)


# Which end of a stack's intervals is wanted, with a share in the tail.
Side: TypeAlias = Callable[[_Stack, float], list[float]]


def _shares(held: Mask) -> list[float]:
    """Return the share of draws, of either sign, for which something holds."""
    signs, _, draws = held.shape
    return [float(np.count_nonzero(mask) / (signs * draws)) for mask in held.swapaxes(0, 1)]


def _padded(rows: Sequence[Floats]) -> Floats:
    """Return rows, rising in length, as one table with zeros after them."""
    if rows[0].size == rows[-1].size:
        return np.stack(rows)
    out = np.zeros((len(rows), rows[-1].size))
    for line, row in zip(out, rows, strict=True):
        line[: row.size] = row
    return out


def _row_sums(values: Floats, sizes: Sequence[int]) -> Floats:
    """Return the sum of each row without its padding.

    Zeros would change the order of summation, and with it the last digit.
    """
    out, start = np.empty(len(sizes)), 0
    for size, alike in groupby(sizes):
        stop = start + len(list(alike))
        values[start:stop, :size].sum(axis=-1, out=out[start:stop])
        start = stop
    return out


def _largest_spread(at: Floats, gap: Floats) -> Floats:
    """Return the largest variance of a residual on the way from the gap to half as much again.

    Outcomes vary by rate * (1 - rate), and rows with a gap vary in number. Candidates at the
    high end have larger gaps than the observed one, and with them mostly larger variances.
    """
    rates = [np.clip(at - part * gap, 0.0, 1.0) for part in (0.5, 1.0, 1.5)]
    first, second, third = (rate * (1 - rate) for rate in rates)
    return np.asarray(np.maximum(np.maximum(first, second), third) + gap**2)


def _lines(
    smoothed: Floats, density: Floats, error: Floats, observed: Floats, sizes: Sequence[int]
) -> tuple[Floats, Floats]:
    """Return the two lines of candidates, as in `gap_intervals`; `sizes` are points per block."""
    whole = observed[:, None]
    size = np.maximum(np.abs(smoothed), 1e-300)
    noise = np.minimum(SET_ASIDE * error / size, 1.0)
    sparse = smoothed * (1 - noise**2)
    sparse = np.where(sparse.any(axis=-1, keepdims=True), sparse, smoothed)
    with np.errstate(divide="ignore", invalid="ignore"):
        even = np.where(smoothed < 0, -density, density) / 2 + smoothed / (2 * whole)
        sparse, even = (line / _row_sums(np.abs(line), sizes)[:, None] for line in (sparse, even))
    # Without any residual the line is the density itself.
    return np.where(whole > 0, sparse, density), np.where(whole > 0, even, density)
