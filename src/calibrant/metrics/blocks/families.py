"""Metrics and their families: what each is, and how blocks of rows or cells compute it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from msgspec import Struct

from calibrant.core.arrays import Array, Floats
from calibrant.metrics.blocks import grid
from calibrant.metrics.scoring import log_loss_rows
from calibrant.metrics.stats import ranking
from calibrant.metrics.stats.intervals import (
    area_interval,
    logit_interval,
    skewed_interval,
    wald_interval,
)

if TYPE_CHECKING:
    from calibrant.metrics.blocks.block import MetricBlock
    from calibrant.metrics.blocks.cell_block import CellBlock

Ends: TypeAlias = tuple[float, float, float, str]
"""Value, ends of its interval, and how these were made; of a value that is NaN, why it is."""

Interval: TypeAlias = "Callable[[MetricBlock], Ends]"
RowLoss: TypeAlias = Callable[[Floats, Array], Array]
"""What a row of confidence and outcome costs."""
CurvatureRange: TypeAlias = tuple[float, float]
"""Least and largest second derivative of a `RowLoss` in the confidence."""


class MetricFamily(Struct, frozen=True):
    """How a kind of metric is computed.

    Parameters
    ----------
    interval
        Its value with an interval, from a block of rows or of cells.
    bound
        How far the value from cells may be from that of the rows themselves.
    cells
        `interval` of a block of cells, where their sums need a way of their own.
    influence
        Its value, and the influence of every row on it. A metric that has one is compared between
        models with a normal interval.
    rows
        What a row costs, where the metric is the mean over rows.
    """

    interval: Interval
    bound: Callable[[CellBlock], float]
    cells: Callable[[CellBlock], Ends] | None = None
    influence: Callable[[MetricBlock], tuple[float, Floats]] | None = None
    rows: RowLoss | None = None


class Metric(Struct, frozen=True, kw_only=True):
    """A metric: whatever lists metrics reads this.

    Parameters
    ----------
    name
        In documents, options and Python.
    title
        In tables.
    words
        What it is, in a sentence or two; with `formula` the entry of the glossary.
    value
        Plain function of confidence, correct and keyword ``weights``.
    range
        Least and largest value.
    better
        Which way is good: ``low``, ``high``, ``zero`` (either sign is bad) or ``neither``.
    probability
        Whether it needs probabilities; other metrics take any score.
    group
        What it tells: how well confidence is calibrated, a score of both, how well it ranks, a
        share of rows, or a part of the Brier score.
    main
        Whether tables that have no room for every metric show it.
    unit
        ``points`` where a reader wants percentage points, ``share`` for a share of rows.
    audit
        Whether an audit has it ``always``, when ``asked`` for by name, or ``never``.
    family
        How it is computed with its interval; every audit needs it.
    binned
        Whether `value` takes ``bins``.
    """

    name: str
    title: str
    words: str
    value: Callable[..., float]
    formula: str = ""
    range: tuple[float, float] = (0.0, 1.0)
    better: Literal["low", "high", "zero", "neither"] = "low"
    probability: bool = True
    group: Literal["calibration", "score", "ranking", "share", "part"] = "calibration"
    main: bool = False
    unit: Literal["", "points", "share"] = ""
    audit: Literal["always", "asked", "never"] = "always"
    family: MetricFamily | None = None
    binned: bool = False

    def __post_init__(self) -> None:
        if self.audit == "always" and self.family is None:
            raise TypeError(f"{self.name}: a metric of every audit has a family, with its bound")

    def __call__(self, confidence: Any, correct: Any, **options: Any) -> float:
        """Return the value."""
        return self.value(confidence, correct, **options)


# Means.


def mean_of(
    rows: RowLoss,
    *,
    bend: CurvatureRange = (0.0, 0.0),
    interval: Interval | None = None,
    cells: Callable[[CellBlock], Ends] | None = None,
    bound: Callable[[CellBlock], float] | None = None,
) -> MetricFamily:
    """Return the family of a mean over rows.

    Parameters
    ----------
    rows
        What a row costs.
    bend
        Least and largest second derivative of `rows` in the confidence: what cells cannot tell.
    interval
        By default that of a loss, which is not below 0 and may be skewed.
    cells, bound
        Value from cells and how far it may be off, where `bend` does not tell.
    """

    def influence(block: MetricBlock) -> tuple[float, Floats]:
        losses = np.asarray(rows(block.confidence, block.data.correct), dtype=np.float64)
        value = block.average(losses)
        return value, losses - value

    interval = interval or (lambda block: skewed_mean(block, *block.losses(rows, bend)))
    bound = bound or (lambda block: grid.of_bend(block, bend))
    return MetricFamily(interval, bound, cells, influence, rows)


def skewed_mean(block: MetricBlock, rows: Floats, flipped: Callable[[], Floats]) -> Ends:
    """Return mean and interval of a loss; `flipped` gives it for the opposite outcomes."""
    value = block.average(rows)
    if math.isinf(value):
        return value, value, value, "certain and wrong"
    if block.units.count < 2:
        return value, 0.0, math.inf, "one unit"
    pulls = block.mean_pulls(rows - value)
    error = pulls.error if pulls.error > 1e-12 * value else 0.0
    if block.shares is None:
        low, high = skewed_interval(value, error, pulls.lean, block.level, units=block.effective)
    else:
        # Of unequal weights the skewness is mostly that of the weights: a move for it misleads.
        bounded = logit_interval if 0 < value < 1 else wald_interval
        low, high = bounded(value, error, block.level, units=block.effective)
    if block.one_class or error == 0:
        # Outcomes that never varied may still do so: up to the unseen share of them.
        turns = block.average(flipped())
        peer = (1 - block.unseen) * value + block.unseen * turns
        low, high = min(low, peer, (1 - block.unseen) * value), max(high, peer)
    return value, max(low, 0.0), high, "skewness-corrected"


def log_loss_of_cells(block: CellBlock) -> Ends:
    """Return the log loss with its interval; steep cells know their rows' squared losses too."""
    if block.sums.certain.any():
        return math.inf, math.inf, math.inf, "certain and wrong"
    loss, square, _ = block.log_losses
    if block.one_class or block.n < 2:
        return skewed_mean(
            block, loss, lambda: log_loss_rows(block.own_mean, 1 - block.data.correct)
        )
    value = float(block.counts @ loss) / block.n
    second = max(float(block.counts @ square) / block.n - value**2, 0.0)
    error, lean = math.sqrt(second / (block.n - 1)), block.pulls(loss - value).lean
    low, high = skewed_interval(value, error, lean, block.level, units=block.n)
    return value, max(low, 0.0), high, "skewness-corrected"


def wilson_share(block: MetricBlock) -> Ends:
    """Return the share of right answers with Wilson's interval."""
    return *block.accuracy_ends, "wilson"


def student_mean(block: MetricBlock) -> Ends:
    """Return the mean confidence with Student's interval."""
    value, error = block.mean(block.confidence)
    low, high = wald_interval(value, error, block.level, units=block.effective)
    if error == 0:
        low, high = value - block.unseen, value + block.unseen
    return value, low, high, "unit-variance"


def mean_gap(block: MetricBlock) -> Ends:
    """Return mean confidence minus accuracy."""
    gap = block.mean_gap
    return gap.value, gap.low, gap.high, gap.interval


# Calibration errors: their intervals hold what a test does not contradict.


def cell_error(block: MetricBlock) -> Ends:
    """Return the error over cells, by the bounds that claims rest on."""
    return block.cell_error.value, *block.cell_error.interval(block.level), "cells"


def binned_error(block: MetricBlock) -> Ends:
    """Return the ECE."""
    value, low, high = block.gap_ends.total
    return _gap_interval(block, value, low, max(high, *map(abs, _mean_gap_ends(block))))


def debiased_error(block: MetricBlock) -> Ends:
    """Return the debiased ECE; the interval is that of the ECE, whose truth is the same."""
    _, low, high, how = binned_error(block)
    value = block.matched
    return value, min(low, value), max(high, value), how


def over_half(block: MetricBlock) -> Ends:
    """Return the part of the ECE from bins with too high a confidence."""
    high = max(block.half_highs[0], _mean_gap_ends(block)[1])
    return _half(block, block.gap_ends.over, high)


def under_half(block: MetricBlock) -> Ends:
    """Return the part of the ECE from bins with too low a confidence."""
    high = max(block.half_highs[1], -_mean_gap_ends(block)[0])
    return _half(block, block.gap_ends.under, high)


def smooth_error(block: MetricBlock) -> Ends:
    """Return the smooth ECE."""
    value, low, high = block.smooth_ends
    return _gap_interval(block, value, low, max(high, *map(abs, _mean_gap_ends(block))))


def _half(block: MetricBlock, ends: tuple[float, float], high: float) -> Ends:
    # Where no bin leans this way, rows that were not seen still may.
    return _gap_interval(block, *ends, high if ends[0] > 0 else max(high, block.unseen))


def _gap_interval(block: MetricBlock, value: float, low: float, high: float) -> Ends:
    if block.one_class:
        low, high = max(min(low, value - block.unseen), 0.0), max(high, value + block.unseen)
    how = "test-inversion, end moved to the value" if high <= value else "test-inversion"
    return value, low, high, how


def _mean_gap_ends(block: MetricBlock) -> tuple[float, float]:
    """Return the interval of confidence minus accuracy, which no calibration error is below.

    Noise may hide a gap that has one sign everywhere behind residuals of both signs, and no line
    through those leads to it.
    """
    return block.mean_gap.low, block.mean_gap.high


# Parts of the Brier score by isotonic regression.


def miscalibration(block: MetricBlock) -> Ends:
    """Return MCB."""
    low, high = block.corp_ends.mcb
    # Confidences of 0 and 1 that were all right simulate nothing but themselves.
    if block.one_class or high <= low:
        high = max(high, min(block.corp_parts.mcb + block.unseen, 1.0))
    return block.corp_parts.mcb, low, high, "test-inversion"


def discrimination(block: MetricBlock) -> Ends:
    """Return DSC."""
    value = block.corp_parts.dsc
    # With g the recalibrated rate and m the base rate a row has (g - m)^2 + 2 (g - m)(y - g) - DSC.
    fitted, sums = block.fitted[::-1], block.distinct
    away = fitted - sums.outcome.sum() / sums.weight.sum()
    by_rank = ranking.Influence(away**2 - 2 * away * fitted - value, 2 * away)
    # The influence knows units; the simulation knows what is left where the curve is flat.
    error = max(
        block.error(by_rank.rows(block.ranked.group, block.data.correct)),
        math.sqrt(block.corp_ends.dsc_variance),
    )
    low, high = wald_interval(block.corp_ends.dsc, error, block.level, units=block.effective)
    if block.one_class or error < 1e-12:
        low, high = min(low, value - block.unseen), max(high, value + block.unseen)
    return value, min(max(low, 0.0), value), max(high, value), "bias-corrected"


def uncertainty(block: MetricBlock) -> Ends:
    """Return UNC."""
    value = block.corp_parts.unc
    if block.graded:
        y = block.data.correct.astype(np.float64, copy=False)
        spread, error = block.mean((y - block.mean(y)[0]) ** 2)
        low, high = wald_interval(spread, error, block.level, units=block.effective)
        return value, low, high, "unit-variance"
    _, low, high = block.accuracy_ends
    ends = sorted((low * (1 - low), high * (1 - high)))
    # p (1 - p) peaks at a half, which may lie inside the interval.
    return value, ends[0], 0.25 if low <= 0.5 <= high else ends[1], "wilson"


# Ranking.


def ranking_of(name: str, interval: Interval, bound: Callable[[CellBlock], float]) -> MetricFamily:
    """Return the family of a measure of the order; `name` as in `MetricBlock.ranking_rows`."""
    return MetricFamily(interval, bound, influence=lambda block: block.ranking_rows(name))


def area_under_roc(block: MetricBlock) -> Ends:
    """Return AUROC with DeLong's variance."""
    if block.one_class:
        return math.nan, 0.0, 0.0, "it needs right and wrong answers, all are the same"
    value, rows = block.ranking_rows("auroc")
    error, count = block.error(rows), block.effective
    if block.units.codes is not None and error > 0:
        # Outcomes are few or many by rows: so many independent ones would have this error.
        alone = math.sqrt(float(np.square(rows).sum())) / rows.size
        count = max(rows.size * min(alone / error, 1.0) ** 2, count)
    right = count * block.accuracy_ends[0]
    ends = area_interval(value, error, right, count - right, block.level, units=block.effective)
    return value, *ends


def average_precision(block: MetricBlock) -> Ends:
    """Return AUPRC."""
    if not block.data.correct.any():
        return math.nan, 0.0, 0.0, "no answer is right"
    value, rows = block.ranking_rows("auprc")
    error = 0.0 if block.one_class else block.pulls(rows).logit_error(value)
    return _bounded(block, value, error)


def average_risk(block: MetricBlock) -> Ends:
    """Return AURC."""
    value, rows = block.ranking_rows("aurc")
    return _bounded(block, value, 0.0 if block.one_class else block.error(rows))


def excess_risk(block: MetricBlock) -> Ends:
    """Return E-AURC."""
    excess, rows = block.ranking_rows("e_aurc")
    excess = max(excess, 0.0)
    error = block.pulls(rows).logit_error(excess)
    # A perfect order moves with the best one: what is left of either is rounding.
    if block.one_class or min(error, excess) < 1e-12:
        return excess, 0.0, excess + block.unseen, "unseen share"
    low, high = logit_interval(excess, error, block.level, units=block.effective)
    return excess, low, high, "influence-logit"


def _bounded(block: MetricBlock, value: float, influence_error: float) -> Ends:
    """Return the interval of a ranking measure on the logit scale."""
    if influence_error == 0 or not 0 < value < 1:
        return value, value - block.unseen, value + block.unseen, "unseen share"
    right = block.average(block.data.correct.astype(np.float64, copy=False))
    # The variance of the measure is known from the rarer outcome.
    rarer = max(min(right, 1 - right) * block.effective, 2.0)
    low, high = logit_interval(value, influence_error, block.level, units=rarer)
    return value, low, high, "influence-logit"
