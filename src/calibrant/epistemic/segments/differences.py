"""Is one group more over-confident than another, at equal confidence?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import ndtr, ndtri

from calibrant.core.arrays import Floats, Mask
from calibrant.core.estimate import Estimate
from calibrant.epistemic.linear import ConfidenceBasis, project, projector
from calibrant.epistemic.segments.conditions import Rule
from calibrant.stats.multiplicity import holm

_FEWEST = 20
_EDGE = 0.005
_LEAST_FREE = 0.1
# The law of the ratio is normal only in the limit; this keeps the false rate below the level.
_WIDER = 1.06


@dataclass(frozen=True, slots=True)
class Difference:
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
