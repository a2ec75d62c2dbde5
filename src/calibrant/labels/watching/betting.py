"""Watches that bet: that calibration has moved, and that a promise about errors is broken."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, ndtri

from calibrant.core.arrays import Floats, Indices, MaybeArray
from calibrant.core.document import Stored
from calibrant.core.errors import InputError
from calibrant.metrics.stats.intervals import wilson_estimate

_STAKES = np.array([0.02, 0.05, 0.1, 0.2, 0.4, 0.8])
_FEW = 200
_SIDES = ("over-confident", "under-confident")


@dataclass(frozen=True, slots=True)
class GapRegion:
    """Where each bin's residual may lie before it counts as drift.

    Parameters
    ----------
    low, high
        Ends of the allowed residual (accuracy minus confidence) per bin; the last entry is for
        all rows together.
    alpha
        Probability that the true baseline lies outside, at most.
    description
        Where the region comes from.
    """

    low: Floats
    high: Floats
    alpha: float
    description: str


def perfect_region(*, bins: int = 10, tolerance: float = 0.05) -> GapRegion:
    """Allow every residual up to `tolerance` around perfect calibration."""
    most = np.full(bins + 1, tolerance)
    return GapRegion(-most, most, 0.0, f"perfect calibration within +/- {tolerance:g}")


def verified_region(
    confidence: ArrayLike,
    correct: ArrayLike,
    *,
    bins: int = 10,
    tolerance: float = 0.01,
    alpha: float = 0.025,
) -> GapRegion:
    """Allow what a verified baseline leaves open: exact intervals of all bins at once.

    Parameters
    ----------
    confidence, correct
        The labelled baseline.
    bins
        Equal-width bins.
    tolerance
        Change that does not matter, added on both sides.
    alpha
        Probability that any interval misses, at most.

    Examples
    --------
    >>> region = verified_region(np.full(400, 0.95), np.r_[np.ones(340), np.zeros(60)])
    >>> bool(region.low[9] < -0.1 < region.high[9])
    True
    """
    p, y = np.asarray(confidence, dtype=np.float64), np.asarray(correct, dtype=np.float64)
    cell = np.minimum((p * bins).astype(np.intp), bins - 1)
    n = np.bincount(cell, minlength=bins).astype(np.float64)
    hits = np.bincount(cell, weights=y, minlength=bins)
    mean = np.bincount(cell, weights=p, minlength=bins) / np.maximum(n, 1.0)
    each = alpha / 2 / max(int((n > 0).sum()), 1) / 2
    # Exact (Clopper-Pearson) ends; a bin without baseline labels allows everything.
    with np.errstate(invalid="ignore"):
        low = np.where(hits > 0, betaincinv(np.maximum(hits, 0.5), n - hits + 1, each), 0.0)
        high = np.where(hits < n, betaincinv(hits + 1, np.maximum(n - hits, 0.5), 1 - each), 1.0)
    observed = n > 0
    centre, half = _mean_bound(y - p, alpha / 2)
    low = np.append(np.where(observed, low - mean - tolerance, -1.0), centre - half - tolerance)
    high = np.append(np.where(observed, high - mean + tolerance, 1.0), centre + half + tolerance)
    basis = f"the baseline of {p.size:,} labels, and +/- {tolerance:g}"
    return GapRegion(low, high, alpha, basis)


def _mean_bound(residual: Floats, alpha: float) -> tuple[float, float]:
    """Return the mean and its half-width: normal, or valid at any size below 200 labels."""
    n = residual.size
    if n < 2:
        return 0.0, 1.0
    spread, cost = float(residual.std(ddof=1)), math.log(4 / alpha)
    if n < _FEW:
        half = spread * math.sqrt(2 * cost / n) + 14 * cost / (3 * (n - 1))
    else:
        half = spread * float(ndtri(1 - alpha / 2)) / math.sqrt(n) + 1 / n
    return float(residual.mean()), half


@dataclass(slots=True)
class CalibrationMonitor:
    """A running test of 'the residual, overall and in every bin, is within its region'.

    Parameters
    ----------
    region
        Allowed residuals, from `verified_region` or `perfect_region`.
    alpha
        Probability of any false alarm, ever, at most (including the baseline's share).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> monitor = CalibrationMonitor(perfect_region())
    >>> p = rng.uniform(0.5, 1.0, 3000)
    >>> monitor.update(p, rng.uniform(size=3000) < p)
    False
    >>> monitor.update(p, rng.uniform(size=3000) < p - 0.2)
    True
    """

    region: GapRegion
    alpha: float = 0.05
    batches: int = 0
    rows: int = 0
    alarm_batch: int | None = None
    peak: float = 1.0
    _capital: Floats = field(default_factory=lambda: np.zeros(0))
    _since: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    _streak: Floats = field(default_factory=lambda: np.zeros(0))

    def __post_init__(self) -> None:
        if not self.region.alpha < self.alpha < 1.0:
            raise InputError(
                f"alpha lies between the baseline's {self.region.alpha:g} and 1, got {self.alpha}"
            )
        shape = (len(self.region.low), 2, len(_STAKES))
        self._capital = np.full(shape, -np.inf)
        self._streak = np.zeros(shape)
        self._since = np.ones(shape, dtype=np.intp)

    @property
    def bins(self) -> int:
        """Number of bins."""
        return len(self.region.low) - 1

    @property
    def limit(self) -> float:
        """Capital at which the alarm goes off."""
        return 1.0 / (self.alpha - self.region.alpha)

    @property
    def capital(self) -> float:
        """Capital now: 1 at the start, large when the claim looks wrong."""
        weights = np.full(self._capital.shape, 0.5 / (self._capital[:-1].size))
        weights[-1] = 0.5 / self._capital[-1].size
        started = float((weights * np.exp(np.minimum(self._capital, 500.0))).sum())
        return started + 1.0 / (self.batches + 1)

    def update(self, confidence: ArrayLike, correct: ArrayLike) -> bool:
        """Take a batch of labels; return whether the alarm has gone off by now."""
        p, y = np.asarray(confidence, dtype=np.float64), np.asarray(correct, dtype=np.float64)
        if p.shape != y.shape or p.ndim != 1:
            raise InputError("confidence and correct are vectors of one length")
        if not p.size:
            return self.alarm_batch is not None
        gain = self._gains(p, y)
        self.batches += 1
        self.rows += p.size
        # A fresh start with each batch: start j holds 1 / (j (j + 1)) of the capital.
        fresh = -math.log(self.batches * (self.batches + 1))
        self._capital = np.logaddexp(self._capital, fresh) + gain
        again = self._streak <= 0.0
        self._since = np.where(again, self.batches, self._since)
        self._streak = np.where(again, 0.0, self._streak) + gain
        self.peak = max(self.peak, self.capital)
        if self.alarm_batch is None and self.capital >= self.limit:
            self.alarm_batch = self.batches
        return self.alarm_batch is not None

    def finding(self) -> dict[str, object]:
        """Say what has earned most: which bin, in which direction, since which batch."""
        where = np.unravel_index(int(np.argmax(self._capital)), self._capital.shape)
        cell, side = int(where[0]), int(where[1])
        pooled = cell == self.bins
        return {
            "bin": None if pooled else [cell / self.bins, (cell + 1) / self.bins],
            "direction": _SIDES[side],
            "since_batch": int(self._since[where]),
            "p_value": min(1.0, 1.0 / self.peak + self.region.alpha),
        }

    def _gains(self, p: Floats, y: Floats) -> Floats:
        """Return the log-gain of each (bin, side, stake), and of all rows together last."""
        cell = np.minimum((p * self.bins).astype(np.intp), self.bins - 1)
        edge = np.append(np.arange(self.bins) / self.bins, 0.0)
        top = np.append((np.arange(self.bins) + 1) / self.bins, 1.0)
        low, high = self.region.low, self.region.high
        # The stake of a bin is a share of the largest one that cannot lose more than all; it is
        # the same for all rows of the bin, so that only the bin's mean residual matters.
        down = _STAKES / (1.0 - np.minimum(edge + low, 0.999))[:, None]
        up = _STAKES / np.maximum(top + high, 0.001)[:, None]
        gain = np.zeros((self.bins + 1, 2, len(_STAKES)))
        for where in (cell, np.full_like(cell, self.bins)):
            worse = np.log1p(down[where] * (p + low[where] - y)[:, None])
            better = np.log1p(up[where] * (y - p - high[where])[:, None])
            for side, values in enumerate((worse, better)):
                for stake, won in enumerate(values.T):
                    gain[:, side, stake] += np.bincount(where, won, self.bins + 1)
        return gain


# Odds of a wrong answer that are bet on, as multiples of the odds promised.
_ODDS = np.array([1.25, 1.5, 2.0, 3.0, 5.0, 10.0])
_KEPT = 400
_MOST = 1e200


@dataclass(slots=True)
class PromiseWatch(Stored):
    """Watch the answers that a policy gives alone, batch by batch.

    Parameters
    ----------
    max_error
        Largest share of wrong answers that was promised.
    horizon, alpha
        Batches over which a false word on the promise has at most this probability.
    delta, made
        Chance with which the promise may have failed from the start, and the day it was made.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> watch = PromiseWatch(0.1)
    >>> for day in range(60):
    ...     rate = 0.08 if day < 30 else 0.25
    ...     _ = watch.update(f"day {day}", rng.random(40) < rate)
    >>> watch.broken["since"], watch.broken["when"]
    ('day 30', 'day 32')
    """

    max_error: float
    horizon: int = 365
    alpha: float = 0.05
    delta: float | None = None
    made: str = ""
    given: int = 0
    wrong: float = 0.0
    peak: float = 0.0
    capital: Floats = field(default_factory=lambda: np.zeros(_ODDS.size))
    history: list[tuple[str, int, float]] = field(default_factory=list)
    broken: dict[str, object] | None = None

    def __post_init__(self) -> None:
        if not 0.0 < self.max_error < 1.0:
            raise InputError(f"a promise is an error between 0 and 1, got {self.max_error:g}")

    @property
    def rates(self) -> Floats:
        """Error rates that are bet on."""
        odds = _ODDS * self.max_error / (1 - self.max_error)
        return np.asarray(odds / (1 + odds), dtype=np.float64)

    @property
    def evidence(self) -> float:
        """Evidence that the promise is broken; it is told at ``1 / alpha``."""
        return float(self.capital.mean()) / self.horizon

    def update(self, label: str, wrong: ArrayLike, question: MaybeArray = None) -> bool:
        """Take the answers given alone in a batch; return whether this very batch decides.

        Parameters
        ----------
        label
            Name of the batch.
        wrong
            Whether each answer is wrong (1 minus its grade).
        question
            Question of each answer where there are several; their bets are averaged, which holds
            however they hang together.
        """
        w = np.asarray(wrong, dtype=np.float64)
        self.given += w.size
        self.wrong += float(w.sum())
        self.history.append((label, int(w.size), float(w.sum())))
        del self.history[:-_KEPT]
        stake = (self.rates - self.max_error) / (self.max_error * (1 - self.max_error))
        each = 1.0 + np.outer(w - self.max_error, stake)
        if question is not None and w.size:
            unit = np.unique(np.asarray(question), return_inverse=True)[1].reshape(-1)
            rows = np.bincount(unit)
            each = np.column_stack([np.bincount(unit, weights=c) / rows for c in each.T])
        growth = np.exp(np.minimum(np.log(np.maximum(each, 1e-300)).sum(axis=0), 460.0))
        self.capital = np.minimum((1.0 + self.capital) * growth, _MOST)
        self.peak = max(self.peak, self.evidence)
        if self.broken is not None or self.evidence < 1.0 / self.alpha:
            return False
        self.broken = self._since_when()
        return True

    def _since_when(self) -> dict[str, object]:
        """Say since when more answers are wrong: the start that explains them best."""
        values = np.array([entry[1] for entry in self.history], dtype=np.float64)
        wrong = np.array([entry[2] for entry in self.history])
        rates, limit = self.rates[:, None], self.max_error
        gain = wrong * np.log(rates / limit) + (values - wrong) * np.log((1 - rates) / (1 - limit))
        suffix = np.cumsum(gain[:, ::-1], axis=1)[:, ::-1]
        start = int(np.argmax(suffix.max(axis=0)))
        return {
            "when": self.history[-1][0],
            "since": self.history[start][0],
            "error": float(wrong[start:].sum() / max(values[start:].sum(), 1.0)),
            "n": int(values[start:].sum()),
            "p_value": min(1.0, 1.0 / self.evidence),
        }

    def document(self) -> dict[str, object]:
        """Return what the watch found, for a document."""
        error = wilson_estimate(self.wrong / self.given, self.given) if self.given else None
        return {
            "max_error": self.max_error,
            "delta": self.delta,
            "made": self.made,
            "given": self.given,
            "error": error,
            "evidence": self.evidence,
            "p_value": min(1.0, 1.0 / self.peak) if self.peak > 0 else 1.0,
            "broken": self.broken,
        }
