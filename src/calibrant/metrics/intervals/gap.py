"""Mean residuals per bin, how they vary, and the intervals of ECE and its halves.

Each candidate value is tested against the observed one (see `calibrant.metrics.stats.bootstrap`).
Two lines of candidates make the interval safe. How much the plug-in is biased depends on how the
error is spread over bins: most where few bins carry it all, least where all carry the same. The
low end follows the first case (gaps that noise explains are set aside), the high end a mixture
of the observed gaps with equal ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import TypeAlias

import numpy as np
from msgspec import Struct

from calibrant.core.arrays import Floats, Stream
from calibrant.metrics.binned import BinStats, bin_statistics, bins_of, shrunk_variance
from calibrant.metrics.inputs import Checked
from calibrant.metrics.stats import intervals
from calibrant.metrics.stats.bootstrap import first_crossing, share_of
from calibrant.metrics.stats.units import MOST_SHARE, Units, freedom

# Level at which the reach of Student's law stands for that of the normal one, and shares that are
# equal but for rounding.
LEVEL = 0.95


ROUNDING = 1e-9


class GapModel(Struct, frozen=True):
    """Mean residuals per bin and how they vary if the true gaps were others.

    `inflation` is the variance of the data's own units over that of single independent rows;
    `root` mixes independent noise into the correlation of bins that share units. Of unequal units
    the inflation is larger by `caution`: few of them make up the variance, which is then not well
    known.
    """

    stats: BinStats
    rows: int
    inflation: float
    root: Floats | None
    caution: float = 1.0

    @property
    def residual(self) -> Floats:
        """Share of the bin times its gap; their absolute sum is the ECE."""
        return self.stats.mass * self.stats.gap

    def error(self) -> Floats:
        """Return standard errors of the residuals, the largest on the way from 0 to the gaps."""
        none, half, whole = (shrunk_variance(self.stats, part) for part in (0.0, 0.5, 1.0))
        variance = np.maximum(np.maximum(none, half), whole)
        return np.asarray(np.sqrt(self.stats.mass * variance * self.inflation / self.rows))

    @property
    def between(self) -> float:
        """How unequal the gaps are, as a variance; what noise alone would show is taken off."""
        mass, gap = self.stats.mass, self.stats.gap
        noise = shrunk_variance(self.stats, 1.0) * self.inflation / self.rows
        return max(float(mass @ gap**2 - noise.sum() - np.abs(mass * gap).sum() ** 2), 0.0)

    @property
    def shares_variance(self) -> float:
        """Variance that the sum of |residual| has because the shares of the bins are random."""
        return float(self.between * self.inflation / self.rows)

    def noise(self, residual: Floats, draws: Floats) -> Floats:
        """Return how far residuals would be observed from the true ones, were those `residual`.

        `draws` are standard normal numbers, one row per bin and one column per draw.
        """
        mass, spread, centre = self.stats.mass, self.stats.spread, self.stats.confidence
        gap = residual / mass
        variance = np.maximum(spread + gap * (2 * centre - 1) - gap**2, 0.0)
        second = mass * (variance + gap**2)
        scale = np.sqrt(self.inflation / self.rows)
        if self.root is not None:
            sd = scale * np.sqrt(np.maximum(second - residual**2, 0.0))
            return np.asarray(sd[..., None] * draws)
        # Covariance diag(second) - residual residual': a rank-one change of independent noise.
        sd = np.sqrt(second)
        tilt = np.divide(residual, sd, out=np.zeros_like(sd), where=sd > 0)
        size = np.vecdot(tilt, tilt)[..., None]
        pull = (1 - np.sqrt(np.maximum(1 - size, 0.0))) / np.where(size > 0, size, 1.0)
        out = (scale * sd)[..., None] * draws
        out -= (scale * sd * pull * tilt)[..., None] * (tilt[..., None, :] @ draws)
        return np.asarray(out)


def gap_model(data: Checked, units: Units, *, bins: int) -> GapModel:
    """Return the bin sums of the data and the variance that its units and weights bring."""
    stats = bin_statistics(data, bins=bins, strategy="width")
    if data.weights is None and units.codes is None:
        return GapModel(stats, data.rows, 1.0, None)
    heavy = np.ones(data.rows) if data.weights is None else data.weights.astype(np.float64)
    shares = units.sums(heavy) / heavy.sum()
    covariance = _covariance(data, units, heavy, shares, bins)
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
    caution = _caution(shares, inflation / data.rows)
    return GapModel(stats, data.rows, inflation * caution, root, caution=caution)


def _caution(shares: Floats, relative: float) -> float:
    """Return by what a variance between units is multiplied where they are unequal.

    Student's reach instead of the normal one, as for means: `freedom` says how many units make up
    the variance. Units whose rows are all alike have the largest variance that there can be.

    Parameters
    ----------
    shares
        Share of each unit in the whole.
    relative
        The variance over that of a single row.

    Examples
    --------
    >>> _caution(np.full(10, 0.1), 0.1)
    1.0
    >>> round(_caution(np.array([100, 100] + [1] * 50) / 250, 0.1), 2)
    3.21
    """
    if shares.size < 2 or np.ptp(shares) <= ROUNDING * shares.max():
        return 1.0
    reach = intervals.student_quantile(LEVEL, freedom(shares) + 1)
    wider = reach / intervals.normal_quantile(LEVEL)
    most = float(shares @ shares)
    return max(min(wider**2, most / relative), 1.0)


def _covariance(data: Checked, units: Units, heavy: Floats, shares: Floats, bins: int) -> Floats:
    """Return the covariance of the bin residuals when units are the independent draws.

    A heavy unit draws the mean to itself and hides its own distance from it. Each square is put
    right by the unit's share (HC2, unbiased where units are alike), a heavy one at most tenfold.
    """
    # Loaded here: rows that are units of their own never come this way.
    from scipy import sparse

    bin_of = bins_of(data, bins)
    codes = np.arange(data.rows) if units.codes is None else units.codes
    filled = np.bincount(bin_of, heavy, bins) > 0
    values = heavy * np.subtract(data.confidence, data.correct, dtype=np.float64)
    shape = (units.count, int(filled.sum()))
    # Bins that hold rows are columns, numbered as they come.
    column = np.maximum(np.cumsum(filled) - 1, 0)[bin_of]
    sums = sparse.csr_array((values, (codes, column)), shape=shape)
    total = float(heavy.sum())
    mean = np.asarray(sums.sum(axis=0)).ravel() / total
    scaled = sums.multiply(np.sqrt(1 / (1 - np.minimum(shares, MOST_SHARE)))[:, None]).tocsr()
    put_right = shares * total / (1 - np.minimum(shares, MOST_SHARE))
    cross = np.outer(sums.T @ put_right, mean)
    square_weight = float(put_right @ shares) * total
    spread = (scaled.T @ scaled).toarray() - cross - cross.T + square_weight * np.outer(mean, mean)
    return np.asarray(spread) / total**2


POINTS = 13
# Gaps within so many standard errors of 0 are set aside on the low line (chosen by simulation:
# 1 lets mixtures of calibrated and miscalibrated bins slip below 90 % coverage).
SET_ASIDE = 2.0
# A sum so far below what it would mostly show is luck. The same share at every level, or a lower
# level could have the longer interval.
LUCK = 0.025


# What each candidate would show, by draw: the sum over bins, of positive and of negative ones.
CandidateSums: TypeAlias = Callable[[int], tuple[Floats, Floats, Floats]]


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
    sparse, even = candidate_lines(residual, error, model.stats.mass)
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
    high = _upper(up, above, 0, observed_value[0], level)
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
    highs = []
    for half, size in enumerate(sizes, start=1):
        if size > 0:
            highs.append(_upper(size + steps, sums, half, size, level))
        else:
            # No bin leans this way: what the noise alone could hide is the upper end.
            highs.append(float(np.quantile(sums(0)[half], (1 + level) / 2)))
    return highs[0], highs[1]


def _upper(values: Floats, sums: CandidateSums, part: int, size: float, level: float) -> float:
    """Return the largest candidate that the observed sum does not contradict.

    Parameters
    ----------
    values
        Candidates.
    sums, part
        What each would show, by draw; of all residuals (0), or of one half.
    size
        What was observed.
    level
        Coverage of the interval.
    """
    high = first_crossing(
        values, lambda place: share_of(sums(place)[part] <= size), level, rising=False
    )
    nearest = sums(0)[part]
    if np.count_nonzero(nearest <= size) < LUCK * nearest.size:
        # Less error than even the observed amount would mostly show, by luck: what it would show
        # in the middle bounds the truth.
        high = max(high, float(np.median(nearest)))
    return max(high, size)


def _sums_of_candidates(model: GapModel, residuals: Floats, draws: Floats) -> CandidateSums:
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


def candidate_lines(residual: Floats, error: Floats, mass: Floats) -> tuple[Floats, Floats]:
    """Return two lines of candidates, each with absolute sum 1: few large gaps, and even ones.

    Parameters
    ----------
    residual, error
        What was observed by bin, and its standard error.
    mass
        Share of each bin.
    """
    size = np.abs(residual)
    observed = float(size.sum())
    if observed == 0:
        return mass, mass
    ratio = np.divide(error, size, out=np.full(size.shape, np.inf), where=size != 0)
    sparse = residual * (1 - np.minimum(SET_ASIDE * ratio, 1.0) ** 2)
    sparse = sparse if sparse.any() else residual
    even = np.where(residual < 0, -mass, mass) / 2 + residual / (2 * observed)
    return sparse / np.abs(sparse).sum(), even / np.abs(even).sum()
