"""The law of a sum of parts with few values each, without a Fourier transform.

Of some ten answers per model a bin holds one or two, and its error takes two or three values. All
combinations of half of the bins are then soon listed, and a sum over the other half is looked up.
A transform of thousands of points would take ten times as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["FewLaw", "few_law", "small_count_law"]

FloatArray: TypeAlias = NDArray[np.float64]
IndexArray: TypeAlias = NDArray[np.intp]

# Combinations that are listed: of the half that is summed over, and of the one looked up.
MOST_SUMMED = 1_000
MOST_LISTED = 15_000


def small_count_law(chances: Sequence[float]) -> list[float]:
    """Return the law of the number of successes among trials with these chances.

    Examples
    --------
    >>> small_count_law([0.5, 0.5, 0.5])
    [0.125, 0.375, 0.375, 0.125]
    """
    law = [1.0]
    for chance in chances:
        other = 1.0 - chance
        law = [
            other * missed + chance * hit
            for missed, hit in zip([*law, 0.0], [0.0, *law], strict=True)
        ]
    return law


class FewLaw:
    """A law on the multiples of `step`, as the sum of two independent lists of values.

    Parameters
    ----------
    step, points
        Step of the lattice and the number of its points.
    summed, listed
        Places on the lattice and their probabilities, for either half; places may repeat.
    """

    def __init__(
        self,
        step: float,
        points: int,
        summed: tuple[IndexArray, FloatArray],
        listed: tuple[IndexArray, FloatArray],
    ) -> None:
        self.step, self.points = step, points
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

    def mean(self) -> float:
        """Return the mean, in steps."""
        return sum(float(place @ probability) for place, probability in self._halves)

    @property
    def _halves(self) -> tuple[tuple[IndexArray, FloatArray], tuple[IndexArray, FloatArray]]:
        return self._summed, self._listed

    def quantile(self, share: float) -> float:
        """Return where the law passes `share`, in steps, linear between lattice points."""
        low, high = -1, self.points - 1
        beyond = {low: 1.0}
        while high - low > 1:
            middle = (low + high) // 2
            beyond[middle] = self.at_least(middle + 1)
            low, high = (middle, high) if 1 - beyond[middle] <= share else (low, middle)
        if low < 0:
            return 0.0
        above = beyond.get(high, 0.0)
        return low + (share - (1 - beyond[low])) / (beyond[low] - above)


def few_law(
    parts: Sequence[tuple[FloatArray, FloatArray]], step: float, points: int
) -> FewLaw | None:
    """Return the law of a sum of independent parts, or None where they have too many values.

    Parameters
    ----------
    parts
        Values and probabilities of each part.
    step, points
        Step of the lattice that values are rounded to, and the number of its points.

    Examples
    --------
    >>> coin = (np.array([0.0, 1.0]), np.array([0.5, 0.5]))
    >>> law = few_law([coin, coin], 0.25, 16)
    >>> law.at_least(7), law.mean()
    (0.25, 4.0)
    """
    halves: list[tuple[IndexArray, FloatArray]] = [
        (np.zeros(1, np.intp), np.ones(1)) for _ in range(2)
    ]
    for value, probability in sorted(parts, key=lambda part: -part[0].size):
        # The next part goes to the half with fewer combinations so far.
        smaller = 0 if halves[0][0].size <= halves[1][0].size else 1
        place, held = halves[smaller]
        if place.size * value.size > (MOST_SUMMED, MOST_LISTED)[smaller]:
            smaller = 1 - smaller
            place, held = halves[smaller]
            if place.size * value.size > (MOST_SUMMED, MOST_LISTED)[smaller]:
                return None
        at = np.rint(value / step).astype(np.intp)
        halves[smaller] = (
            np.add.outer(place, at).ravel(),
            np.multiply.outer(held, probability).ravel(),
        )
    # What the lattice leaves out has a probability of 1e-16; it is counted at its end.
    summed, listed = ((np.minimum(at, points - 1), held) for at, held in halves)
    return FewLaw(step, points, summed, listed)
