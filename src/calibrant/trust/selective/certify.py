"""Which thresholds keep the error among the answered below a limit, and which is cheapest."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec import Struct
from scipy.special import betainc

from calibrant.core.arrays import Floats, Ints, Mask
from calibrant.core.document import Stored
from calibrant.core.errors import InputError

# Shares of the labels at which a chain of tests starts, and the part of delta that it brings: most
# for the strictest threshold that can pass, the rest for confidences whose top is noisy.
STARTS = {0.0: 0.7, 0.1: 0.1, 0.3: 0.1, 0.6: 0.1}


class Certified(Struct, frozen=True):
    """The thresholds that passed, strictest first; none where nothing is certified."""

    passed: Floats

    @property
    def threshold(self) -> float | None:
        """The loosest threshold that passed; None where nothing is certified."""
        return float(self.passed[-1]) if len(self.passed) else None


class TrafficMix(Struct, frozen=True):
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


def rows_per_label(score: Floats, wrong: Floats, cluster: Ints, grid: Floats) -> Floats:
    """Return how many rows at each threshold are worth one label, where rows hang together.

    The variance of errors between clusters over that of independent rows; as long as few clusters
    have an error, towards what it were if all rows of a cluster were alike.

    Examples
    --------
    >>> score, cluster = np.full(60, 0.9), np.repeat(np.arange(20), 3)
    >>> alike = np.repeat(np.arange(20) % 4 == 0, 3).astype(float)
    >>> rows_per_label(score, alike, cluster, np.array([0.9])).round(1).tolist()
    [3.0]
    """
    order = np.argsort(-score, kind="stable")
    bad, kind, count = wrong[order], cluster[order], int(cluster.max()) + 1
    ends = np.searchsorted(-score[order], -grid, side="right")
    n, e, start, worth = np.zeros(count), np.zeros(count), 0, np.ones(len(grid))
    for step, end in enumerate(ends):
        n += np.bincount(kind[start:end], minlength=count)
        e += np.bincount(kind[start:end], bad[start:end], count)
        start, rows = end, n.sum()
        if rows:
            rate = (e.sum() + 1) / (rows + 2)
            active, erring = int((n > 0).sum()), int((e > 0).sum())
            between = ((e - rate * n) ** 2).sum() * active / max(active - 1, 1)
            inflation = max(between / (rows * rate * (1 - rate)), 1.0)
            most = (n**2).sum() / rows
            worth[step] = np.clip((erring * inflation + most) / (erring + 1), 1.0, most)
    return worth


def worth_curve(
    score: Floats, wrong: Floats, grid: Floats, mix: TrafficMix | None, cluster: Ints | None
) -> tuple[Floats, Floats]:
    """Return what the labels at each threshold are worth, and errors among them."""
    rows, errors = (error_curve if mix is None else mix.curve)(score, wrong, grid)
    if cluster is None:
        return rows, errors
    worth = rows_per_label(score, wrong, cluster, grid)
    return rows / worth, errors / worth


def certify(
    score: Floats,
    wrong: Floats,
    *,
    max_error: float,
    delta: float,
    mix: TrafficMix | None = None,
    cluster: Ints | None = None,
) -> Certified:
    """Return the thresholds whose error among the answered is at most `max_error`.

    With a `mix` the promise is for that traffic instead of questions like the labelled ones. Rows
    of one `cluster` (a code per row) hang together: several count as one label.

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
    reached, _ = error_curve(score, wrong, grid)
    rows, errors = worth_curve(score, wrong, grid, mix, cluster)
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
    passing = np.zeros(chance.shape, dtype=bool)
    budget = np.zeros(chance.shape[:-1])
    for step, part in enumerate(brought):
        budget = budget + part
        passing[..., step] = (chance[..., step] <= budget) & (budget > 0)
        budget = np.where(passing[..., step], budget, 0.0)
    return passing


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
            values = ", ".join(costs) if isinstance(costs, Mapping) else repr(costs)
            raise InputError(
                f"costs need 'wrong' and 'ask', got {values}", hint="give costs wrong=10,ask=1"
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
