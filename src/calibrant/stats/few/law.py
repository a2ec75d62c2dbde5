"""The law of a sum of parts with few values each, without a Fourier transform.

Of some ten answers per model a bin holds one or two, and its error takes two or three values. All
combinations of half of the bins are then soon listed, and a sum over the other half is looked up.
A transform of thousands of points would take ten times as long.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["FewLaw", "few_law", "lattice_step"]

FloatArray: TypeAlias = NDArray[np.float64]
IndexArray: TypeAlias = NDArray[np.intp]

# Tilts tried for the bound on a sum, in units of one over its standard deviation.
TILTS = np.geomspace(0.5, 40.0, 12)
# Combinations that are listed: of the half that is summed over, and of the one looked up.
MOST_SUMMED = 1_000
MOST_LISTED = 15_000


def lattice_step(
    value: FloatArray, probability: FloatArray, sizes: Sequence[int], points: int
) -> float:
    """Return the step of a lattice that holds a sum of independent parts.

    Parameters
    ----------
    value, probability
        The laws of all parts, one after the other.
    sizes
        How many values each part has.
    points
        Points of the lattice. The sum stays below the last one but for a probability of 1e-16
        (Chernoff's bound), and so does what rounding adds to it.

    Examples
    --------
    >>> coins = np.array([0.0, 1.0, 0.0, 1.0])
    >>> lattice_step(coins, np.full(4, 0.5), [2, 2], 1003)
    0.002
    """
    return _most(value, probability, sizes) / (points - 1 - len(sizes))


def _most(value: FloatArray, probability: FloatArray, sizes: Sequence[int]) -> float:
    """Return a value that the sum exceeds with a probability of at most 1e-16.

    Parameters
    ----------
    value, probability
        The laws of all parts, one after the other.
    sizes
        How many values each part has.
    """
    starts = np.array([0, *accumulate(sizes[:-1])])
    whole = float(np.maximum.reduceat(value, starts).sum())
    squares = float(value**2 @ probability)
    if squares == 0:
        return whole or 1.0
    tilts = TILTS / math.sqrt(squares)
    # A probability of 0 has the logarithm -inf and adds nothing.
    with np.errstate(divide="ignore"):
        exponent = np.multiply.outer(tilts, value) + np.log(probability)
    largest = np.maximum.reduceat(exponent, starts, axis=1)
    sums = np.add.reduceat(np.exp(exponent - np.repeat(largest, sizes, axis=1)), starts, axis=1)
    logs = (largest + np.log(sums)).sum(axis=1)
    return float(min(whole, ((logs + math.log(1e16)) / tilts).min()))


class FewLaw:
    """A law on the multiples of `step`, as the sum of two independent lists of values.

    Parameters
    ----------
    step, points
        Step of the lattice and the number of its points.
    summed, listed
        Places on the lattice and their probabilities, for either half; places may repeat.
    mean
        The mean, from the values before they were rounded to the lattice.
    """

    def __init__(
        self,
        step: float,
        points: int,
        summed: tuple[IndexArray, FloatArray],
        listed: tuple[IndexArray, FloatArray],
        mean: float,
    ) -> None:
        self.step, self.points, self.mean = step, points, mean
        self._summed, self._listed = summed, listed

    @cached_property
    def _beyond(self) -> tuple[IndexArray, FloatArray]:
        """The listed places in order, and the probability of each with all above it."""
        place, probability = self._listed
        order = place.argsort()
        beyond = np.zeros(place.size + 1)
        np.cumsum(probability[order[::-1]], out=beyond[-2::-1])
        return place[order], beyond

    def at_least(self, place: int) -> float:
        """Return the probability of `place` and everything above it."""
        at, probability = self._summed
        listed, beyond = self._beyond
        return float(probability @ beyond[listed.searchsorted(place - at)])

    def quantile(self, share: float) -> float:
        """Return where the law passes `share`, in steps, linear between lattice points."""
        low, high = -1, int(self._summed[0].max() + self._listed[0].max()) + 1
        beyond, looks = {low: 1.0, high: 0.0}, 0
        while high - low > 1:
            # Near the quantile the law falls about as fast as it does in the mean.
            fall = (beyond[low] - (1 - share)) / (beyond[low] - beyond[high])
            guess = low + (high - low) * (fall if looks % 2 else 0.5)
            middle, looks = min(max(int(guess), low + 1), high - 1), looks + 1
            beyond[middle] = self.at_least(middle + 1)
            low, high = (middle, high) if 1 - beyond[middle] <= share else (low, middle)
        if low < 0:
            return 0.0
        above = beyond.get(high, 0.0)
        return low + (share - (1 - beyond[low])) / (beyond[low] - above)


def few_law(
    home: Sequence[int], trials: Sequence[float], chance: Sequence[float], points: int
) -> FewLaw | None:
    """Return the law of the summed errors of bins, or None where it has too many values.

    The error of a bin is by how much its right answers differ from what its confidences promise.

    Parameters
    ----------
    home
        Bin of each cell of equal confidences, rising from 0.
    trials, chance
        Answers in each cell, and their chance to be right.
    points
        Points of the lattice that errors are rounded to.

    Examples
    --------
    >>> law = few_law([0, 1], [1.0, 1.0], [0.5, 0.5], 1024)
    >>> round(law.mean, 6), round(law.at_least(1), 6)
    (1.0, 1.0)
    """
    laws = _bin_laws(home, trials, chance)
    sizes = [len(law) for law, _ in laws]
    value = np.abs([mean - place for law, mean in laws for place in range(len(law))])
    probability = np.array([part for law, _ in laws for part in law])
    step = lattice_step(value, probability, sizes, points)
    halves = _halves(np.rint(value / step).astype(np.intp), probability, sizes)
    if halves is None:
        return None
    # What the lattice leaves out has a probability of 1e-16; it is counted at its end.
    summed, listed = ((np.minimum(at, points - 1), held) for at, held in halves)
    return FewLaw(step, points, summed, listed, float(value @ probability))


def _bin_laws(
    home: Sequence[int], trials: Sequence[float], chance: Sequence[float]
) -> list[tuple[list[float], float]]:
    """Return, for each bin, the law of its right answers and their mean."""
    laws = [[1.0] for _ in range(home[-1] + 1)]
    means = [0.0] * len(laws)
    for number, count, one in zip(home, trials, chance, strict=True):
        means[number] += count * one
        other, law = 1.0 - one, laws[number]
        # One answer after the other: it is right, or it is not.
        for _ in range(round(count)):
            pairs = zip([*law, 0.0], [0.0, *law], strict=True)
            law = [other * missed + one * hit for missed, hit in pairs]
        laws[number] = law
    return list(zip(laws, means, strict=True))


def _halves(
    place: IndexArray, probability: FloatArray, sizes: Sequence[int]
) -> list[tuple[IndexArray, FloatArray]] | None:
    """Return all combinations of the parts in two halves, or None where there are too many."""
    most = (MOST_SUMMED, MOST_LISTED)
    counts = [1, 1]
    chosen: list[list[int]] = [[], []]
    for part in sorted(range(len(sizes)), key=lambda part: -sizes[part]):
        # The next part goes to the half with fewer combinations so far, if it has room.
        order = (0, 1) if counts[0] <= counts[1] else (1, 0)
        half = next((h for h in order if counts[h] * sizes[part] <= most[h]), None)
        if half is None:
            return None
        counts[half] *= sizes[part]
        chosen[half].append(part)
    ends = [0, *accumulate(sizes)]
    out = []
    for parts in chosen:
        at, held = np.zeros(1, np.intp), np.ones(1)
        for part in parts:
            own = slice(ends[part], ends[part + 1])
            at = (at[:, None] + place[own]).ravel()
            held = (held[:, None] * probability[own]).ravel()
        out.append((at, held))
    return out
