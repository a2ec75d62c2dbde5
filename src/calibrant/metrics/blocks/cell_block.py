"""Every metric with its interval from merged cell sums, and what the cells leave uncertain.

The definitions are those of the families; only where their numbers come from differs. `errors`
states by how much each value may differ from that of the rows themselves (see `grid`), and every
interval is widened by it.
"""

from collections.abc import Callable
from functools import cached_property, lru_cache

import numpy as np
from msgspec.structs import replace

from calibrant.core.arrays import Floats, Indices, Stream
from calibrant.metrics.binned import BinStats
from calibrant.metrics.blocks.block import MetricBlock
from calibrant.metrics.blocks.families import CurvatureRange, Ends, MetricFamily, RowLoss
from calibrant.metrics.blocks.grid import (
    LOSS_UNIT,
    OFFSET_BITS,
    SQUARE_UNIT,
    STEEP_CELLS,
    CellGrid,
    CellSums,
)
from calibrant.metrics.inputs import Checked
from calibrant.metrics.intervals.gap import GapModel
from calibrant.metrics.perfect import CalibrationTest, calibration_test
from calibrant.metrics.registry import METRICS, audited
from calibrant.metrics.selective import ThresholdCounts, threshold_counts
from calibrant.metrics.smooth import SmoothGrids
from calibrant.metrics.stats.binning import width_edges
from calibrant.metrics.stats.ranking import Influence, Ranked
from calibrant.metrics.stats.units import UnitInfluence, Units


@lru_cache(maxsize=4)
def _cell_ends(cells: int) -> tuple[Floats, Floats]:
    """Return the least and the largest number in each cell; the last one holds 1 alone."""
    edges = width_edges(cells)
    return edges, np.append(np.nextafter(edges[1:], 0), 1.0)


class CellBlock(MetricBlock):
    """One block of rows, known by its cell sums.

    Each cell and outcome stands for its rows: the weight is their number, the confidence the mean
    of the cell. Ranking ties all rows of a cell, and ECE, its halves and the means are exact.
    """

    def __init__(
        self, sums: CellSums, grid: CellGrid, *, level: float, resamples: int, rng: Stream
    ) -> None:
        self.sums, self.grid = sums, grid
        self.n = self.questions = int(sums.rows.sum())
        # Width of a cell.
        self.width = 1 / grid.cells
        self.bins, self.level, self.resamples = grid.bins, level, resamples
        self.streams = dict(zip(("gaps", "smooth", "corp"), rng.spawn(3), strict=True))
        self.confidence_sums = sums.confidence_sums(grid)
        outcome, cell = np.nonzero(sums.rows)
        self.cell, self.outcome = cell, outcome
        self.counts: Floats = sums.rows[outcome, cell].astype(np.float64)
        self.ranked = self._ranked()
        score = self.ranked.score[self.ranked.group]
        self.data = Checked(score, outcome.astype(np.float64), self.counts)
        self.units = Units(None, self.n, self.n)
        self.one_class = bool(outcome.min() == outcome.max())
        self.graded = False

    def _ranked(self) -> Ranked:
        """Return the sums of the cells that hold rows, from the highest down; cells are sorted."""
        rows = self.sums.rows.sum(axis=0)
        filled = np.flatnonzero(rows)[::-1]
        place = np.empty(self.grid.stride, np.intp)
        place[filled] = np.arange(filled.size)
        weight = rows[filled].astype(np.float64)
        hits = self.sums.rows[1, filled].astype(np.float64)
        centre = self._inside(self.confidence_sums.sum(axis=0)[filled] / weight, filled)
        return Ranked(centre, weight, hits, hits, place[self.cell])

    def _inside(self, values: Floats, cell: Indices) -> Floats:
        """Keep means in their own cells, which rounding in the last digit might miss."""
        least, largest = _cell_ends(self.grid.cells)
        return np.clip(values, least[cell], largest[cell])

    @cached_property
    def own_mean(self) -> Floats:
        """Mean confidence of each cell and outcome by itself."""
        return self._inside(self.confidence_sums[self.outcome, self.cell] / self.counts, self.cell)

    # What a block of rows is asked, too: here every row is one right or wrong answer to a question.
    probability = True
    independent = True
    counted = True
    shares = None

    # Where the sums of rows come from.

    def pulls(self, influence: Floats) -> UnitInfluence:
        """Return how far each row pulls a statistic: each row is a draw."""
        return UnitInfluence(influence, self.counts, self.n)

    @cached_property
    def gaps(self) -> GapModel:
        """Sums over bins; placed exactly, summed exactly."""
        grid, bins = self.grid, self.bins
        rows = grid.by_bin(self.sums.rows.sum(axis=0), bins).astype(np.float64)
        filled = rows > 0
        confidence = grid.by_bin(self.confidence_sums.sum(axis=0), bins)[filled] / rows[filled]
        cells, chance = np.zeros(grid.stride), self.data.confidence
        np.add.at(cells, self.cell, self.counts * (chance * (1 - chance)))
        edges = width_edges(bins)
        stats = BinStats(
            lower=edges[:-1][filled],
            upper=edges[1:][filled],
            rows=rows[filled],
            mass=rows[filled] / self.n,
            confidence=confidence,
            rate=grid.by_bin(self.sums.rows[1], bins)[filled] / rows[filled],
            spread=grid.by_bin(cells, bins)[filled] / rows[filled],
            effective=rows[filled],
        )
        return GapModel(stats, self.n, 1.0, None)

    @property
    def row_count(self) -> int:
        """Number of rows; the data hold one line per cell and outcome."""
        return self.n

    @cached_property
    def best_risk(self) -> tuple[float, Ranked, Influence]:
        """The least area under risk-coverage: all right answers before all wrong ones."""
        rows = self.sums.rows.sum(axis=1)[::-1]
        filled = rows > 0
        weight, outcome = rows[filled].astype(np.float64), np.array([1.0, 0.0])[filled]
        place = self.outcome.max() - self.outcome
        ranking = Ranked(outcome, weight, weight * outcome, weight * outcome, place)
        value, influence = ranking.measured("aurc")
        return value, ranking, influence

    @cached_property
    def grids(self) -> SmoothGrids:
        """Residuals on the grids of smooth ECE, each cell and outcome at its own mean."""
        return SmoothGrids(Checked(self.own_mean, self.data.correct, self.counts))

    def losses(self, rows: RowLoss, bend: CurvatureRange) -> tuple[Floats, Callable[[], Floats]]:
        """Return what rows of each cell and outcome cost on average, and with flipped outcomes."""
        y = self.data.correct
        # Rows with a confidence of 1 do not differ.
        spread = np.where(
            self.cell == self.grid.cells,
            0.0,
            (min(bend[0], 0.0) + max(bend[1], 0.0)) * self.width**2 / 16,
        )
        return rows(self.own_mean, y) + spread, lambda: rows(self.own_mean, 1 - y) + spread

    @cached_property
    def log_losses(self) -> tuple[Floats, Floats, Floats]:
        """Mean log loss of each cell and outcome, its mean square, and how far it may be off.

        The loss is convex, so that its mean over a cell lies between the loss at the mean and
        the chord; the middle is taken. Steep cells carry the sum of their rows' own losses.
        """
        y = self.data.correct.astype(bool)
        edges = width_edges(self.grid.cells)
        lower = edges[np.minimum(self.cell, self.grid.cells - 1)]
        upper = edges[np.minimum(self.cell + 1, self.grid.cells)]
        last = self.grid.cells - STEEP_CELLS
        steep = np.where(y, self.cell < STEEP_CELLS, self.cell >= last)
        # From here on the probability that was given to what happened.
        values = np.where(y, self.own_mean, 1 - self.own_mean)
        near, far = np.where(y, lower, 1 - upper), np.where(y, upper, 1 - lower)
        safe = np.where(steep, 0.5, values)
        near, far = np.where(steep, 0.5, near), np.where(steep, 0.5, far)
        share = np.clip((safe - near) * self.grid.cells, 0.0, 1.0)
        at_mean = -np.log(safe)
        chord = -(1 - share) * np.log(near) - share * np.log(far)
        loss, slack = (at_mean + chord) / 2, np.maximum(chord - at_mean, 0.0) / 2
        # Places inside a cell are rounded, which the slope at its steep end makes larger.
        slack += self.width * 2.0**-OFFSET_BITS / near
        square = loss**2
        for outcome in (0, 1):
            ours = steep & (self.outcome == outcome)
            rows = float(self.counts[ours].sum())
            if rows:
                loss[ours] = float(self.sums.loss[outcome]) * LOSS_UNIT / rows
                square[ours] = float(self.sums.squares[outcome]) * SQUARE_UNIT / rows
                slack[ours] = LOSS_UNIT / 2
        return loss, square, slack

    def interval_of(self, family: MetricFamily) -> Ends:
        """Return value and interval, by the family's own way from cells where it has one."""
        return family.interval(self) if family.cells is None else family.cells(self)

    @cached_property
    def errors(self) -> dict[str, float]:
        """Return, by metric, how far its value may be from that of the rows themselves."""
        families = ((name, METRICS[name].family) for name in audited())
        return {name: family.bound(self) for name, family in families if family is not None}

    @cached_property
    def unordered(self) -> tuple[Floats, Floats, Floats]:
        """Return hits and misses per cell from the highest down, and 1 where their order is lost.

        It is not lost where all rows of a cell are equal, as they are for confidences in round
        numbers: then the sums of right and of wrong rows are whole multiples of one position.
        Other rows pass this test with a chance below one in a million.
        """
        misses, hits = self.sums.rows[:, ::-1]
        of_miss, of_hit = self.sums.offsets[:, ::-1]
        missing = (misses > 0) & (hits > 0)
        missing[0] = False
        mixed = np.flatnonzero(missing)
        at_miss, odd_miss = np.divmod(of_miss[mixed], misses[mixed])
        at_hit, odd_hit = np.divmod(of_hit[mixed], hits[mixed])
        missing[mixed] = (odd_miss != 0) | (odd_hit != 0) | (at_miss != at_hit)
        return hits.astype(np.float64), misses.astype(np.float64), missing.astype(np.float64)

    # Evidence beside the metrics.

    @cached_property
    def calibration_test(self) -> CalibrationTest:
        """The test of perfect calibration."""
        confidence, correct, counts = self.data
        test = calibration_test(confidence, correct, bins=self.bins, weights=counts, counted=True)
        return replace(test, n=self.n)

    def histogram(self, bins: int) -> list[int]:
        """Return rows per bin of equal width."""
        counts: list[int] = self.grid.by_bin(self.sums.rows.sum(axis=0), bins).tolist()
        return counts

    def threshold_counts(self) -> ThresholdCounts:
        """Return what is answered and how much of it is wrong; thresholds are edges of cells."""
        least, largest = _cell_ends(self.grid.cells)
        filled = np.flatnonzero(self.sums.rows.sum(axis=0))[::-1]
        # Any number above the cell below keeps the same rows.
        below = np.append(largest[filled[1:]], -1.0)
        ends = least[filled], below
        return threshold_counts(self.ranked, *ends, level=self.level, rows=self.n, units=None)

    def verification_sums(self) -> dict[str, Floats]:
        """Return what the verification block needs: sums over 60 cells, and means with weights."""
        rows, confidence = self.sums.rows, self.confidence_sums.sum(axis=0)
        return {
            "rows": self.grid.by_bin(rows.sum(axis=0), 60).astype(np.float64),
            "hits": self.grid.by_bin(rows[1], 60).astype(np.float64),
            "confidence": self.grid.by_bin(confidence, 60),
            "means": self.data.confidence,
            "counts": self.counts,
        }
