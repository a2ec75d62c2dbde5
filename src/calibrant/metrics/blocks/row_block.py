"""One block of rows that answers what an audit asks; `CellBlock` answers the same from sums."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from calibrant.core import InputError
from calibrant.core.arrays import Floats, Indices
from calibrant.core.errors import did_you_mean
from calibrant.metrics.binned import shrunk_variance
from calibrant.metrics.blocks.block import MetricBlock
from calibrant.metrics.intervals.gap import GapModel
from calibrant.metrics.perfect import CalibrationTest, calibration_test
from calibrant.metrics.registry import METRICS
from calibrant.metrics.selective import RowUnits, ThresholdCounts, threshold_counts
from calibrant.metrics.stats.binning import even_steps
from calibrant.metrics.stats.units import UnitInfluence, Units


class RowBlock(MetricBlock):
    """One block of rows: metrics, tests of calibration and the reliability diagram.

    Parameters
    ----------
    confidence, correct, weights, units
        As for `calibrant.metrics.metric_estimates`.
    how
        How numbers and intervals are made.
    """

    @property
    def n(self) -> int:
        """Rows."""
        return int(self.given[0].size)

    @cached_property
    def questions(self) -> int:
        """Questions: rows, unless a question has several."""
        units = self.given_units
        return self.n if units is None else int(np.max(np.asarray(units))) + 1

    @property
    def independent(self) -> bool:
        """Whether every row is one draw of a right or wrong answer.

        A grade between 0 and 1 is a mean over splits, and rows of one question depend on each
        other: the law of perfect calibration says nothing about either.
        """
        return self.given_units is None and not self.graded

    @cached_property
    def calibration_test(self) -> CalibrationTest:
        """The test of perfect calibration."""
        return calibration_test(*self.given, bins=self.bins, weights=self.given_weights)

    def histogram(self, bins: int) -> list[int]:
        """Return rows per bin of equal width."""
        place = np.searchsorted(even_steps(bins + 1), self.given[0], side="right") - 1
        # The last bin holds its upper edge.
        np.minimum(place, bins - 1, out=place)
        counts: list[int] = np.bincount(place, minlength=bins).tolist()
        return counts

    def threshold_counts(self) -> ThresholdCounts:
        """Return what is answered, and how much of it is wrong, at thresholds that matter."""
        ranking, data = self.ranked, self.data
        units = None
        if data.weights is not None or self.units.codes is not None or self.graded:
            codes = np.arange(data.rows) if self.units.codes is None else self.units.codes
            heavy = np.broadcast_to(np.asarray(self.weight, np.float64), data.rows)
            units = RowUnits(1 - data.correct.astype(np.float64), heavy, codes)
        below = np.append(ranking.score[1:], -1.0)
        ends = ranking.score, below
        return threshold_counts(ranking, *ends, level=self.level, rows=data.rows, units=units)


# With fewer neighbours their differences say nothing reliable about the noise.
_FEWEST_PAIRS = 20


class DrawSpread(Struct, frozen=True):
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
    variance = _neighbours(pull, spread)
    whole = float(np.square(pull - pull.mean()).sum()) / max(pull.size - 1, 1)
    if variance is None or whole <= 0:
        return 1.0
    share = float(spread.share.mean())
    return 1.0 - share + share * variance / whole


def _neighbours(pull: Floats, spread: DrawSpread, cell: Indices | None = None) -> float | None:
    """Return half the mean squared difference of neighbours, of one cell where cells are given."""
    inside = np.flatnonzero(np.isfinite(spread.along))
    order = inside[np.argsort(spread.along[inside], kind="stable")]
    step = np.diff(pull[order])
    if cell is not None:
        step = step[np.diff(cell[order]) == 0]
    return float(step @ step) / (2 * step.size) if step.size >= _FEWEST_PAIRS else None


class DrawnGaps(GapModel, frozen=True):
    """Mean residuals per bin of a spread draw; the shares of the bins hardly vary.

    `shares` is how much of their variance is left, over `inflation`.
    """

    shares: Any = 1.0

    columns: ClassVar[tuple[str, ...]] = ("rows", "inflation", "shares")

    @property
    def shares_variance(self) -> float:
        """Variance that the sum of |residual| has because the shares of the bins are random."""
        return float(self.shares * super().shares_variance)

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

    def pulls(self, influence: Floats) -> UnitInfluence:
        """Return how far each unit pulls a statistic, scaled to the noise of the spread draw."""
        by_unit = super().pulls(influence)
        if by_unit.error == 0:
            return by_unit
        ratio = neighbour_ratio(by_unit.pull, self.spread.of_units(self.units))
        return replace(by_unit, pull=by_unit.pull * np.sqrt(ratio))

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
        residual = heavy * (c - y - gap[cell])
        variance = (
            None if self.units.codes is not None else _neighbours(residual, self.spread, cell)
        )
        chance = float(residual @ residual) / max(c.size - int((mass > 0).sum()), 1)
        if variance is None or chance <= 0:
            return None
        share = float(self.spread.share.mean())
        return 1.0 - share + share * variance / chance, float(residual @ residual)

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
        return DrawnGaps(plain.stats, plain.rows, ratio, plain.root, shares=loose / ratio)


_DRAWS = 200


def check_named(names: Sequence[str]) -> tuple[str, ...]:
    """Check names of metrics.

    Examples
    --------
    >>> check_named(["mce"])
    ('mce',)
    """
    choices = [name for name, metric in METRICS.items() if metric.audit == "asked"]
    for name in names:
        if name not in choices:
            raise InputError(
                f"there is no metric {name!r} to add",
                hint=f"{did_you_mean(name, choices)}; those of every audit need no name",
            )
    return tuple(names)


def named_values(
    block: RowBlock, names: Sequence[str], rng: np.random.Generator
) -> dict[str, dict[str, float | None]]:
    """Return each metric, and where it would lie if the confidences were right.

    All of these are above 0 on finite data even for a calibrated model, so a value alone says
    little. ``calibrated_mean`` and ``calibrated_high`` are mean and upper end (of the audit's
    level, one-sided) over outcomes drawn from the confidences themselves. They are None where
    rows depend on each other or are grades, since such outcomes cannot be drawn so.
    """
    confidence, correct = block.given
    probability = confidence.astype(np.float64)
    draws = [rng.random(block.n) < probability for _ in range(_DRAWS if block.independent else 0)]
    by_name = {}
    for name in names:
        bins = {"bins": block.bins} if METRICS[name].binned else {}
        metric = partial(METRICS[name].value, weights=block.given_weights, **bins)
        values = np.array([metric(confidence, outcome) for outcome in draws])
        usable = values.size > 0 and bool(np.isfinite(values).all())
        value = metric(confidence, correct)
        by_name[name] = {
            "value": value if math.isfinite(value) else None,
            "n": block.n,
            "calibrated_mean": float(values.mean()) if usable else None,
            "calibrated_high": float(np.quantile(values, block.level)) if usable else None,
        }
    return by_name
