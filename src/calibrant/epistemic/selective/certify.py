"""Which thresholds keep the error among the answered below a limit, with a promise.

A threshold is loosened step by step; each step is tested by the exact binomial law, and the first
failure ends it. Such a chain needs no correction for its number of steps. There are two, and what
either of them passes is certified. The first starts strict and uses all labels, at 70 % of delta:
best where confidence ranks well. The second starts where a few labels of its own look best, at
30 %: best where the most confident answers are not the most accurate ones.

References
----------
Bauer 1991 and Angelopoulos et al. 2021 (fixed-sequence testing, learn then test); Geifman and
El-Yaniv 2017 (selective classification with guaranteed risk).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import betainc

from calibrant.core.arrays import Floats, Ints

STEPS = 40
# Share of delta for the chain that starts strict.
OPEN = 0.7
PILOT = 5
_FEWEST_PILOT = 5
# The first step holds a tenth of the labels, at most this many: fewer are noise, more are a bet
# that the loose thresholds are good too.
_MOST_AT_START = 250


@dataclass(frozen=True, slots=True)
class Certified:
    """The thresholds that passed, strictest first; none where nothing is certified."""

    passed: Floats

    @property
    def threshold(self) -> float | None:
        """The loosest threshold that passed; None where nothing is certified."""
        return float(self.passed[-1]) if len(self.passed) else None


@dataclass(frozen=True, slots=True)
class Pilot:
    """Labels that choose where the second chain starts.

    Parameters
    ----------
    score, wrong
        Theirs.
    apart
        Which of the certifying labels are not among them.
    """

    score: Floats
    wrong: Floats
    apart: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class TrafficMix:
    """Unlabelled traffic that the labels are weighted to, group by group.

    Parameters
    ----------
    group
        Group of each labelled row, as a number from 0 on.
    score, traffic_group
        Score and group of each row of the traffic; groups without labels are not in it.
    """

    group: Ints
    score: Floats
    traffic_group: Ints

    def labelled(self, rows: npt.NDArray[np.bool_]) -> TrafficMix:
        """Return the same traffic for some of the labels."""
        return TrafficMix(self.group[rows], self.score, self.traffic_group)

    def curve(self, score: Floats, wrong: Floats, grid: Floats) -> tuple[Floats, Floats]:
        """Return how many labels each threshold is worth for this mix, and errors among them.

        A group that the traffic has and the labels lack at a threshold counts as one wrong answer.
        """
        rows, errors, share = [], [], []
        for number in range(int(max(self.group.max(), self.traffic_group.max())) + 1):
            own, traffic = self.group == number, self.traffic_group == number
            reached, bad = error_curve(score[own], wrong[own], grid)
            rows.append(np.maximum(reached, 1.0))
            errors.append(np.where(reached > 0, bad, 1.0))
            share.append(error_curve(self.score[traffic], np.zeros(int(traffic.sum())), grid)[0])
        weight = np.array(share) / np.maximum(np.sum(share, axis=0), 1.0)
        rate = (weight * np.array(errors) / np.array(rows)).sum(axis=0)
        spread = (weight**2 / np.array(rows)).sum(axis=0)
        worth = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
        return worth, rate * worth


def fewest_rows(max_error: float, delta: float) -> int:
    """Return the fewest rows that can pass: all of them right.

    Examples
    --------
    >>> fewest_rows(0.1, 0.1)
    22
    """
    return max(1, math.ceil(math.log(delta) / math.log1p(-max_error) - 1e-9))


def step_sizes(labels: int, max_error: float, delta: float) -> Floats:
    """Return how many labels each step of the chain holds; none where they are too few.

    Examples
    --------
    >>> step_sizes(1000, 0.1, 0.1)[[0, 1, -1]].tolist()
    [100.0, 123.0, 1000.0]
    """
    fewest = fewest_rows(max_error, delta)
    if labels < fewest:
        return np.empty(0)
    first = max(fewest, min(labels / 10, _MOST_AT_START))
    sizes: Floats = np.ceil(first + (labels - first) * np.arange(STEPS + 1) / STEPS - 1e-9)
    return sizes


def threshold_grid(score: Floats, steps: int = 100) -> Floats:
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


def chance_of_so_few(errors: Floats, rows: Floats, max_error: float) -> Floats:
    """Return the chance of at most so many errors at the limit; counts need not be whole.

    Examples
    --------
    >>> chance_of_so_few(np.array([2.0]), np.array([50.0]), 0.1).round(4).tolist()
    [0.1117]
    """
    right = np.maximum(rows - errors, 1e-9)
    chance = betainc(right, errors + 1, 1 - max_error)
    return np.asarray(np.where((rows >= 1) & (rows > errors), chance, 1.0))


def certify(
    score: Floats,
    wrong: Floats,
    *,
    max_error: float,
    delta: float,
    mix: TrafficMix | None = None,
    pilot: Pilot | None = None,
) -> Certified:
    """Return the thresholds whose error among the answered is at most `max_error`.

    With a `mix` the promise is for that traffic instead of questions like the labelled ones.
    Without a `pilot` there is the first chain alone.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(900)
    >>> wrong = (rng.random(900) < 0.4 * (1 - score)).astype(float)
    >>> 0.2 < certify(score, wrong, max_error=0.15, delta=0.1).threshold < 0.6
    True
    """
    if pilot is None:
        return Certified(_from_strictest(score, wrong, max_error, delta, mix))
    first = _from_strictest(score, wrong, max_error, OPEN * delta, mix)
    own = pilot.apart
    apart = None if mix is None else mix.labelled(own)
    second = _from_pilot(pilot, score[own], wrong[own], max_error, (1 - OPEN) * delta, apart)
    return Certified(np.unique(np.concatenate([first, second]))[::-1])


def _from_strictest(
    score: Floats, wrong: Floats, max_error: float, delta: float, mix: TrafficMix | None
) -> Floats:
    sizes = step_sizes(len(score), max_error, delta)
    grid = np.unique(np.sort(score)[::-1][sizes.astype(np.intp) - 1])[::-1]
    if not len(grid):
        return grid
    rows, errors = (mix.curve if mix is not None else error_curve)(score, wrong, grid)
    # Weighting may leave too few labels at strict thresholds for any step to pass.
    enough = rows >= fewest_rows(max_error, delta)
    start = int(np.argmax(enough)) if enough.any() else 0
    return grid[start : chain_end(errors, rows, start, max_error, delta)]


def _from_pilot(
    pilot: Pilot,
    score: Floats,
    wrong: Floats,
    max_error: float,
    delta: float,
    mix: TrafficMix | None,
) -> Floats:
    if not len(score):
        return np.empty(0)
    grid = threshold_grid(score)
    rows, errors = (mix.curve if mix is not None else error_curve)(score, wrong, grid)
    start = int(best_start(*error_curve(pilot.score, pilot.wrong, grid), rows, max_error))
    return grid[start : chain_end(errors, rows, start, max_error, delta)]


def best_start(tried: Floats, wrong: Floats, rows: Floats, max_error: float) -> Ints:
    """Return where a pilot (rows and errors per step) sees the largest expected margin."""
    rate = (wrong + 1) / (tried + 2)
    margin = (max_error - rate) * np.sqrt(rows) / np.sqrt(rate * (1 - rate))
    return np.asarray(np.argmax(np.where(tried >= _FEWEST_PILOT, margin, -np.inf), axis=-1))


def chain_end(errors: Floats, rows: Floats, start: int, max_error: float, delta: float) -> int:
    """Return the first step from `start` on that fails."""
    failed = np.flatnonzero(chance_of_so_few(errors, rows, max_error)[start:] > delta)
    return start + int(failed[0]) if len(failed) else len(rows)


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
