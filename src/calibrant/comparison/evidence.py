"""What the questions show about two models: the gap of their errors on every footing.

Two nulls bind a verdict: both state their confidence alike given right or wrong, and both are
calibrated; in either only accuracy differs. No single footing is fair under both, so all are kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from calibrant.comparison.ece_interval import Gap, Residuals, gaps_of
from calibrant.comparison.footings import Footings
from calibrant.comparison.survey import Survey
from calibrant.core.arrays import Floats
from calibrant.stats.bootstrap import quantiles

# Both models brought to the accuracy of one with the odds moved along, and the same with
# near-certain statements taken at their word.
SHIFTED = ("os_a", "os_b")
NEAR = ("os_a_near", "os_b_near")
SQUARED = ("raw", *SHIFTED)
SIX = ("raw", *SHIFTED, *NEAR, "sda")
# Fewer answers without a confidence, right as often as the rest, are taken to be like the rest.
FEW_MISSING = 0.05
# The resamples overstate the variance of a squared error; no more than this share is taken off.
_LEAST_VARIANCE = 1 / 3
# The sum of two ends lies further out than this many errors of the gap.
_ENDS_REACH = 1.3


@dataclass(frozen=True, slots=True)
class PairEvidence:
    """All numbers that the verdict on a pair rests on.

    `gaps` by footing: ``raw`` as answered; ``os_a`` and ``os_b`` at the accuracy of either, odds
    moved along; the same ``_near`` with near-certain statements taken at their word; ``sda`` and
    ``sos``, the means over both accuracies with statements as they are, and moved. `squares` is the
    z-score of the gap of squared errors and `rms` the gap of their roots. `bound` is the smallest
    margin within which the errors are shown to be equal on the five footings, or what already
    exceeds the margin asked for. `laws` and `laws_high` say how far the laws of confidence given
    wrong and given right lie apart, and at most. `clip` is the least that a near-certain statement
    makes of difference. `lead` is how much more accurate the first is, `lead_sd` its standard
    error; `unstated` the share of answers that state no confidence, by outcome.
    """

    gaps: dict[str, Gap]
    squares: dict[str, float]
    rms: dict[str, float]
    bound: float
    laws: tuple[float, float]
    laws_high: tuple[float, float]
    clip: float
    lead: float
    lead_sd: float
    unstated: tuple[float, float] = (0.0, 0.0)
    slack: float = 0.0

    @property
    def p_value(self) -> float:
        """The largest of the six p-values: every footing must say the same."""
        found = [self.gaps[name].p_value for name in SIX]
        return math.nan if any(map(math.isnan, found)) else max(found)

    @property
    def p_accuracy(self) -> float:
        """Two-sided p-value of equal accuracy."""
        if not math.isfinite(self.lead_sd):
            return math.nan
        return float(2 * special.ndtr(-abs(self.lead) / self.lead_sd))

    def worst_case(self) -> PairEvidence:
        """Return the evidence with answers that state no confidence counted against any claim."""
        return replace(
            self,
            gaps={name: replace(gap, slack=self.slack) for name, gap in self.gaps.items()},
            bound=self.bound + self.slack,
            laws_high=(
                self.laws_high[0] + self.unstated[0],
                self.laws_high[1] + self.unstated[1],
            ),
        )

    def without_tests(self) -> PairEvidence:
        """Return the values alone, for questions too few to test anything."""
        gaps = {name: Gap(gap.value, math.nan, math.nan) for name, gap in self.gaps.items()}
        nothing = (math.inf, math.inf)
        return replace(self, gaps=gaps, bound=math.inf, laws_high=nothing, lead_sd=math.inf)

    def certain_part(self) -> float:
        """Return the part of the gap that comes from how confidence is stated, at least.

        The smaller of the two gaps at equal accuracy where both are shown on one side, else 0.
        """
        mixed, moved = self.gaps["sda"], self.gaps["sos"]
        if not mixed.side() or mixed.side() != moved.side():
            return 0.0
        return min(mixed.value, moved.value, key=abs)


def pair_evidence(
    first: Footings,
    second: Footings,
    *,
    margin: float,
    lead: tuple[float, float],
    unstated: Floats | None = None,
) -> PairEvidence:
    """Return the evidence about two models on the questions that both have.

    Parameters
    ----------
    first, second
        Either model with the other as its partner.
    margin
        Differences of calibration errors below it do not matter.
    lead
        How much more accurate the first is on all graded answers, and its standard error.
    unstated
        The share of wrong and of right answers that state no confidence, of both models together,
        where these could matter.
    """
    a, b = first.raw.error, second.raw.error
    found = {"raw": a - b, "os_a": a - second.shifted.error, "os_b": first.shifted.error - b}
    found |= {"os_a_near": a - second.near_error, "os_b_near": first.near_error - b}
    found["sda"] = (a - second.mixed + first.mixed - b) / 2
    found["sos"] = (found["os_a"] + found["os_b"]) / 2
    gaps = dict(zip(found, gaps_of(np.stack(list(found.values()))), strict=True))
    both = {
        "raw": (first.raw, second.raw),
        "os_a": (first.raw, second.shifted),
        "os_b": (first.shifted, second.raw),
    }
    laws, laws_high = _laws(first, second)
    lost = (0.0, 0.0) if unstated is None else (float(unstated[0]), float(unstated[1]))
    return PairEvidence(
        gaps,
        {name: squared_gap_z(*pair) for name, pair in both.items()},
        {name: _root(pair[0]) - _root(pair[1]) for name, pair in both.items()},
        _bound(first, second, gaps, found, margin),
        laws,
        laws_high,
        _clip(found),
        *lead,
        lost,
        max(lost),
    )


def unstated_shares(survey: Survey, a: int, b: int) -> Floats:
    """Return the share of wrong and right answers without confidence, where these could matter."""
    total = np.zeros(2)
    for one, other in ((a, b), (b, a)):
        share, related = survey.missing(one, other)
        if related or share > FEW_MISSING:
            total += survey.unstated(one, other)
    return total


def _root(of: Residuals) -> float:
    return math.sqrt(max(of.debiased, 0.0))


def squared_gap_z(first: Residuals, second: Residuals) -> float:
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


def _bound(
    first: Footings,
    second: Footings,
    gaps: dict[str, Gap],
    found: dict[str, Floats],
    margin: float,
) -> float:
    """Return the smallest margin within which two models are shown to be equivalent.

    Each model's own 90 % interval enters: the interval of the gap is not valid for this, it would
    declare up to a tenth of pairs equivalent that are not. What is known to exceed `margin` is
    not worked out further.
    """
    five = ("raw", *SHIFTED, *NEAR)
    worst = max(abs(gaps[name].value) + _ENDS_REACH * gaps[name].sd for name in five)
    if not worst < margin:
        return worst
    worst = _ends(first.raw.range_90, second.raw.range_90)
    for name, own, other, by in (
        ("os_a", first.raw, second.shifted, second.near),
        ("os_b", second.raw, first.shifted, first.near),
    ):
        if worst < margin:
            worst = max(worst, _ends(own.range_90, other.range_90))
        if worst < margin and np.nanmax(np.abs(found[name] - found[f"{name}_near"])) >= 1e-3:
            worst = max(worst, _ends(own.range_90, other.moved_range(by)))
    return worst


def _ends(one: tuple[float, float], other: tuple[float, float]) -> float:
    return max(one[1] - other[0], other[1] - one[0])


def _laws(first: Footings, second: Footings) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return how far the laws of confidence lie apart, given wrong and given right, and at most."""
    apart = np.abs(first.law - second.law).sum(axis=1, dtype=np.float64)
    ends = []
    for values in apart:
        drawn = values[1:][np.isfinite(values[1:])]
        ends.append(float(quantiles(drawn, (0.95,))[0]) if drawn.size > 10 else math.inf)
    return (float(apart[0, 0]), float(apart[1, 0])), (ends[0], ends[1])


def _clip(found: dict[str, Floats]) -> float:
    """Return how much a near-certain statement matters at least, where it matters most."""
    apart = [np.abs(found[name] - found[f"{name}_near"]) for name in SHIFTED]
    most = max(apart, key=lambda values: values[0])
    drawn = most[1:][np.isfinite(most[1:])]
    return float(quantiles(drawn, (0.05,))[0]) if drawn.size else 0.0
