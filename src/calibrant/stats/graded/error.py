"""Calibration error cell by cell from grades and checks, and what grades alone leave open."""

import math

import numpy as np
from scipy.special import expit, logit

from calibrant.core.arrays import Floats, Indices
from calibrant.stats.error_bound import ece_interval, ece_upper
from calibrant.stats.graded.checks import PRIOR, Checked, Graded
from calibrant.stats.graded.means import GradedEstimate, soft_area
from calibrant.stats.intervals import normal_quantile

_CHECKS_PER_CELL, _FEWEST, _MOST = 12, 3, 10
# Checks of ordinary spread that each cell has beside its own.
_ADDED = 2.0
# Variance of a cell without any check: nothing is known about it.
_UNKNOWN = 0.25


def cells_for(checks: int) -> int:
    """Return how many cells of equal size so many checks can carry.

    Examples
    --------
    >>> cells_for(30), cells_for(60), cells_for(500)
    (3, 5, 10)
    """
    return int(np.clip(checks // _CHECKS_PER_CELL, _FEWEST, _MOST))


def graded_error(checked: Checked, cell: Indices, level: float = 0.95) -> GradedEstimate:
    """Return the calibration error over cells, ``sum w |confidence - accuracy|``.

    Parameters
    ----------
    checked
        Grades and checks.
    cell
        Cell of each answer, from 0; `cells_for` says how many the checks can carry.
    level
        Of the interval.
    """
    gap, variance, share, pool = cell_gaps(checked, cell)
    z, one_sided = normal_quantile(level), normal_quantile(2 * level - 1)
    error = np.sqrt(variance)
    value, low, high = ece_interval(gap, error, share, z)
    upper = ece_upper(gap, error, share, z if low > 0 else one_sided, 0.0)
    graded = checked.graded
    plain = np.bincount(cell, graded.c - graded.g, share.size) / graded.size
    total = float((share**2 * variance).sum())
    return GradedEstimate(
        value,
        low,
        max(value, min(1.0, high, upper)),
        float(np.abs(plain).sum()),
        1.0 - float((share**2 * pool).sum()) / total if total else 0.0,
        len(checked.rows),
    )


def cell_gaps(checked: Checked, cell: Indices) -> tuple[Floats, Floats, Floats, Floats]:
    """Return gap, variance, share and variance without grading error of each cell.

    Rates of the strata predict; what they miss is corrected within each cell, since errors of
    the grader follow the confidence.
    """
    graded, weight = checked.graded, checked.weights
    cells = int(cell.max()) + 1
    where = cell[checked.rows]
    size = np.bincount(cell, minlength=cells).astype(np.float64)
    number = np.bincount(where, minlength=cells).astype(np.float64)
    mass = np.maximum(np.bincount(where, weight, cells), 1e-12)
    missed = checked.y - _without_own_check(checked)
    shift = np.bincount(where, weight * missed, cells) / mass
    usual = _usual_spread(checked, missed)
    squares = np.bincount(where, (weight * (missed - shift[where])) ** 2, cells)
    spread = squares * number / np.maximum(number - 1.0, 1.0) + _ADDED * usual
    variance = spread / mass**2 * number / (number + _ADDED)
    rest = graded.c - checked.chance_right()
    mean = np.bincount(cell, rest, cells) / np.maximum(size, 1.0)
    squares = np.bincount(cell, (rest - mean[cell]) ** 2, cells)
    pool = squares / np.maximum(size, 1.0) / np.maximum(size - 1.0, 1.0)
    seen = number > 0
    gap: Floats = np.where(seen, mean - shift, mean)
    return gap, np.where(seen, variance, _UNKNOWN) + pool, size / graded.size, pool


def _without_own_check(checked: Checked) -> Floats:
    """Return the chance that each checked answer is right, by the other checks alone."""
    place = checked.strata
    rate = (checked.errors[place] - checked.wrong + PRIOR) / checked.checks[place]
    return np.where(checked.graded.g[checked.rows] == 1, 1.0 - rate, rate)


def _usual_spread(checked: Checked, missed: Floats) -> float:
    """Return the spread of a check, no smaller than if one more error had been found."""
    weight = checked.weights
    around = missed - np.average(missed, weights=weight)
    rate = (checked.errors + 1.0) / (checked.checks + 2.0)
    least = (rate * (1.0 - rate))[checked.strata]
    return max(float((weight**2 * around**2).mean()), float((weight**2 * least).mean()))


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
