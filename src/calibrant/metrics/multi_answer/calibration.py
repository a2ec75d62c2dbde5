"""Calibration error within parts, and its mean over parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from calibrant.core.estimate import Estimate
from calibrant.core.rng import RngLike, as_generator
from calibrant.metrics.estimates import metric_estimates
from calibrant.metrics.multi_answer.leaves import Leaf


def macro_ece(
    confidence: NDArray[Any],
    correct: NDArray[Any],
    parts: Sequence[Leaf],
    *,
    level: float = 0.95,
    rng: RngLike = 0,
) -> Estimate:
    """Return the mean over parts of the ECE within them (15 equal-width bins).

    Each part's interval comes from inverting a test of its own; the distances to their ends
    are added in squares, each side for itself (Zou and Donner 2008), so the interval stays
    lopsided where those of the parts are.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant.metrics.multi_answer.leaves import leaves
    >>> found = macro_ece(np.array([0.9] * 50 + [0.1] * 50), np.ones(100), leaves(["a"] * 100))
    >>> round(found.value, 3)
    0.5
    """
    generator = as_generator(rng)
    value = below = above = 0.0
    for leaf in parts:
        own = metric_estimates(
            confidence[leaf.rows], correct[leaf.rows], names=("ece",), level=level, rng=generator
        )["ece"]
        value += leaf.weight * own.value
        below += (leaf.weight * (own.value - own.low)) ** 2
        above += (leaf.weight * (own.high - own.value)) ** 2
    n = sum(leaf.rows.size for leaf in parts)
    low, high = value - math.sqrt(below), value + math.sqrt(above)
    return Estimate(value, low, high, n=n, level=level, interval="combined inversions")
