"""Answering alone with a start that a pilot chose: what `decide` is held against.

The start is chosen on the pilot, and fifty thresholds are loosened one after the other by the
binomial law.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import binom

STEPS, FEWEST = 50, 5


def reference_threshold(pilot_score, pilot_wrong, score, wrong, *, max_error, delta):
    """Return the loosest threshold that is certified; infinity where none is."""
    shares = np.linspace(1, 0, STEPS + 1)[1:]
    grid = np.unique(np.quantile(score, shares, method="lower"))[::-1]
    start, best = 0, -np.inf
    for at, threshold in enumerate(grid):
        tried = pilot_wrong[pilot_score >= threshold]
        if len(tried) < FEWEST:
            continue
        rate = (tried.sum() + 1) / (len(tried) + 2)
        reached = np.sum(score >= threshold)
        margin = (max_error - rate) * np.sqrt(reached / (rate * (1 - rate)))
        if margin > best:
            start, best = at, margin
    found = np.inf
    for threshold in grid[start:]:
        answered = wrong[score >= threshold]
        if binom.cdf(answered.sum(), len(answered), max_error) > delta:
            break
        found = threshold
    return found
