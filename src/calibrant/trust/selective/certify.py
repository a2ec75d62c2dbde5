"""Which thresholds keep the error among the answered below a limit, and which is cheapest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betainc, expit

from calibrant.core.arrays import Floats, Ints, Mask
from calibrant.core.errors import InputError
from calibrant.core.stored import Stored
from calibrant.findings.documents.decisions import MoreLabels
from calibrant.metrics.stats.logistic import logistic_fit

# Shares of the labels at which a chain of tests starts, and the part of delta that it brings: most
# for the strictest threshold that can pass, the rest for confidences whose top is noisy.
STARTS = {0.0: 0.7, 0.1: 0.1, 0.3: 0.1, 0.6: 0.1}


@dataclass(frozen=True, slots=True)
class Certified:
    """The thresholds that passed, strictest first; none where nothing is certified."""

    passed: Floats

    @property
    def threshold(self) -> float | None:
        """The loosest threshold that passed; None where nothing is certified."""
        return float(self.passed[-1]) if len(self.passed) else None


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

    def curve(self, score: Floats, wrong: Floats, grid: Floats) -> tuple[Floats, Floats]:
        """Return how many labels each threshold is worth for this mix, and errors among them.

        A group that the traffic has and the labels lack at a threshold counts as one wrong answer.
        """
        rows, errors, share = [], [], []
        for number in range(int(max(self.group.max(), self.traffic_group.max())) + 1):
            labelled, traffic = self.group == number, self.traffic_group == number
            reached, bad = error_curve(score[labelled], wrong[labelled], grid)
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
    score: Floats, wrong: Floats, *, max_error: float, delta: float, mix: TrafficMix | None = None
) -> Certified:
    """Return the thresholds whose error among the answered is at most `max_error`.

    With a `mix` the promise is for that traffic instead of questions like the labelled ones.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> score = rng.random(900)
    >>> wrong = (rng.random(900) < 0.4 * (1 - score)).astype(float)
    >>> 0.2 < certify(score, wrong, max_error=0.15, delta=0.1).threshold < 0.6
    True
    """
    if not len(score):
        return Certified(np.empty(0))
    grid = threshold_grid(score)
    reached, errors = error_curve(score, wrong, grid)
    rows = reached
    if mix is not None:
        rows, errors = mix.curve(score, wrong, grid)
    able = rows >= fewest_rows(max_error, STARTS[0.0] * delta)
    chance = chance_of_so_few(errors, rows, max_error)
    brought = delta * weights_of_steps(reached / len(score), able)
    return Certified(grid[passed_steps(chance, brought)])


def weights_of_steps(share: Floats, able: Mask) -> Floats:
    """Return the part of delta that every step brings, from strict to loose.

    Parameters
    ----------
    share
        Share of the labels at each step.
    able
        Whether a step can pass at all; the first that can is the strictest start.
    """
    weights = np.zeros(len(share))
    if able.any():
        places = np.clip(np.searchsorted(share, list(STARTS)), np.argmax(able), len(share) - 1)
        np.add.at(weights, places, list(STARTS.values()))
    return weights


def passed_steps(chance: Floats, brought: Floats) -> Mask:
    """Return which steps pass: one that does hands on what it had, one that fails loses it.

    So at most delta is ever lost while a threshold that breaks the limit is still to be tested
    (the fallback procedure; Learn-then-Test with several starts on the same labels).

    Parameters
    ----------
    chance
        P-value of every step; steps last.
    brought
        Part of delta that each step brings.

    Examples
    --------
    >>> passed_steps(np.array([0.04, 0.09, 0.2, 0.02, 0.05]), np.array([0.07, 0.03, 0, 0.02, 0]))
    array([ True,  True, False,  True, False])
    """
    passed = np.zeros(chance.shape, dtype=bool)
    budget = np.zeros(chance.shape[:-1])
    for step, part in enumerate(brought):
        budget = budget + part
        passed[..., step] = (chance[..., step] <= budget) & (budget > 0)
        budget = np.where(passed[..., step], budget, 0.0)
    return passed


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


class LabelForecast:
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
    >>> forecast = LabelForecast(score, wrong, np.ones(300), max_error=0.07, delta=0.1)
    >>> 300 < forecast.labels_needed() < 2000
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
        """Return the share that is certified in each of 200 draws of so many labels."""
        rng = np.random.default_rng(labels)
        even = np.arange(1, 101) / 100
        rows, errors = self._draw(rng, even, labels)
        chance = chance_of_so_few(errors, rows, self.max_error)
        able = rows >= fewest_rows(self.max_error, STARTS[0.0] * self.delta)
        brought = self.delta * weights_of_steps(even, able)
        return np.asarray((passed_steps(chance, brought) * even).max(axis=1))

    def _draw(
        self, rng: np.random.Generator, share: Floats, labels: float
    ) -> tuple[Floats, Floats]:
        """Return rows up to each share, and errors among them in every run."""
        rows = np.rint(share * labels * self._worth)
        chance = np.diff(self._up_to(share), prepend=0.0) / np.diff(share, prepend=0.0)
        new = np.diff(rows, prepend=0.0).astype(int)
        draws = rng.binomial(new, np.clip(chance, 0.0, 1.0), (_RUNS, len(new)))
        return rows, draws.cumsum(axis=1).astype(np.float64)

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

    def more(self) -> list[MoreLabels]:
        """Return the share that 2, 4 and 10 times the labels would likely certify, and the most."""
        forecasts = [
            MoreLabels(labels=n, share=float(np.median(self.shares(n))))
            for n in (times * self.labels for times in _TIMES)
        ]
        rate = self._up_to(self._share) / self._share
        start = int(np.argmax((self.max_error - rate) * np.sqrt(self._share)))
        after = rate[start:] <= self.max_error
        last = len(after) if after.all() else int(np.argmin(after))
        return [*forecasts, MoreLabels(labels=None, share=(start + last) / _GRID if last else 0.0)]


@dataclass(frozen=True, slots=True)
class AskingCosts(Stored):
    """Costs per question: of a wrong answer, and of asking somebody else instead.

    Examples
    --------
    >>> AskingCosts(wrong=10, ask=1).limit
    0.1
    """

    wrong: float
    ask: float

    def __post_init__(self) -> None:
        if not all(math.isfinite(cost) and cost > 0 for cost in (self.wrong, self.ask)):
            raise InputError(
                f"costs are numbers above 0, got wrong={self.wrong:g}, ask={self.ask:g}"
            )

    @property
    def limit(self) -> float:
        """The chance of error above which asking is cheaper."""
        return self.ask / self.wrong

    @classmethod
    def of(cls, costs: Any) -> AskingCosts | None:
        """Return costs from itself, None, or a mapping with ``wrong`` and ``ask``."""
        if costs is None or isinstance(costs, AskingCosts):
            return costs
        if not isinstance(costs, Mapping) or set(costs) != {"wrong", "ask"}:
            given = ", ".join(costs) if isinstance(costs, Mapping) else repr(costs)
            raise InputError(
                f"costs need 'wrong' and 'ask', got {given}", hint="give costs wrong=10,ask=1"
            )
        return cls(float(costs["wrong"]), float(costs["ask"]))

    def per_row(self, answered: Mask, wrong: Floats) -> Floats:
        """Return what each question costs."""
        return np.where(answered, self.wrong * wrong, self.ask)


def cheapest(score: Floats, wrong: Floats, grid: Floats, costs: AskingCosts) -> float | None:
    """Return the threshold of `grid` with the lowest cost; None where never answering is cheaper.

    Examples
    --------
    >>> score = np.array([0.9, 0.8, 0.2, 0.1])
    >>> cheapest(score, np.array([0.0, 0.0, 1.0, 1.0]), score, AskingCosts(wrong=3, ask=1))
    0.8
    """
    reached, errors = error_curve(score, wrong, grid)
    saved = costs.ask * reached - costs.wrong * errors
    best = int(np.argmax(saved))
    return float(grid[best]) if saved[best] > 0 else None
