"""Intervals for ECE, its halves and its debiased form, from bin sums alone.

Each candidate value is tested against the observed one (see `calibrant.metrics.stats.bootstrap`).
Two lines of candidates make the interval safe. How much the plug-in is biased depends on how the
error is spread over bins: most where few bins carry it all, least where all carry the same. The
low end follows the first case (gaps that noise explains are set aside), the high end a mixture
of the observed gaps with equal ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, partial

import numpy as np
from msgspec import Struct

from calibrant.core.arrays import Floats, Stream
from calibrant.metrics.intervals.gap_model import GapModel
from calibrant.metrics.stats.bootstrap import first_crossing, first_refusal, share_of

POINTS = 13
# Gaps within so many standard errors of 0 are set aside on the low line (chosen by simulation:
# 1 lets mixtures of calibrated and miscalibrated bins slip below 90 % coverage).
SET_ASIDE = 2.0
# A sum so far below what it would mostly show is luck. The same share at every level, or a lower
# level could have the longer interval.
LUCK = 0.025


class GapIntervals(Struct, frozen=True):
    """The observed sum of |residual| with its interval; its two halves with their low ends."""

    total: tuple[float, float, float]
    over: tuple[float, float]
    under: tuple[float, float]


def gap_intervals(model: GapModel, stream: Stream, level: float, resamples: int) -> GapIntervals:
    """Return intervals for the ECE that infinitely many rows would show in these bins.

    Parameters
    ----------
    model, stream
        The bin sums, and random numbers.
    level, resamples
        Coverage of the intervals; simulations behind them.
    """
    residual, error = model.residual, model.error()
    observed, reach = float(np.abs(residual).sum()), _reach(error)
    sparse, even = _directions(model, residual, error, observed)
    # The low end lies below the observed value by noise and bias, the high end above by noise.
    lowest = max(observed - reach - float(error.sum()), 0.0)
    down = _steps(lowest, observed)
    if lowest > 0:
        down = np.concatenate([[0.0], down])
    up = _steps(observed, observed + reach)
    observed_value = [float(part[0]) for part in _parts(residual)]
    draws = _half_draws(model, resamples, stream)
    below = _sums_of_candidates(model, down[:, None] * sparse, draws)
    above = _sums_of_candidates(model, up[:, None] * even, draws)

    lines = [down * float(part[0]) for part in _parts(sparse)]

    def low(part: int) -> float:
        def share(place: int) -> float:
            return share_of(below(place)[part] >= observed_value[part])

        return min(first_crossing(lines[part], share, level), observed_value[part])

    total, over, under = ((size, low(part)) for part, size in enumerate(observed_value))
    high = _upper(up, partial(_part, above, 0), observed_value[0], level)
    return GapIntervals((*total, high), over, under)


def half_highs(
    model: GapModel, stream: Stream, level: float, resamples: int
) -> tuple[float, float]:
    """Return the high ends of the sums of positive and of negative residuals.

    Each half is raised along its own line, the other one with it: were one left as it is, the
    candidates of a half that is small would never reach far enough.

    Parameters
    ----------
    model, stream, level, resamples
        As for `gap_intervals`.
    """
    residual, mass = model.residual, model.stats.mass
    steps = _steps(0.0, _reach(model.error()))
    residuals, sizes = np.zeros((POINTS, mass.size)), []
    for sign in (1, -1):
        mine = np.maximum(sign * residual, 0.0)
        size, bins = float(mine.sum()), mass * (mine > 0)
        # Where no bin leans this way there is no line.
        line = mine / (size or 1.0) + bins / (bins.sum() if size > 0 else 1.0)
        line = sign * line / (line.sum() if size > 0 else 1.0)
        residuals += (size + steps)[:, None] * line
        sizes.append(size)
    sums = _sums_of_candidates(model, residuals, _half_draws(model, resamples, stream))
    over, under = (
        _half_upper(size + steps, partial(_part, sums, 1 + half), size, level)
        for half, size in enumerate(sizes)
    )
    return over, under


def _half_upper(
    values: Floats, display: Callable[[int], Floats], size: float, level: float
) -> float:
    if size == 0:
        # No bin leans this way: what the noise alone could hide is the upper end.
        return float(np.quantile(display(0), (1 + level) / 2))
    return _upper(values, display, size, level)


def _upper(values: Floats, display: Callable[[int], Floats], size: float, level: float) -> float:
    """Return the largest candidate that the observed sum does not contradict.

    Parameters
    ----------
    values
        Candidates.
    shown
        What each would show, by draw.
    size
        What was observed.
    level
        Coverage of the interval.
    """
    high = first_refusal(values, lambda place: share_of(display(place) <= size), level)
    nearest = display(0)
    if np.count_nonzero(nearest <= size) < LUCK * nearest.size:
        # Less error than even the observed amount would mostly show, by luck: what it would show
        # in the middle bounds the truth.
        high = max(high, float(np.median(nearest)))
    return max(high, size)


def _part(sums: Callable[[int], tuple[Floats, Floats, Floats]], part: int, place: int) -> Floats:
    return sums(place)[part]


def _sums_of_candidates(
    model: GapModel, residuals: Floats, draws: Floats
) -> Callable[[int], tuple[Floats, Floats, Floats]]:
    """Return what would be observed at each candidate, simulated when it is first asked for.

    Only candidates up to the end of an interval are, some of them for several intervals.

    Parameters
    ----------
    model
        The bin sums.
    residuals
        Mean residuals by candidate and bin.
    draws
        Normal numbers, see `GapModel.noise`.
    """

    @cache
    def sums(place: int) -> tuple[Floats, Floats, Floats]:
        residual = residuals[place]
        noise = model.noise(residual, draws)
        count, moved = noise.shape[-1], noise.sum(axis=0)
        whole, signed = np.empty((2, 2 * count))
        room = np.empty_like(noise)
        # Every draw counts with either sign.
        for half, shift in ((slice(count), np.add), (slice(count, None), np.subtract)):
            shift(noise, residual[:, None], out=room)
            np.add.reduce(np.abs(room, out=room), axis=0, out=whole[half])
            shift(residual.sum(), moved, out=signed[half])
        return _halves(whole, signed)

    return sums


def _half_draws(model: GapModel, resamples: int, rng: Stream) -> Floats:
    """Return normal numbers; each stands for itself and its negative."""
    draws = rng.standard_normal((model.stats.mass.size, math.ceil(resamples / 2)))
    return draws if model.root is None else np.asarray(model.root @ draws)


def _steps(start: float, stop: float) -> Floats:
    """Return candidates in equal steps; the last is the end itself."""
    out = np.arange(POINTS, dtype=np.float64) * ((stop - start) / (POINTS - 1)) + start
    out[-1] = stop
    return out


def _reach(error: Floats) -> float:
    """Return how far above the observed sum candidates go."""
    return float(5 * np.sqrt(np.vecdot(error, error)))


def _parts(values: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the sums over bins of |values|, of their positive and of their negative part."""
    return _halves(np.abs(values).sum(keepdims=True), values.sum(keepdims=True))


def _halves(whole: Floats, signed: Floats) -> tuple[Floats, Floats, Floats]:
    over, under = (whole + signed) / 2, (whole - signed) / 2
    # Rounding must not leave a trace of a part that is empty.
    over[over < 1e-15] = 0.0
    under[under < 1e-15] = 0.0
    return whole, over, under


def _directions(
    model: GapModel, residual: Floats, error: Floats, observed: float
) -> tuple[Floats, Floats]:
    """Return the two lines of candidates, each with absolute sum 1."""
    mass = model.stats.mass
    if observed == 0:
        return mass, mass
    ratio = np.divide(error, np.abs(residual), out=np.full_like(error, np.inf), where=residual != 0)
    sparse = residual * (1 - np.minimum(SET_ASIDE * ratio, 1.0) ** 2)
    sparse = sparse if sparse.any() else residual
    even = np.where(residual < 0, -mass, mass) / 2 + residual / (2 * observed)
    return sparse / np.abs(sparse).sum(), even / np.abs(even).sum()
