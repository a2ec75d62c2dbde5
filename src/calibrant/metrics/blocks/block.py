"""One block of rows and what its metrics share, computed once, when first needed."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Self

import numpy as np
from msgspec.structs import replace
from numpy.typing import ArrayLike

from calibrant.core.arrays import Array, Estimate, Floats, MaybeArray, Stream
from calibrant.metrics import inputs
from calibrant.metrics.binned import matched_error
from calibrant.metrics.blocks.cell_error import CellError, CellRows
from calibrant.metrics.blocks.families import CurvatureRange, Ends, Metric, MetricFamily, RowLoss
from calibrant.metrics.corp import (
    Corp,
    CorpIntervals,
    CorpTask,
    ReliabilityCurve,
    corp_from_sums,
    corp_intervals,
    curve_of_sums,
)
from calibrant.metrics.intervals import gap
from calibrant.metrics.intervals.smooth import smooth_interval
from calibrant.metrics.registry import METRICS, audited
from calibrant.metrics.smooth import SmoothGrids, SmoothTask
from calibrant.metrics.stats import ranking
from calibrant.metrics.stats.bootstrap import check_resamples
from calibrant.metrics.stats.cells import ValueSums
from calibrant.metrics.stats.intervals import student_share, unseen_share, wilson_ends
from calibrant.metrics.stats.regressions import isotonic_fit
from calibrant.metrics.stats.units import (
    MOST_SHARE,
    UnitInfluence,
    Units,
    expected_error,
    gap_of_means,
    unequal_ratio,
    unit_codes,
)


class MetricBlock:
    """One block of rows: its units, the sums that metrics need, and how rows pull on them.

    Families of metrics compute values and intervals from these.
    """

    @cached_property
    def undefined(self) -> dict[str, str]:
        """Metrics that are undefined here, with the reason; filled as they are asked for."""
        return {}

    def __init__(
        self,
        confidence: ArrayLike,
        correct: ArrayLike,
        weights: MaybeArray,
        units: MaybeArray,
        *,
        probability: bool,
        bins: int,
        level: float,
        resamples: int,
        rng: Stream,
    ) -> None:
        self.probability = probability
        self.given = (np.asarray(confidence), np.asarray(correct))
        self.given_weights, self.given_units = weights, units
        checked = inputs.check(confidence, correct, weights, probability=probability)
        self.data = checked.present()
        if units is not None and self.data.rows < checked.rows:
            assert checked.weights is not None
            units = np.asarray(units)[checked.weights > 0]
        self.units = unit_codes(units, self.data.rows)
        self.bins, self.level = inputs.check_bins(bins), inputs.check_level(level)
        self.resamples = check_resamples(resamples)
        # Streams of their own, so that a metric has the same interval whatever else is asked.
        self.streams = dict(zip(("gaps", "smooth", "corp"), rng.spawn(3), strict=True))
        y = self.data.correct
        self.one_class = bool(y.min() == y.max())
        self.graded = inputs.is_graded(y)

    @classmethod
    def of(cls, data: inputs.Checked, units: Units | None = None) -> Self:
        """Return the block of checked data, for influences."""
        block = cls.__new__(cls)
        block.data = data
        block.units = Units(None, data.rows, data.rows) if units is None else units
        return block

    @cached_property
    def weight(self) -> Floats | float:
        """Weights of the rows, or 1."""
        w = self.data.weights
        return 1.0 if w is None else w.astype(np.float64, copy=False)

    @property
    def confidence(self) -> Floats:
        """Confidences of the rows, in double precision."""
        return self.data.confidence.astype(np.float64, copy=False)

    def estimate(self, metric: Metric) -> Estimate:
        """Return one metric with its interval, wider by `errors`, in the metric's range."""
        assert metric.family is not None
        value, low, high, how = self.interval_of(metric.family)
        if math.isnan(value):
            self.undefined[metric.name] = how
            value = low = high = inputs.undefined(metric.name, how)
            how = "undefined"
        error = self.errors.get(metric.name, 0.0) if math.isfinite(value) else 0.0
        ends = max(float(low) - error, metric.range[0]), min(float(high) + error, metric.range[1])
        return Estimate(float(value), *ends, self.units.count, self.level, interval=how)

    @property
    def errors(self) -> Mapping[str, float]:
        """How far values may be from those of the rows, by metric; here they are the rows."""
        return {}

    def estimates(self, names: Sequence[str] | None = None) -> dict[str, Estimate]:
        """Return metrics with their intervals; of a score that is no probability, rankings."""
        choice = (METRICS[name] for name in names or audited())
        able = [metric for metric in choice if self.probability or not metric.probability]
        return {metric.name: self.estimate(metric) for metric in able}

    def interval_of(self, family: MetricFamily) -> Ends:
        """Return value and interval."""
        return family.interval(self)

    def losses(self, rows: RowLoss, bend: CurvatureRange) -> tuple[Floats, Callable[[], Floats]]:  # noqa: ARG002
        """Return what every row costs, and how to get what it would with flipped outcomes."""
        c, y = self.confidence, self.data.correct
        return rows(c, y), lambda: rows(c, 1 - y)

    @cached_property
    def accuracy_ends(self) -> tuple[float, float, float]:
        """Share of right answers with Wilson's interval."""
        value, error = self.mean(self.data.correct.astype(np.float64, copy=False))
        if self.one_class:
            value, error = float(self.data.correct[0]), 0.0
        # As many independent outcomes as would have this error; units where none vary.
        count = value * (1 - value) / error**2 if error > 0 else self.effective
        if self.effective < self.units.count:
            count *= student_share(self.level, self.effective)
        return value, *wilson_ends(value, max(count, 1.0), self.level)

    @cached_property
    def ranked(self) -> ranking.Ranked:
        """Sums at distinct scores, from the highest down."""
        return ranking.Ranked.of(*self.data)

    @cached_property
    def risk(self) -> tuple[float, ranking.Influence]:
        """Area under the risk-coverage curve and its influence.

        Where rows have weights, places are counted in units, so that neither the scale of the
        weights nor a row cut in two matters.
        """
        order = self.ranked.scaled(self._places / self.ranked.total)
        return order.measured("aurc")

    @property
    def _places(self) -> float:
        """Places of the risk-coverage curve."""
        return float(self.row_count if self.data.weights is None else self.units.count)

    @cached_property
    def best_risk(self) -> tuple[float, ranking.Ranked, ranking.Influence]:
        """The least such area that these outcomes can have."""
        order = ranking.Ranked.of(self.data.correct, self.data.correct, self.data.weights)
        order = order.scaled(self._places / order.total)
        value, influence = order.measured("aurc")
        return value, order, influence

    @cached_property
    def gaps(self) -> gap.GapModel:
        """Sums over bins and their variance."""
        return gap.gap_model(self.data, self.units, bins=self.bins)

    # Whether a weight is a number of rows that are alike.
    counted = False

    @cached_property
    def cell_error(self) -> CellError:
        """The calibration error over cells, which every claim rests on."""
        sums, codes = self.distinct, self.units.codes
        if self.counted or (self.data.weights is None and codes is None and not self.graded):
            counts = ValueSums.of_counts(sums.confidence, sums.weight, sums.outcome)
            return CellError(counts, None, *self.draw_noise)
        place = self.ranked.score.size - 1 - self.ranked.group
        outcome = self.data.correct.astype(np.float64)
        rows = CellRows.merged(place, outcome, self.data.weights, codes)
        return CellError.of_rows(sums.confidence, rows, self.draw_noise)

    def diagram(self) -> list[dict[str, object]]:
        """Return the cells of the calibration error, as a reliability diagram shows them."""
        if self.counted:
            return self.cell_error.diagram(self.level, self.distinct.weight)
        rows = np.bincount(self.ranked.group)[::-1].astype(np.float64)
        return self.cell_error.diagram(self.level, rows)

    @property
    def draw_noise(self) -> tuple[float, float]:
        """Noise of gaps and of shares, over that of rows left to chance."""
        return 1.0, 1.0

    @cached_property
    def matched(self) -> float:
        """The debiased ECE."""
        return matched_error(self.gaps.stats, self.gaps.inflation / self.gaps.caution)

    @cached_property
    def gap_ends(self) -> gap.GapIntervals:
        """The interval of ECE and the low ends of its halves."""
        return gap.gap_intervals(self.gaps, self.gap_streams[0], self.level, self.resamples)

    @cached_property
    def half_highs(self) -> tuple[float, float]:
        """The high ends of the halves of ECE."""
        return gap.half_highs(self.gaps, self.gap_streams[1], self.level, self.resamples)

    @cached_property
    def gap_streams(self) -> Sequence[Stream]:
        """Streams of the interval of ECE and of the high ends of its halves."""
        return self.streams["gaps"].spawn(2)

    @cached_property
    def distinct(self) -> ranking.DistinctSums:
        """Sums at distinct scores, rising."""
        r = self.ranked
        return ranking.DistinctSums(r.score[::-1], r.weight[::-1], r.outcome[::-1])

    @property
    def row_count(self) -> int:
        """Number of rows."""
        return self.data.rows

    @cached_property
    def grids(self) -> SmoothGrids:
        """Residuals on the grids of smooth ECE."""
        return SmoothGrids(self.data)

    @cached_property
    def smooth_ends(self) -> tuple[float, float, float]:
        """Smooth ECE with its interval."""
        scatter = self.gaps.inflation / self.row_count
        task = SmoothTask(self.grids, scatter, self.streams["smooth"])
        return smooth_interval(task, self.level, self.resamples)

    @cached_property
    def corp_parts(self) -> Corp:
        """MCB, DSC and UNC."""
        return corp_from_sums(self.distinct, float(self.ranked.squares.sum()), self.fitted)

    @cached_property
    def fitted(self) -> Floats:
        """The isotonic fit at distinct scores, rising."""
        return isotonic_fit(self.distinct.weight, self.distinct.outcome)

    @cached_property
    def corp_ends(self) -> CorpIntervals:
        """The interval of MCB, and what that of DSC needs."""
        noise = self.row_count, self.gaps.inflation, self.streams["corp"]
        task = CorpTask(self.distinct, self.corp_parts, self.fitted, *noise)
        return corp_intervals(task, self.level)

    def reliability_curve(self, points: int, rng: Stream) -> ReliabilityCurve:
        """Return the curve by isotonic regression, with the band of perfect calibration."""
        return curve_of_sums(self.distinct, self.fitted, self.row_count, points, self.level, rng)

    @cached_property
    def unseen(self) -> float:
        """The share of units that may differ from all that were seen."""
        return unseen_share(max(round(self.effective), 1), self.level)

    def mean(self, rows: Floats) -> tuple[float, float]:
        """Return the weighted mean and its standard error between units."""
        value = self.average(rows)
        error = self.mean_pulls(rows - value).error
        # Equal rows may seem to differ by the rounding of their mean.
        return value, error if error > 1e-12 * abs(value) else 0.0

    def average(self, rows: Floats) -> float:
        """Return the weighted mean."""
        w = self.data.weights
        return float(rows.sum() if w is None else rows @ w.astype(np.float64)) / self.data.total

    @cached_property
    def mean_gap(self) -> Estimate:
        """Mean confidence minus accuracy."""
        confidence, accuracy = map(self._pulled_mean, self.data[:2])
        return gap_of_means(confidence, accuracy, self.level)

    def _pulled_mean(self, rows: Array) -> tuple[float, UnitInfluence]:
        values = rows.astype(np.float64, copy=False)
        # Rounding must not make a spread where there is none.
        value = float(values[0]) if np.ptp(values) == 0 else self.average(values)
        return value, self.mean_pulls(values - value)

    @cached_property
    def shares(self) -> Floats | None:
        """Share of each unit in the whole, or None where all have the same."""
        codes, heavy = self.units.codes, self.data.weights
        if codes is None:
            sizes = None if heavy is None else heavy.astype(np.float64)
        else:
            sizes = np.bincount(codes, heavy, self.units.count).astype(np.float64)
        if sizes is None or np.ptp(sizes) <= 1e-12 * sizes.max():
            return None
        return np.asarray(sizes / sizes.sum(), dtype=np.float64)

    @cached_property
    def effective(self) -> float:
        """Units of equal weight that would tell as much (Kish): all, where they are equal."""
        if self.shares is None:
            return float(self.units.count)
        return max(float(1 / np.square(self.shares).sum()), 2.0)

    def pulls(self, influence: Floats) -> UnitInfluence:
        """Return how far each unit pulls a statistic, from its influence on rows.

        A unit of great weight draws the value to itself, so that its own residual is too small: it
        is put right by the share that the unit has in the value, as when each is left out in turn.
        """
        if self.data.weights is not None:
            influence = influence * self.weight
        sums, scale = self.units.sums(influence), self.units.count / self.data.total
        pull = sums if scale == 1 else sums * scale
        if self.shares is not None:
            pull = pull / (1 - np.minimum(self.shares, MOST_SHARE))
        return UnitInfluence(pull, None, self.units.count, self.effective)

    def mean_pulls(self, rows: Floats) -> UnitInfluence:
        """Return how far each unit pulls a mean, from what every row is above it.

        Where units are unequal, the few large ones decide how well the error itself is known.
        """
        pulls = self.pulls(rows)
        if self.shares is None or pulls.error == 0:
            return pulls
        spread = self.average(np.square(rows))
        expected = expected_error(rows, self.units, self.data.weights, self.shares)
        values = (self.shares, pulls.error, spread, self.level, self.effective)
        ratio = unequal_ratio(*values, expected if self.units.codes is not None else None)
        return replace(pulls, pull=pulls.pull * ratio)

    def ranking_rows(self, name: str) -> tuple[float, Floats]:
        """Return a ranking measure and the influence of every row on it."""
        if name == "e_aurc":
            (value, influence), (best, ranking, of_best) = self.risk, self.best_risk
            rows = influence.rows(self.ranked.group, self.data.correct)
            return value - best, rows - of_best.rows(ranking.group, self.data.correct)
        value, influence = self.risk if name == "aurc" else self.ranked.measured(name)
        return value, influence.rows(self.ranked.group, self.data.correct)

    def error(self, influence: Floats) -> float:
        """Return the standard error of a statistic from its influence on rows."""
        return self.pulls(influence).error
