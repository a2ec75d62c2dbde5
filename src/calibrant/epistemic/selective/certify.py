"""Which thresholds keep the error among the answered below a limit, with a promise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betainc, expit

from calibrant.core.arrays import Floats, Ints, Mask
from calibrant.stats.logistic import logistic_fit

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
    apart: Mask


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

    def labelled(self, rows: Mask) -> TrafficMix:
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


_RUNS = 200
_POWER, _LIKELY = 0.8, 0.5
_MOST_LABELS = 10_000_000
_TIMES = (2, 4, 10)
_GRID = 400


class Outlook:
    """A world to draw further labels from: the chance of an error by rank, a curve of three terms.

    Parameters
    ----------
    score, wrong
        The labels so far.
    weight
        What each is worth for the traffic that is promised; all alike without one.
    max_error, delta
        What is to be promised.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> score, wrong = rng.random(300), (rng.random(300) < 0.04).astype(float)
    >>> 300 < Outlook(score, wrong, np.ones(300), max_error=0.07, delta=0.1).labels_needed() < 2000
    True
    """

    def __init__(
        self, score: Floats, wrong: Floats, weight: Floats, *, max_error: float, delta: float
    ) -> None:
        self.labels, self.max_error, self.delta = len(score), max_error, delta
        _, place, equal = np.unique(-score, return_inverse=True, return_counts=True)
        # Equal scores share the middle of their places.
        rank = ((np.cumsum(equal) - equal / 2) / len(score))[place]
        terms = np.column_stack([rank, rank**2])
        intercept, slopes = logistic_fit(terms, wrong, weight, 1.0 / len(score))
        self._share = (np.arange(_GRID) + 0.5) / _GRID
        rate = expit(intercept + np.column_stack([self._share, self._share**2]) @ slopes)
        self._errors = np.cumsum(rate) / _GRID
        # Uneven weights leave as much knowledge as this share of the labels.
        self._worth = float(weight.sum() ** 2 / (weight @ weight) / len(score))

    def _up_to(self, share: Floats) -> Floats:
        """Return the chance that a question is within the share and wrong."""
        ends = np.concatenate([[0.0], self._share + 0.5 / _GRID])
        return np.asarray(np.interp(share, ends, np.concatenate([[0.0], self._errors])))

    def shares(self, labels: int) -> Floats:
        """Return the share that the chains certify in each of 200 draws of so many labels."""
        rng = np.random.default_rng(labels)
        strict = step_sizes(labels, self.max_error, OPEN * self.delta) / labels
        first = self._certified(rng, np.unique(strict), labels, None, OPEN * self.delta)
        even = np.arange(1, 101) / 100
        tried, wrong = self._draw(rng, even, labels / PILOT)
        rest = labels * (1 - 1 / PILOT)
        start = best_start(np.broadcast_to(tried, wrong.shape), wrong, tried, self.max_error)
        second = self._certified(rng, even, rest, start, (1 - OPEN) * self.delta)
        return np.maximum(first, second)

    def _draw(self, rng: np.random.Generator, share: Floats, labels: float) -> tuple[Any, Any]:
        """Return rows up to each share, and errors among them in every run."""
        rows = np.rint(share * labels * self._worth)
        chance = np.diff(self._up_to(share), prepend=0.0) / np.diff(share, prepend=0.0)
        new = np.diff(rows, prepend=0.0).astype(int)
        draws = rng.binomial(new, np.clip(chance, 0.0, 1.0), (_RUNS, len(new)))
        return rows, draws.cumsum(axis=1).astype(np.float64)

    def _certified(
        self,
        rng: np.random.Generator,
        share: Floats,
        labels: float,
        start: Ints | None,
        delta: float,
    ) -> Floats:
        if not len(share):
            return np.zeros(_RUNS)
        rows, errors = self._draw(rng, share, labels)
        passes = chance_of_so_few(errors, rows, self.max_error) <= delta
        begin = np.zeros(_RUNS, dtype=np.int64) if start is None else start
        open_steps = passes | (np.arange(len(share)) < begin[:, None])
        end = np.where(open_steps.all(axis=1), len(share), np.argmin(open_steps, axis=1))
        return np.where(end > begin, share[end - 1], 0.0)

    def labels_needed(self) -> int | None:
        """Return about how many labels certify something in 80 % of draws; None where none do.

        Where no number reaches that, the first that does so in most draws counts.
        """
        labels, likely = self.labels, None
        while labels <= min(_MOST_LABELS, 1000 * self.labels):
            power = float((self.shares(labels) > 0).mean())
            if power >= _POWER:
                return labels
            likely = labels if likely is None and power > _LIKELY else likely
            labels = math.ceil(labels * 1.2)
        return likely

    def more(self) -> list[dict[str, Any]]:
        """Return the share that 2, 4 and 10 times the labels would likely certify, and the most."""
        found: list[dict[str, Any]] = [
            {"labels": n, "share": float(np.median(self.shares(n)))}
            for n in (times * self.labels for times in _TIMES)
        ]
        rate = self._up_to(self._share) / self._share
        start = int(np.argmax((self.max_error - rate) * np.sqrt(self._share)))
        after = rate[start:] <= self.max_error
        last = len(after) if after.all() else int(np.argmin(after))
        return [*found, {"labels": None, "share": (start + last) / _GRID if last else 0.0}]
