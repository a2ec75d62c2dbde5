"""Which thresholds keep the error among the answered below a limit, with a promise.

A start is chosen on labels that are not used again. From there the threshold is loosened step by
step, each step is tested by the exact binomial law at level delta, and the first failure ends
it. Testing in an order fixed beforehand needs no correction for the number of steps.

References
----------
Bauer 1991 and Angelopoulos et al. 2021 (fixed-sequence testing, learn then test); Geifman and
El-Yaniv 2017 (selective classification with guaranteed risk).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtr, bdtrik

from calibrant.core.arrays import Floats

STEPS = 100
_FEWEST_PILOT = 5
_MOST_LABELS = 10_000_000


@dataclass(frozen=True, slots=True)
class Certified:
    """The thresholds that passed, from the start on; empty where the first one failed.

    Parameters
    ----------
    grid
        All thresholds looked at, strictest first.
    start
        Position of the first one tested.
    passed
        Positions that passed, in the order of testing.
    """

    grid: Floats
    start: int
    passed: tuple[int, ...]

    @property
    def threshold(self) -> float | None:
        """The loosest threshold that passed; None where nothing is certified."""
        return float(self.grid[self.passed[-1]]) if self.passed else None


def as_written(threshold: float | None, score: Floats) -> float | None:
    """Return the threshold without the tail of single precision, where it parts the same rows.

    A confidence of 0.8 that was stored in 32 bits is 0.800000012: held against that, a 0.8 that
    is served would never be enough.

    Examples
    --------
    >>> as_written(0.800000011920929, np.array([0.6, 0.800000011920929]))
    0.8
    """
    if threshold is None:
        return None
    short = round(threshold, 6)
    between = (score >= short) & (score < threshold)
    return short if short <= threshold and not between.any() else threshold


def threshold_grid(score: Floats, steps: int = STEPS) -> Floats:
    """Return scores at even shares answered, strictest first; labels do not enter.

    Examples
    --------
    >>> threshold_grid(np.array([0.1, 0.5, 0.5, 0.9]), 4).tolist()
    [0.5, 0.1]
    """
    shares = np.linspace(1, 0, steps + 1)[1:]
    return np.unique(np.quantile(score, shares, method="lower"))[::-1]


def error_curve(score: Floats, wrong: Floats, grid: Floats) -> tuple[Floats, Floats]:
    """Return how many rows reach each threshold, and how many of them are wrong."""
    order = np.argsort(-score, kind="stable")
    reached = np.searchsorted(-score[order], -grid, side="right")
    errors = np.concatenate([[0.0], np.cumsum(wrong[order])])
    return reached.astype(np.float64), errors[reached]


def certify(
    pilot_score: Floats,
    pilot_wrong: Floats,
    score: Floats,
    wrong: Floats,
    *,
    max_error: float,
    delta: float,
    steps: int = STEPS,
) -> Certified:
    """Return the thresholds whose error among the answered is at most `max_error`.

    The pilot chooses where to start: at the threshold with the largest expected margin. The most
    confident answers are often not the most accurate ones, so the strictest threshold is a bad
    start. The other rows certify.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(900)
    >>> wrong = (rng.random(900) < 0.4 * (1 - score)).astype(float)
    >>> found = certify(score[:300], wrong[:300], score[300:], wrong[300:],
    ...                 max_error=0.15, delta=0.1)
    >>> 0.2 < found.threshold < 0.6
    True
    """
    grid = threshold_grid(score, steps)
    reached, errors = error_curve(score, wrong, grid)
    pilot_n, pilot_errors = error_curve(pilot_score, pilot_wrong, grid)
    rate = (pilot_errors + 1) / (pilot_n + 2)
    margin = (max_error - rate) * np.sqrt(reached) / np.sqrt(rate * (1 - rate))
    margin[pilot_n < _FEWEST_PILOT] = -np.inf
    start = int(np.argmax(margin))
    passed = []
    for at in range(start, len(grid)):
        if bdtr(errors[at], int(reached[at]), max_error) > delta:
            break
        passed.append(at)
    return Certified(grid, start, tuple(passed))


def labels_to_certify(
    error: float, max_error: float, delta: float, *, power: float = 0.8
) -> int | None:
    """Return how many answered labels certify a true error; None where none can.

    The exact test at level `delta` then passes with probability `power`.

    Examples
    --------
    >>> labels_to_certify(0.05, 0.1, 0.1)
    140
    >>> labels_to_certify(0.12, 0.1, 0.1) is None
    True
    """
    if error >= max_error:
        return None

    def passes(n: int) -> bool:
        # The largest count of errors that passes, then the chance of at most so many.
        most = math.floor(float(bdtrik(delta, n, max_error)) + 1e-9)
        while most >= 0 and bdtr(most, n, max_error) > delta:
            most -= 1
        return most >= 0 and float(bdtr(most, n, error)) >= power

    low, high = 0, max(1, math.ceil(math.log(delta) / math.log1p(-max_error)))
    while not passes(high):
        low, high = high, 2 * high
        if high > _MOST_LABELS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if passes(middle) else (middle, high)
    return high
