"""A group of rows, what is known of its confidence, and how it differs from another."""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from scipy.special import ndtr, ndtri

from calibrant.core.arrays import Floats, Mask
from calibrant.core.estimate import Estimate
from calibrant.findings.documents.groups import Ends, GroupDifference, GroupEntry
from calibrant.metrics.stats.intervals import normal_quantile, wilson_interval
from calibrant.metrics.stats.multiplicity import holm
from calibrant.trust.linear import ConfidenceBasis, project, projector
from calibrant.trust.near_confidence import ConfidenceCells
from calibrant.trust.segments.conditions import GroupRule
from calibrant.trust.segments.search import TestedGroup

Group = GroupEntry


class SearchedGroup(NamedTuple):
    """What the search says of a group, and its rows.

    `kind`: ``"found"`` (stands out beyond the overall error), ``"named"`` (written by the user) or
    ``"value"`` (one value or cut of one feature). `echo_of`: the flagged group that explains why
    this one looks unusual. `stretch`: it is a stretch of the confidence.
    """

    finding: TestedGroup
    kind: str
    mask: Mask
    flagged: bool
    echo_of: str | None = None
    stretch: bool = False


def describe(
    judged: SearchedGroup, confidence: Floats, correct: Floats, level: float
) -> GroupEntry:
    """Return a group with its plain numbers beside what the search says of it."""
    finding = judged.finding
    f, y = confidence[judged.mask], correct[judged.mask]
    n = len(f)
    rate = float(y.mean())
    low, high = wilson_interval(rate, n, level)
    gap = f - y
    reach = normal_quantile(level) * float(gap.std(ddof=1)) / n**0.5
    mean = float(gap.mean())
    beyond = Estimate(
        finding.gap, *finding.interval, n=n, level=level, interval="simultaneous over all rules"
    )
    return GroupEntry(
        rule=finding.rule.label,
        kind=judged.kind,
        n=n,
        mean_confidence=float(f.mean()),
        rate=rate,
        rate_interval=Ends(low=float(low), high=float(high)),
        gap=mean,
        gap_interval=Ends(low=mean - reach, high=mean + reach),
        gap_recalibrated=finding.gap,
        beyond=beyond,
        direction="over-confident" if finding.gap > 0 else "under-confident",
        p_value=finding.p_value,
        p_adjusted=finding.p_adjusted,
        flagged=judged.flagged,
        echo_of=judged.echo_of,
        stretch=judged.stretch,
    )


_FEWEST = 20
_EDGE = 0.005
_LEAST_FREE = 0.1
# The law of the ratio is normal only in the limit; this keeps the false rate below the level.
_WIDER = 1.06


def gap_difference(
    confidence: Floats, correct: Floats, in_a: Mask, in_b: Mask, *, level: float = 0.95
) -> tuple[Estimate, float, bool]:
    """Return the difference at equal confidence, its p value, and whether a stretch makes it.

    Rows of both groups are left out. Where the confidence tells the groups apart, nothing beyond it
    can be tested.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> f, a = rng.random(4000), rng.random(4000) < 0.5
    >>> y = (rng.random(4000) < np.clip(f - 0.2 * a, 0, 1)).astype(float)
    >>> found, p, stretch = gap_difference(f, y, a, ~a)
    >>> 0.1 < found.low < found.value < 0.25, p < 0.001, stretch
    (True, True, False)
    """
    rows = in_a ^ in_b
    f, y, side = confidence[rows], correct[rows], in_a[rows].astype(np.float64)
    n = len(y)
    if min(side.sum(), n - side.sum()) < _FEWEST:
        return Estimate(float("nan"), float("nan"), float("nan"), n=n), float("nan"), False
    basis = projector(ConfidenceBasis().fit(f).transform(f))
    cleared = side - project(basis, side)
    weight = float((cleared**2).sum())
    shift = float(cleared @ y) / weight
    error = _error(basis, cleared, y, shift) / weight
    reach = float(ndtri(0.5 + level / 2)) * error
    within = ConfidenceCells(f).within(side, y)
    estimate = Estimate(-shift, -shift - reach, -shift + reach, n=n, level=level, interval="robust")
    p = float(2 * ndtr(-abs(shift) / error))
    return estimate, p if within.shows else max(p, within.two_sided), within.is_stretch


def _error(basis: Floats, cleared: Floats, y: Floats, shift: float) -> float:
    """Return the standard error of a group's sum: the larger of two, each weak where the other is.

    From the residuals (jackknife form): right where the two groups differ. From the rate at each
    confidence: right where errors are too rare to show their spread.
    """
    rate = project(basis, y)
    weight = float((cleared**2).sum())
    leverage = (basis**2).sum(axis=1) + cleared**2 / weight
    residual = (y - rate - shift * cleared) / np.maximum(1 - leverage, _LEAST_FREE)
    inside = np.clip(rate, _EDGE, 1 - _EDGE)
    spread = inside * (1 - inside) * len(y) / (len(y) - basis.shape[1] - 1)
    observed, expected = ((cleared * residual) ** 2).sum(), (cleared**2 * spread).sum()
    return _WIDER * float(np.sqrt(max(observed, expected)))


def differences(
    rules: Sequence[GroupRule],
    masks: Sequence[Mask],
    confidence: Floats,
    correct: Floats,
    level: float,
) -> list[GroupDifference]:
    """Return the difference of every pair of groups, p values adjusted by Holm's method."""
    gap = confidence - correct
    pairs: list[GroupDifference] = []
    for first, peer in combinations(range(len(rules)), 2):
        sides = masks[first], masks[peer]
        estimate, p, stretch = gap_difference(confidence, correct, *sides, level=level)
        if np.isfinite(p):
            raw = float(gap[sides[0]].mean() - gap[sides[1]].mean())
            a, b = rules[first].label, rules[peer].label
            pairs.append(
                GroupDifference(
                    a=a, b=b, stretch=stretch, gap=estimate, raw=raw, p_value=p, p_adjusted=p
                )
            )
    adjusted = holm([pair.p_value for pair in pairs]).tolist() if pairs else []
    return [replace(pair, p_adjusted=p) for pair, p in zip(pairs, adjusted, strict=True)]
