"""A group of rows, what is known of its confidence, and how it differs from another."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import ndtr, ndtri

from calibrant.core.arrays import Floats, Mask
from calibrant.core.estimate import Estimate
from calibrant.core.stored import Stored
from calibrant.epistemic.linear import ConfidenceBasis, project, projector
from calibrant.epistemic.segments.conditions import Rule
from calibrant.epistemic.segments.search import Finding
from calibrant.stats.intervals import normal_quantile, wilson_interval
from calibrant.stats.multiplicity import holm


@dataclass(frozen=True, slots=True)
class Group:
    """A group of rows: where to look, not whom to blame.

    Parameters
    ----------
    rule
        Who belongs to it.
    kind
        ``"found"`` (stands out beyond the overall error), ``"named"`` (written by the user) or
        ``"value"`` (one value or cut of one feature, for reference).
    n
        Rows.
    mean_confidence, rate, rate_interval
        Mean confidence and observed rate with its Wilson interval.
    gap, gap_interval
        Mean confidence minus rate, above 0 is over-confident; its interval for this group alone.
    beyond
        Over-confidence against rows of equal confidence. For groups that the search looked at,
        the interval holds for all of them at once.
    p_value, p_adjusted
        Of no difference from rows of equal confidence; adjusted for all rules looked at.
    flagged
        Whether the group stands out beyond the overall error.
    echo_of
        The flagged group that explains why this one looks unusual, where that is so.
    """

    rule: str
    kind: str
    n: int
    mean_confidence: float
    rate: float
    rate_interval: tuple[float, float]
    gap: float
    gap_interval: tuple[float, float]
    beyond: Estimate
    p_value: float
    p_adjusted: float
    flagged: bool
    echo_of: str | None = None
    conditions: Rule | None = None

    @property
    def gap_recalibrated(self) -> float:
        """The gap that is left after recalibration over all rows."""
        return self.beyond.value

    @property
    def direction(self) -> str:
        """``"over-confident"`` or ``"under-confident"`` against rows of equal confidence."""
        return "over-confident" if self.beyond.value > 0 else "under-confident"


def describe(
    finding: Finding,
    kind: str,
    mask: Mask,
    confidence: Floats,
    correct: Floats,
    *,
    level: float,
    flagged: bool,
    echo_of: str | None = None,
) -> Group:
    """Return a group with its plain numbers beside what the search says of it."""
    f, y = confidence[mask], correct[mask]
    n = len(f)
    rate = float(y.mean())
    low, high = wilson_interval(rate, n, level)
    gap = f - y
    reach = normal_quantile(level) * float(gap.std(ddof=1)) / n**0.5
    mean = float(gap.mean())
    beyond = Estimate(
        finding.gap, *finding.interval, n=n, level=level, interval="simultaneous over all rules"
    )
    return Group(
        finding.rule.label,
        kind,
        n,
        float(f.mean()),
        rate,
        (float(low), float(high)),
        mean,
        (mean - reach, mean + reach),
        beyond,
        finding.p_value,
        finding.p_adjusted,
        flagged,
        echo_of,
        finding.rule,
    )


_FEWEST = 20
_EDGE = 0.005
_LEAST_FREE = 0.1
# The law of the ratio is normal only in the limit; this keeps the false rate below the level.
_WIDER = 1.06


@dataclass(frozen=True, slots=True)
class Difference(Stored):
    """Over-confidence of `a` minus that of `b` among rows of equal confidence.

    `raw` is the difference of the plain gaps (mean confidence minus rate).
    """

    a: str
    b: str
    gap: Estimate
    raw: float
    p_value: float
    p_adjusted: float


def gap_difference(
    confidence: Floats, correct: Floats, in_a: Mask, in_b: Mask, *, level: float = 0.95
) -> tuple[Estimate, float]:
    """Return the difference at equal confidence and its p value; shared rows are left out.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> f, a = rng.random(4000), rng.random(4000) < 0.5
    >>> y = (rng.random(4000) < np.clip(f - 0.2 * a, 0, 1)).astype(float)
    >>> found, p = gap_difference(f, y, a, ~a)
    >>> 0.1 < found.low < found.value < 0.25, p < 0.001
    (True, True)
    """
    rows = in_a ^ in_b
    f, y, side = confidence[rows], correct[rows], in_a[rows].astype(np.float64)
    n = len(y)
    if min(side.sum(), n - side.sum()) < _FEWEST:
        return Estimate(float("nan"), float("nan"), float("nan"), n=n), float("nan")
    basis = projector(ConfidenceBasis().fit(f).transform(f))
    own = side - project(basis, side)
    weight = float((own**2).sum())
    shift = float(own @ y) / weight
    error = _error(basis, own, y, shift) / weight
    reach = float(ndtri(0.5 + level / 2)) * error
    estimate = Estimate(-shift, -shift - reach, -shift + reach, n=n, level=level, interval="robust")
    return estimate, float(2 * ndtr(-abs(shift) / error))


def _error(basis: Floats, own: Floats, y: Floats, shift: float) -> float:
    """Return the standard error of a group's sum: the larger of two, each weak where the other is.

    From the residuals (jackknife form): right where the two groups differ. From the rate at each
    confidence: right where errors are too rare to show their spread.
    """
    rate = project(basis, y)
    weight = float((own**2).sum())
    leverage = (basis**2).sum(axis=1) + own**2 / weight
    residual = (y - rate - shift * own) / np.maximum(1 - leverage, _LEAST_FREE)
    inside = np.clip(rate, _EDGE, 1 - _EDGE)
    spread = inside * (1 - inside) * len(y) / (len(y) - basis.shape[1] - 1)
    seen, expected = ((own * residual) ** 2).sum(), (own**2 * spread).sum()
    return _WIDER * float(np.sqrt(max(seen, expected)))


def differences(
    rules: Sequence[Rule],
    masks: Sequence[Mask],
    confidence: Floats,
    correct: Floats,
    *,
    level: float = 0.95,
) -> list[Difference]:
    """Return the difference of every pair of groups, p values adjusted by Holm's method."""
    gap = confidence - correct
    found = []
    for one, other in combinations(range(len(rules)), 2):
        estimate, p = gap_difference(confidence, correct, masks[one], masks[other], level=level)
        if np.isfinite(p):
            raw = float(gap[masks[one]].mean() - gap[masks[other]].mean())
            found.append((rules[one].label, rules[other].label, estimate, raw, p))
    adjusted = holm([item[-1] for item in found]).tolist() if found else []
    return [Difference(*item, float(p)) for item, p in zip(found, adjusted, strict=True)]
