"""Knowledge coverage: how many answers a model holds for likely."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from calibrant.core.errors import InputError
from calibrant.core.estimate import Estimate
from calibrant.stats.intervals import normal_quantile


def knowledge_coverage(
    unit: ArrayLike, class_id: ArrayLike, mass: ArrayLike | None = None, *, threshold: float = 0.1
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the units and their number of meanings with at least `threshold` of the mass.

    Parameters
    ----------
    unit
        Question of each draw, shape (n,).
    class_id
        Meaning of each draw; negative for a draw without an answer, which counts in the mass
        of its question but is no meaning.
    mass
        Probability of each draw's text. Without it every draw weighs 1 / draws of its question.
    threshold
        Least mass of a meaning that counts as known.

    References
    ----------
    Wang et al., 'Evaluating and Calibrating LLM Confidence on Questions with Multiple Correct
    Answers', where the mass is the summed probability of the texts.

    Examples
    --------
    >>> knowledge_coverage(["q"] * 20, [0] * 12 + [1] * 6 + [2] * 1 + [3] * 1)
    (array(['q'], dtype='<U1'), array([2]))
    """
    if not 0 <= threshold <= 1:
        raise InputError(f"the threshold lies in [0, 1], got {threshold}")
    names, codes = np.unique(np.asarray(unit), return_inverse=True)
    classes = np.asarray(class_id)
    if classes.shape != codes.shape:
        raise InputError(f"one class per draw: {codes.size} draws, {classes.size} classes")
    shares = 1.0 / np.bincount(codes)[codes]
    weight = shares if mass is None else np.asarray(mass, dtype=np.float64)
    pairs, inverse = np.unique(np.stack([codes, classes]), axis=1, return_inverse=True)
    sums = np.bincount(np.ravel(inverse), weight, pairs.shape[1])
    # Twenty draws of 0.05 make 1.0 only up to rounding, and 0.1 means two of twenty.
    known = (pairs[1] >= 0) & (sums >= threshold - 1e-12)
    return names, np.bincount(pairs[0][known], minlength=names.size).astype(np.int64)


def spearman(first: ArrayLike, second: ArrayLike, *, level: float = 0.95) -> Estimate:
    """Return Spearman's rank correlation, in [-1, 1]; NaN where one side is constant.

    The interval is Fisher's with the variance of Bonett and Wright (2000).

    Examples
    --------
    >>> spearman([1, 2, 3, 4, 5], [5, 6, 7, 8, 7]).value
    0.82...
    """
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    n = int(a.size)
    if n < 4 or a.min() == a.max() or b.min() == b.max():
        return Estimate(math.nan, math.nan, math.nan, n=n, level=level)
    # Loaded here: it takes a second.
    from scipy.stats import spearmanr

    rho = float(spearmanr(a, b).statistic)
    if abs(rho) >= 1:
        return Estimate(rho, math.nan, math.nan, n=n, level=level, interval="fisher")
    reach = normal_quantile(level) * math.sqrt((1 + rho**2 / 2) / (n - 3))
    low, high = (math.tanh(math.atanh(rho) + side * reach) for side in (-1, 1))
    return Estimate(rho, low, high, n=n, level=level, interval="fisher")
