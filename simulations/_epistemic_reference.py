"""Answering alone in its simplest form: what `decide` is held against.

Five numbers of a row and its category enter a ridge logistic regression; the start is chosen on
the pilot, and fifty thresholds are loosened one after the other by the binomial law.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import binom
from sklearn.linear_model import LogisticRegression

STEPS, RIDGE, WIDEST, FEWEST = 50, 3.0, 4.0, 5


def _standard(values):
    spread = values.std() + 1e-9
    return np.clip((values - values.mean()) / spread, -WIDEST, WIDEST)


def reference_design(frame):
    """Return what the regression sees of each row."""
    said = np.clip(frame["confidence"].to_numpy(), 1e-3, 1 - 1e-3)
    sure = _standard(np.log(said / (1 - said)))
    length = _standard(np.log1p(frame["token_length"].fill_null(0).to_numpy().astype(float)))
    stated = _standard(frame["verbal_numerical_confidence"].to_numpy())
    kinds, kind = np.unique(frame["category"].to_numpy(), return_inverse=True)
    numbers = [stated, stated**2, sure, sure**2, length, length**2, sure * length]
    return np.column_stack([kind[:, None] == np.arange(1, len(kinds)), *numbers])


def reference_score(design, rows, right):
    """Return the chance of being right of every row, learned from some of them."""
    if len(np.unique(right)) < 2:
        return np.full(len(design), float(right[0]))
    model = LogisticRegression(C=1 / RIDGE, max_iter=1000).fit(design[rows], right)
    return model.predict_proba(design)[:, 1]


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
