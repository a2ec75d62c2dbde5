"""What the questions show about two models: a gap and two tests in each of the four views."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from calibrant.comparison.ece_interval import gap_bias, gap_estimate
from calibrant.comparison.odds import ViewStatistics
from calibrant.comparison.partner_views import ODDS_VIEWS, PartnerViews
from calibrant.core.arrays import Floats
from calibrant.core.estimate import Estimate

# At the mean accuracy the errors lie between those at the two ends.
EQUIVALENCE_VIEWS = ("raw", "os_weakest", "os_strongest")
# The resamples overstate the variance of a squared error; no more than this share is taken off.
_LEAST_VARIANCE = 1 / 3


def without_ends(estimate: Estimate) -> Estimate:
    """Return the value of an estimate without its interval.

    Examples
    --------
    >>> print(without_ends(Estimate(0.1, 0.0, 0.2, n=5)))
    0.100 [nan, nan]
    """
    return replace(estimate, low=math.nan, high=math.nan, interval="none")


@dataclass(frozen=True, slots=True)
class ViewEvidence:
    """The gap of two calibration errors in one view (first minus second) and its tests.

    `gap` is of absolute errors, with `p_gap`; `z` and `p_square` are of squared errors.
    """

    gap: Estimate
    p_gap: float
    z: float
    p_square: float

    def side(self, level: float) -> int:
        """Return -1 where the first model is shown to have the smaller error, 1 the second, or 0.

        The interval of the absolute errors and the test of the squared ones must agree.
        """
        reach = float(special.ndtri((1 + level) / 2))
        by_gap = self.interval_side()
        by_square = (self.z > reach) - (self.z < -reach)
        return by_gap if by_gap == by_square else 0

    def interval_side(self) -> int:
        """Return on which side of 0 the interval of the gap lies; 0 where it holds 0."""
        return (self.gap.low > 0) - (self.gap.high < 0)


@dataclass(frozen=True, slots=True)
class PairEvidence:
    """All views of a pair, and how close the two models are shown to be.

    `bound` is the smallest margin within which they are equivalent, or what already exceeds the
    margin asked for. `alike` is the one confidence that both always state: then they
    differ in accuracy alone, and neither is called better. `behaviour` is the gap that
    remains when both have the same accuracy and keep their confidences, `accuracy` the rest of the
    raw gap.
    """

    views: dict[str, ViewEvidence]
    bound: float
    behaviour: Estimate
    accuracy: Estimate
    alike: float | None = None

    @property
    def p_value(self) -> float:
        """The largest of the eight p-values: all views and both tests must agree."""
        found = [p for view in self.views.values() for p in (view.p_gap, view.p_square)]
        return math.nan if any(math.isnan(p) for p in found) else max(found)

    def without_tests(self) -> PairEvidence:
        """Return the values alone, for questions too few to test anything."""
        views = {
            name: ViewEvidence(without_ends(view.gap), math.nan, math.nan, math.nan)
            for name, view in self.views.items()
        }
        parts = without_ends(self.behaviour), without_ends(self.accuracy)
        return PairEvidence(views, math.nan, *parts, self.alike)

    def better(self, level: float) -> int:
        """Return -1 where every view shows that the first is better, 1 the second, 0 neither."""
        if self.alike is not None:
            return 0
        sides = {view.side(level) for view in self.views.values()}
        return sides.pop() if len(sides) == 1 else 0


def pair_evidence(
    first: PartnerViews, second: PartnerViews, *, level: float, margin: float
) -> PairEvidence:
    """Return the evidence about two models on the questions that both have."""
    units = {"raw": float(first.n)}
    for view in ODDS_VIEWS[1:]:
        units[view] = min(first.effective[view], second.effective[view])
    views = {
        view: view_evidence(first.odds[view], second.odds[view], first.n, units[view], level)
        for view in ODDS_VIEWS
    }
    behaviour = first.behaviour - second.behaviour
    rest = first.paper["raw"].ece - second.paper["raw"].ece - behaviour
    return PairEvidence(
        views,
        equivalence_bound(first.odds, second.odds, margin),
        gap_estimate(behaviour, first.n, level=level),
        gap_estimate(rest, first.n, level=level),
        first.constant if first.constant == second.constant else None,
    )


def view_evidence(
    first: ViewStatistics, second: ViewStatistics, n: int, units: float, level: float
) -> ViewEvidence:
    """Return the gap of two models in one view.

    Parameters
    ----------
    first, second
        What the view shows of each.
    n, units
        Questions behind the gap, and how many the weights leave of them.
    level
        Coverage of the interval.
    """
    gaps = first.error - second.error
    z = squared_gap_z(first, second)
    return ViewEvidence(
        gap_estimate(gaps, n, level=level),
        gap_p_value(gaps, units),
        z,
        float(2 * special.ndtr(-abs(z))),
    )


def squared_gap_z(first: ViewStatistics, second: ViewStatistics) -> float:
    """Return the debiased gap of squared errors in units of its standard error.

    The variance of the resamples holds the noise of the data twice where both models are
    calibrated; what it overstates is taken off, up to two thirds.
    """
    gaps = (first.squares - second.squares)[1:]
    gaps = gaps[np.isfinite(gaps)]
    if gaps.size < 2 or not math.isfinite(first.debiased - second.debiased):
        return math.nan
    spread = float(gaps.var(ddof=1))
    variance = max(spread - first.excess - second.excess, spread * _LEAST_VARIANCE)
    return (first.debiased - second.debiased) / math.sqrt(variance) if variance > 0 else 0.0


def gap_p_value(replicates: Floats, units: float) -> float:
    """Return the two-sided p-value of 'the two models have the same error'; NaN without spread.

    A share of resamples is never below one in their number, too coarse for what is corrected for
    many pairs. This takes the spread of the resamples and Student's law. The gap counts only for
    what its largest bias leaves of it (`gap_bias`).

    Parameters
    ----------
    replicates
        Gap in the data, then in every resample.
    units
        Questions behind the gap, effective ones where they are weighted.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> round(gap_p_value(np.append(0.1, 0.1 + 0.05 * rng.standard_normal(4000)), 200), 2)
    0.05
    """
    drawn = replicates[1:][np.isfinite(replicates[1:])]
    if drawn.size < 2 or not np.isfinite(replicates[0]):
        return math.nan
    spread, gap = float(drawn.std(ddof=1)), float(replicates[0])
    if spread == 0:
        return 1.0 if gap == 0 else math.nan
    towards = gap_bias(replicates) * math.copysign(1.0, gap)
    left = max(abs(gap) - max(towards, 0.0), 0.0)
    return float(2 * special.stdtr(max(units - 1, 1), -left / spread))


def equivalence_bound(
    first: Mapping[str, ViewStatistics], second: Mapping[str, ViewStatistics], margin: float
) -> float:
    """Return the smallest margin within which two models are shown to be equivalent.

    Each model's own 90 % interval enters: the interval of the gap is not valid for this, it would
    declare up to a quarter of pairs equivalent that are not. Where a view already exceeds `margin`
    the others are not looked at, and the bound is that of the views so far.
    """
    views = [(first[view], second[view]) for view in EQUIVALENCE_VIEWS]
    worst = max(abs(float(np.abs(a.seen).sum() - np.abs(b.seen).sum())) for a, b in views)
    for one, other in views:
        if not worst < margin:
            return worst
        (low, high), (other_low, other_high) = one.range_90, other.range_90
        reach = max(high - other_low, other_high - low)
        if math.isnan(reach):
            return math.nan
        worst = max(worst, reach)
    return worst


def accuracy_p_value(replicates: Floats) -> float:
    """Return the two-sided p-value of no difference in accuracy, by its bootstrap spread."""
    drawn = replicates[1:][np.isfinite(replicates[1:])]
    spread = float(drawn.std(ddof=1)) if drawn.size > 1 else 0.0
    gap = float(replicates[0])
    if not math.isfinite(gap):
        return math.nan
    if spread == 0:
        return 1.0 if gap == 0 else math.nan
    return float(2 * special.ndtr(-abs(gap) / spread))
