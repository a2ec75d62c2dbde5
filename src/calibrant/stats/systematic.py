"""Systematic sampling: evenly spread along an order, with a given chance for every item."""

from __future__ import annotations

import numpy as np

from calibrant.core.arrays import Floats, Indices


def systematic_sample(pi: Floats, order: Indices, rng: np.random.Generator) -> Indices:
    """Walk the items in `order` and take one each time the sum of chances passes a whole number.

    The number of items is the sum of the chances (rounded); each item has its chance `pi`.

    Examples
    --------
    >>> taken = systematic_sample(np.full(10, 0.3), np.arange(10), np.random.default_rng(0))
    >>> len(taken)
    3
    """
    reached = np.cumsum(pi[order])
    count = round(float(reached[-1])) if reached.size else 0
    if count == 0:
        return np.zeros(0, dtype=np.intp)
    reached *= count / reached[-1]
    # Rounding must not push the last step past its whole number.
    reached[-1] = count
    passed = np.floor(reached + 1 - rng.random()).astype(np.intp)
    before = np.concatenate([[0], passed[:-1]])
    taken: Indices = order[passed > before]
    return taken
