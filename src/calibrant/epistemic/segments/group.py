"""A group of rows and what is known of its confidence."""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.core.arrays import Floats, Mask
from calibrant.core.estimate import Estimate
from calibrant.epistemic.segments.conditions import Rule
from calibrant.epistemic.segments.search import Finding
from calibrant.stats.intervals import normal_quantile, wilson_interval


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
