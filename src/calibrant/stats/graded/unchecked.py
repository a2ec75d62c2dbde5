"""What may be said when no grade was checked: how far off the grader's odds may be, and then?

These are no intervals. If the grader's odds of being right are off by up to a factor, the true
value lies between the two ends, up to the noise of a sample of this size.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import expit, logit

from calibrant.core.arrays import Floats, Indices
from calibrant.stats.graded.checks import Graded
from calibrant.stats.graded.ranking import soft_area
from calibrant.stats.intervals import normal_quantile

FACTOR = 3.0
_CLIP = 0.02


def unchecked_accuracy(graded: Graded, factor: float = FACTOR) -> tuple[float, float]:
    """Return the least and the most accuracy if the grader's odds are off by up to a factor.

    Examples
    --------
    >>> graded = Graded(np.full(400, 0.8), np.ones(400), np.full(400, 0.9), np.zeros(400))
    >>> [round(end, 2) for end in unchecked_accuracy(graded)]
    [0.71, 0.98]
    """
    down, up = _ends(graded, factor)
    low, high = float(down.mean()) - _noise(down, 0.0), float(up.mean()) + _noise(up, 0.0)
    return max(low, 0.0), min(high, 1.0)


def unchecked_gap(graded: Graded, factor: float = FACTOR) -> tuple[float, float]:
    """Return the least and the most gap of confidence and accuracy."""
    down, up = _ends(graded, factor)
    low, high = float((graded.c - up).mean()), float((graded.c - down).mean())
    return low - _noise(up, graded.c), high + _noise(down, graded.c)


def unchecked_difference(
    first: Graded, second: Graded, factor: float = FACTOR
) -> tuple[float, float]:
    """Return the least and the most accuracy of the first minus that of the second."""
    noise = normal_quantile(0.95) * float((first.g - second.g).std()) / math.sqrt(first.size)
    (down, up), (other_down, other_up) = _ends(first, factor), _ends(second, factor)
    return float((down - other_up).mean()) - noise, float((up - other_down).mean()) + noise


def unchecked_error(graded: Graded, cell: Indices, factor: float = FACTOR) -> tuple[float, float]:
    """Return the least and the most calibration error over cells, each up to its own noise."""
    down, up = _ends(graded, factor)
    size = np.bincount(cell).astype(np.float64)
    right = np.clip(np.bincount(cell, np.asarray(graded.chance)) / size, _CLIP, 1.0 - _CLIP)
    noise = normal_quantile(0.95) * np.sqrt(right * (1.0 - right) / size)
    low = np.bincount(cell, graded.c - up) / size - noise
    high = np.bincount(cell, graded.c - down) / size + noise
    inside = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
    outside = np.maximum(np.abs(low), np.abs(high))
    share = size / graded.size
    return float(share @ inside), min(float(share @ outside), 1.0)


def unchecked_auroc(graded: Graded, factor: float = FACTOR) -> tuple[float, float]:
    """Return the AUROC if confident answers were graded too kindly, and if too harshly.

    Only a verdict on 0.5 may rest on these ends: as bounds of the AUROC itself they often fail.
    """
    down, up = _ends(graded, factor)
    confident = graded.c > np.median(graded.c)
    low, _, spread = soft_area(graded.c, np.where(confident, down, up))
    high, _, other = soft_area(graded.c, np.where(confident, up, down))
    reach = normal_quantile(0.95) / math.sqrt(graded.size)
    return max(low - reach * float(spread.std()), 0.0), min(high + reach * float(other.std()), 1.0)


def _ends(graded: Graded, factor: float) -> tuple[Floats, Floats]:
    odds = logit(np.clip(np.asarray(graded.chance), _CLIP, 1.0 - _CLIP))
    step = math.log(factor)
    return np.asarray(expit(odds - step)), np.asarray(expit(odds + step))


def _noise(chance: Floats, confidence: Floats | float) -> float:
    """Return the reach of a sample's mean of confidence minus outcome."""
    variance = float(np.var(confidence - chance) + (chance * (1.0 - chance)).mean())
    return normal_quantile(0.95) * math.sqrt(variance / chance.size)
