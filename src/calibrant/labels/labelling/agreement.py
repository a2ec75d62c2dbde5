"""Do two labellers agree, and what do their mistakes do to the numbers?"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from calibrant.core.errors import InputError
from calibrant.core.estimate import Estimate
from calibrant.metrics.stats.intervals import wilson_interval

_Z = 1.959964


def cohen_kappa(first: Sequence[float], second: Sequence[float]) -> Estimate:
    """Return Cohen's kappa of two people's labels of the same items.

    The interval is Fleiss' large-sample one; half an item is added to each cell, so that a few
    items on which everybody agrees are no proof of perfection.

    Parameters
    ----------
    first, second
        Labels 0 or 1 of the same items, in the same order; who is first does not matter.

    Examples
    --------
    >>> print(cohen_kappa([1, 1, 0, 0, 1, 1, 0, 1] * 5, [1, 1, 0, 0, 1, 0, 0, 1] * 5))
    0.750 [0.502, 0.926]
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.shape != b.shape or a.ndim != 1 or not a.size:
        raise InputError("agreement needs the labels of two people for the same items")
    table = np.array([[((a == x) & (b == y)).sum() for y in (0, 1)] for x in (0, 1)], float)
    value = _kappa(table / a.size)
    share = (table + 0.5) / (a.size + 2.0)
    centre, error = _kappa(share), _kappa_error(share, a.size + 2.0)
    quantile = float(stdtrit(max(a.size - 1, 1), 0.975))
    low, high = max(-1.0, centre - quantile * error), min(1.0, centre + quantile * error)
    return Estimate(value, min(low, value), max(high, value), n=int(a.size), interval="fleiss")


def _kappa(share: Any) -> float:
    agreed = float(np.trace(share))
    chance = float(share.sum(axis=0) @ share.sum(axis=1))
    return 1.0 if chance >= 1.0 else (agreed - chance) / (1.0 - chance)


def _kappa_error(share: Any, n: float) -> float:
    """Return the standard error of Fleiss, Cohen and Everitt (1969)."""
    row, column = share.sum(axis=1), share.sum(axis=0)
    agreed, chance = float(np.trace(share)), float(row @ column)
    kappa = (agreed - chance) / (1.0 - chance)
    keep = sum(share[i, i] * (1 - (row[i] + column[i]) * (1 - kappa)) ** 2 for i in range(2))
    cross = (1 - kappa) ** 2 * sum(
        share[i, j] * (column[i] + row[j]) ** 2 for i in range(2) for j in range(2) if i != j
    )
    variance = keep + cross - (kappa - chance * (1 - kappa)) ** 2
    return math.sqrt(max(variance, 0.0) / n) / (1.0 - chance)


@dataclass(frozen=True, slots=True)
class LabelNoise:
    """How often one label is wrong, from items that two people labelled.

    Parameters
    ----------
    rate
        Chance that a single label is wrong, the same for right and wrong answers; people are
        taken to err independently of each other.
    pairs
        Items with two labels.
    """

    rate: Estimate
    pairs: int

    def corrected(self, rate: Estimate) -> Estimate:
        """Return the accuracy behind labels that are wrong this often.

        A label turns right into wrong and back with the same chance e, so the share of 'right'
        labels is ``e + (1 - 2 e) accuracy``. The interval joins both sources of doubt.

        Examples
        --------
        >>> noise = LabelNoise(Estimate(0.1, 0.05, 0.15, n=100), 100)
        >>> print(noise.corrected(Estimate(0.74, 0.70, 0.78, n=500)))
        0.800 [0.740, 0.866]
        """

        def solve(share: float, wrong: float) -> float:
            return (share - wrong) / (1.0 - 2.0 * min(wrong, 0.45))

        value = solve(rate.value, self.rate.value)
        ends = []
        for side, end in ((-1.0, rate.low), (1.0, rate.high)):
            from_labels = solve(end, self.rate.value) - value
            moved = [solve(rate.value, wrong) - value for wrong in (self.rate.low, self.rate.high)]
            from_noise = max(side * shift for shift in (*moved, 0.0))
            ends.append(value + side * math.hypot(from_labels, from_noise))
        low, high = max(0.0, min(ends[0], 1.0)), max(0.0, min(ends[1], 1.0))
        return Estimate(min(max(value, 0.0), 1.0), low, high, n=rate.n, interval="rogan-gladen")


def label_noise(first: Sequence[float], second: Sequence[float]) -> LabelNoise:
    """Return how often a single label is wrong, from the share of items two people differ on.

    Two independent labels with the same error rate e differ with probability ``2 e (1 - e)``.

    Examples
    --------
    >>> noise = label_noise([1] * 82 + [0] * 18, [1] * 100)
    >>> round(noise.rate.value, 2)
    0.1
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if a.shape != b.shape or not a.size:
        raise InputError("label noise needs two labels of the same items")
    differ = float((a != b).mean())
    low, high = wilson_interval(differ, a.size)

    def single(share: float) -> float:
        return (1.0 - math.sqrt(max(1.0 - 2.0 * min(share, 0.5), 0.0))) / 2.0

    rate = Estimate(single(differ), single(float(low)), single(float(high)), n=int(a.size))
    return LabelNoise(rate, int(a.size))
