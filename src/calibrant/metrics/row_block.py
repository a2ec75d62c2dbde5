"""One block of rows that answers what an audit asks; `CellBlock` answers the same from sums."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core.arrays import Floats, Indices
from calibrant.core.estimate import Estimate
from calibrant.metrics.block import How, MetricBlock
from calibrant.metrics.corp import ReliabilityCurve, curve_with_band, reliability_curve
from calibrant.metrics.perfect import CalibrationTest, calibration_test
from calibrant.metrics.registry import METRICS, audited
from calibrant.metrics.selective import RowUnits, ThresholdCounts, threshold_counts
from calibrant.stats.clusters import column_effect
from calibrant.stats.common_draws import Stream
from calibrant.stats.kernels import even_steps


class RowBlock(MetricBlock):
    """One block of rows: metrics, tests of calibration and the reliability diagram.

    Parameters
    ----------
    confidence, correct, weights, units
        As for `calibrant.metrics.metric_estimates`.
    how
        How numbers and intervals are made.
    """

    def __init__(
        self,
        confidence: ArrayLike,
        correct: ArrayLike,
        weights: ArrayLike | None,
        units: ArrayLike | None,
        **how: Unpack[How],
    ) -> None:
        super().__init__(confidence, correct, weights, units, **how)
        self.probability = how["probability"]
        self.given = (np.asarray(confidence), np.asarray(correct))
        self.given_weights, self.given_units = weights, units
        # How far the values may be from those of the rows themselves: these are the rows.
        self.errors: dict[str, float] = {}
        # Tests that were made ahead, by their number of bins.
        self.tests: dict[int, CalibrationTest] = {}
        # The same of bands around the curve, by their stream.
        self.bands: dict[Stream, Floats] = {}

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

    def estimates(self, names: Sequence[str] | None = None) -> dict[str, Estimate]:
        """Return metrics with their intervals; of a score that is no probability, rankings."""
        chosen = [METRICS[name] for name in names or audited()]
        return {
            metric.name: self.estimate(metric)
            for metric in chosen
            if self.probability or not metric.probability
        }

    def calibration_test(self, bins: int) -> CalibrationTest:
        """Return the test of perfect calibration."""
        if bins not in self.tests:
            self.tests[bins] = calibration_test(*self.given, bins=bins, weights=self.given_weights)
        return self.tests[bins]

    def reliability_curve(self, points: int, rng: Stream) -> ReliabilityCurve:
        """Return the curve by isotonic regression, with the band of perfect calibration."""
        if rng in self.bands:
            band, rows = (self.distinct, self.bands[rng]), self.data.rows
            return curve_with_band(
                self.distinct, self.fitted, band, points=points, rows=rows, level=self.level
            )
        return reliability_curve(
            *self.given, points=points, rng=rng, weights=self.given_weights, level=self.level
        )

    def histogram(self, bins: int) -> list[int]:
        """Return rows per bin of equal width."""
        place = np.searchsorted(even_steps(bins + 1), self.given[0], side="right") - 1
        # The last bin holds its upper edge.
        np.minimum(place, bins - 1, out=place)
        found: list[int] = np.bincount(place, minlength=bins).tolist()
        return found

    def threshold_counts(self) -> ThresholdCounts:
        """Return what is answered, and how much of it is wrong, at thresholds that matter."""
        ranked, data = self.ranked, self.data
        units = None
        if data.weights is not None or self.units.codes is not None or self.graded:
            codes = np.arange(data.rows) if self.units.codes is None else self.units.codes
            heavy = np.broadcast_to(np.asarray(self.weight, np.float64), data.rows)
            units = RowUnits(1 - data.correct.astype(np.float64), heavy, codes)
        below = np.append(ranked.score[1:], -1.0)
        return threshold_counts(
            ranked, ranked.score, below, level=self.level, rows=data.rows, units=units
        )

    def column_effect(self, codes: Indices) -> tuple[float, float]:
        """Return whether a column explains outcomes: the p-value, and how much wider errors get."""
        cells = self.cell_error.table
        cell = cells.place[self.ranked.score.size - 1 - self.ranked.group]
        rate = cells.said - cells.gap
        variance = rate * (1 - rate) * cells.rows / np.maximum(cells.rows - 1, 1)
        return column_effect(codes, self.data.correct - rate[cell], variance[cell])
