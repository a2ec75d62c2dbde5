"""How many labels does a claim need? Simulated from the pool's own confidences.

The bound that is simulated is the bound that `label` and `audit` report, so that a plan and the
work that follows it agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from calibrant.core.errors import InputError
from calibrant.core.rng import named_stream
from calibrant.planning.labelling.bounds import claim_holds, flat_z
from calibrant.planning.labelling.stopping import FEWEST_LABELS

__all__ = ["ClaimPlan", "claim_for_labels", "claim_power", "labels_for_claim"]

Floats: TypeAlias = NDArray[np.float64]
Counts: TypeAlias = NDArray[np.int64]

_RUNS = 600
_LOOKS = 40
_STEP = 1.03
_ONE_SIDED = float(ndtri(0.95))
_MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class _Pool:
    """Bins of a pool: items, mean confidence, and whether the pool is all there is."""

    items: Floats
    mean: Floats
    finite: bool

    @property
    def weight(self) -> Floats:
        return np.asarray(self.items / self.items.sum(), dtype=np.float64)

    def rates(self, error: float) -> Floats:
        """Return outcomes' rates with this calibration error: over-confident in every bin."""
        return np.clip(self.mean - error, 0.0, 1.0)

    def room(self) -> float:
        """Return the largest over-confidence the pool can show."""
        return float(self.weight @ self.mean)


def _bins(confidence: ArrayLike, bins: int, target: str) -> _Pool:
    p = np.asarray(confidence, dtype=np.float64)
    if p.ndim != 1 or p.size < 2 or not (np.isfinite(p).all() and 0 <= p.min() <= p.max() <= 1):
        raise InputError("a plan needs at least two confidences, each in [0, 1]")
    cell = np.minimum((p * bins).astype(np.intp), bins - 1)
    items = np.bincount(cell, minlength=bins).astype(np.float64)
    said = np.bincount(cell, weights=p, minlength=bins)
    used = items > 0
    return _Pool(items[used], said[used] / items[used], target == "pool")


def _shared(count: float, pool: _Pool, rng: np.random.Generator, runs: int) -> Counts:
    """Share labels out as a spread sample does: in proportion, the rest at random."""
    wanted = count * pool.weight
    whole = np.floor(wanted)
    more = rng.random((runs, wanted.size)) < wanted - whole
    return np.asarray(np.minimum(whole + more, pool.items), dtype=np.int64)


def _claimed(hits: Counts, n: Counts, pool: _Pool, z: float, threshold: float) -> NDArray[np.bool_]:
    """Return which runs rule out an error of `threshold`, by the errors that `bin_gaps` has."""
    weight, seen = pool.weight, n > 0
    count = np.maximum(n, 1)
    rate = hits / count
    square = n * rate * (1 - rate) * n / np.maximum(n - 1, 1)
    overall = 2.0 * square.sum(axis=1, keepdims=True) / n.sum(axis=1, keepdims=True)
    variance = (square + overall) / count**2 * n / (n + 2.0)
    if pool.finite:
        variance = variance * np.clip(1.0 - n / pool.items, 0.0, 1.0)
    error = np.where(seen, np.sqrt(variance), 0.0)
    gap = np.where(seen, np.abs(rate - pool.mean), 0.0)
    unseen = np.where(seen, 0.0, weight * np.maximum(pool.mean, 1 - pool.mean)).sum(axis=1)
    return claim_holds(gap @ weight, error @ weight, error**2 @ weight**2, z, threshold - unseen)


def _outcomes(pool: _Pool, error: float, rng: np.random.Generator, runs: int) -> Counts | Floats:
    """Return right answers per bin of each run's pool, or their rates in an endless one."""
    rates = pool.rates(error)
    if not pool.finite:
        return rates
    return rng.binomial(pool.items.astype(np.int64), rates, size=(runs, rates.size))


def _draw(
    pool: _Pool, left: Any, taken: Counts | int, n: Counts, rng: np.random.Generator
) -> Counts:
    if not pool.finite:
        return rng.binomial(n, left)
    wrong = pool.items.astype(np.int64) - taken - left
    return rng.hypergeometric(left, np.maximum(wrong, 0), n)


def _one_look(pool: _Pool, labels: int, error: float, threshold: float, seed: int) -> float:
    rng = named_stream(seed, "plan", "one look", error)
    n = _shared(labels, pool, rng, _RUNS)
    right = _outcomes(pool, error, rng, _RUNS)
    hits = _draw(pool, right, 0, n, rng)
    return float(_claimed(hits, n, pool, _ONE_SIDED, threshold).mean())


def _all_looks(
    pool: _Pool, labels: int, error: float, threshold: float, seed: int
) -> tuple[float, float]:
    """Return the chance of the claim within `labels`, and the labels used on average."""
    rng = named_stream(seed, "plan", "all looks", error)
    items = float(pool.items.sum()) if pool.finite else np.inf
    right = _outcomes(pool, error, rng, _RUNS)
    n = np.zeros((_RUNS, pool.items.size), dtype=np.int64)
    hits = np.zeros_like(n)
    first = np.full(_RUNS, np.inf)
    for look in range(1, _LOOKS + 1):
        made = labels * look / _LOOKS
        more = np.minimum(_shared(labels / _LOOKS, pool, rng, _RUNS), pool.items.astype(int) - n)
        left = right - hits if pool.finite else right
        hits, n = hits + _draw(pool, left, n, more, rng), n + more
        if made < FEWEST_LABELS:
            continue
        z = float(flat_z(made, labels, items))
        first[_claimed(hits, n, pool, z, threshold) & np.isinf(first)] = made
    return float(np.isfinite(first).mean()), float(np.minimum(first, labels).mean())


def claim_power(
    confidence: ArrayLike,
    labels: int,
    threshold: float,
    *,
    true_error: float = 0.0,
    bins: int = 15,
    target: str = "pool",
    seed: int = 0,
) -> dict[str, float]:
    """Return the chance that `labels` show 'ECE below threshold', with one look and with many.

    Examples
    --------
    >>> p = np.random.default_rng(0).uniform(0.5, 1.0, 5000)
    >>> found = claim_power(p, 1500, 0.05)
    >>> found["one_look"] > 0.9
    True
    """
    pool = _bins(confidence, bins, target)
    within, used = _all_looks(pool, labels, true_error, threshold, seed)
    one = _one_look(pool, labels, true_error, threshold, seed)
    return {"one_look": one, "all_looks": within, "mean_used": used}


@dataclass(frozen=True, slots=True)
class ClaimPlan:
    """Labels for a claim if the model truly has a certain calibration error.

    Parameters
    ----------
    true_error
        The calibration error assumed.
    one_look
        Labels when somebody looks once at the end; None where the whole pool does not suffice.
    all_looks
        The budget when somebody looks after every label and stops as soon as it is shown.
    mean_used
        Labels then made on average.
    """

    true_error: float
    one_look: int | None
    all_looks: int | None
    mean_used: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for a document."""
        return {
            "true_error": self.true_error,
            "one_look": self.one_look,
            "all_looks": self.all_looks,
            "mean_used": None if self.mean_used is None else round(self.mean_used),
        }


def labels_for_claim(
    confidence: ArrayLike,
    threshold: float,
    *,
    power: float = 0.8,
    true_error: float = 0.0,
    bins: int = 15,
    target: str = "pool",
    seed: int = 0,
) -> ClaimPlan:
    """Return the labels that show 'ECE below threshold' with probability `power`.

    Parameters
    ----------
    confidence
        Confidences of the pool.
    threshold
        The claim's threshold, in (0, 1).
    power
        Probability of showing it.
    true_error
        The calibration error that the model is assumed to have; 0 for calibrated.
    bins
        Equal-width bins.
    target
        ``pool``: the claim is about this pool. ``population``: about further answers like it.
    seed
        Seed of the simulation.

    Examples
    --------
    >>> p = np.random.default_rng(0).uniform(0.5, 1.0, 5000)
    >>> plan = labels_for_claim(p, 0.1)
    >>> 150 < plan.one_look < 350, plan.all_looks >= plan.one_look
    (True, True)
    """
    if not 0.0 < threshold < 1.0 or not 0.0 < power < 1.0:
        raise InputError(f"threshold and power lie between 0 and 1, got {threshold}, {power}")
    pool = _bins(confidence, bins, target)
    most = int(pool.items.sum()) if pool.finite else _MOST

    def once(labels: int) -> bool:
        return _one_look(pool, labels, true_error, threshold, seed) >= power

    def often(labels: int) -> bool:
        return _all_looks(pool, labels, true_error, threshold, seed)[0] >= power

    one = _smallest(once, most)
    budget = _smallest(often, most, start=one)
    used = None
    if budget is not None:
        used = _all_looks(pool, budget, true_error, threshold, seed)[1]
    return ClaimPlan(true_error, one, budget, used)


def claim_for_labels(
    confidence: ArrayLike,
    labels: int,
    *,
    power: float = 0.8,
    share: float = 0.0,
    bins: int = 15,
    target: str = "pool",
    seed: int = 0,
) -> float | None:
    """Return the smallest threshold that `labels` show with probability `power`.

    Parameters
    ----------
    confidence, power, bins, target, seed
        As in `labels_for_claim`.
    labels
        Labels at hand.
    share
        The true calibration error as a share of the threshold: 0 for calibrated, 0.5 for half.

    Examples
    --------
    >>> p = np.random.default_rng(0).uniform(0.5, 1.0, 5000)
    >>> 0.05 < claim_for_labels(p, 500) < 0.09
    True
    """
    if labels < 1:
        raise InputError(f"labels is at least 1, got {labels}")
    pool = _bins(confidence, bins, target)
    labels = min(labels, int(pool.items.sum())) if pool.finite else labels

    def enough(step: int) -> bool:
        at = step / 1000
        return _one_look(pool, labels, share * at, at, seed) >= power

    found = _smallest(enough, 999, start=5, ratio=1.0)
    return None if found is None else found / 1000


def _smallest(
    enough: Any, most: int, *, start: int | None = None, ratio: float = _STEP
) -> int | None:
    """Return about the smallest number that is enough, by doubling and halving the ratio."""
    low = max(1, (start or 30) // 2)
    high = min(low * 2, most)
    while not enough(high):
        if high >= most:
            return None
        low, high = high, min(high * 2, most)
    while high > max(low + 1, low * ratio):
        middle = round((low * high) ** 0.5)
        middle = min(max(middle, low + 1), high - 1)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
