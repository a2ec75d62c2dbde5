"""Verification floors: what a number of labels can show about calibration, at worst."""

import math
from functools import lru_cache

import numpy as np
from msgspec import Struct

from calibrant.core.arrays import Floats, Mask
from calibrant.core.errors import InputError
from calibrant.metrics.stats.bootstrap import quantiles

_REFERENCE_LABELS = 1000


def require_rate(value: float, name: str = "error_rate") -> float:
    """Return `value` if it is a rate in [0, 1]."""
    if not 0.0 <= value <= 1.0:
        raise InputError(f"{name} lies in [0, 1], got {value!r}")
    return float(value)


def require_positive(value: float, name: str) -> float:
    """Return `value` if it is above 0 (infinity allowed)."""
    if not value > 0.0:
        raise InputError(f"{name} is above 0, got {value!r}")
    return float(value)


def passive_floor(*, error_rate: float, labels: float, lipschitz: float) -> float:
    """Return the passive floor ``(L eps / m)^(1/3)``: labels that come as they come.

    In [0, inf), smaller is better. No estimator of the expected calibration error does better
    than this rate (up to a constant) over all gaps with Lipschitz constant `lipschitz`.

    Parameters
    ----------
    error_rate
        Share of wrong answers, eps.
    labels
        Number of labels, m.
    lipschitz
        Lipschitz constant of the calibration gap, L.

    References
    ----------
    The Verification Tax, Theorems 2 and 3, Table 1.

    Examples
    --------
    >>> round(passive_floor(error_rate=0.15, labels=14042, lipschitz=1.0), 4)
    0.022
    """
    eps, m = require_rate(error_rate), require_positive(labels, "labels")
    return float((require_positive(lipschitz, "lipschitz") * eps / m) ** (1 / 3))


def active_floor(*, error_rate: float, labels: float) -> float:
    """Return the active floor ``sqrt(eps / m)``: labels asked for where they tell most.

    Examples
    --------
    >>> round(active_floor(error_rate=0.16, labels=10_000), 4)
    0.004
    """
    return math.sqrt(require_rate(error_rate) / require_positive(labels, "labels"))


def accuracy_floor(*, error_rate: float, labels: float) -> float:
    """Return ``2 sqrt(eps (1 - eps) / n)``: the least difference of accuracy that shows.

    Examples
    --------
    >>> round(accuracy_floor(error_rate=0.05, labels=198), 4)
    0.031
    """
    eps = require_rate(error_rate)
    return 2.0 * math.sqrt(eps * (1.0 - eps) / require_positive(labels, "labels"))


def optimal_bins(*, error_rate: float, labels: float, lipschitz: float) -> int:
    """Return the bins that reach the passive floor, ``floor((L^2 m / eps)^(1/3))``, at least 1.

    Examples
    --------
    >>> optimal_bins(error_rate=0.1, labels=1000, lipschitz=1.0)
    21
    """
    eps = require_positive(require_rate(error_rate), "error_rate")
    ratio = require_positive(lipschitz, "lipschitz") ** 2 * require_positive(labels, "labels") / eps
    # Forgiving the last digits, as `ceil` does.
    return max(1, math.floor(math.pow(ratio, 1 / 3) * (1 + 1e-12)))


def labels_needed(
    precision: float, *, error_rate: float, lipschitz: float = 1.0, active: bool = False
) -> int:
    """Return the labels that bring the floor down to `precision`.

    ``L eps / d^3`` for labels as they come, ``eps / d^2`` for active ones.

    Examples
    --------
    >>> labels_needed(0.01, error_rate=0.05)
    50000
    >>> labels_needed(0.01, error_rate=0.05, active=True)
    500
    """
    d, eps = require_positive(precision, "precision"), require_rate(error_rate)
    if active:
        return max(1, ceil(eps / d**2))
    if math.isinf(lipschitz):
        raise InputError(
            "lipschitz is infinite: a discontinuous gap cannot be verified passively",
            hint="plan an active audit (active=True), whose cost does not depend on it",
        )
    return max(1, ceil(require_positive(lipschitz, "lipschitz") * eps / d**3))


def precision_reached(
    labels: float, *, error_rate: float, lipschitz: float = 1.0, active: bool = False
) -> float:
    """Return the precision that `labels` reach: the other direction of `labels_needed`.

    Examples
    --------
    >>> round(precision_reached(50_000, error_rate=0.05), 6)
    0.01
    """
    if active:
        return active_floor(error_rate=error_rate, labels=labels)
    return passive_floor(error_rate=error_rate, labels=labels, lipschitz=lipschitz)


def active_gain(*, error_rate: float, labels: float, lipschitz: float) -> float:
    """Return passive floor over active floor, ``(L^2 m / eps)^(1/6)``.

    Examples
    --------
    >>> round(active_gain(error_rate=0.16, labels=10_000, lipschitz=2.5), 1)
    8.5
    """
    eps = require_positive(require_rate(error_rate), "error_rate")
    ratio = require_positive(lipschitz, "lipschitz") ** 2 * require_positive(labels, "labels") / eps
    return float(ratio ** (1 / 6))


def detection_limit(*, error_rate: float, labels: int) -> float:
    """Return the Le Cam bound ``c1 sqrt(eps / m)``: no method errs less at worst.

    Examples
    --------
    >>> round(detection_limit(error_rate=0.05, labels=1000), 5)
    0.00246
    """
    floor = active_floor(error_rate=error_rate, labels=labels)
    return le_cam_constant(error_rate, labels=labels) * floor


def detection_labels(precision: float, *, error_rate: float) -> int:
    """Return ``ceil(c1^2 eps / d^2)``: fewer labels cannot even detect a gap of `precision`.

    Examples
    --------
    >>> detection_labels(0.01, error_rate=0.05)
    61
    """
    c1 = le_cam_constant(error_rate)
    return max(1, ceil(c1**2 * error_rate / require_positive(precision, "precision") ** 2))


@lru_cache(maxsize=256)
def le_cam_constant(error_rate: float, *, labels: int = _REFERENCE_LABELS) -> float:
    """Return c1 of the bound ``c1 sqrt(eps / m)``, exact from the binomial laws.

    The bound is ``max over d of (d / 2) (1 - TV)``, where TV is the total variation between
    Binomial(m, eps) and Binomial(m, eps + d): the calibrated world and the one
    that says d too much. It is computed, not approximated, and divided by ``sqrt(eps / m)``.
    As m grows it tends to ``0.340 sqrt(1 - eps)``; the published table is for m = 1,000.

    Parameters
    ----------
    error_rate
        Share of wrong answers, strictly between 0 and 1.
    labels
        Number of labels for which the constant is computed.

    References
    ----------
    The Verification Tax, Theorem 1 and Table 8.

    Examples
    --------
    >>> round(le_cam_constant(0.05), 4)
    0.3474
    """
    if not 0.0 < error_rate < 1.0:
        raise InputError(f"error_rate lies strictly between 0 and 1, got {error_rate!r}")
    m, scale = int(require_positive(labels, "labels")), math.sqrt(error_rate / labels)
    upper = min(6.0, (1.0 - error_rate) / scale * (1 - 1e-9))
    # The bound has a kink wherever the likelihood-ratio threshold crosses a count, so a fine
    # grid, refined once around its best point, is safer than a smooth optimiser.
    grid = np.linspace(upper / 4000, upper, 4000)
    best = grid[np.argmax(_le_cam_bound(grid * scale, error_rate, m))]
    fine = np.clip(best + np.linspace(-1, 1, 2001) * upper / 4000, upper / 1e6, upper)
    return float(_le_cam_bound(fine * scale, error_rate, m).max() / scale)


def _le_cam_bound(delta: Floats, eps: float, m: int) -> Floats:
    # Loaded here, for few audits: scipy takes long to load.
    from scipy import special

    peer = eps + delta
    # The likelihood ratio is monotone in the count, so the total variation is one difference
    # of distribution functions at the count where the ratio passes 1.
    crossing = m * np.log((1 - eps) / (1 - peer)) / np.log(peer * (1 - eps) / (eps * (1 - peer)))
    count = np.clip(np.floor(crossing), 0, m - 1)
    variation = special.bdtr(count, m, eps) - special.bdtr(count, m, peer)
    return np.asarray(delta / 2 * (1 - variation))


def ceil(value: float) -> int:
    """Return the ceiling, forgiving the last digits of floating-point division."""
    return math.ceil(value * (1 - 1e-12))


LIPSCHITZ_CAP = 5.0
MINIMUM_PER_BIN = 30
_QUANTILE = 0.75


class SlopeEstimate(Struct, frozen=True):
    """The estimate of one resolution.

    Parameters
    ----------
    value
        75th percentile of the adjacent slopes, at most `LIPSCHITZ_CAP`; NaN without slopes.
    bins
        Equal-width bins used.
    pairs
        Adjacent pairs of bins that both hold at least `MINIMUM_PER_BIN` labels.
    capped
        Whether the cap decided the value.
    """

    value: float
    bins: int
    pairs: int
    capped: bool


def gap_slopes(count: Floats, hits: Floats, usable: Mask) -> Floats:
    """Return the slopes between neighbouring usable bins (last axis), gap taken at the centre.

    Parameters
    ----------
    count, hits
        Labels and right answers per bin; the last axis runs over equal-width bins of [0, 1].
    usable
        Which bins take part; both bins of a pair must.

    Examples
    --------
    >>> count, hits = np.array([50.0, 50.0]), np.array([10.0, 40.0])
    >>> gap_slopes(count, hits, count >= 30)
    array([0.2])
    """
    bins = count.shape[-1]
    with np.errstate(invalid="ignore", divide="ignore"):
        gap = hits / count - (np.arange(bins) + 0.5) / bins
    pair = usable[:-1] & usable[1:]
    return np.asarray(np.abs(np.diff(gap, axis=-1))[..., pair] * bins, dtype=np.float64)


def summarise_slopes(slopes: Floats, bins: int) -> SlopeEstimate:
    """Return the capped 75th percentile of the slopes, NaN when there is none."""
    if slopes.size == 0:
        return SlopeEstimate(float("nan"), bins, 0, capped=False)
    raw = float(quantiles(slopes, (_QUANTILE,))[0])
    return SlopeEstimate(min(raw, LIPSCHITZ_CAP), bins, slopes.size, capped=raw > LIPSCHITZ_CAP)
