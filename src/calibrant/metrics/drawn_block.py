"""Rows that were drawn to be labelled: intervals that know how evenly the draw was spread."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.core.arrays import Floats
from calibrant.metrics.binned import shrunk_variance
from calibrant.metrics.gap_model import GapModel
from calibrant.metrics.row_block import RowBlock
from calibrant.stats.units import UnitInfluence, Units

# With fewer neighbours their differences say nothing reliable about the noise.
_FEWEST_PAIRS = 20


@dataclass(frozen=True, slots=True)
class DrawSpread:
    """How the rows of a block were spread when they were drawn.

    Parameters
    ----------
    along
        Place of each row on the line along which the draw was spread, NaN where it was not.
    share
        Share of each row's variance that the spread is about; the rest is left to chance.
    """

    along: Floats
    share: Floats

    def of_units(self, units: Units) -> DrawSpread:
        """Return the spread of the units: that of the first row of each."""
        if units.codes is None:
            return self
        first = np.unique(units.codes, return_index=True)[1]
        return DrawSpread(self.along[first], self.share[first])


def neighbour_ratio(pull: Floats, spread: DrawSpread) -> float:
    """Return the variance of a mean over that of a draw left to chance.

    Of a spread draw the variance is that of neighbours on its line, half their mean squared
    difference (successive differences).

    Parameters
    ----------
    pull
        How far each row pulls the mean, shape (n,).
    spread
        How the rows were spread.

    References
    ----------
    Wolter (2007), Introduction to Variance Estimation, chapter 8.

    Examples
    --------
    >>> line = np.linspace(0, 1, 100)
    >>> round(neighbour_ratio(line, DrawSpread(line, np.full(100, 0.9))), 2)
    0.1
    """
    found = _neighbours(pull, spread)
    whole = float(np.square(pull - pull.mean()).sum()) / max(pull.size - 1, 1)
    if found is None or whole <= 0:
        return 1.0
    share = float(spread.share.mean())
    return 1.0 - share + share * found / whole


def _neighbours(
    pull: Floats, spread: DrawSpread, cell: NDArray[np.intp] | None = None
) -> float | None:
    """Return half the mean squared difference of neighbours, of one cell where cells are given."""
    inside = np.flatnonzero(np.isfinite(spread.along))
    order = inside[np.argsort(spread.along[inside], kind="stable")]
    step = np.diff(pull[order])
    if cell is not None:
        step = step[np.diff(cell[order]) == 0]
    return float(step @ step) / (2 * step.size) if step.size >= _FEWEST_PAIRS else None


@dataclass(frozen=True, slots=True)
class DrawnGaps(GapModel):
    """Mean residuals per bin of a spread draw; the shares of the bins hardly vary.

    `shares` is how much of their variance is left, over `inflation`.
    """

    shares: Any

    @staticmethod
    def columns() -> tuple[str, ...]:
        """Return the names of what is one number per model."""
        return ("rows", "inflation", "shares")

    @property
    def shares_variance(self) -> float:
        """Variance that the sum of |residual| has because the shares of the bins are random."""
        return float(self.shares * super(DrawnGaps, self).shares_variance)

    def noise(self, residual: Floats, draws: Floats) -> Floats:
        """Return how far residuals would be observed from the true ones, were those `residual`."""
        mass, centre = self.stats.mass, self.stats.confidence
        gap = residual / mass
        inside = mass * np.maximum(self.stats.spread + gap * (2 * centre - 1) - gap**2, 0.0)
        between = np.maximum(mass * gap**2 - residual**2, 0.0)
        sd = np.sqrt((inside + self.shares * between) * self.inflation / self.rows)
        return np.asarray(sd[..., None] * draws)


class DrawnBlock(RowBlock):
    """A block of rows drawn from a pool, spread evenly along confidence and side information.

    Values are those of any block. Their noise is less than that of rows left to chance, and an
    interval or a bound that took it for more would be wrong: too wide, and where noise is taken
    off a calibration error, too low.

    Parameters
    ----------
    args, options
        As for `RowBlock`.
    spread
        How the rows were spread.
    """

    def __init__(self, *args: Any, spread: DrawSpread, **options: Any) -> None:
        super().__init__(*args, **options)
        self.spread = spread

    @cached_property
    def _unit_spread(self) -> DrawSpread:
        return self.spread.of_units(self.units)

    def pulls(self, influence: Floats) -> UnitInfluence:
        """Return how far each unit pulls a statistic, scaled to the noise of the spread draw."""
        found = super().pulls(influence)
        if found.error == 0:
            return found
        ratio = neighbour_ratio(found.pull, self._unit_spread)
        return replace(found, pull=found.pull * np.sqrt(ratio))

    @cached_property
    def _spread_noise(self) -> tuple[float, float] | None:
        """Noise inside bins over that of a draw left to chance, and squared residuals of rows.

        None where neighbours do not tell.
        """
        c, y = self.data.confidence.astype(np.float64), self.data.correct
        heavy = np.broadcast_to(np.asarray(self.weight, np.float64), c.shape)
        cell = np.minimum((c * self.bins).astype(np.intp), self.bins - 1)
        mass = np.bincount(cell, heavy, self.bins)
        gap = np.bincount(cell, heavy * (c - y), self.bins) / np.where(mass > 0, mass, 1.0)
        rest = heavy * (c - y - gap[cell])
        found = None if self.units.codes is not None else _neighbours(rest, self.spread, cell)
        chance = float(rest @ rest) / max(c.size - int((mass > 0).sum()), 1)
        if found is None or chance <= 0:
            return None
        share = float(self.spread.share.mean())
        return 1.0 - share + share * found / chance, float(rest @ rest)

    @property
    def draw_noise(self) -> tuple[float, float]:
        """Noise of gaps, as neighbours have it, and of shares, which hardly vary."""
        if self._spread_noise is None:
            return 1.0, 1.0
        return self._spread_noise[0], 1.0 - float(self.spread.share.mean())

    @cached_property
    def gaps(self) -> GapModel:
        """Sums over bins; inside a bin neighbours decide the noise, and its share hardly varies."""
        plain = super().gaps
        if self._spread_noise is None:
            return plain
        ratio, squares = self._spread_noise
        rows = self.data.rows
        if self.data.weights is not None:
            model = float(plain.stats.mass @ shrunk_variance(plain.stats, 1.0)) / rows
            uneven = squares / float(np.sum(self.weight)) ** 2
            ratio *= uneven / model if model > 0 else 1.0
        loose = 1.0 - float(self.spread.share.mean())
        return DrawnGaps(plain.stats, plain.rows, ratio, plain.root, loose / ratio)
