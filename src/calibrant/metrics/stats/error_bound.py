"""An upper bound for a sum of absolute gaps, by inverting a test: how large may the error be?

Used wherever calibrant says that a calibration error is small: in audits, plans and while labels
come in. One test, so that they agree.
"""

import numpy as np
from scipy.special import ndtr

from calibrant.core.arrays import Floats, Mask
from calibrant.metrics.stats.cell_bounds import UpperBound

_ROOT = float(np.sqrt(2 / np.pi))


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
    mean = _mean_size(c)
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
