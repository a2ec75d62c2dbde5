"""The law of a sum of independent errors, computed instead of simulated.

How many of a bin's outcomes are right is a sum of independent yes-or-no draws; its law follows
from its characteristic function by one Fourier transform. The errors of the bins are independent,
so the law of their sum follows by another one, on a lattice whose step is far below the spread
of the sum.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import erfc

from calibrant.core.arrays import Floats

# What is left out of a law beyond its last value; rounding in the transforms is larger.
NEGLIGIBLE = 1e-18
# Tilts tried for the bound on a sum, in units of one over its standard deviation.
TILTS = np.geomspace(0.5, 40.0, 12)


class Atoms(NamedTuple):
    """A discrete law: values of at least 0 and their probabilities."""

    value: Floats
    probability: Floats


class Lattice(NamedTuple):
    """A law on the multiples of `step`: `probability[i]` belongs to ``i * step``."""

    step: float
    probability: Floats

    def at_least(self, place: int) -> float:
        """Return the probability of `place` and everything above it."""
        return float(self.probability[max(place, 0) :].sum())


def count_law(trials: Floats, chance: Floats) -> tuple[int, Floats]:
    """Return the law of a sum of binomial counts: its first value and the probabilities.

    Values that together have a probability below 1e-18 (Bernstein's bound) are left out, so a
    million trials need some thousand numbers.

    Parameters
    ----------
    trials, chance
        Trials and chance of success of each binomial, shape (k,).

    Examples
    --------
    >>> import numpy as np
    >>> first, law = count_law(np.array([2.0, 1.0]), np.array([0.5, 0.5]))
    >>> first, law.round(3).tolist()
    (0, [0.125, 0.375, 0.375, 0.125])
    """
    mean = float(trials @ chance)
    variance = float(trials @ (chance * (1 - chance)))
    # How far the sum strays with a probability of 1e-18 (Bernstein).
    depth = math.log(2 / NEGLIGIBLE)
    reach = depth / 3 + math.sqrt(depth**2 / 9 + 2 * depth * variance)
    first = max(math.floor(mean - reach), 0)
    last = min(math.ceil(mean + reach), round(float(trials.sum())))
    size = last - first + 1
    angle = 2 * np.pi * np.arange(size // 2 + 1) / size
    dip = 2 * np.sin(angle / 2) ** 2
    # The characteristic function is at most exp(-variance * dip): the rest stays 0.
    observed = int((variance * dip < -math.log(NEGLIGIBLE)).sum())
    angle, dip = angle[:observed], dip[:observed]
    # Log and angle apart, each count centred at its mean: a power would lose n times more digits.
    n, p = trials[:, None], chance[:, None]
    # A chance of 1/2 leaves nothing at half a turn.
    with np.errstate(divide="ignore"):
        size_log = (n / 2 * np.log1p(-2 * p * (1 - p) * dip)).sum(axis=0)
    flipped = n * (np.arctan2(p * np.sin(angle), 1 - p * dip) - p * angle)
    phase = (mean - first) * angle + flipped.sum(axis=0)
    spectrum = np.zeros(size // 2 + 1, np.complex128)
    spectrum[:observed] = np.exp(size_log - 1j * phase)
    law = np.fft.irfft(spectrum, size) if size > 1 else np.ones(1)
    return first, np.maximum(law, 0.0)


def half_normal_atoms(spread: float) -> Atoms:
    """Return the law of the absolute value of a normal error, in fine steps up to 9 spreads.

    Examples
    --------
    >>> atoms = half_normal_atoms(2.0)
    >>> round(float(atoms.value @ atoms.probability), 3)
    1.596
    """
    if spread == 0:
        return Atoms(np.zeros(1), np.ones(1))
    value = np.linspace(0.0, 9.0, 4001)
    edges = np.concatenate([[0.0], (value[1:] + value[:-1]) / 2, [np.inf]])
    # From the upper tail, so that small probabilities keep their digits.
    beyond = erfc(edges / math.sqrt(2))
    return Atoms(value * spread, -np.diff(beyond))


def sum_law(parts: Sequence[Atoms], points: int) -> Lattice:
    """Return the law of a sum of independent parts, each rounded to the lattice.

    Parameters
    ----------
    parts
        The laws of the parts.
    points
        Lattice points, a power of two. The step is chosen so that the sum stays below the last
        point but for a probability of 1e-16 (Chernoff's bound).

    Examples
    --------
    >>> import numpy as np
    >>> coin = Atoms(np.array([0.0, 1.0]), np.array([0.5, 0.5]))
    >>> law = sum_law([coin, coin], 1024)
    >>> round(law.at_least(round(1.9 / law.step)), 3)
    0.25
    """
    value, probability = (np.concatenate(column) for column in zip(*parts, strict=True))
    # Rounding may add half a step to each part.
    step = _most(value, probability, [part.value.size for part in parts]) / (
        points - 1 - len(parts)
    )
    product = np.ones(points // 2 + 1, np.complex128)
    for value, probability in parts:
        place = np.minimum(np.rint(value / step).astype(np.intp), points - 1)
        product *= np.fft.rfft(np.bincount(place, probability, points))
    return Lattice(step, np.maximum(np.fft.irfft(product, points), 0.0))


def _most(value: Floats, probability: Floats, sizes: Sequence[int]) -> float:
    """Return a value that the sum exceeds with a probability of at most 1e-16.

    Parameters
    ----------
    value, probability
        The laws of the parts, one after the other.
    sizes
        How many values each part has.
    """
    starts = np.cumsum([0, *sizes[:-1]])
    whole = float(np.maximum.reduceat(value, starts).sum())
    squares = float(value**2 @ probability)
    if squares <= 0:
        return whole if whole > 0 else 1.0
    tilts = TILTS[:, None] / math.sqrt(squares)
    # A probability of 0 has the logarithm -inf and adds nothing.
    with np.errstate(divide="ignore"):
        exponent = tilts * value + np.log(probability)
    largest = np.maximum.reduceat(exponent, starts, axis=1)
    sums = np.add.reduceat(np.exp(exponent - np.repeat(largest, sizes, axis=1)), starts, axis=1)
    logs = (largest + np.log(sums)).sum(axis=1)
    return min(whole, float(((logs + math.log(1e16)) / tilts[:, 0]).min()))
