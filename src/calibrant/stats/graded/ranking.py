"""How well confidence tells right from wrong answers, from grades and checks."""

from __future__ import annotations

import math

import numpy as np

from calibrant.core.arrays import Floats
from calibrant.stats.graded.checks import STRATA, Checked
from calibrant.stats.graded.means import GradedEstimate
from calibrant.stats.intervals import normal_quantile

# Checks of the spread that the model expects, added to those that were made.
_ADDED = 2.0


def graded_auroc(checked: Checked, level: float = 0.95) -> GradedEstimate:
    """Return the chance that a right answer has more confidence than a wrong one."""
    graded, place = checked.graded, checked.strata
    right = checked.chance_right()
    area, slope, influence = soft_area(graded.c, right)
    weight, missed = checked.weights, checked.y - right[checked.rows]
    step = slope[checked.rows] * missed
    value = area + float((weight * step).sum())
    size, checks, rate = graded.counts, checked.checks, checked.rates()
    steepness = size * np.bincount(graded.strata, slope**2, STRATA)
    expected = steepness * rate * (1 - rate) / (checks + 1.0)
    mean = np.bincount(place, weight * step, STRATA) / np.maximum(size, 1.0)
    squares = np.bincount(place, (weight * (step - mean[place])) ** 2, STRATA)
    found = squares * checks / np.maximum(checks - 1.0, 1.0)
    grading = float(((checks * found + _ADDED * expected) / (checks + _ADDED))[size > 0].sum())
    noise = float(influence.var()) / graded.size
    reach = normal_quantile(level) * math.sqrt(grading + noise)
    value = min(max(value, 0.0), 1.0)
    return GradedEstimate(
        value,
        max(value - reach, 0.0),
        min(value + reach, 1.0),
        soft_area(graded.c, graded.g)[0],
        grading / (grading + noise) if grading + noise else 0.0,
        len(checked.rows),
    )


def soft_area(confidence: Floats, right: Floats) -> tuple[float, Floats, Floats]:
    """Return the area where each answer is right with a chance, its slope in each, its influence.

    Examples
    --------
    >>> area, _, _ = soft_area(np.array([0.1, 0.4, 0.8]), np.array([0.0, 1.0, 1.0]))
    >>> area
    1.0
    """
    size = confidence.size
    order = np.argsort(confidence, kind="stable")
    sorted_c, chance = confidence[order], right[order]
    first = np.searchsorted(sorted_c, sorted_c, "left")
    last = np.searchsorted(sorted_c, sorted_c, "right")
    rights = np.concatenate([[0.0], np.cumsum(chance)])
    wrongs = np.concatenate([[0.0], np.cumsum(1.0 - chance)])
    if rights[-1] == 0.0 or wrongs[-1] == 0.0:
        return math.nan, np.full(size, math.nan), np.full(size, math.nan)
    below = (wrongs[first] + wrongs[last]) / 2 / wrongs[-1]
    above = 1.0 - (rights[first] + rights[last]) / 2 / rights[-1]
    area = float((chance * below).sum() / rights[-1])
    if_right = (below - area) * size / rights[-1]
    if_wrong = (above - area) * size / wrongs[-1]
    slope, influence = np.empty(size), np.empty(size)
    slope[order] = (if_right - if_wrong) / size
    influence[order] = chance * if_right + (1.0 - chance) * if_wrong
    return area, slope, influence
