"""An upper bound for a sum of absolute gaps, by inverting a test: how large may the error be?

Used wherever calibrant says that a calibration error is small: in audits, plans and while labels
come in. One test, so that they agree.
"""

import math

import numpy as np
from scipy.special import ndtr

from calibrant.core.arrays import Floats, Mask
from calibrant.stats.inversion import root_between

_ROOT = float(np.sqrt(2 / np.pi))
_GRID = np.linspace(0, 1, 201)


def _mean_size(c: Floats) -> Floats:
    """Return the mean of ``|c + Z|`` for a standard normal Z."""
    return np.asarray(_ROOT * np.exp(-c * c / 2) + c * (1 - 2 * ndtr(-c)), dtype=np.float64)


def excess(size: Floats, error: Floats) -> Floats:
    """Return how much larger the absolute value of a normal variable is than `size`, on average."""
    scale = np.maximum(error, 1e-12)
    return np.asarray(scale * _mean_size(size / scale) - size, dtype=np.float64)


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
    extra: float = 0.0,
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
    extra
        Variance of the sum that no bin accounts for: their shares vary too.

    Notes
    -----
    Among all gaps with this ECE, gaps proportional to the standard errors make the observed sum
    smallest on average; its mean and variance are then known. Where few wrong answers make up
    the sum, it is small just when its variance seems small; the bound is moved for that, to
    second order (Hall 1992, Biometrika 79).
    """
    scale = np.maximum(mean_error, 1e-12)
    c = np.maximum(threshold, 0.0) / scale
    mean = _mean_size(c)
    spread = np.sqrt(np.maximum(square_error * (1 + c * c - mean * mean), 0.0) + extra)
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
    lean, extra
        As for `claim_holds`.

    Examples
    --------
    >>> round(ece_upper(np.array([0.1]), np.array([0.02]), np.array([1.0]), 1.645), 3)
    0.133
    """
    total, scale = float(weight @ np.abs(gap)), max(float(weight @ error), 1e-12)
    square = float(((weight * error) ** 2).sum())
    sums = np.array([[total], [scale], [square]])
    # The largest error that is not ruled out: on a grid, then where the test just holds.
    held = claim_holds(sums[0], sums[1], sums[2], z, _GRID, lean, extra)
    last = int(np.flatnonzero(~held)[-1])
    if last == _GRID.size - 1:
        return 1.0
    moved = total + (2 * z * z + 1) / 6 * lean

    def room(threshold: float) -> float:
        """Return the two sides of the test's inequality, one minus the other."""
        c = threshold / scale
        mean = _ROOT * math.exp(-c * c / 2) + c * math.erf(c / math.sqrt(2))
        spread = math.sqrt(max(square * (1 + c * c - mean * mean), 0.0) + extra)
        return scale * mean - z * spread - moved

    below, above = ((at, room(at)) for at in _GRID[last : last + 2].tolist())
    low = root_between(room, below, above) if below[1] < 0 < above[1] else below[0]
    return 1.0 if low >= 1.0 - unseen else low + unseen
