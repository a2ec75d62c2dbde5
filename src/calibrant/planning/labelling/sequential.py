"""A sequential audit: label by label, stop as soon as the goal is reached, peek at will."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core.errors import InputError
from calibrant.core.estimate import Estimate
from calibrant.stats.sequences import CalibrationSequence


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
        self.verdict: str | None = None

    def update(self, confidence: ArrayLike, correct: ArrayLike) -> dict[str, Any]:
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

    def state(self) -> dict[str, Any]:
        """Return labels so far, bounds, and whether one may stop."""
        low, high = self.sequence.ece
        below = self.threshold is not None and high < self.threshold
        above = self.threshold is not None and low > self.threshold
        gap_low, gap_high = self.sequence.gaps()
        return {
            "labels": self.sequence.count,
            "ece": Estimate(
                (low + high) / 2,
                low,
                high,
                n=self.sequence.count,
                level=1 - self.sequence.alpha,
                interval="confidence sequence",
            ),
            "gaps": [
                {"bin": k, "low": float(a), "high": float(b), "n": int(n)}
                for k, (a, b, n) in enumerate(
                    zip(gap_low, gap_high, self.sequence.labels_per_bin, strict=True)
                )
            ],
            "stop": self.stopped_at is not None,
            "stopped_at": self.stopped_at,
            "verdict": "below" if below else "above" if above else None,
        }
