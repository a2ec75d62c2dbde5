"""How large is a calibration error over cells: an estimate, two ends and an upper bound."""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct
from scipy.special import ndtr

from calibrant.core.arrays import Floats, Mask
from calibrant.metrics.stats.bootstrap import root_between
from calibrant.metrics.stats.cells import CellTable

_ROOT = math.sqrt(2 / math.pi)
# The root is looked for in one of so many steps.
_STEPS = 400
# Beyond so many standard errors a gap keeps its sign, and its square loses its digits.
_FAR = 8.0
# Gaps of fewer standard errors may be 0.
_MAYBE_NONE = 2.0


def mean_size(ratio: Floats) -> Floats:
    """Return the mean of |ratio + Z| for a standard normal Z."""
    mean = _ROOT * np.exp(-ratio * ratio / 2) + ratio * (1 - 2 * ndtr(-ratio))
    return np.asarray(mean, dtype=np.float64)


def error_estimate(table: CellTable) -> float:
    """Return the error without what noise adds to it, at gaps shrunk towards 0."""
    size, noise = np.abs(table.gap), np.maximum(table.noise, 1e-9)
    ratio = np.maximum(size / noise, 1e-9)
    shrunk = size * np.maximum(1 - 1 / ratio**2, 0.0)
    over = noise * mean_size(shrunk / noise) - shrunk
    return max(table.total - float(table.share @ over), 0.0)


def shares_variance(table: CellTable, rows: float) -> float:
    """Return the variance that the error has because the shares of the cells vary."""
    size = np.abs(table.gap)
    return max(float(table.share @ size**2) - float(table.share @ size) ** 2, 0.0) / rows


def lower_end(table: CellTable, z: float, extra: float) -> float:
    """Return the low end: gaps that noise explains may be 0, the others keep their size."""
    size, error = np.abs(table.gap), table.stray
    ratio = size / error
    sure = 1 - (_MAYBE_NONE / np.maximum(ratio, 1e-9)) ** 2
    mask = size * np.where(ratio > _MAYBE_NONE, sure, 0.0)
    remaining = mask / error
    display = mean_size(remaining)
    over = error * display - mask
    spread = (table.share * error) ** 2 @ (1 + remaining**2 - display**2)
    return max(table.total - float(table.share @ over) - z * math.sqrt(float(spread) + extra), 0.0)


class UpperBound(Struct, frozen=True):
    """The largest error that is not ruled out, by inverting a test.

    Among all gaps with one error, those in proportion to the noise make the observed sum smallest
    on average; its mean and variance are then known.

    Parameters
    ----------
    total
        Error as it looks.
    scale
        Sum of shares times noise.
    square
        Variance of the sum where all gaps are far from 0.
    extra
        Variance that the shares of the cells add.
    """

    total: float
    scale: float
    square: float
    extra: float = 0.0

    @classmethod
    def of(cls, table: CellTable, extra: float, square: float | None = None) -> UpperBound:
        """Return the bound of a table; `square` where cells do not vary apart from each other."""
        distance = float(((table.share * table.stray) ** 2).sum())
        scale = max(float(table.share @ table.noise), 1e-12)
        return cls(table.total, scale, distance if square is None else square, extra)

    def _reach(self, error: float) -> tuple[float, float]:
        """Return by how much the sum would lie above the one seen, and its standard error."""
        ratio = error / self.scale
        mean = _ROOT * math.exp(-ratio * ratio / 2) + ratio * math.erf(ratio * math.sqrt(0.5))
        part = 1.0 if ratio > _FAR else 1 + ratio**2 - mean**2
        spread = math.sqrt(max(self.square * part, 0.0) + self.extra)
        return self.scale * mean - self.total, spread

    def at(self, z: float) -> float:
        """Return the bound at so many standard errors.

        The quotient of both parts of `_reach` rises with the error, as erf(r / sqrt 2) is above
        2 r phi(r): the bound is where it passes z, and halving finds it.

        Examples
        --------
        >>> round(UpperBound(0.1, 0.02, 0.0004).at(1.645), 3)
        0.133
        """

        def room(error: float) -> float:
            above, spread = self._reach(error)
            return above - z * spread

        if room(1.0) <= 0:
            return 1.0
        low, high = 0, _STEPS
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if room(middle / _STEPS) > 0 else (middle, high)
        below, above_it = ((place / _STEPS, room(place / _STEPS)) for place in (low, high))
        if not below[1] < 0 < above_it[1]:
            return below[0]
        return root_between(room, below, above_it)

    def z_below(self, threshold: float) -> float:
        """Return at how many standard errors the bound is the threshold.

        Examples
        --------
        >>> bound = UpperBound(0.1, 0.02, 0.0004)
        >>> round(bound.z_below(bound.at(1.645)), 3)
        1.645
        """
        above, spread = self._reach(threshold)
        return above / max(spread, 1e-15)


def planned_bound(
    table: CellTable, spread: Floats, noise_ratio: float = 1.0, *, together: bool = False
) -> UpperBound:
    """Return the bound that a calibrated model would show in the middle, from confidences alone.

    Parameters
    ----------
    table
        The cells.
    spread
        Mean of c (1 - c) in each cell.
    noise_ratio
        Standard error of a gap over that of independent rows.
    together
        Whether all cells may move as one.
    """
    p = (table.said * table.rows + 2) / (table.rows + 4)
    smooth = np.sqrt(p * (1 - p) / table.rows) * noise_ratio
    noise = np.sqrt(spread / table.rows) * noise_ratio
    stray = table.share * np.maximum(smooth, noise)
    square = float(stray.sum()) ** 2 if together else float((stray**2).sum())
    scale = max(float(table.share @ noise), 1e-12)
    return UpperBound(_ROOT * float(table.share @ noise), scale, square)


def excess(size: Floats, error: Floats) -> Floats:
    """Return how much larger the absolute value of a normal variable is than `size`, on average."""
    scale = np.maximum(error, 1e-12)
    return np.asarray(scale * mean_size(size / scale) - size, dtype=np.float64)


def ece_interval(
    gap: Floats, error: Floats, weight: Floats, z: float, extra: float = 0.0
) -> tuple[float, float, float]:
    """Return the bias-corrected ECE with both ends.

    With the true signs held fixed, the signed sum of gaps is nearly normal around the ECE. What
    the absolute value adds on top depends on the true gap; each end takes off what a gap one
    standard error further in its own direction would add. `extra` is variance of the signed sum
    that no bin accounts for.

    Examples
    --------
    >>> half = np.array([0.5, 0.5])
    >>> found = ece_interval(np.array([0.1, -0.1]), np.array([0.02, 0.02]), half, 1.96)
    >>> [round(end, 3) for end in found]
    [0.1, 0.072, 0.128]
    """
    size = np.abs(gap)
    spread = z * float(np.sqrt(((weight * error) ** 2).sum() + extra))
    value = float(weight @ np.maximum(size - excess(size, error), 0.0))
    low = float(weight @ (size - excess(np.maximum(size - error, 0.0), error))) - spread
    high = float(weight @ (size - excess(size + error, error))) + spread
    return value, min(max(0.0, low), value), max(min(1.0, high), value)


def claim_holds(
    total: Floats,
    mean_error: Floats,
    square_error: Floats,
    z: Floats | float,
    threshold: Floats,
    lean: Floats | float = 0.0,
) -> Mask:
    """Say whether the data rule out a calibration error of `threshold` or more.

    Parameters
    ----------
    total
        ``sum w |g|``.
    mean_error, square_error
        ``sum w s`` and ``sum w^2 s^2``.
    z
        Normal quantile of one side.
    threshold
        The error in question, after what unseen bins may hold was taken off.
    lean
        Third moment of the sum over its variance: above 0 where few labels pull it far upwards.

    Notes
    -----
    Among all gaps with this ECE, gaps proportional to the standard errors make the observed sum
    smallest on average; its mean and variance are then known. Where few wrong answers make up
    the sum, it is small just when its variance seems small; the bound is moved for that, to
    second order (Hall 1992, Biometrika 79).
    """
    scale = np.maximum(mean_error, 1e-12)
    c = np.maximum(threshold, 0.0) / scale
    mean = mean_size(c)
    spread = np.sqrt(np.maximum(square_error * (1 + c * c - mean * mean), 0.0))
    moved = total + (2 * np.square(z) + 1) / 6 * lean
    return np.asarray((threshold > 0) & (moved < scale * mean - z * spread))


def ece_upper(
    gap: Floats,
    error: Floats,
    weight: Floats,
    z: float,
    unseen: float = 0.0,
    lean: float = 0.0,
    extra: float = 0.0,
) -> float:
    """Return the upper bound of the ECE by inverting the test of `claim_holds`.

    Parameters
    ----------
    gap, error, weight
        Gap, standard error and share of the pool of each bin with labels.
    z
        Normal quantile of one side: 1.645 for 95 %, larger with looks.
    unseen
        The most that bins without labels can add.
    lean
        As for `claim_holds`.
    extra
        Variance of the sum that no bin accounts for: their shares vary too.

    Examples
    --------
    >>> round(ece_upper(np.array([0.1]), np.array([0.02]), np.array([1.0]), 1.645), 3)
    0.133
    """
    moved = float(weight @ np.abs(gap)) + (2 * z * z + 1) / 6 * lean
    scale, square = max(float(weight @ error), 1e-12), float(((weight * error) ** 2).sum())
    low = UpperBound(moved, scale, square, extra).at(z)
    return 1.0 if low >= 1.0 - unseen else low + unseen
