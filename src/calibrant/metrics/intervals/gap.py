"""Intervals for ECE, its halves and its debiased form, from bin sums alone.

Each candidate value is tested against the observed one (see `calibrant.metrics.stats.inversion`).
Two lines of candidates make the interval safe. How much the plug-in is biased depends on how the
error is spread over bins: most where few bins carry it all, least where all carry the same. The
low end follows the first case (gaps that noise explains are set aside), the high end a mixture
of the observed gaps with equal ones.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np
from msgspec import Struct

from calibrant.core.arrays import Floats
from calibrant.metrics.intervals.gap_model import GapModel, some_of, stacked
from calibrant.metrics.stats.common_draws import Stream, batches
from calibrant.metrics.stats.inversion import crossing, refusal, share_of, side_by_side

POINTS = 13


# Gaps within so many standard errors of 0 are set aside on the low line (chosen by simulation:
# 1 lets mixtures of calibrated and miscalibrated bins slip below 90 % coverage).
SET_ASIDE = 2.0


# A sum so far below what it would mostly show is luck. The same share at every level, or a lower
# level could have the longer interval.
LUCK = 0.025


# Models worked on together: with more of them memory costs what is saved.
TOGETHER = 64


Found = TypeVar("Found")


class GapIntervals(Struct, frozen=True):
    """The observed sum of |residual| with its interval; its two halves with their low ends."""

    total: tuple[float, float, float]
    over: tuple[float, float]
    under: tuple[float, float]


def gap_intervals(
    models: Sequence[GapModel], streams: Sequence[Stream], level: float, resamples: int
) -> list[GapIntervals]:
    """Return intervals for the ECE that infinitely many rows would show in these bins.

    Parameters
    ----------
    models, streams
        One or many, each with its stream of random numbers. Models with one shared stream and
        equally many bins are worked on together; none changes what another one gets.
    level, resamples
        Coverage of the intervals; simulations behind them.
    """
    return _by_kind(models, streams, partial(_gap_intervals, level=level, resamples=resamples))


def half_highs(
    models: Sequence[GapModel], streams: Sequence[Stream], level: float, resamples: int
) -> list[tuple[float, float]]:
    """Return the high ends of the sums of positive and of negative residuals.

    Each half is raised along its own line, the other one with it: were one left as it is, the
    candidates of a half that is small would never reach far enough.

    Parameters
    ----------
    models, streams, level, resamples
        As for `gap_intervals`.
    """
    return _by_kind(models, streams, partial(_half_highs, level=level, resamples=resamples))


def _by_kind(
    models: Sequence[GapModel],
    streams: Sequence[Stream],
    ends: Callable[[GapModel, Stream], list[Found]],
) -> list[Found]:
    """Return the ends of all models, from stacks of those that are alike."""
    alike: defaultdict[Hashable, list[int]] = defaultdict(list)
    for number, (model, stream) in enumerate(zip(models, streams, strict=True)):
        alone = None if model.root is None else number
        alike[type(model), stream, model.stats.mass.size, alone].append(number)
    ends_of: dict[int, Found] = {}
    for numbers in alike.values():
        for some in batches(numbers, TOGETHER):
            stack = stacked([models[number] for number in some])
            ends_of |= dict(zip(some, ends(stack, streams[some[0]]), strict=True))
    return [ends_of[number] for number in range(len(models))]


def _gap_intervals(
    model: GapModel, stream: Stream, *, level: float, resamples: int
) -> list[GapIntervals]:
    residual, error = model.residual, model.error()
    observed, reach = np.abs(residual).sum(axis=-1), _reach(error)
    sparse, even = _directions(model, residual, error, observed)
    # The low end lies below the observed value by noise and bias, the high end above by noise.
    lowest = np.maximum(observed - reach - error.sum(axis=-1), 0.0)
    steps = _steps(lowest, observed)
    down = np.concatenate([np.zeros_like(steps[:1]), steps])
    up = _steps(observed, observed + reach)
    seen, draws = np.array(_parts(residual)), _half_draws(model, resamples, stream)
    below = Candidates(model, down[..., None] * sparse, draws, seen)
    above = Candidates(model, up[..., None] * even, draws, seen)
    lines = down[:, None] * np.array(_parts(sparse))
    # A line whose second candidate is 0 again has 0 only once.
    first = (lowest == 0).astype(int).tolist()
    asked = [(part, number) for part in range(3) for number in range(observed.size)]
    searches = [crossing(lines[first[number] :, part, number], level) for part, number in asked]

    def share(numbers: list[int], places: list[int]) -> list[float]:
        who = [asked[number] for number in numbers]
        where = [place + first[number] for place, (_, number) in zip(places, who, strict=True)]
        return below.shares(np.greater_equal, who, where)

    lows = np.minimum(np.reshape(side_by_side(searches, share), seen.shape), seen)
    highs = _upper(up[:, None], above, [(0, number) for number in range(observed.size)], level)
    totals, overs, unders = np.stack([seen, lows], axis=-1).tolist()
    return [
        GapIntervals((*total, high), tuple(over), tuple(under))
        for total, high, over, under in zip(totals, highs, overs, unders, strict=True)
    ]


def _half_highs(
    model: GapModel, stream: Stream, *, level: float, resamples: int
) -> list[tuple[float, float]]:
    residual, mass = model.residual, model.stats.mass
    steps = _steps(np.zeros(residual.shape[0]), _reach(model.error()))
    residuals, sizes = np.zeros((*steps.shape, mass.shape[-1])), []
    for sign in (1, -1):
        mine = np.maximum(sign * residual, 0.0)
        size = mine.sum(axis=-1, keepdims=True)
        bins = mass * (mine > 0)
        # Where no bin leans this way there is no line.
        leaning = np.where(size > 0, bins.sum(axis=-1, keepdims=True), 1.0)
        line = mine / np.where(size > 0, size, 1.0) + bins / leaning
        whole = line.sum(axis=-1, keepdims=True)
        line = sign * line / np.where(whole > 0, whole, 1.0)
        residuals += (size[:, 0] + steps)[..., None] * line
        sizes.append(size[:, 0])
    seen = np.array([sizes[0], *sizes])
    candidates = Candidates(model, residuals, _half_draws(model, resamples, stream), seen)
    asked = [(part, number) for part in (1, 2) for number in range(residual.shape[0])]
    highs = _upper(seen[None] + steps[:, None], candidates, asked, level)
    return list(zip(highs[: residual.shape[0]], highs[residual.shape[0] :], strict=True))


def _upper(
    values: Floats, candidates: Candidates, asked: Sequence[tuple[int, int]], level: float
) -> list[float]:
    """Return the largest candidates that the observed sums do not contradict.

    Parameters
    ----------
    values
        Candidates, by place, part and model.
    candidates
        What each would show.
    asked
        Parts and models whose ends are wanted.
    level
        Coverage of the intervals.
    """
    numbers = list(dict.fromkeys(number for _, number in asked))
    nearest = candidates.sums(numbers, [0] * len(numbers))
    rows = {number: row for row, number in enumerate(numbers)}
    highs, left, lucky = {}, [], {}
    for part, number in asked:
        shown, size = nearest[part][rows[number]], candidates.seen[part, number]
        if part and size == 0:
            # No bin leans this way: what the noise alone could hide is the upper end.
            highs[part, number] = float(np.quantile(shown, (1 + level) / 2))
            continue
        left.append((part, number))
        if np.count_nonzero(shown <= size) < LUCK * shown.size:
            # Less error than even the observed amount would mostly show, by luck: what it would
            # show in the middle bounds the truth.
            lucky[part, number] = float(np.median(shown))

    def share(numbers: list[int], places: list[int]) -> list[float]:
        return candidates.shares(np.less_equal, [left[number] for number in numbers], places)

    searches = [refusal(values[:, part, number], level) for part, number in left]
    for key, end in zip(left, side_by_side(searches, share), strict=True):
        highs[key] = max(end, float(candidates.seen[key]), lucky.get(key, 0.0))
    return [highs[key] for key in asked]


class Candidates:
    """What would be observed at each candidate, simulated when it is first asked for.

    Only candidates up to the end of an interval are, some of them for several intervals.

    Parameters
    ----------
    model
        One stack of models.
    residuals
        Mean residuals by candidate, model and bin.
    draws
        Normal numbers, see `GapModel.noise`.
    seen
        What was observed, by part and model, see `_parts`.
    """

    def __init__(self, model: GapModel, residuals: Floats, draws: Floats, seen: Floats) -> None:
        self._model, self._residuals, self._draws, self.seen = model, residuals, draws, seen
        self._last: tuple[Any, tuple[Floats, Floats, Floats]] | None = None

    def sums(self, numbers: list[int], places: list[int]) -> tuple[Floats, Floats, Floats]:
        """Return the three sums of `_parts` by model and draw, each model at its own candidate."""
        asked = (numbers, places)
        if self._last is None or self._last[0] != asked:
            self._last = (asked, self._simulated(numbers, places))
        return self._last[1]

    def _simulated(self, numbers: list[int], places: list[int]) -> tuple[Floats, Floats, Floats]:
        residual = self._residuals[places, numbers]
        noise = some_of(self._model, numbers).noise(residual, self._draws)
        size, draws = len(numbers), noise.shape[-1]
        whole, signed = np.empty((2, size, 2 * draws))
        room, moved = np.empty_like(noise), noise.sum(axis=-2)
        # Every draw counts with either sign.
        for half, shift in ((slice(draws), np.add), (slice(draws, None), np.subtract)):
            shift(noise, residual[..., None], out=room)
            np.add.reduce(np.abs(room, out=room), axis=-2, out=whole[:, half])
            shift(residual.sum(axis=-1, keepdims=True), moved, out=signed[:, half])
        return _halves(whole, signed)

    def shares(
        self, compared: np.ufunc, who: Sequence[tuple[int, int]], places: Sequence[int]
    ) -> list[float]:
        """Return the share of draws that are at least, or at most, what was seen.

        Parameters
        ----------
        compared
            The comparison.
        who, places
            Parts with their models, and at which candidate of theirs.
        """
        at = dict(zip((number for _, number in who), places, strict=True))
        sums = self.sums(list(at), list(at.values()))
        rows = {number: row for row, number in enumerate(at)}
        return [
            share_of(compared(sums[part][rows[number]], self.seen[part, number]))
            for part, number in who
        ]


def _half_draws(model: GapModel, resamples: int, rng: Stream) -> Floats:
    """Return normal numbers; each stands for itself and its negative."""
    draws = rng.standard_normal((model.stats.mass.shape[-1], math.ceil(resamples / 2)))
    return draws if model.root is None else np.asarray(model.root @ draws)


def _steps(start: Floats, stop: Floats) -> Floats:
    """Return candidates in equal steps, shape (points, models); the last is the end itself."""
    out: Floats = np.arange(POINTS)[:, None] * ((stop - start) / (POINTS - 1)) + start
    out[-1] = stop
    return out


def _reach(error: Floats) -> Floats:
    """Return how far above the observed sum candidates go."""
    return np.asarray(5 * np.sqrt(np.vecdot(error, error)))


def _parts(values: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the sums over bins of |values|, of their positive and of their negative part."""
    return _halves(np.abs(values).sum(axis=-1), values.sum(axis=-1))


def _halves(whole: Floats, signed: Floats) -> tuple[Floats, Floats, Floats]:
    over, under = (whole + signed) / 2, (whole - signed) / 2
    # Rounding must not leave a trace of a part that is empty.
    over[over < 1e-15] = 0.0
    under[under < 1e-15] = 0.0
    return whole, over, under


def _directions(
    model: GapModel, residual: Floats, error: Floats, observed: Floats
) -> tuple[Floats, Floats]:
    """Return the two lines of candidates, each with absolute sum 1."""
    mass, whole = model.stats.mass, observed[:, None]
    ratio = np.divide(error, np.abs(residual), out=np.full_like(error, np.inf), where=residual != 0)
    sparse = residual * (1 - np.minimum(SET_ASIDE * ratio, 1.0) ** 2)
    sparse = np.where(sparse.any(axis=-1, keepdims=True), sparse, residual)
    even = np.where(residual < 0, -mass, mass) / 2 + residual / np.where(whole > 0, 2 * whole, 1.0)
    lines = (
        line / np.where(whole > 0, np.abs(line).sum(axis=-1, keepdims=True), 1.0)
        for line in (sparse, even)
    )
    sparse, even = (np.where(whole > 0, line, mass) for line in lines)
    return sparse, even
