"""May one stop labelling? For a precision, and for a verdict; looks are counted per label."""

from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core.arrays import Estimate, Floats
from calibrant.core.errors import InputError
from calibrant.findings.claims.margins import ROUNDING
from calibrant.findings.documents.entries import Part
from calibrant.labels.labelling.estimates import PoolEstimate, bin_gaps, pool_estimate
from calibrant.labels.labelling.pools import LabelPool
from calibrant.metrics.stats.multiplicity import CalibrationSequence

# Before this many labels no bound is told: a normal law would describe them badly.
FEWEST_LABELS = 50
# A precision that is reached earlier is reached by luck in the spread: with 80 the gap of a pool
# with 8 % of errors was covered in 92.6 % of runs, with 100 in 93.6 %.
_FEWEST_PRECISE = 100


class Goals(TypedDict):
    """What labelling is to reach: arguments of `stop_decision`."""

    precision: float | None
    threshold: float | None
    budget: int | None


def claim_bounds(pool: LabelPool, *, budget: int | None = None) -> tuple[float, float]:
    """Return a lower and an upper bound of the pool's ECE that hold after every label at once.

    Each holds with probability 95 % over all labels from the 50th on, however often one looks.

    Parameters
    ----------
    pool
        Items and labels.
    budget
        The most labels one will make, if that was fixed beforehand: bounds are then tighter near
        it. Without it they hold for ever.
    """
    bins = bin_gaps(pool)
    n, items = float(bins.labels.sum()), float(pool.confidence.size)
    if n < FEWEST_LABELS:
        return 0.0, 1.0
    # Past its budget a flat bound has spent its error: the last value stays.
    z = float(mixture_z(n, items) if budget is None else flat_z(min(n, budget), budget, items))
    return ece_lower_at_all_times(pool, z), bins.upper(z)


def ece_lower_at_all_times(pool: LabelPool, z: float) -> float:
    """Return the lower bound whose signs were chosen before each label was known.

    Any pattern of signs gives a signed mean gap below the ECE. The pattern used for a label is
    that of the labels before it, so that choosing it well cannot bias the mean.
    """
    lab = np.flatnonzero(pool.labelled)
    weight = pool.weights()
    if pool.draws is not None and pool.draws.order is not None:
        rank = np.argsort(pool.draws.order[lab], kind="stable")
        lab, weight = lab[rank], weight[rank]
    remainder, cell = pool.correct[lab] - pool.confidence[lab], pool.cell[lab]
    values, before = weight * remainder, np.zeros(lab.size)
    for inverse in np.unique(cell):
        inside = cell == inverse
        before[inside] = np.cumsum(values[inside]) - values[inside]
    sign = np.where(before > 1e-9, 1.0, -1.0)
    total = weight.sum()
    mean = float(weight @ (sign * remainder)) / total
    effective = float(total**2 / (weight**2).sum())
    spread = float(weight @ (sign * remainder - mean) ** 2) / total
    # Two labels of the largest spread: a short run of agreement is no certainty.
    spread = (spread * effective + 0.5) / (effective + 1.0)
    remaining = max(1.0 - lab.size / pool.confidence.size, 0.0)
    error = float(np.sqrt(spread / effective * remaining))
    return float(max(0.0, mean - z * error))


class StopDecision(Part, frozen=True):
    """Whether labelling may stop, and why.

    `interval` is that of the ECE, `half_width` the wider one of gap and ECE, `bounds` hold at all
    times, where a threshold was given.
    """

    stop: bool
    reason: str
    labels: int
    interval: Estimate
    half_width: float
    bounds: Estimate | None


def stop_decision(
    pool: LabelPool,
    *,
    precision: float | None = None,
    threshold: float | None = None,
    budget: int | None = None,
    estimate: PoolEstimate | None = None,
) -> StopDecision:
    """Say whether labelling may stop; you may ask after every label.

    Parameters
    ----------
    pool
        Items and labels.
    precision
        Stop when the 95 % intervals of the mean gap and of the ECE are both within +/- this.
    threshold
        Stop when bounds that hold at all times lie on one side of this ECE.
    budget
        The most labels one will make, if fixed beforehand.
    estimate
        The pool's estimate, where the caller has it already.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.5, 1.0, 4000)
    >>> y = np.where(np.arange(4000) < 400, rng.uniform(size=4000) < p - 0.2, np.nan)
    >>> stop_decision(LabelPool(p, y), threshold=0.05).reason
    'the calibration error is above 5 points'
    """
    for name, value in (("precision", precision), ("threshold", threshold)):
        if value is not None and not 0.0 < value < 1.0:
            raise InputError(f"{name} lies between 0 and 1, got {value:g}")
    estimated = pool_estimate(pool) if estimate is None else estimate
    labels = estimated.ece.n
    half = max(_half(estimated.mean_gap), _half(estimated.ece))
    stop, reason = False, "no goal was given: name a precision or a threshold"
    if precision is not None:
        stop = half <= precision and labels >= _FEWEST_PRECISE
        reason = _precision_reason(stop, half, precision, labels)
    bounds = None
    if threshold is not None:
        value = estimated.ece.value
        complete = pool.labelled.all()
        low, high = (value, value) if complete else claim_bounds(pool, budget=budget)
        bounds = Estimate(value, low, high, n=labels, interval="at all times")
        below, above = high < threshold - ROUNDING, low > threshold + ROUNDING
        if below or above:
            side = "below" if below else "above"
            stop, reason = True, f"the calibration error is {side} {100 * threshold:g} points"
        elif not stop:
            open_yet = f"{100 * threshold:g} points are still possible on both sides"
            reason = open_yet if precision is None else f"{open_yet}; {reason}"
    if pool.labelled.all():
        stop, reason = True, "the whole pool is labelled"
    return StopDecision(stop, reason, labels, estimated.ece, half, bounds)


def labels_for_precision(made: int, items: int, half: float, precision: float) -> int:
    """Return about how many labels of a pool make its intervals as narrow as asked.

    Parameters
    ----------
    made, items
        Labels so far, and items of the pool.
    half
        Half the width of the interval that these labels give.
    precision
        Half the width that is wanted.

    Examples
    --------
    >>> labels_for_precision(100, 10**9, 0.1, 0.05), labels_for_precision(100, 800, 0.1, 0.05)
    (400, 291)
    """
    if made >= items:
        return items
    spread = half**2 / (1 / made - 1 / items)
    target = round(float(1 / (precision**2 / spread + 1 / items))) if spread > 0 else made
    return min(max(target, made, min(_FEWEST_PRECISE, items)), items)


def _half(estimate: Estimate) -> float:
    return (estimate.high - estimate.low) / 2


def _precision_reason(stop: bool, half: float, precision: float, labels: int) -> str:
    if stop:
        return f"accuracy and error are known to within {100 * precision:g} points"
    if labels < _FEWEST_PRECISE:
        return f"{labels} labels; at least {_FEWEST_PRECISE} are needed before stopping"
    return f"known to within {100 * half:.1f} points, {100 * precision:g} were asked for"


# Twice the normal tail at 2.054 is 4 %: a point below the 5 % that is promised, because the
# variances are estimated.
_FLAT = 2.054


def information(labels: Floats | float, items: float) -> Floats:
    """Return the labels of an endless pool that are worth `labels` of a pool of `items`.

    Examples
    --------
    >>> information(500, 1000).item()
    1000.0
    """
    remaining = np.maximum(1.0 - np.asarray(labels, dtype=np.float64) / items, 1e-9)
    return np.asarray(labels / remaining, dtype=np.float64)


def flat_z(labels: Floats | float, budget: float, items: float = np.inf) -> Floats:
    """Return the one-sided quantile that holds at every label up to a budget.

    Examples
    --------
    >>> flat_z(1000.0, 1000).round(2).item(), flat_z(250.0, 1000).round(2).item()
    (2.05, 4.11)
    """
    last = information(min(budget, 0.98 * items), items)
    return np.asarray(_FLAT * np.sqrt(last / information(labels, items)), dtype=np.float64)


def mixture_z(
    labels: Floats | float, items: float = np.inf, *, best_at: float = 500.0, alpha: float = 0.08
) -> Floats:
    """Return the quantile that holds at every label for ever; alpha 0.08 is 4 % on one side.

    Examples
    --------
    >>> mixture_z(500.0).round(2).item()
    2.85
    """
    cost = -2 * np.log(alpha)
    t = information(labels, items) * ((cost + np.log(cost + 1)) / best_at)
    return np.asarray(np.sqrt(2 * (t + 1) / t * np.log(np.sqrt(t + 1) / alpha)), dtype=np.float64)


class SequentialAudit:
    """Follow the binned calibration gap and the ECE with bounds that hold at all times at once.

    Parameters
    ----------
    precision
        Stop when half the interval of the ECE is at most this.
    threshold
        Stop when the interval of the ECE lies on one side of this.
    bins
        Equal-width bins.
    alpha
        Probability that any bound ever fails, at most.
    budget
        Number of labels at which the bounds shall be tightest.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.5, 1.0, 5000)
    >>> audit = SequentialAudit(threshold=0.05)
    >>> audit.update(p, rng.uniform(size=p.size) < p - 0.25)["stop"]
    True
    >>> audit.stopped_at < 2000
    True
    """

    def __init__(
        self,
        *,
        precision: float | None = None,
        threshold: float | None = None,
        bins: int = 15,
        alpha: float = 0.05,
        budget: int | None = None,
    ) -> None:
        if precision is None and threshold is None:
            raise InputError(
                "a sequential audit has a goal", hint="give a precision, a threshold, or both"
            )
        self.precision = precision
        self.threshold = threshold
        self.sequence = CalibrationSequence(bins=bins, alpha=alpha, horizon=budget)
        self.stopped_at: int | None = None

    def update(self, confidence: ArrayLike, correct: ArrayLike) -> dict[str, object]:
        """Take further labels in the order they came; return the state after them."""
        before = self.sequence.count
        path = self.sequence.update(confidence, correct)
        if self.stopped_at is None and path.low.size:
            reached = np.zeros(path.low.size, dtype=bool)
            if self.precision is not None:
                reached |= (path.high - path.low) / 2 <= self.precision
            if self.threshold is not None:
                reached |= (path.high < self.threshold) | (path.low > self.threshold)
            if reached.any():
                self.stopped_at = before + int(np.argmax(reached)) + 1
        return self.state()

    def state(self) -> dict[str, object]:
        """Return labels so far, bounds, and whether one may stop."""
        (low, high), n, level = self.sequence.ece, self.sequence.count, 1 - self.sequence.alpha
        below = self.threshold is not None and high < self.threshold
        above = self.threshold is not None and low > self.threshold
        bins = zip(*self.sequence.gaps(), self.sequence.labels_per_bin, strict=True)
        middle = (low + high) / 2
        return {
            "labels": n,
            "ece": Estimate(middle, low, high, n=n, level=level, interval="confidence sequence"),
            "gaps": [
                {"bin": k, "low": float(a), "high": float(b), "n": int(labels)}
                for k, (a, b, labels) in enumerate(bins)
            ],
            "stop": self.stopped_at is not None,
            "stopped_at": self.stopped_at,
            "verdict": "below" if below else "above" if above else None,
        }
