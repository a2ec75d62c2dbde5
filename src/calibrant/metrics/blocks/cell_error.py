"""The calibration error over cells: one number behind every claim, from rows or from sums."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import ArrayLike
from scipy.special import betainc, ndtr, ndtri, stdtr, stdtrit

from calibrant.core.arrays import Array, Floats, Indices
from calibrant.metrics.binned import ReliabilityBins
from calibrant.metrics.inputs import check
from calibrant.metrics.stats import error_bounds, perfect_law
from calibrant.metrics.stats.cells import CellTable, ValueSums, cell_table, structure_z
from calibrant.metrics.stats.clusters import ClusterSums
from calibrant.metrics.stats.intervals import normal_quantile, wilson_interval

# What a calibrated model would show in the middle may be so many times the margin.
_WITHIN_REACH = 1.25
# Neighbours inside slices that lean together by more standard errors are a structure.
_STRUCTURE = 1.0


class CellRows(Struct, frozen=True, dict=True):
    """Rows as they are, where sums by value do not tell enough: weights, clusters, grades.

    Parameters
    ----------
    place
        Place of each row among the stated values.
    outcome
        1 where it is right, 0 where it is wrong, or a grade between.
    weights, clusters
        Weight and cluster of each row; None where all are alike, or each is a cluster of its own.
    """

    place: Indices
    outcome: Floats
    weights: Floats | None
    clusters: Indices | None

    @classmethod
    def merged(
        cls, place: Indices, outcome: Floats, weights: Array | None, clusters: Indices | None
    ) -> CellRows:
        """Return rows in which a cluster states each value once, with the mean of its outcomes.

        Copies of a row are then one row. Grades have no law under perfect calibration: each is a
        cluster of its own.

        Examples
        --------
        >>> twice = np.array([0, 0, 1, 1])
        >>> rows = CellRows.merged(twice, np.array([1.0, 1.0, 0.0, 0.0]), None, twice)
        >>> rows.outcome.tolist(), rows.weights, rows.clusters
        ([1.0, 0.0], None, None)
        """
        heavy = None if weights is None else np.asarray(weights, np.float64)
        if clusters is not None:
            values = int(place.max()) + 1
            keys, position = np.unique(clusters * values + place, return_inverse=True)
            total = np.bincount(position, heavy).astype(np.float64)
            hits = outcome if heavy is None else heavy * outcome
            outcome = np.bincount(position, hits) / total
            # Means that are right or wrong but for rounding are so.
            whole = np.rint(outcome)
            outcome = np.where(np.abs(outcome - whole) < 1e-12, whole, outcome)
            clusters, place = np.divmod(keys, values)
            heavy = total
            if keys.size == int(clusters.max()) + 1:
                clusters = None
        if heavy is not None:
            # The unit of the weights says nothing.
            heavy = None if np.ptp(heavy) <= 1e-12 * heavy.max() else heavy / heavy.mean()
        if clusters is None and ((outcome > 0) & (outcome < 1)).any():
            clusters = np.arange(outcome.size)
        return cls(place, outcome, heavy, clusters)

    @property
    def alike(self) -> bool:
        """Whether each row is one right or wrong answer that weighs as much as any other."""
        return self.weights is None and self.clusters is None


class WithinMargin(Struct, frozen=True, dict=True):
    """What is known about 'calibrated within a margin'.

    Parameters
    ----------
    p_value
        Of 'the error is above the margin', from the upper bound.
    reachable
        P-value that a calibrated model would have in the middle, at 1.25 margins.
    agrees
        Whether the accuracy is known to lie within the margin of the mean confidence.
    smooth
        Whether no structure is seen inside the slices.
    """

    p_value: float
    reachable: float
    agrees: bool
    smooth: bool


class CellError(Struct, frozen=True, dict=True):
    """The calibration error of one block over its cells.

    Parameters
    ----------
    sums
        Rows by stated value.
    rows
        The rows themselves, or None where each is one right or wrong answer that weighs as much
        as any other.
    noise_ratio, loose_shares
        Variance of a draw that was spread evenly over that of one left to chance; and which part
        of the variance of the shares is left.
    """

    sums: ValueSums
    rows: CellRows | None = None
    noise_ratio: float = 1.0
    loose_shares: float = 1.0

    @classmethod
    def of_rows(cls, value: Floats, rows: CellRows, draw_noise: tuple[float, float]) -> CellError:
        """Return the error of rows at stated values."""
        sums = ValueSums.of_rows(rows.place, value, rows.outcome, rows.weights)
        return cls(sums, None if rows.alike else rows, *draw_noise)

    @cached_property
    def _plain(self) -> CellTable:
        table = cell_table(self.sums)
        if self.noise_ratio == 1.0:
            return table
        ratio = math.sqrt(self.noise_ratio)
        return replace(table, noise=table.noise * ratio, stray=table.stray * ratio)

    @cached_property
    def clusters(self) -> ClusterSums | None:
        """Sums by cluster and cell, where rows depend on each other or have grades."""
        rows = self.rows
        if rows is None or rows.clusters is None:
            return None
        cell, excess = self._plain.place[rows.place], self.sums.value[rows.place] - rows.outcome
        return ClusterSums.of(rows.clusters, cell, excess, self._plain.gap, rows.weights)

    @cached_property
    def table(self) -> CellTable:
        """The cells, with their errors between clusters where rows depend on each other."""
        if self.clusters is None:
            return self._plain
        between, plain = self.clusters.errors, self._plain
        noise, stray = np.maximum(plain.noise, between), np.maximum(plain.stray, between)
        return replace(plain, noise=noise, stray=stray)

    @cached_property
    def _extra(self) -> float:
        return error_bounds.shares_variance(self.table, self._effective) * self.loose_shares

    @property
    def _effective(self) -> float:
        """Rows, or clusters, of equal weight that would tell as much."""
        rows = float(self.sums.weight.sum()) ** 2 / float(self.sums.squares.sum())
        return rows if self.clusters is None else min(rows, float(self.clusters.count))

    @cached_property
    def value(self) -> float:
        """The error without what noise adds to it; not below the mean gap, likewise shrunk.

        No error is below the size of the mean gap, which is known better than the gaps of cells.
        Where all lean one way this halves the error of the estimate (docs/claims.md).
        """
        table = self.table
        mean = float(table.share @ table.gap)
        if self.clusters is None:
            between = max(float(table.share @ table.gap**2) - mean**2, 0.0)
            square = float(((table.share * table.noise) ** 2).sum()) + between / self._effective
        else:
            square = self.clusters.error**2
        shrunk = abs(mean) - square / abs(mean) if mean else 0.0
        return max(error_bounds.error_estimate(table), shrunk)

    @cached_property
    def _bound(self) -> error_bounds.UpperBound:
        shared = self.clusters
        table = self.table
        square = None if shared is None else shared.variance(table.share, table.stray)
        return error_bounds.UpperBound.of(table, self._extra, square)

    @cached_property
    def _planned(self) -> error_bounds.UpperBound:
        """The bound that a calibrated model would show in the middle."""
        table = self.table
        ratio, plain = math.sqrt(self.noise_ratio), float(self._plain.share @ self._plain.stray)
        if self.clusters is not None and plain > 0:
            ratio *= float(table.share @ table.stray) / plain
        joint = self.clusters is not None
        return error_bounds.planned_bound(table, self._spread, ratio, together=joint)

    def diagram(self, level: float, rows: Floats) -> list[dict[str, object]]:
        """Return the cells in the order of the scale, as a reliability diagram shows them.

        `rows` counts the rows of each value, those too that were merged within a cluster.

        A stated value that is a cell of its own has one number as both ends. Of a slice the upper
        end is the next value that somebody states, and `without` names values inside that are
        cells of their own. `low` and `high` are the ends of the rate (Wilson), those of the band
        are where it would lie if the confidences were right.
        """
        table = self.table
        rate = table.said - table.gap
        # Rows of clusters tell less than as many independent ones.
        noise = np.where(table.noise > 0, table.noise, 1.0)
        worth = table.rows * np.where(table.noise > 0, self._plain.noise / noise, 1.0) ** 2
        worth = np.maximum(worth, 1.0)
        reach = normal_quantile(level) * np.sqrt(self._spread / worth)
        value = self.sums.value
        beyond = np.append(value, 1.0)[np.searchsorted(value, table.high, side="right")]
        upper = np.where(table.single, table.low, beyond)
        n = np.bincount(table.place, rows, table.count).astype(np.float64, copy=False)
        ends = wilson_interval(rate, worth, level)
        band = np.maximum(table.said - reach, 0.0), np.minimum(table.said + reach, 1.0)
        means = n, table.share, table.said, np.clip(rate, 0.0, 1.0)
        cells = ReliabilityBins(table.low, upper, *means, *ends, *band, level).to_dict()
        alone = np.sort(table.low[table.single])
        entries: list[dict[str, object]] = []
        for place in np.lexsort((table.high, table.said)).tolist():
            entries.append({**cells[place]})
            # The last slice ends at 1, which may be a cell of its own.
            below = (alone < upper[place]) | (alone == 1)
            inside = alone[(alone > table.low[place]) & (alone <= upper[place]) & below]
            if inside.size:
                entries[-1]["without"] = inside.tolist()
        return entries

    @property
    def _spread(self) -> Floats:
        """Mean variance of the outcomes of each cell, if the confidences were right."""
        sums, table = self.sums, self.table
        variance = sums.weight * sums.value * (1 - sums.value)
        weight = np.bincount(table.place, sums.weight, table.count)
        return np.asarray(np.bincount(table.place, variance, table.count) / weight)

    def _quantile(self, level: float) -> float:
        tail = (1 + level) / 2
        return float(ndtri(tail) if self.clusters is None else stdtrit(self.clusters.degrees, tail))

    def _p_value(self, z: float) -> float:
        return float(ndtr(-z) if self.clusters is None else stdtr(self.clusters.degrees, -z))

    def interval(self, level: float) -> tuple[float, float]:
        """Return both ends at a level."""
        if level not in self._ends:
            z = self._quantile(level)
            low = min(error_bounds.lower_end(self.table, z, self._extra), self.value)
            self._ends[level] = low, min(max(self._bound.at(z), self.value), 1.0)
        return self._ends[level]

    @cached_property
    def _ends(self) -> dict[float, tuple[float, float]]:
        return {}

    def at_best(self, level: float = 0.95) -> float:
        """Return the upper end that a calibrated model would show in the middle."""
        return self._planned.at(self._quantile(level))

    def within(self, margin: float) -> WithinMargin:
        """Return what is known about the error being within a margin.

        The error must be ruled out to lie above it by a test that a calibrated model could pass;
        the accuracy must be near the mean confidence by its exact interval; and neighbours
        inside slices must not lean together, or a slice could hide gaps of both signs.
        """
        # An estimate above the margin is not called small, whatever the bound says.
        z = self._bound.z_below(margin) if self.value <= margin else -math.inf
        reach = self._planned.z_below(_WITHIN_REACH * margin)
        p_value = self._p_value(z)
        smooth = p_value > 0.05 or structure_z(self.sums, self._plain) <= _STRUCTURE
        return WithinMargin(p_value, self._p_value(reach), self._accuracy_agrees(margin), smooth)

    def _accuracy_agrees(self, margin: float) -> bool:
        table = self.table
        confidence, right = (
            float(table.share @ table.said),
            float(table.share @ (table.said - table.gap)),
        )
        if self.rows is not None:
            error = math.sqrt(self._bound.square)
            return abs(confidence - right) + self._quantile(0.95) * error <= margin
        rows, hits = float(self.sums.rows.sum()), float(self.sums.right.sum())
        # The margin reaches both ends of the exact interval of the accuracy.
        low, high = confidence - margin, confidence + margin
        near = low <= 0 or (hits > 0 and betainc(hits, rows - hits + 1, low) <= 0.025)
        over = hits < rows and betainc(hits + 1, rows - hits, high) >= 0.975
        return near and (over or high >= 1)

    @cached_property
    def p_gap(self) -> float:
        """P-value of the mean gap: its law under perfect calibration, or between clusters."""
        if self.clusters is not None:
            return self.clusters.gap_p_value
        factor, chance, observed, times, step = self._law
        return perfect_law.sum_p_value(factor, chance, float(observed.sum()), times, step)

    @cached_property
    def p_one_sided(self) -> float:
        """P-value of the mean gap where all answers are right, or all are wrong."""
        rows, value = self.sums.rows, self.sums.value
        count = float(rows.sum())
        statement = float(rows @ value) / count
        spread = float(rows @ np.square(value - statement)) / max(count - 1, 1.0)
        reach = float(stdtrit(max(count - 1, 1.0), 0.9975)) * math.sqrt(spread / count)
        right = round(float(self.sums.right.sum()))
        return perfect_law.mean_p_value(statement, reach, right, round(count))

    @cached_property
    def _law(self) -> tuple[Floats, Floats, Floats, Floats, float]:
        """Factor, chance, sum of outcome minus chance, number of rows, and the step of sums."""
        rows, value = self.rows, self.sums.value
        if rows is None or rows.weights is None:
            observed = self.sums.right - self.sums.rows * value
            law = perfect_law.joined_neighbours(value, observed, self.sums.rows)
            return np.ones(law[0].size), *law, 1.0
        heavy, chance = rows.weights, value[rows.place]
        return heavy, chance, heavy * (rows.outcome - chance), np.ones(heavy.size), 0.0

    @cached_property
    def p_calibrated(self) -> float:
        """P-value of perfect calibration: mean gap, Spiegelhalter's score and cells, combined.

        Grades have no such law, and rows of clusters another one: there signs of whole clusters,
        or of rows, are flipped.
        """
        if self.clusters is not None:
            return self.clusters.calibration_p_value
        factor, chance, observed, times, _ = self._law
        tilt = 1 - 2 * chance
        score = float((observed * tilt).sum())
        spiegelhalter = perfect_law.sum_p_value(factor * tilt, chance, score, times)
        cells = perfect_law.cells_p_value(self.sums, self.table)
        return perfect_law.combined_p_value([self.p_gap, spiegelhalter, cells])


def error(confidence: ArrayLike, correct: ArrayLike, *, weights: ArrayLike | None = None) -> float:
    """Return the calibration error over cells, in [0, 1], without what noise adds to it.

    A value that many rows state is a cell of its own, all others are cut into slices; see
    `calibrant.metrics.stats.cells`. Unlike the ECE in bins of equal width, it tells apart stated
    values that lie close to each other, and is not larger because there are few rows.

    Parameters
    ----------
    confidence
        Probabilities in [0, 1], shape (n,).
    correct
        Outcomes, 0 or 1 or a grade between, shape (n,).
    weights
        A weight of 2 counts as two equal rows.

    Examples
    --------
    >>> round(error(np.repeat([0.95, 1.0], 200), [1] * 390 + [0] * 10), 3)
    0.05
    """
    data = check(confidence, correct, weights).present()
    value, place = np.unique(data.confidence.astype(np.float64), return_inverse=True)
    rows = CellRows.merged(place, data.correct.astype(np.float64), data.weights, None)
    return CellError.of_rows(value, rows, (1.0, 1.0)).value
