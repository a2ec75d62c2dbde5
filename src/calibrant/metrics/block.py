"""One block of rows and all its metrics with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property

import numpy as np

from calibrant.core import Estimate
from calibrant.core.arrays import Floats
from calibrant.metrics.block_data import SMOOTH_METRICS, BlockData
from calibrant.metrics.corp_interval import dsc_influence
from calibrant.metrics.inputs import undefined
from calibrant.metrics.scoring import log_loss_rows
from calibrant.stats import ranking
from calibrant.stats.intervals import (
    area_interval,
    logit_interval,
    skewed_interval,
    student_share,
    wald_interval,
    wilson_ends,
)

__all__ = ["SMOOTH_METRICS", "MetricBlock"]


class MetricBlock(BlockData):
    """One block of rows: every metric with its interval, `estimate` by name."""

    def estimate(self, name: str) -> Estimate:
        """Return one metric with its interval."""
        made: Callable[[], tuple[float, float, float, str]] = getattr(self, f"_{name}")
        value, low, high, how = made()
        if math.isnan(value):
            return self._undefined(name, how)
        return self._wrap(value, low, high, how)

    def _wrap(self, value: float, low: float, high: float, how: str) -> Estimate:
        return Estimate(
            float(value), float(low), float(high), self.units.count, self.level, interval=how
        )

    def _undefined(self, name: str, reason: str) -> Estimate:
        self.undefined[name] = reason
        nan = undefined(name, reason)
        return self._wrap(nan, nan, nan, "undefined")

    # Means.

    def _mean_interval(
        self, rows: Floats, flipped: Callable[[], Floats]
    ) -> tuple[float, float, float, str]:
        """Return mean and interval of a loss; `flipped` gives it for the opposite outcomes."""
        value = self._average(rows)
        if self.units.count < 2:
            return value, 0.0, math.inf, "one unit"
        pulls = self.mean_pulls(rows - value)
        error = pulls.error if pulls.error > 1e-12 * value else 0.0
        if self.shares is None:
            low, high = skewed_interval(value, error, pulls.lean, self.level, units=self.effective)
        else:
            # Of unequal weights the skewness is mostly that of the weights: a move for it misleads.
            bounded = logit_interval if 0 < value < 1 else wald_interval
            low, high = bounded(value, error, self.level, units=self.effective)
        if self.one_class or error == 0:
            # Outcomes that never varied may still do so: up to the unseen share of them.
            turned = self._average(flipped())
            other = (1 - self.unseen) * value + self.unseen * turned
            low, high = min(low, other, (1 - self.unseen) * value), max(high, other)
        return value, max(low, 0.0), high, "skewness-corrected"

    def _brier(self) -> tuple[float, float, float, str]:
        c = self.data.confidence.astype(np.float64, copy=False)

        miss = c - self.data.correct
        miss *= miss
        value, low, high, how = self._mean_interval(
            miss, lambda: (c - (1 - self.data.correct)) ** 2
        )
        return value, low, min(high, 1.0), how

    def _log_loss(self) -> tuple[float, float, float, str]:
        c, y = self.data.confidence, self.data.correct.astype(np.float64)
        rows = log_loss_rows(c, y)
        if not np.isfinite(rows).all():
            return math.inf, math.inf, math.inf, "certain and wrong"
        return self._mean_interval(rows, lambda: log_loss_rows(c, 1 - y))

    @cached_property
    def _accuracy_parts(self) -> tuple[float, float, float]:
        value, error = self.mean(self.data.correct.astype(np.float64, copy=False))
        if self.one_class:
            value, error = float(self.data.correct[0]), 0.0
        # As many independent outcomes as would have this error; units where none vary.
        count = value * (1 - value) / error**2 if error > 0 else self.effective
        if self.effective < self.units.count:
            count *= student_share(self.level, self.effective)
        return value, *wilson_ends(value, max(count, 1.0), self.level)

    def _accuracy(self) -> tuple[float, float, float, str]:
        return *self._accuracy_parts, "wilson"

    def _unc(self) -> tuple[float, float, float, str]:
        value = self.corp_parts.unc
        if self.graded:
            y = self.data.correct.astype(np.float64, copy=False)
            spread, error = self.mean((y - self.mean(y)[0]) ** 2)
            low, high = wald_interval(spread, error, self.level, units=self.effective)
            return value, max(low, 0.0), min(high, 0.25), "unit-variance"
        _, low, high = self._accuracy_parts
        ends = sorted((low * (1 - low), high * (1 - high)))
        # p (1 - p) peaks at a half, which may lie inside the interval.
        return value, ends[0], 0.25 if low <= 0.5 <= high else ends[1], "wilson"

    def _mean_confidence(self) -> tuple[float, float, float, str]:
        value, error = self.mean(self.data.confidence.astype(np.float64, copy=False))
        low, high = wald_interval(value, error, self.level, units=self.effective)
        if error == 0:
            low, high = value - self.unseen, value + self.unseen
        return value, max(low, 0.0), min(high, 1.0), "unit-variance"

    # Calibration errors.

    def _gap_interval(
        self, value: float, low: float, high: float
    ) -> tuple[float, float, float, str]:
        if self.one_class:
            low, high = max(min(low, value - self.unseen), 0.0), max(high, value + self.unseen)
        how = "test-inversion, end moved to the value" if high <= value else "test-inversion"
        return value, low, min(high, 1.0), how

    @property
    def _mean_gap_ends(self) -> tuple[float, float]:
        """The interval of mean confidence minus accuracy, which no calibration error is below.

        Noise may hide a gap that has one sign everywhere behind residuals of both signs, and no
        line through those leads to it.
        """
        return self.mean_gap.low, self.mean_gap.high

    def _ece(self) -> tuple[float, float, float, str]:
        value, low, high = self.gap_ends.total
        return self._gap_interval(value, low, max(high, *map(abs, self._mean_gap_ends)))

    def _over_confidence(self) -> tuple[float, float, float, str]:
        return self._half(self.gap_ends.over, max(self.half_highs[0], self._mean_gap_ends[1]))

    def _under_confidence(self) -> tuple[float, float, float, str]:
        return self._half(self.gap_ends.under, max(self.half_highs[1], -self._mean_gap_ends[0]))

    def _half(self, ends: tuple[float, float], high: float) -> tuple[float, float, float, str]:
        # Where no bin leans this way, rows that were not seen still may.
        return self._gap_interval(*ends, high if ends[0] > 0 else max(high, self.unseen))

    def _ece_debiased(self) -> tuple[float, float, float, str]:
        _, low, high, how = self._ece()
        value = self.matched
        return value, min(low, value), max(high, value), how

    def _smooth_ece(self) -> tuple[float, float, float, str]:
        value, low, high = self.smooth_ends
        return self._gap_interval(value, low, max(high, *map(abs, self._mean_gap_ends)))

    def _mcb(self) -> tuple[float, float, float, str]:
        low, high = self.corp_ends.mcb
        if self.one_class:
            high = max(high, min(self.corp_parts.mcb + self.unseen, 1.0))
        return self.corp_parts.mcb, low, min(high, 1.0), "test-inversion"

    def _dsc(self) -> tuple[float, float, float, str]:
        value = self.corp_parts.dsc
        rising = dsc_influence(self.distinct, self.fitted, value)
        by_rank = ranking.Influence(rising.constant[::-1], rising.slope[::-1])
        # The influence knows units; the simulation knows what is left where the curve is flat.
        error = max(self.ranked_error(by_rank), math.sqrt(self.corp_ends.dsc_variance))
        low, high = wald_interval(self.corp_ends.dsc, error, self.level, units=self.effective)
        if self.one_class or error < 1e-12:
            low, high = min(low, value - self.unseen), max(high, value + self.unseen)
        return value, min(max(low, 0.0), value), min(max(high, value), 0.25), "bias-corrected"

    # Ranking.

    @property
    def _rarer(self) -> float:
        """Units of the rarer outcome: what the variance of a ranking measure is known from."""
        right = self._average(self.data.correct.astype(np.float64, copy=False))
        return max(min(right, 1 - right) * self.effective, 2.0)

    def _auroc(self) -> tuple[float, float, float, str]:
        if self.one_class:
            return math.nan, 0.0, 0.0, "it needs right and wrong answers, all are the same"
        value, rows = self.ranking_rows("auroc")
        right = self.effective * self._accuracy_parts[0]
        low, high, how = area_interval(
            value, self.error(rows), right, self.effective - right, self.level
        )
        return value, low, high, how

    def _bounded(self, value: float, influence_error: float) -> tuple[float, float, float, str]:
        """Return the interval of a ranking measure on the logit scale."""
        if influence_error == 0 or not 0 < value < 1:
            low, high = value - self.unseen, value + self.unseen
            return value, max(low, 0.0), min(high, 1.0), "unseen share"
        low, high = logit_interval(value, influence_error, self.level, units=self._rarer)
        return value, low, high, "influence-logit"

    def _auprc(self) -> tuple[float, float, float, str]:
        if not self.data.correct.any():
            return math.nan, 0.0, 0.0, "no answer is right"
        value, rows = self.ranking_rows("auprc")
        error = 0.0 if self.one_class else self.pulls(rows).logit_error(value)
        return self._bounded(value, error)

    def _aurc(self) -> tuple[float, float, float, str]:
        value, rows = self.ranking_rows("aurc")
        return self._bounded(value, 0.0 if self.one_class else self.error(rows))

    def _e_aurc(self) -> tuple[float, float, float, str]:
        excess, rows = self.ranking_rows("e_aurc")
        excess = max(excess, 0.0)
        error = self.pulls(rows).logit_error(excess)
        # A perfect order moves with the best one: what is left of either is rounding.
        if self.one_class or min(error, excess) < 1e-12:
            return excess, 0.0, min(excess + self.unseen, 1.0), "unseen share"
        low, high = logit_interval(excess, error, self.level, units=self.effective)
        return excess, low, high, "influence-logit"
