"""The interval of a model's ECE in a view, and of the gap between two.

One model: a test inverted, with the noise of the resamples.

The ECE is a sum of absolute residuals and never below 0, while its bootstrap lies too high, and
moved back by its bias it reaches below 0. As in an audit (`calibrant.metrics.intervals.gap`),
candidate values are tested instead: residuals with that absolute sum, plus the noise that the
resamples of questions show, weights and all. A candidate stays where the observed ECE is not
extreme among those. The low end is 0 where perfect calibration is not contradicted.

Two models: the spread of the paired gap. The ECE of the data lies above the true one, more so for a
calibrated model than for one that is wrong everywhere, and what is left of that in the gap is not
known: between none of it and all that perfect calibration would bring.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace
from scipy import special

from calibrant.core.arrays import Estimate, Floats
from calibrant.metrics.intervals.gap import LUCK, POINTS, candidate_lines
from calibrant.metrics.stats.bootstrap import first_crossing, share_of
from calibrant.metrics.stats.intervals import normal_quantile

Singles: TypeAlias = npt.NDArray[np.float32]

# A sum of absolute normal numbers around 0 is all bias. Its resamples have twice the variance, so
# they lie above it by this share of it; away from 0 they show a larger share of a smaller bias.
SEEN_AGAIN = math.sqrt(2) - 1
# 98 % intervals: at 95 % up to 4 % of verdicts were false where the truth is known.
REACH = 2.326
VERDICT_LEVEL = 0.98
# Differences below this are none.
NOTHING = 1e-6

# Shares below this are none.
_NO_SHARE = 1e-10
# Resamples behind a 90 % interval: it is worked out for thousands of pairs.
_ENOUGH = 400


def ece_estimate(residuals: Floats, n: int, *, level: float = 0.95) -> Estimate:
    """Return the ECE with its interval, whose ends lie between 0 and 1.

    Parameters
    ----------
    residuals
        (bins, 1 + resamples): share of the bin times its gap, in the data and in every resample;
        resamples without rows are NaN and left out.
    n
        Questions behind it.
    level
        Coverage.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> noise = 0.01 * rng.standard_normal((5, 1000))
    >>> seen = 0.01 * np.array([[1.0], [-1.0], [0.5], [1.0], [-0.5]])
    >>> found = ece_estimate(np.hstack([seen, seen + noise]), 400)
    >>> round(found.value, 2), found.low
    (0.04, 0.0)
    """
    observed, draws = residuals[:, 0], residuals[:, 1:]
    value = float(np.abs(observed).sum())
    sound = np.isfinite(draws).all(axis=0)
    draws = draws if sound.all() else draws[:, sound]
    if draws.shape[1] < 2 or not math.isfinite(value):
        return Estimate(value, math.nan, math.nan, n, level, interval="none")
    noise = draws - draws.mean(axis=1, keepdims=True)
    error = noise.std(axis=1, ddof=1)
    # Where the true residuals may point: few large ones, or all bins alike. How far the ECE of the
    # data lies above the true one depends on that: most where few bins carry it all. The variance
    # of a bin's residual stands for its share of rows.
    share = np.square(error)
    if value == 0 or not share.any():
        peaked = np.abs(observed) + share
        peaked = peaked / peaked.sum() if peaked.any() else np.full_like(peaked, 1 / peaked.size)
        even = peaked
    else:
        peaked, even = candidate_lines(observed, error, share / share.sum())
    reach = 5 * math.sqrt(float(error @ error))
    # The low end lies below the observed value by noise and bias, the high end above by noise.
    lowest = max(value - reach - float(error.sum()), 0.0)
    down = np.unique(np.append(np.linspace(lowest, value, POINTS), 0.0))
    # No ECE is above 1, so nothing above it is a candidate.
    up = np.linspace(value, max(min(value + reach, 1.0), value), POINTS)[::-1]
    display, above = _shown(down, peaked, noise), _shown(up, even, noise)
    low = first_crossing(down, lambda place: share_of(display[place] >= value), level)
    high = up[0] - first_crossing(up[0] - up, lambda place: share_of(above[place] <= value), level)
    if (above[-1] <= value).mean() < LUCK:
        # Less error than even the observed amount would mostly show, by luck.
        high = max(high, float(np.median(above[-1])))
    return Estimate(value, min(low, value), max(high, value), n, level, interval="test-inversion")


class Gap(Struct, frozen=True):
    """Error of the first model minus that of the second; below 0 the first is better.

    `bias` is by how much at most the value is too high (below 0: too low), `slack` how far
    answers without a stated confidence could move it. `reach` is the half width of the interval
    in standard errors.
    """

    value: float
    sd: float
    bias: float
    slack: float = 0.0
    reach: float = REACH

    @property
    def low(self) -> float:
        """Low end of the interval, moved down by what bias may have added."""
        return self.value - self.reach * self.sd - max(self.bias, 0.0) - self.slack

    @property
    def high(self) -> float:
        """High end of the interval."""
        return self.value + self.reach * self.sd - min(self.bias, 0.0) + self.slack

    @property
    def left(self) -> float:
        """What its largest bias leaves of the size of the gap."""
        towards = self.bias * math.copysign(1.0, self.value)
        return max(abs(self.value) - max(towards, 0.0), 0.0)

    @property
    def p_value(self) -> float:
        """Two-sided p-value of 'no difference'."""
        if math.isnan(self.sd):
            return math.nan
        if self.left <= NOTHING:
            return 1.0
        return float(2 * special.ndtr(-self.left / self.sd)) if self.sd > 0 else 0.0

    def student_p_value(self, units: float) -> float:
        """Return the same by Student's law of so many questions; NaN without spread.

        A share of resamples is never below one in their number, too coarse for what is corrected
        for many pairs.
        """
        if not self.sd > 0:
            return 1.0 if self.sd == 0 == self.value else math.nan
        return float(2 * special.stdtr(max(units - 1, 1), -self.left / self.sd))

    def side(self, beyond: float = 0.0) -> int:
        """Return -1 where the first has the smaller error by more than that, 1 the second, or 0."""
        return (self.low > beyond + NOTHING) - (self.high < -beyond - NOTHING)

    def estimate(self, n: int, *, level: float = VERDICT_LEVEL) -> Estimate:
        """Return the gap as the document tells it."""
        if math.isnan(self.sd):
            return Estimate(self.value, math.nan, math.nan, n, level, interval="none")
        gap = replace(self, reach=REACH if level == VERDICT_LEVEL else normal_quantile(level))
        # No two errors lie further apart.
        ends = max(gap.low, -1.0), min(gap.high, 1.0)
        return Estimate(self.value, *ends, n, level, interval="bootstrap-bias-bounded")


def gaps_of(replicates: Floats) -> list[Gap]:
    """Return gaps in the data (column 0) with their spread over the resamples (the others).

    The spread of the resamples around the gap, and the same moved by its largest bias: the
    interval of a gap holds both. Undefined resamples are left out.

    Examples
    --------
    >>> (found,) = gaps_of(np.array([[0.10, 0.12, 0.10, 0.14]]))
    >>> round(found.bias, 3)
    0.048
    """
    values, draws = replicates[:, 0], replicates[:, 1:]
    if draws.shape[1] < 2:
        return [Gap(value, math.nan, math.nan) for value in values.tolist()]
    with np.errstate(invalid="ignore"):
        spread, mean = draws.std(axis=1, ddof=1), draws.mean(axis=1)
    gaps = []
    for row, part in enumerate(zip(values.tolist(), spread.tolist(), mean.tolist(), strict=True)):
        value, sd, middle = part
        if math.isfinite(sd):
            finite = math.isfinite(value)
            bias = (middle - value) / SEEN_AGAIN
            gaps.append(Gap(value, sd, bias) if finite else Gap(value, math.nan, math.nan))
            continue
        mask = np.append(True, np.isfinite(draws[row]))
        gaps += gaps_of(replicates[row : row + 1, mask])
    return gaps


def _shown(sizes: Floats, line: Floats, noise: Floats) -> Floats:
    """Return the ECE that each candidate size along the line would show in every draw."""
    visible = np.zeros((sizes.size, noise.shape[1]))
    # A bin at a time: tables of all would be asked of the system anew for every model.
    for share, part in zip(line, noise, strict=True):
        moved = (sizes * share)[:, None] + part
        visible += np.abs(moved, out=moved)
    return visible


class Residuals(Struct, frozen=True, dict=True):
    """What one footing shows of one model.

    `seen` (bins, 1) holds residuals of the data: share of the bin times its gap, whose absolute
    sum is the `error`; `drawn` (bins, 1 + resamples) those of the data and of the resamples, of
    pairs as many as an interval takes. `squares` is the plug-in squared error in the data and in
    every resample, `debiased` the one of the data without the part that noise adds, `excess` by
    how much the resamples overstate the variance of the squared error.
    """

    seen: Floats
    drawn: Singles
    error: Floats
    squares: Singles
    debiased: float
    excess: float

    @property
    def rms(self) -> float:
        """Root of the mean squared error, without what noise adds."""
        return math.sqrt(max(self.debiased, 0.0))

    @property
    def table(self) -> Floats:
        """(bins, 1 + resamples) residuals."""
        return joined(self.seen, self.drawn)

    @cached_property
    def range_90(self) -> tuple[float, float]:
        """90 % interval of the error; footings that several pairs share work it out once."""
        return self.moved_range(np.zeros(len(self.seen)))

    def moved_range(self, by: Floats) -> tuple[float, float]:
        """Return the 90 % interval of the error with all residuals moved, (bins,)."""
        ece = ece_estimate(self.table[:, : _ENOUGH + 1] + by[:, None], 0, level=0.9)
        return ece.low, ece.high


def joined(data: Floats, drawn: Floats | Singles) -> Floats:
    """Return what the resamples show, with the data itself (column 0) in double precision.

    Examples
    --------
    >>> drawn = np.array([0.1, 0.2], dtype=np.float32)
    >>> joined(np.array([0.1]), drawn)[0]
    np.float64(0.1)
    """
    replicates = drawn.astype(np.float64)
    replicates[..., 0] = data[..., 0]
    return replicates


def absolute_sums(residuals: Floats) -> Floats:
    """Return the error that residuals (.., bins, draws) make up."""
    return np.asarray(np.abs(residuals).sum(axis=-2))


def residuals_of(data: tuple[Floats, Floats], drawn: tuple[Floats, Floats]) -> list[Residuals]:
    """Return the errors that follow from residuals and shares, (footings, bins, draws).

    Parameters
    ----------
    data, drawn
        Those of the data in double precision; of the data and all resamples.
    """
    (observed, share), (residuals, shares) = data, drawn
    with np.errstate(divide="ignore", invalid="ignore"):
        squares = joined(_squares(observed, share), _squares(residuals, shares))
        squares[~np.isfinite(squares)] = np.nan
        moved, sound = residuals[:, :, 1:] - observed, np.isfinite(squares[:, 1:])
        if not sound.all():
            moved = np.where(sound[:, None], moved, 0.0)
        # The mean of what the resamples lie off the data is not far above its spread, so that
        # sums of squares keep the digits.
        number, second = sound.sum(axis=1)[:, None], np.einsum("...k,...k->...", moved, moved)
        variance = (second - np.square(moved.sum(axis=-1)) / number) / (number - 1)
        spread = np.where(number > 1, np.maximum(variance, 0.0), np.nan)
        ratio = np.where(share[:, :, 0] > 0, spread / share[:, :, 0], 0.0)
    debiased, excess = squares[:, 0] - ratio.sum(axis=1), 4 * np.square(ratio).sum(axis=1)
    errors = joined(absolute_sums(observed), absolute_sums(residuals))
    # Copies: a view would keep the footings of all partners in memory.
    subset, single = residuals[:, :, : _ENOUGH + 1].astype(np.float32), squares.astype(np.float32)
    return [
        Residuals(*part)
        for part in zip(
            observed, subset, errors, single, debiased.tolist(), excess.tolist(), strict=True
        )
    ]


def _squares(residuals: Floats, shares: Floats) -> Floats:
    squares = np.square(residuals)
    # A bin without rows has no residual either, beyond what is lost in the last digits.
    squares /= np.maximum(shares, _NO_SHARE)
    return np.asarray(squares.sum(axis=1))
