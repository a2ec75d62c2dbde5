"""Is a promise about errors still kept? A watch over the answers that a policy gives alone.

Somebody bets that more of them are wrong than was promised. While the promise is kept, no bet
grows on average, so that the bets begun at every batch so far add up to at most their number; the
chance that their sum ever passes ``horizon / alpha`` within the horizon is at most alpha.

References
----------
Shin, Ramdas, Rinaldo (2024), E-detectors.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core.arrays import Floats, MaybeArray
from calibrant.core.errors import InputError
from calibrant.core.stored import Stored
from calibrant.metrics.stats.intervals import wilson_estimate

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
