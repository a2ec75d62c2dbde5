"""How large is a calibration error over cells: estimate, two ends, and what rows could show."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from msgspec import Struct

from calibrant.core.arrays import Floats
from calibrant.stats.cells import CellTable
from calibrant.stats.few_numbers import ndtr
from calibrant.stats.inversion import root_between

_ROOT = math.sqrt(2 / math.pi)
_GRID = np.linspace(0.0, 1.0, 401)
# Beyond so many standard errors a gap keeps its sign, and its square loses its digits.
_FAR = 8.0
# Gaps of fewer standard errors may be 0.
_MAYBE_NONE = 2.0


def mean_size(ratio: Floats) -> Floats:
    """Return the mean of |ratio + Z| for a standard normal Z."""
    found = _ROOT * np.exp(-ratio * ratio / 2) + ratio * (1 - 2 * ndtr(-ratio))
    return np.asarray(found, dtype=np.float64)


def error_estimate(table: CellTable) -> float:
    """Return the error without what noise adds to it, at gaps shrunk towards 0."""
    size, noise = np.abs(table.gap), np.maximum(table.noise, 1e-9)
    ratio = np.maximum(size / noise, 1e-9)
    shrunk = size * np.maximum(1 - 1 / ratio**2, 0.0)
    over = noise * mean_size(shrunk / noise) - shrunk
    return max(table.total - float(table.share @ over), 0.0)


def shares_variance(table: CellTable, rows: float) -> float:
    """Return the variance that the error has because the shares of the cells vary."""
    size = np.abs(table.gap)
    return max(float(table.share @ size**2) - float(table.share @ size) ** 2, 0.0) / rows


def lower_end(table: CellTable, z: float, extra: float) -> float:
    """Return the low end: gaps that noise explains may be 0, the others keep their size."""
    size, error = np.abs(table.gap), table.stray
    ratio = size / error
    sure = 1 - (_MAYBE_NONE / np.maximum(ratio, 1e-9)) ** 2
    kept = size * np.where(ratio > _MAYBE_NONE, sure, 0.0)
    left = kept / error
    over = error * mean_size(left) - kept
    spread = (table.share * error) ** 2 @ (1 + left**2 - mean_size(left) ** 2)
    return max(table.total - float(table.share @ over) - z * math.sqrt(float(spread) + extra), 0.0)


class UpperBound(Struct, frozen=True, dict=True):
    """The largest error that is not ruled out, by inverting a test.

    Among all gaps with one error, those in proportion to the noise make the observed sum smallest
    on average; its mean and variance are then known.

    Parameters
    ----------
    total
        Error as it looks.
    scale
        Sum of shares times noise.
    square
        Variance of the sum where all gaps are far from 0.
    extra
        Variance that the shares of the cells add.
    """

    total: float
    scale: float
    square: float
    extra: float = 0.0

    @classmethod
    def of(cls, table: CellTable, extra: float, square: float | None = None) -> UpperBound:
        """Return the bound of a table; `square` where cells do not vary apart from each other."""
        apart = float(((table.share * table.stray) ** 2).sum())
        scale = max(float(table.share @ table.noise), 1e-12)
        return cls(table.total, scale, apart if square is None else square, extra)

    def _reach(self, error: Floats) -> tuple[Floats, Floats]:
        """Return by how much the sum would lie above the one seen, and its standard error."""
        ratio = error / self.scale
        mean = mean_size(ratio)
        near = np.minimum(ratio, _FAR)
        part = np.where(ratio > _FAR, 1.0, 1 + near**2 - np.minimum(mean, _FAR + 1) ** 2)
        spread = np.sqrt(np.maximum(self.square * part, 0.0) + self.extra)
        return self.scale * mean - self.total, spread

    @cached_property
    def _on_grid(self) -> tuple[Floats, Floats]:
        return self._reach(_GRID)

    def at(self, z: float) -> float:
        """Return the bound at so many standard errors.

        Examples
        --------
        >>> round(UpperBound(0.1, 0.02, 0.0004).at(1.645), 3)
        0.133
        """
        above, spread = self._on_grid
        held = (above - z * spread > 0) & (_GRID > 0)
        last = int(np.flatnonzero(~held)[-1])
        if last == _GRID.size - 1:
            return 1.0

        def room(error: float) -> float:
            # As `_reach`, of one number: an array would take ten times as long.
            ratio = error / self.scale
            mean = _ROOT * math.exp(-ratio * ratio / 2) + ratio * math.erf(ratio * math.sqrt(0.5))
            part = 1.0 if ratio > _FAR else 1 + ratio**2 - mean**2
            spread = math.sqrt(max(self.square * part, 0.0) + self.extra)
            return self.scale * mean - self.total - z * spread

        below, above_it = ((at, room(at)) for at in _GRID[last : last + 2].tolist())
        if not below[1] < 0 < above_it[1]:
            return float(below[0])
        return root_between(room, below, above_it)

    def z_below(self, threshold: float) -> float:
        """Return at how many standard errors the bound is the threshold.

        Examples
        --------
        >>> bound = UpperBound(0.1, 0.02, 0.0004)
        >>> round(bound.z_below(bound.at(1.645)), 3)
        1.645
        """
        beyond = np.append(threshold, _GRID[threshold < _GRID])
        above, spread = self._reach(beyond)
        return float(np.min(above / np.maximum(spread, 1e-15)))


def planned_bound(
    table: CellTable, spread: Floats, noise_ratio: float = 1.0, *, together: bool = False
) -> UpperBound:
    """Return the bound that a calibrated model would show in the middle, from confidences alone.

    Parameters
    ----------
    table
        The cells.
    spread
        Mean of c (1 - c) in each cell.
    noise_ratio
        Standard error of a gap over that of independent rows.
    together
        Whether all cells may move as one.
    """
    p = (table.said * table.rows + 2) / (table.rows + 4)
    smooth = np.sqrt(p * (1 - p) / table.rows) * noise_ratio
    noise = np.sqrt(spread / table.rows) * noise_ratio
    stray = table.share * np.maximum(smooth, noise)
    square = float(stray.sum()) ** 2 if together else float((stray**2).sum())
    scale = max(float(table.share @ noise), 1e-12)
    return UpperBound(_ROOT * float(table.share @ noise), scale, square)
