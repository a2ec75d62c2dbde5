"""What the questions show about two models: the gap of their errors on every footing.

Two nulls bind a verdict: both state their confidence alike given right or wrong, and both are
calibrated; in either only accuracy differs. No single footing is fair under both, so all are kept.
Then the intervals of all else that a comparison reports.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from scipy import special

from calibrant.comparison.ece_interval import Gap, Residuals, gaps_of
from calibrant.comparison.footings import SharedViews
from calibrant.comparison.pipeline import PairViews
from calibrant.comparison.survey import AnswerCounts
from calibrant.core.arrays import Estimate, Floats
from calibrant.findings.claims.compare import LEAST_QUESTIONS
from calibrant.metrics.stats import intervals
from calibrant.metrics.stats.bootstrap import quantiles

# Both models brought to the accuracy of one with the odds moved along, and the same with
# near-certain statements taken at their word.
SHIFTED = ("os_a", "os_b")
NEAR = ("os_a_near", "os_b_near")
SQUARED = ("raw", *SHIFTED)
SIX = ("raw", *SHIFTED, *NEAR, "sda")
_GAPS = (*SIX, "sos")
_SQUARED: dict[str, Callable[[SharedViews, SharedViews], tuple[Residuals, Residuals]]] = {
    "raw": lambda a, b: (a.raw, b.raw),
    "os_a": lambda a, b: (a.raw, b.shifted),
    "os_b": lambda a, b: (a.shifted, b.raw),
}
# Fewer answers without a confidence, right as often as the rest, are taken to be like the rest.
FEW_MISSING = 0.05
# The resamples overstate the variance of a squared error; no more than this share is taken off.
_LEAST_VARIANCE = 1 / 3
# The sum of two ends lies further out than this many errors of the gap.
_ENDS_REACH = 1.3


class PairEvidence(Struct, frozen=True):
    """All numbers that the verdict on a pair rests on.

    `gaps` by footing: ``raw`` as answered; ``os_a`` and ``os_b`` at the accuracy of either, odds
    moved along; the same ``_near`` with near-certain statements taken at their word; ``sda`` and
    ``sos``, the means over both accuracies with statements as they are, and moved. `squares` is the
    z-score of the gap of squared errors and `rms` the gap of their roots. `bound` is the smallest
    margin within which the errors are shown to be equal on the five footings, or what already
    exceeds the margin asked for. `laws_high` says how far the laws of confidence given wrong and
    given right lie apart at most. `clip` is the least that a near-certain statement
    makes of difference. `lead` is how much more accurate the first is, `lead_sd` its standard
    error; `unstated` the share of answers that state no confidence, by outcome.
    """

    gaps: dict[str, Gap]
    squares: dict[str, float]
    rms: dict[str, float]
    bound: float
    laws_high: tuple[float, float]
    clip: float
    lead: float
    lead_sd: float
    unstated: tuple[float, float]

    @property
    def slack(self) -> float:
        """How far answers without a stated confidence could move the gap of the errors."""
        return max(self.unstated)

    @property
    def p_value(self) -> float:
        """The largest of the six p-values: every footing must say the same."""
        return float(np.max([self.gaps[name].p_value for name in SIX]))

    @property
    def p_accuracy(self) -> float:
        """Two-sided p-value of equal accuracy."""
        if not math.isfinite(self.lead_sd):
            return math.nan
        return float(2 * special.ndtr(-abs(self.lead) / self.lead_sd))

    def worst_case(self) -> PairEvidence:
        """Return the evidence with answers that state no confidence counted against any claim."""
        wrong, right = self.laws_high
        return replace(
            self,
            gaps={name: replace(gap, slack=self.slack) for name, gap in self.gaps.items()},
            bound=self.bound + self.slack,
            laws_high=(wrong + self.unstated[0], right + self.unstated[1]),
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


def pair_evidences(
    pairs: Sequence[PairViews], survey: AnswerCounts, *, margin: float
) -> list[PairEvidence]:
    """Return the evidence about pairs of models on the questions that both have.

    Differences of calibration errors below the margin do not matter.
    """
    replicates = _gaps(pairs)
    gaps = gaps_of(replicates.reshape(-1, replicates.shape[-1]))
    result = []
    for number, pair in enumerate(pairs):
        by_name = dict(zip(_GAPS, gaps[number * len(_GAPS) :], strict=False))
        sides = {name: views(pair.first, pair.second) for name, views in _SQUARED.items()}
        # How far the laws of confidence lie apart at most, given wrong and given right.
        laws = np.abs(pair.first.law - pair.second.law).sum(axis=1, dtype=np.float64)
        wrong, right = _ends_of(laws[:, 1:], 0.95, math.inf).tolist()
        # How much a near-certain statement matters at least, where it matters most.
        near = np.abs(replicates[number, 1:3] - replicates[number, 3:5])
        clip = float(_ends_of(near[np.argmax(near[:, 0]), 1:], 0.05, 0.0))
        result.append(
            PairEvidence(
                by_name,
                {name: squared_gap_z(a, b) for name, (a, b) in sides.items()},
                {name: a.rms - b.rms for name, (a, b) in sides.items()},
                _bound(pair, by_name, replicates[number], margin),
                (wrong, right),
                clip,
                *survey.more_accurate(pair.a, pair.b)[1:],
                _unstated(survey, pair.a, pair.b),
            )
        )
    return result


def _gaps(pairs: Sequence[PairViews]) -> Floats:
    """Return the gaps of every pair on every footing: (pairs, footings, 1 + resamples)."""
    sides = [pair.first for pair in pairs], [pair.second for pair in pairs]
    a, b = (np.stack([part.raw.error for part in views]) for views in sides)
    shifted_a, shifted_b = (np.stack([part.shifted.error for part in views]) for views in sides)
    near_a, near_b = (np.stack([part.near_error for part in views]) for views in sides)
    mixed_a, mixed_b = (np.stack([part.mixed for part in views]) for views in sides)
    os_a, os_b = a - shifted_b, shifted_a - b
    sda = (a - mixed_b + mixed_a - b) / 2
    gaps = [a - b, os_a, os_b, a - near_b, near_a - b, sda, (os_a + os_b) / 2]
    return np.stack(gaps, axis=1)


def _unstated(survey: AnswerCounts, a: int, b: int) -> tuple[float, float]:
    """Return the share of wrong and right answers without confidence, where these could matter."""
    total = np.zeros(2)
    for first, peer in ((a, b), (b, a)):
        share, related = survey.missing(first, peer)
        if related or share > FEW_MISSING:
            total += survey.unstated(first, peer)
    return float(total[0]), float(total[1])


def squared_gap_z(first: Residuals, second: Residuals) -> float:
    """Return the debiased gap of squared errors in units of its standard error.

    The variance of the resamples holds the noise of the data twice where both models are
    calibrated; what it overstates is taken off, up to two thirds.
    """
    gap, gaps = first.debiased - second.debiased, (first.squares - second.squares)[1:]
    gaps = gaps[np.isfinite(gaps)]
    if gaps.size < 2 or not math.isfinite(gap):
        return math.nan
    spread = float(gaps.var(ddof=1))
    variance = max(spread - first.excess - second.excess, spread * _LEAST_VARIANCE)
    return gap / math.sqrt(variance) if variance > 0 else 0.0


def _bound(pair: PairViews, gaps: dict[str, Gap], replicates: Floats, margin: float) -> float:
    """Return the smallest margin within which two models are shown to be equivalent.

    Each model's own 90 % interval enters: the interval of the gap is not valid for this, it would
    declare up to a tenth of pairs equivalent that are not. What is known to exceed `margin` is
    not worked out further.
    """
    first, second = pair.first, pair.second
    five = ("raw", *SHIFTED, *NEAR)
    worst = max(abs(gaps[name].value) + _ENDS_REACH * gaps[name].sd for name in five)
    if not worst < margin:
        return worst
    worst = _ends(first.raw.range_90, second.raw.range_90)
    for name, own, peer, key in (
        ("os_a", first.raw, second.shifted, second.near),
        ("os_b", second.raw, first.shifted, first.near),
    ):
        if worst < margin:
            worst = max(worst, _ends(own.range_90, peer.range_90))
        place = _GAPS.index(name)
        # The near ones stand two places behind.
        if worst < margin and np.nanmax(np.abs(replicates[place] - replicates[place + 2])) >= 1e-3:
            worst = max(worst, _ends(own.range_90, peer.moved_range(key)))
    return worst


def _ends(item: tuple[float, float], peer: tuple[float, float]) -> float:
    return max(item[1] - peer[0], peer[1] - item[0])


def _ends_of(draws: Floats, share: float, missing: float) -> Floats:
    """Return a quantile along the last axis, of ten resamples that are defined at least."""
    rows = [row[np.isfinite(row)] for row in draws.reshape(-1, draws.shape[-1])]
    ends = [float(quantiles(row, (share,))[0]) if row.size > 10 else missing for row in rows]
    return np.array(ends).reshape(draws.shape[:-1])


def interval(replicates: Floats, n: int, *, level: float = 0.95) -> Estimate:
    """Return the value (entry 0) with the percentile interval of the resamples.

    Parameters
    ----------
    replicates
        Value in the data, then in every resample; undefined resamples are left out.
    n
        Questions behind the value; of too few the resamples are too much alike.
    level
        Coverage.
    """
    value = float(replicates[0])
    draws = replicates[1:][np.isfinite(replicates[1:])]
    if n < LEAST_QUESTIONS or draws.size < 2 or not np.isfinite(value):
        return Estimate(value, float("nan"), float("nan"), n, level, interval="none")
    low, high = quantiles(draws, ((1 - level) / 2, (1 + level) / 2)).tolist()
    # Few rows have few resamples, which may all lie on one side of the value.
    ends = min(low, value), max(high, value)
    return Estimate(value, *ends, n, level, interval="bootstrap-percentile")


def design_effect(replicates: Floats, spread: float, n: int) -> float:
    """Return how many answers of clusters are worth one independent answer, at least 1.

    Parameters
    ----------
    replicates
        A mean in the data, then in every resample of clusters.
    spread
        Variance of one answer.
    n
        Answers.

    Examples
    --------
    >>> round(design_effect(np.array([0.5, 0.4, 0.6]), 0.25, 50), 6)
    4.0
    """
    draws = replicates[1:][np.isfinite(replicates[1:])]
    if draws.size < 2 or spread <= 0:
        return 1.0
    return max(float(draws.var(ddof=1)) * n / spread, 1.0)


def rate_interval(value: float, n: int, level: float, design: float = 1.0) -> Estimate:
    """Return Wilson's interval, as in an audit: of 1 in 20 the resamples say [0, 0.15].

    Outcomes with grades between 0 and 1 vary less, and theirs is too long rather than too short.
    """
    low, high = intervals.wilson_interval(value, n / design, level)
    return Estimate(value, float(low), float(high), n, level, interval="wilson")


def mean_interval(
    n: int, total: float, squares: float, level: float, design: float = 1.0
) -> Estimate:
    """Return the mean of n confidences from their sums, with Student's interval on log-odds."""
    mean = total / n
    spread = max(squares - n * mean**2, 0.0) / (n - 1) if n > 1 else float("nan")
    if spread <= 1e-12 * mean:
        # As in an audit: confidences that never varied may still do so.
        unseen = intervals.unseen_share(round(n / design), level)
        low, high = max(mean - unseen, 0.0), min(mean + unseen, 1.0)
    else:
        low, high = intervals.logit_interval(
            mean, (spread * design / n) ** 0.5, level, units=n / design
        )
    return Estimate(mean, low, high, n, level, interval="student-logit")


def normal_interval(
    value: float, error: float, n: int, level: float, how: str = "paired-normal"
) -> Estimate:
    """Return a difference of means with the interval of its standard error, inside [-1, 1]."""
    if n < LEAST_QUESTIONS or math.isnan(value):
        return Estimate(value, math.nan, math.nan, n, level, interval="none")
    reach = intervals.normal_quantile(level) * error
    ends = max(value - reach, -1.0), min(value + reach, 1.0)
    return Estimate(value, *ends, n, level, interval=how)


def without_ends(estimate: Estimate) -> Estimate:
    """Return the value of an estimate without its interval.

    Examples
    --------
    >>> print(without_ends(Estimate(0.1, 0.0, 0.2, n=5)))
    0.100 [nan, nan]
    """
    return replace(estimate, low=math.nan, high=math.nan, interval="none")


PAPER_VIEWS = ("raw", "ia", "da")


Described: TypeAlias = dict[str, list[Gap]]


def described_gaps(pairs: Sequence[PairViews]) -> list[Described]:
    """Return, by pair, what describes it: gaps of the literature's views, means where both agree.

    ``halves``: of the first model where both are wrong and right, then of the second.
    """
    tables: dict[str, Floats] = {}
    for view in PAPER_VIEWS:
        sides = [(pair.first.paper[view], pair.second.paper[view]) for pair in pairs]
        tables[view] = np.array([[a.brier - b.brier, a.ece - b.ece] for a, b in sides])
    tables["halves"] = np.array([[*pair.first.halves, *pair.second.halves] for pair in pairs])
    flat = {name: gaps_of(part.reshape(-1, part.shape[-1])) for name, part in tables.items()}
    width = {name: part.shape[1] for name, part in tables.items()}
    return [
        {name: flat[name][n * width[name] : (n + 1) * width[name]] for name in tables}
        for n in range(len(pairs))
    ]
