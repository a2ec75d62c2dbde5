"""Intervals for sums of absolute values, by inverting a test along a line.

The binned calibration error is the sum of |d_b| over a vector d of mean residuals that is
nearly normal. Near d = 0 its plug-in is biased upwards and no bootstrap interval of the plug-in
covers. Here each candidate value is tested instead: the observed vector is scaled until its
absolute sum equals the candidate, noise of the variance that belongs to the candidate is added,
and the candidate is kept where the observed sum is not extreme among the simulated ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["crossing_interval", "halving_end"]

FloatArray: TypeAlias = NDArray[np.float64]


def crossing_interval(
    values: FloatArray, simulated: FloatArray, observed: float, level: float
) -> tuple[float, float]:
    """Return the range of candidate values that the observed statistic does not contradict.

    Parameters
    ----------
    values
        Rising candidates, shape (k,).
    simulated
        Simulated statistics under each candidate, shape (k, draws).
    observed
        The statistic of the data.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.linspace(0, 2, 41)
    >>> draws = np.abs(values[:, None] + 0.1 * np.linspace(-3, 3, 601))
    >>> low, high = crossing_interval(values, draws, 1.0, 0.5)
    >>> round(low, 2), round(high, 2)
    (0.85, 1.15)
    """
    tail = (1 - level) / 2
    draws = simulated.shape[1]
    # Half a draw on either side keeps a share of exactly 0 or 1 from deciding too much.
    above = ((simulated >= observed).sum(axis=1) + 0.5) / (draws + 1)
    below = ((simulated <= observed).sum(axis=1) + 0.5) / (draws + 1)
    low = _first_crossing(values, above, tail)
    high = values[-1] - _first_crossing(values[-1] - values[::-1], below[::-1], tail)
    return float(low), float(max(high, low))


def _first_crossing(places: FloatArray, shares: FloatArray, tail: float) -> float:
    """Return the first place where the share reaches the tail, linearly between grid points."""
    reached = np.flatnonzero(shares >= tail)
    if reached.size == 0:
        return float(places[-1])
    index = int(reached[0])
    if index == 0:
        return float(places[0])
    rise = shares[index] - shares[index - 1]
    part = (tail - shares[index - 1]) / rise if rise > 0 else 1.0
    return float(places[index - 1] + part * (places[index] - places[index - 1]))


def halving_end(
    share: Callable[[float], float], inside: float, outside: float, tail: float, steps: int = 7
) -> float:
    """Return where a share falls from above `tail` (inside) to below it (outside), by halving.

    Examples
    --------
    >>> round(halving_end(lambda x: 1 - x, 0.0, 1.0, 0.25, steps=20), 3)
    0.75
    """
    at_inside, at_outside = share(inside), share(outside)
    if at_inside < tail:
        return inside
    if at_outside >= tail:
        return outside
    for _ in range(steps):
        middle = (inside + outside) / 2
        here = share(middle)
        if here >= tail:
            inside, at_inside = middle, here
        else:
            outside, at_outside = middle, here
    return inside + (outside - inside) * (at_inside - tail) / (at_inside - at_outside)
