"""Calibration error cell by cell, from grades and checks."""

from __future__ import annotations

import numpy as np

from calibrant.core.arrays import Floats, Indices
from calibrant.stats.error_bound import ece_interval, ece_upper
from calibrant.stats.graded.checks import PRIOR, Checked
from calibrant.stats.graded.means import GradedEstimate
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
