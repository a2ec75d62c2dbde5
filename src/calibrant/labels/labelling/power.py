"""How many labels does a claim need? Simulated from the pool's own confidences.

The bound that is simulated is the bound that `label` and `audit` report, so that a plan and the
work that follows it agree.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from calibrant.core.arrays import Floats, Ints, named_stream
from calibrant.core.errors import InputError
from calibrant.findings.documents.plans import ClaimPlan
from calibrant.labels.labelling.pools import pool_cells
from calibrant.labels.labelling.stopping import FEWEST_LABELS, flat_z
from calibrant.metrics.stats.error_bounds import claim_holds

_RUNS = 1000
_LOOKS = 40
_STEP = 1.03
_ONE_SIDED = float(ndtri(0.95))
_MOST = 1_000_000


@dataclass(frozen=True, slots=True)
class _Pool:
    """Cells of a pool: items, mean confidence, and whether the pool is all there is."""

    items: Floats
    mean: Floats
    finite: bool

    @property
    def weight(self) -> Floats:
        return np.asarray(self.items / self.items.sum(), dtype=np.float64)


def _cells(confidence: ArrayLike, bins: int, target: str) -> _Pool:
    p = np.asarray(confidence, dtype=np.float64)
    if p.ndim != 1 or p.size < 2 or not (np.isfinite(p).all() and 0 <= p.min() <= p.max() <= 1):
        raise InputError("a plan needs at least two confidences, each in [0, 1]")
    cell = pool_cells(p, bins)
    items = np.bincount(cell).astype(np.float64)
    return _Pool(items, np.bincount(cell, weights=p) / items, target == "pool")


@dataclass(frozen=True, slots=True)
class _Looks:
    """What each run sees when so many labels are made; arrays of shape (looks, runs).

    `total`, `error`, `square` and `lean` are those of `claim_holds`; `unseen` is the most that
    bins without a label can add.
    """

    made: Floats
    total: Floats
    error: Floats
    square: Floats
    unseen: Floats
    lean: Floats

    def claimed(self, z: Floats, threshold: float) -> NDArray[np.bool_]:
        """Return which runs rule out an error of `threshold` at the looks that `z` is given for."""
        total, error, square, unseen, lean = (
            values[: len(z)]
            for values in (self.total, self.error, self.square, self.unseen, self.lean)
        )
        return claim_holds(total, error, square, z[:, None], threshold - unseen, lean)


def _looks(pool: _Pool, made: Floats, error: float, rng: np.random.Generator) -> _Looks:
    """Simulate labels of a pool with this calibration error, by the errors that `bin_gaps` has.

    Outcomes of a pool are independent, so those of the labels already made say nothing about the
    next: further hits are binomial, in a finite pool as in an endless one.
    """
    # Labels are shared out as by a spread sample: in proportion to the bins, the rest at random.
    # By number `made`, run and bin; a run's labels only ever grow.
    remainder = rng.random((_RUNS, pool.items.size))
    n = np.minimum(np.floor(made[:, None, None] * pool.weight + remainder), pool.items).astype(
        np.int64
    )
    fresh = np.diff(n, axis=0, prepend=0)
    # A model with this error is over-confident in every bin.
    hits = np.cumsum(rng.binomial(fresh, np.clip(pool.mean - error, 0.0, 1.0)), axis=0)
    weight, observed = pool.weight, n > 0
    count = np.maximum(n, 1)
    rate = hits / count
    square = n * rate * (1 - rate) * n / np.maximum(n - 1, 1)
    overall = 2.0 * square.sum(axis=2, keepdims=True) / np.maximum(n.sum(axis=2, keepdims=True), 1)
    variance = (square + overall) / count**2 * n / (n + 2.0)
    if pool.finite:
        variance = variance * np.clip(1.0 - n / pool.items, 0.0, 1.0)
    spread = np.where(observed, np.sqrt(variance), 0.0)
    gap = np.where(observed, rate - pool.mean, 0.0)
    unseen = np.where(observed, 0.0, weight * np.maximum(pool.mean, 1 - pool.mean)).sum(axis=2)
    lean = _lean(pool, n, rate, np.sign(gap))
    total = np.abs(gap) @ weight
    return _Looks(made, total, spread @ weight, spread**2 @ weight**2, unseen, lean)


def _lean(pool: _Pool, n: Ints, rate: Floats, sign: Floats) -> Floats:
    """Return the third moment of the ECE over its variance, as `bin_gaps` has it."""
    count, labels = np.maximum(n, 1), np.maximum(n.sum(axis=2), 1).astype(np.float64)
    outcome = rate * (1 - rate)
    third = (sign * outcome * (1 - 2 * rate) / count**2) @ pool.weight**3 + labels**-3
    second = (outcome / count) @ pool.weight**2 + labels**-2
    remaining = 1.0 - labels / pool.items.sum() if pool.finite else 1.0
    return np.asarray(np.maximum(third, 0.0) / second * np.maximum(remaining, 0.0))


def _one_look(pool: _Pool, labels: int, error: float, threshold: float, seed: int) -> float:
    rng = named_stream(seed, "plan", "one look", error)
    look = _looks(pool, np.array([float(labels)]), error, rng)
    return float(look.claimed(np.array([_ONE_SIDED]), threshold).mean())


def _first_shown(pool: _Pool, looks: _Looks, budget: float, threshold: float) -> Floats:
    """Return the labels at which each run first shows the claim within a budget, else infinity."""
    items = float(pool.items.sum()) if pool.finite else np.inf
    labels = looks.made[looks.made <= budget + 1e-9]
    text = looks.claimed(np.asarray(flat_z(labels, budget, items)), threshold)
    return np.where(text.any(axis=0), labels[text.argmax(axis=0)], np.inf)


def _looks_until(pool: _Pool, last: float, step: float, error: float, seed: int) -> _Looks:
    """Simulate a look after every `step` labels, from the first that may tell a bound."""
    rng = named_stream(seed, "plan", "all looks", error)
    labels = np.arange(1, round(last / step) + 1, dtype=np.float64) * step
    return _looks(pool, labels[labels >= min(FEWEST_LABELS, last)], error, rng)


def claim_chance(
    confidence: ArrayLike,
    labels: int,
    threshold: float,
    *,
    true_error: float = 0.0,
    target: str = "pool",
    seed: int = 0,
) -> float:
    """Return the chance that `labels` show 'ECE below threshold' to somebody who looks once.

    Examples
    --------
    >>> p = np.random.default_rng(0).uniform(0.5, 1.0, 5000)
    >>> claim_chance(p, 2000, 0.05) > 0.9
    True
    """
    return _one_look(_cells(confidence, 15, target), labels, true_error, threshold, seed)


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
    >>> found = claim_power(p, 2000, 0.05)
    >>> found["one_look"] > 0.9
    True
    """
    pool = _cells(confidence, bins, target)
    looks = _looks_until(pool, labels, labels / _LOOKS, true_error, seed)
    first = _first_shown(pool, looks, labels, threshold)
    return {
        "one_look": _one_look(pool, labels, true_error, threshold, seed),
        "all_looks": float(np.isfinite(first).mean()),
        "mean_used": float(np.minimum(first, labels).mean()),
    }


def labels_for_claim(
    confidence: ArrayLike,
    threshold: float,
    *,
    power: float = 0.8,
    true_error: float = 0.0,
    bins: int = 15,
    target: str = "pool",
    looking_on: bool = True,
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
        Slices of the confidences that few items state, at most.
    target
        ``pool``: the claim is about this pool. ``population``: about further answers like it.
    looking_on
        Whether to plan for somebody who looks after every label, too.
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
    pool = _cells(confidence, bins, target)
    most = int(pool.items.sum()) if pool.finite else _MOST

    def once(labels: int) -> bool:
        return _one_look(pool, labels, true_error, threshold, seed) >= power

    # No bound is told before that many labels, so no plan ends earlier.
    one = _smallest(once, most, least=min(FEWEST_LABELS, most))
    if one is None or not looking_on:
        return ClaimPlan(true_error=true_error, one_look=one)
    most_used, mean = _budget(pool, one, most, threshold, power, true_error, seed)
    return ClaimPlan(true_error=true_error, one_look=one, all_looks=most_used, mean_used=mean)


def _budget(
    pool: _Pool, item: int, most: int, threshold: float, power: float, error: float, seed: int
) -> tuple[int | None, int | None]:
    """Return the smallest budget that shows the claim to whoever looks on, and its mean use."""
    last, step = item, item / _LOOKS
    while last < most:
        # Looking on rarely costs more than half as many labels again.
        last = min(2 * last, most)
        looks = _looks_until(pool, last, step, error, seed)
        for budget in looks.made[looks.made >= item]:
            first = _first_shown(pool, looks, float(budget), threshold)
            if np.isfinite(first).mean() >= power:
                return math.ceil(budget), round(float(np.minimum(first, budget).mean()))
        step *= 2
    return None, None


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
    pool = _cells(confidence, bins, target)
    labels = min(labels, int(pool.items.sum())) if pool.finite else labels

    def enough(step: int) -> bool:
        place = step / 1000
        return _one_look(pool, labels, share * place, place, seed) >= power

    smallest = _smallest(enough, 999, least=2, ratio=1.0)
    return None if smallest is None else smallest / 1000


def _smallest(
    enough: Callable[[int], bool], most: int, *, least: int = 1, ratio: float = _STEP
) -> int | None:
    """Return about the smallest number that is enough, by doubling and halving the ratio."""
    low, high = least - 1, least
    while not enough(high):
        if high >= most:
            return None
        low, high = high, min(high * 2, most)
    while high > max(low + 1, low * ratio):
        middle = round((low * high) ** 0.5)
        middle = min(max(middle, low + 1), high - 1)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
