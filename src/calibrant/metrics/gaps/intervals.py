"""Intervals for ECE, its halves and its debiased form, from bin sums alone.

Each candidate value is tested against the observed one (see `calibrant.stats.inversion`). Two
lines of candidates make the interval safe. How much the plug-in is biased depends on how the
error is spread over bins: most where few bins carry it all, least where all carry the same. The
low end follows the first case (gaps that noise explains are set aside), the high end a mixture
of the observed gaps with equal ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from calibrant.metrics.binned import BinStats, bin_statistics, placement, shrunk_variance
from calibrant.metrics.inputs import Checked
from calibrant.stats.binning import FloatArray
from calibrant.stats.few.draws import Stream
from calibrant.stats.inversion import first_crossing, first_refused, share_of
from calibrant.stats.units import Units

__all__ = ["GapIntervals", "GapModel", "gap_intervals", "gap_model", "half_highs"]

POINTS = 13
# Gaps within so many standard errors of 0 are set aside on the low line (chosen by simulation:
# 1 lets mixtures of calibrated and miscalibrated bins slip below 90 % coverage).
SET_ASIDE = 2.0
# A sum so far below what it would mostly show is luck. The same share at every level, or a lower
# level could have the longer interval.
LUCK = 0.025


@dataclass(frozen=True, slots=True)
class GapModel:
    """Mean residuals per bin and how they vary if the true gaps were others.

    `inflation` is the variance of the data's own units over that of single independent rows;
    `root` mixes independent noise into the correlation of bins that share units.
    """

    stats: BinStats
    rows: int
    inflation: float
    root: FloatArray | None

    @property
    def residual(self) -> FloatArray:
        """Share of the bin times its gap; their absolute sum is the ECE."""
        return self.stats.mass * self.stats.gap

    def error(self) -> FloatArray:
        """Return standard errors of the residuals, the largest on the way from 0 to the gaps."""
        variance = np.max([shrunk_variance(self.stats, part) for part in (0.0, 0.5, 1.0)], axis=0)
        return np.asarray(np.sqrt(self.stats.mass * variance * self.inflation / self.rows))

    def noise(self, residual: FloatArray, draws: FloatArray) -> FloatArray:
        """Return how far residuals would be observed from the true ones, were those `residual`.

        `draws` are standard normal numbers, one row per bin and one column per draw.
        """
        mass, spread, centre = self.stats.mass, self.stats.spread, self.stats.confidence
        gap = residual / mass
        variance = np.maximum(spread + gap * (2 * centre - 1) - gap**2, 0.0)
        second = mass * (variance + gap**2)
        scale = math.sqrt(self.inflation / self.rows)
        if self.root is not None:
            sd = scale * np.sqrt(np.maximum(second - residual**2, 0.0))
            return np.asarray(sd[:, None] * draws)
        # Covariance diag(second) - residual residual': a rank-one change of independent noise.
        sd = np.sqrt(second)
        tilt = np.divide(residual, sd, out=np.zeros_like(sd), where=sd > 0)
        size = float(tilt @ tilt)
        out = (scale * sd)[:, None] * draws
        if size > 0:
            pull = (1 - math.sqrt(max(1 - size, 0.0))) / size
            out -= np.outer(scale * sd * pull * tilt, tilt @ draws)
        return np.asarray(out)


def gap_model(data: Checked, units: Units, *, bins: int, strategy: str = "width") -> GapModel:
    """Return the bin sums of the data and the variance that its units and weights bring."""
    stats = bin_statistics(data, bins=bins, strategy=strategy)
    if data.weights is None and units.codes is None:
        return GapModel(stats, data.rows, 1.0, None)
    covariance = _unit_covariance(data, units, bins=bins, strategy=strategy)
    residual = stats.mass * stats.gap
    single = (stats.mass * (shrunk_variance(stats, 1.0) + stats.gap**2) - residual**2) / data.rows
    total, alone = float(np.trace(covariance)), float(single.sum())
    # Where outcomes never vary there is nothing to compare but rounding; units count, not rows.
    varied = min(total, alone) * data.rows > 1e-14
    inflation = total / alone if varied else data.rows / units.count
    sd = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    safe = np.where(sd > 0, sd, 1.0)
    correlation = covariance / np.outer(safe, safe)
    np.fill_diagonal(correlation, 1.0)
    values, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.maximum(values, 0.0)) @ vectors.T
    return GapModel(stats, data.rows, inflation, root)


def _unit_covariance(
    data: Checked, units: Units, *, bins: int, strategy: str
) -> NDArray[np.float64]:
    """Return the covariance of the bin residuals when units are the independent draws."""
    # Loaded here: rows that are units of their own never come this way.
    from scipy import sparse

    place, edges = placement(data, bins, strategy)
    bin_of = np.empty(data.rows, np.intp)
    place(data.confidence, bin_of, np.empty(data.rows))
    np.minimum(bin_of, len(edges) - 2, out=bin_of)
    heavy = np.ones(data.rows) if data.weights is None else data.weights.astype(np.float64)
    codes = np.arange(data.rows) if units.codes is None else units.codes
    held = np.flatnonzero(np.bincount(bin_of, heavy, len(edges) - 1) > 0)
    column = np.zeros(len(edges) - 1, np.intp)
    column[held] = np.arange(held.size)
    values = heavy * np.subtract(data.confidence, data.correct, dtype=np.float64)
    shape = (units.count, held.size)
    sums = sparse.csr_array((values, (codes, column[bin_of])), shape=shape)
    unit_weight = np.bincount(codes, heavy, units.count)
    total = float(heavy.sum())
    mean = np.asarray(sums.sum(axis=0)).ravel() / total
    cross = np.outer(sums.T @ unit_weight, mean)
    squares = (sums.T @ sums).toarray()
    square_weight = float(unit_weight @ unit_weight)
    spread = squares - cross - cross.T + square_weight * np.outer(mean, mean)
    correction = units.count / max(units.count - 1, 1)
    return np.asarray(spread) * correction / total**2


@dataclass(frozen=True, slots=True)
class GapIntervals:
    """The observed sum of |residual| with its interval; its two halves with their low ends."""

    total: tuple[float, float, float]
    over: tuple[float, float]
    under: tuple[float, float]


def gap_intervals(model: GapModel, *, level: float, resamples: int, rng: Stream) -> GapIntervals:
    """Return intervals for the ECE that infinitely many rows would show in these bins."""
    residual, error = model.residual, model.error()
    draws = _half_draws(model, resamples, rng)
    observed = float(np.abs(residual).sum())
    reach = _reach(error)
    few, even = _directions(model, residual, error, observed)
    # The low end lies below the observed value by noise and bias, the high end above by noise.
    lowest = max(observed - reach - float(error.sum()), 0.0)
    down = np.unique(np.append(np.linspace(lowest, observed, POINTS), 0.0))
    up = np.linspace(observed, observed + reach, POINTS)
    below = _Candidates(model, [value * few for value in down], draws)
    above = _Candidates(model, [value * even for value in up], draws)
    lows = []
    for part, (seen, share) in enumerate(zip(_parts(residual), _parts(few), strict=True)):
        low = first_crossing(down * share, partial(below.above, part, float(seen)), level)
        lows.append((float(seen), min(low, float(seen))))
    high = _upper(up, above, 0, observed, level)
    return GapIntervals((*lows[0], high), lows[1], lows[2])


class _Candidates:
    """What would be observed at each candidate, simulated when it is first asked for.

    Only candidates up to the end of an interval are, some of them for several intervals.
    """

    def __init__(self, model: GapModel, residuals: list[FloatArray], draws: FloatArray) -> None:
        self._model, self._residuals, self._draws = model, residuals, draws
        self._sums: dict[int, tuple[FloatArray, FloatArray, FloatArray]] = {}

    def sums(self, place: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the three sums of `_parts` at a candidate, one number per draw."""
        if place not in self._sums:
            residual = self._residuals[place][:, None]
            noise = self._model.noise(self._residuals[place], self._draws)
            # Every draw counts with either sign.
            whole = [np.abs(noise + residual).sum(axis=0), np.abs(noise - residual).sum(axis=0)]
            centre, moved = float(residual.sum()), noise.sum(axis=0)
            self._sums[place] = _halves(
                np.concatenate(whole), np.concatenate([centre + moved, centre - moved])
            )
        return self._sums[place]

    def above(self, part: int, seen: float, place: int) -> float:
        """Return the share of draws at a candidate that show at least what was seen."""
        return share_of(self.sums(place)[part] >= seen)

    def below(self, part: int, seen: float, place: int) -> float:
        """Return the share of draws at a candidate that show at most what was seen."""
        return share_of(self.sums(place)[part] <= seen)


def half_highs(
    model: GapModel, *, level: float, resamples: int, rng: Stream
) -> tuple[float, float]:
    """Return the high ends of the sums of positive and of negative residuals.

    Each half is raised along its own line, the other one with it: were one left as it is, the
    candidates of a half that is small would never reach far enough.
    """
    residual, mass = model.residual, model.stats.mass
    draws = _half_draws(model, resamples, rng)
    steps = np.linspace(0.0, _reach(model.error()), POINTS)
    lines, seen = [], []
    for sign in (1, -1):
        mine = np.maximum(sign * residual, 0.0)
        size = float(mine.sum())
        bins = mass * (mine > 0)
        line = mine / size + bins / bins.sum() if size > 0 else np.zeros_like(mine)
        lines.append(sign * line / (line.sum() or 1.0))
        seen.append(size)
    residuals = [(seen[0] + step) * lines[0] + (seen[1] + step) * lines[1] for step in steps]
    candidates = _Candidates(model, residuals, draws)
    highs = []
    for part, size in enumerate(seen, 1):
        if size == 0:
            # No bin leans this way: what the noise alone could hide is the upper end.
            highs.append(float(np.quantile(candidates.sums(0)[part], (1 + level) / 2)))
        else:
            highs.append(_upper(size + steps, candidates, part, size, level))
    return highs[0], highs[1]


def _upper(
    values: FloatArray, candidates: _Candidates, part: int, seen: float, level: float
) -> float:
    """Return the largest candidate that the observed sum does not contradict."""
    end = first_refused(values, partial(candidates.below, part, seen), level)
    high = max(end, seen)
    first = candidates.sums(0)[part]
    if (first <= seen).mean() < LUCK:
        # Less error than even the observed amount would mostly show, by luck: what it would
        # show in the middle bounds the truth.
        return max(float(np.median(first)), high)
    return high


def _half_draws(model: GapModel, resamples: int, rng: Stream) -> FloatArray:
    """Return normal numbers; each stands for itself and its negative."""
    draws = rng.standard_normal((model.residual.size, math.ceil(resamples / 2)))
    return draws if model.root is None else np.asarray(model.root @ draws)


def _reach(error: FloatArray) -> float:
    """Return how far above the observed sum candidates go."""
    return 5 * math.sqrt(float(error @ error))


def _parts(values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the sums over bins of |values|, of their positive and of their negative part."""
    return _halves(np.abs(values).sum(), values.sum())


def _halves(whole: FloatArray, signed: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    over, under = (whole + signed) / 2, (whole - signed) / 2
    # Rounding must not leave a trace of a part that is empty.
    return whole, np.where(over < 1e-15, 0.0, over), np.where(under < 1e-15, 0.0, under)


def _directions(
    model: GapModel, residual: FloatArray, error: FloatArray, observed: float
) -> tuple[FloatArray, FloatArray]:
    """Return the two lines of candidates, each with absolute sum 1."""
    mass = model.stats.mass
    if observed == 0:
        return mass, mass
    ratio = np.divide(error, np.abs(residual), out=np.full_like(error, np.inf), where=residual != 0)
    few = residual * (1 - np.minimum(SET_ASIDE * ratio, 1.0) ** 2)
    few = residual if not few.any() else few
    even = np.where(residual < 0, -mass, mass) / 2 + residual / (2 * observed)
    return few / np.abs(few).sum(), even / np.abs(even).sum()
