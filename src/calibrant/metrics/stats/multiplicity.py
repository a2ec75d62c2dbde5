"""Many tests at once and many looks at one: corrected p-values, and confidence sequences."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike

from calibrant.core.arrays import Floats, Indices
from calibrant.core.document import Stored
from calibrant.core.errors import InputError


def holm(p_values: ArrayLike) -> Floats:
    """Return Holm's adjusted p-values: the chance of any false claim is bounded by the level.

    Nothing is assumed about how the tests depend on each other, so confidences of one model on
    the same questions may be tested together.

    Parameters
    ----------
    p_values
        Valid p-values, shape (m,).

    References
    ----------
    Holm (1979), 'A simple sequentially rejective multiple test procedure'.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.5]).tolist()
    [0.03, 0.08, 0.5]
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    steps = np.maximum.accumulate(p[order] * np.arange(p.size, 0, -1))
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(steps, 1.0)
    return adjusted


_LARGEST_BET = 0.75
_DEFAULT_HORIZON = 500
# Sums of residuals smaller than this are rounding, not evidence for a sign.
_ROUNDING = 1e-9


class SequencePath(Struct, frozen=True):
    """Bounds after each observation: `low` and `high`, shape (n,)."""

    low: Floats
    high: Floats


def _psi(bet: Floats) -> Floats:
    return np.asarray(-np.log1p(-bet) - bet, dtype=np.float64)


def _bets(second_moment: Floats, step: Floats, log_cost: float, horizon: int | None) -> Floats:
    """Return predictable bets: small where the noise is large, steady at first, then fading.

    Up to the horizon the bet is the one that is best there; after it the bets fade just fast
    enough for the bounds to go on shrinking for ever.
    """
    start = float(_DEFAULT_HORIZON if horizon is None else horizon)
    late = np.maximum(step, start)
    size = late * (1.0 + np.log(late / start))
    return np.minimum(np.sqrt(2 * log_cost / (second_moment * size)), _LARGEST_BET)


@dataclass(slots=True)
class CalibrationSequence(Stored):
    """Time-uniform bounds for the binned calibration gap and for the binned ECE.

    Valid for independent observations of one distribution (or labels chosen at random from a
    pool), at every time at once. The binned ECE is the largest of the signed mean gaps over all
    sign patterns of the bins. Its lower bound bets with the sign each bin has shown so far, as
    any pattern lies below the ECE. Its upper bound takes the worst pattern; as the true pattern
    is one fixed pattern, no union over patterns has to be paid for.

    Parameters
    ----------
    bins
        Equal-width bins of [0, 1].
    alpha
        Probability that any bound ever fails, at most: half for the ECE, half for the gaps.
    horizon
        Number of labels at which the bounds shall be tightest.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=4000)
    >>> y = rng.uniform(size=p.size) < np.clip(p - 0.2, 0, 1)
    >>> sequence = CalibrationSequence(bins=10)
    >>> path = sequence.update(p, y)
    >>> low, high = sequence.ece
    >>> bool(0.0 < low < 0.18 < high)
    True

    One that was saved goes on as if it had never stopped.

    >>> again = CalibrationSequence.from_dict(sequence.to_dict())
    >>> _ = sequence.update(p[:300], y[:300]), again.update(p[:300], y[:300])
    >>> again.ece == sequence.ece
    True
    """

    bins: int = 15
    alpha: float = 0.05
    horizon: int | None = None
    count: int = 0
    _moment: float = 0.25
    _bet: float = 0.0
    _slack: float = 0.0
    _lower_sum: float = 0.0
    _upper_sum: Floats = field(default_factory=lambda: np.zeros(0))
    _residual: Floats = field(default_factory=lambda: np.zeros(0))
    _bin: dict[str, Floats] = field(default_factory=dict)
    ece: tuple[float, float] = (0.0, 1.0)

    def __post_init__(self) -> None:
        if self.bins < 1 or not 0.0 < self.alpha < 1.0:
            raise InputError(
                f"bins is at least 1 and alpha lies between 0 and 1, got {self.bins}, {self.alpha}"
            )
        if not self._bin:
            self._upper_sum, self._residual = np.zeros(self.bins), np.zeros(self.bins)
            names = ("count", "moment", "bet", "slack", "sum", "mean")
            self._bin = {name: np.zeros(self.bins) for name in names}
            self._bin["low"], self._bin["high"] = np.full(self.bins, -1.0), np.full(self.bins, 1.0)

    def update(self, confidence: ArrayLike, correct: ArrayLike) -> SequencePath:
        """Take further labels in order; return the ECE bounds after each of them."""
        p = np.asarray(confidence, dtype=np.float64)
        y = np.asarray(correct, dtype=np.float64)
        if p.shape != y.shape or p.ndim != 1 or not (_in_unit(p) and _in_unit(y)):
            raise InputError(
                "confidence and correct are vectors of one length with values in [0, 1]"
            )
        if not p.size:
            return SequencePath(np.zeros(0), np.zeros(0))
        cell = np.minimum((p * self.bins).astype(np.intp), self.bins - 1)
        residual = y - p
        path = self._update_ece(cell, residual)
        for inverse in np.unique(cell):
            self._update_bin(int(inverse), residual[cell == inverse])
        self.count += p.size
        self.ece = (float(path.low[-1]), float(path.high[-1]))
        return path

    def gaps(self) -> tuple[Floats, Floats]:
        """Return lower and upper bounds of every bin's gap (confidence minus right) at once."""
        return 0.0 - self._bin["high"], 0.0 - self._bin["low"]

    @property
    def labels_per_bin(self) -> Floats:
        """Labels seen in each bin."""
        return self._bin["count"].copy()

    def _update_ece(self, cell: Indices, residual: Floats) -> SequencePath:
        square = residual**2
        step = self.count + np.arange(1, residual.size + 1, dtype=np.float64)
        moment = (self._moment + np.concatenate([[0.0], np.cumsum(square)[:-1]])) / step
        cost = math.log(4 / self.alpha)
        bet = _bets(moment, step, cost, self.horizon)
        total = self._bet + np.cumsum(bet)
        slack = self._slack + np.cumsum(_psi(bet) * square)

        before = _sums_before(cell, residual, self._residual)
        sign = np.where(before > _ROUNDING, 1.0, -1.0)
        lower = self._lower_sum + np.cumsum(bet * sign * residual)
        gain = bet * residual
        upper = _sums_before(cell, gain, self._upper_sum)
        worst = np.abs(self._upper_sum).sum() + np.cumsum(np.abs(upper + gain) - np.abs(upper))

        self._residual = self._residual + np.bincount(cell, weights=residual, minlength=self.bins)
        self._upper_sum = self._upper_sum + np.bincount(cell, weights=gain, minlength=self.bins)
        self._moment += float(square.sum())
        self._lower_sum, self._bet, self._slack = map(float, (lower[-1], total[-1], slack[-1]))
        low = np.maximum((lower - slack - cost) / total, self.ece[0])
        high = np.minimum((worst + slack + cost) / total, self.ece[1])
        return SequencePath(np.maximum.accumulate(low), np.minimum.accumulate(high))

    def _update_bin(self, which: int, residual: Floats) -> None:
        state = self._bin
        low_edge, high_edge = which / self.bins, (which + 1) / self.bins
        # Residuals of a bin lie in [-high_edge, 1 - low_edge]; centring them at a predictable
        # guess within [-low_edge, 1 - high_edge] keeps both tails above -1.
        step = state["count"][which] + np.arange(1, residual.size + 1, dtype=np.float64)
        total = state["sum"][which] + np.concatenate([[0.0], np.cumsum(residual)[:-1]])
        centre = np.clip(total / step, -low_edge, 1.0 - high_edge)
        square = (residual - centre) ** 2
        moment = state["moment"][which] + np.concatenate([[0.0], np.cumsum(square)[:-1]])
        cost = math.log(4 * self.bins / self.alpha)
        horizon = max(20, (self.horizon or _DEFAULT_HORIZON) // self.bins)
        bet = _bets((0.25 + moment) / step, step, cost, horizon)
        bets = state["bet"][which] + np.cumsum(bet)
        slack = state["slack"][which] + np.cumsum(_psi(bet) * square)
        mean = state["mean"][which] + np.cumsum(bet * residual)
        low, high = ((mean - slack - cost) / bets).max(), ((mean + slack + cost) / bets).min()
        state["low"][which] = max(state["low"][which], float(low))
        state["high"][which] = min(state["high"][which], float(high))
        state["count"][which] += residual.size
        state["sum"][which] += residual.sum()
        state["moment"][which] += square.sum()
        state["bet"][which], state["slack"][which] = bets[-1], slack[-1]
        state["mean"][which] = mean[-1]


def _in_unit(values: Floats) -> bool:
    return bool(values.size == 0 or (values.min() >= 0.0 and values.max() <= 1.0))


def _sums_before(cell: Indices, values: Floats, start: Floats) -> Floats:
    """Return, for each observation, its bin's sum before it."""
    order = np.argsort(cell, kind="stable")
    sorted_cell, running = cell[order], np.cumsum(values[order])
    first = np.searchsorted(sorted_cell, sorted_cell)
    offset = np.concatenate([[0.0], running])[first]
    before = np.empty_like(values)
    before[order] = running - values[order] - offset + start[sorted_cell]
    return before
