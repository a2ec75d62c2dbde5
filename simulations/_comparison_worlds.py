"""Two models with a known truth: which of them is better calibrated, at every accuracy.

Calibration error here is E|c - r(c)| with r(c) the chance of being right given the confidence c.
The truth of a world is `weak` or `strong` where that model's error is smaller on its own answers
and after the odds shift to the weaker, the mean and the stronger accuracy; otherwise a claim for
either is false. Differences below 0.0075 count as ties.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import beta

from calibrant.comparison.partner_views import all_partner_views
from calibrant.comparison.questions import QuestionBlock
from calibrant.comparison.resampled import resample_counts
from calibrant.comparison.sums import model_sums
from calibrant.comparison.survey import survey_block

TIE = 0.0075
GRID = np.array([0.05, 0.2, 0.35, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0])
_NOISE = np.random.default_rng(99).normal(0, np.hypot(1.2, 0.8), 200_000)


@dataclass
class Answers:
    """Stated confidence, outcome and true chance of one model."""

    confidence: np.ndarray
    correct: np.ndarray
    chance: np.ndarray


@lru_cache
def skill(accuracy: float) -> float:
    return brentq(lambda s: expit(s + _NOISE).mean() - accuracy, -8, 8)


@lru_cache
def mean_chance(accuracy: float, low: float, high: float, on_grid: bool = False) -> float:
    p = expit(skill(accuracy) + _NOISE)
    if on_grid:
        p = to_grid(p)
        return float(p[p >= low].mean())
    return float(p[(p > low) & (p < high)].mean())


def to_grid(p):
    return GRID[np.abs(p[:, None] - GRID[None]).argmin(1)]


def moved(by):
    return lambda p: expit(logit(p) + by)


def same(p):
    return p


def constant(q):
    return lambda p: np.full(p.size, q)


def chances(accuracy, rng, difficulty, noise=None):
    noise = rng.normal(0, 0.8, difficulty.size) if noise is None else noise
    return expit(skill(accuracy) - difficulty + noise)


def drawn(p, says, rng):
    return Answers(says(p), (rng.random(p.size) < p).astype(float), p)


@dataclass
class World:
    """Weak and strong accuracy, and what each model says when its chance of being right is p."""

    name: str
    accuracy: tuple[float, float] = (0.5, 0.75)
    says: tuple[Callable, Callable] = (same, same)
    make: Callable | None = field(default=None)

    def draw(self, rng, n):
        if self.make is not None:
            return self.make(self, rng, n)
        d = rng.normal(0, 1.2, n)
        both = [chances(a, rng, d) for a in self.accuracy]
        return tuple(drawn(p, says, rng) for p, says in zip(both, self.says, strict=True))


def hard_and_easy(_, rng, n):
    d = np.where(rng.random(n) < 0.5, 2.0, -2.0) + rng.normal(0, 0.3, n)
    both = expit(-d), expit(2.2 - d + rng.normal(0, 0.5, n))
    return tuple(drawn(p, same, rng) for p in both)


def round_numbers(world, rng, n):
    d = rng.normal(0, 1.2, n)
    return tuple(drawn(to_grid(chances(a, rng, d)), same, rng) for a in world.accuracy)


def constant_and_calibrated(_, rng, n):
    d = rng.normal(0, 1.2, n)
    weak = drawn(chances(0.5, rng, d), same, rng)
    return weak, drawn(np.full(n, 0.75), same, rng)


def shared_conditionals(world, rng, n):
    """Confidence depends on the outcome alone, and alike for both: Assumption 1 of the paper."""
    out = []
    for a in world.accuracy:
        z = (rng.random(n) < a).astype(float)
        c = np.where(z == 1, rng.beta(8, 2, n), rng.beta(5, 3, n))
        up, down = beta.pdf(c, 8, 2) * a, beta.pdf(c, 5, 3) * (1 - a)
        out.append(Answers(c, z, up / (up + down)))
    return tuple(out)


def correlated(world, rng, n):
    d, e = rng.normal(0, 1.2, n), rng.normal(0, 0.75, n)
    both = [chances(a, rng, d, e + rng.normal(0, 0.28, n)) for a in world.accuracy]
    return tuple(drawn(p, says, rng) for p, says in zip(both, world.says, strict=True))


def timid(_, rng, n):
    d = rng.normal(0, 1.2, n)
    weak, strong = chances(0.5, rng, d), chances(0.75, rng, d)
    weak, strong = drawn(weak, moved(1), rng), drawn(strong, constant(0.1), rng)
    strong.chance = np.full(n, 0.75)
    return weak, strong


def one_step_over(_, rng, n):
    d = rng.normal(0, 1.2, n)
    weak = drawn(to_grid(chances(0.5, rng, d)), same, rng)
    step = np.minimum(np.searchsorted(GRID, weak.confidence - 1e-9) + 1, GRID.size - 1)
    said = GRID[step]
    # The two highest steps are both stated as 1.0: the chance there is their mixture.
    weak.chance = np.where(said == 1, mean_chance(0.5, 0.95, 1, on_grid=True), weak.chance)
    weak.confidence = said
    return weak, drawn(to_grid(chances(0.75, rng, d)), same, rng)


def certain_above(world, rng, n):
    d = rng.normal(0, 1.2, n)
    out = []
    for a in world.accuracy:
        model = drawn(chances(a, rng, d), same, rng)
        top = model.chance > 0.8
        model.confidence = np.where(top, 1.0, model.confidence)
        model.chance = np.where(top, mean_chance(a, 0.8, 1), model.chance)
        out.append(model)
    return tuple(out)


def over_when_low(p):
    return np.where(p < 0.5, expit(logit(p) + 2 * (1 - 2 * p)), p)


def over_when_high(p):
    return np.where(p > 0.5, expit(logit(p) + 2 * (2 * p - 1)), p)


def steep(p):
    return expit(1.6 * logit(p))


PAIRS = [
    World("calibrated .50/.75"),
    World("calibrated .30/.90", (0.3, 0.9)),
    World("calibrated .62/.62", (0.62, 0.62)),
    World("calibrated, hard and easy questions", make=hard_and_easy),
    World("calibrated, round numbers up to 1.0", make=round_numbers),
    World("constant .75 against calibrated .50", make=constant_and_calibrated),
    World("both +1 log-odds", says=(moved(1), moved(1))),
    World("both too steep, slope 1.6", says=(steep, steep)),
    World("shared conditionals .50/.75", make=shared_conditionals),
    World("shared conditionals .30/.90", (0.3, 0.9), make=shared_conditionals),
    World("weak +.5", says=(moved(0.5), same)),
    World("strong +.5", says=(same, moved(0.5))),
    World("strong -1 (.30/.90)", (0.3, 0.9), (same, moved(-1))),
    World("correlated .62/.68, strong +.4", (0.62, 0.68), (same, moved(0.4)), correlated),
    World("timid strong 10 % against weak +1", make=timid),
    World("round numbers, weak one step over", make=one_step_over),
    World("both say 1.0 above .8", make=certain_above),
    World("weak +.6 (.50) / strong +1.5 (.90)", (0.5, 0.9), (moved(0.6), moved(1.5))),
    World("crossing: weak over low, strong over high", says=(over_when_low, over_when_high)),
]
# Where a wrong rule errs most: calibrated pairs of different accuracy, alike errors, small gaps.
HARDEST = [PAIRS[i] for i in (0, 1, 4, 5, 6, 7, 16, 18)]
RARE = World("calibrated .93/.97, errors are rare", (0.93, 0.97))


@lru_cache
def view_errors(name: str, size: int = 400_000) -> dict[str, tuple[float, float]]:
    """Return the true errors of weak and strong model in every view."""
    world = next(world for world in (*PAIRS, RARE) if world.name == name)
    models = world.draw(np.random.default_rng(7), size)
    rates = [model.chance.mean() for model in models]
    goals = {"raw": None, "os_weakest": min(rates), "os_mean": sum(rates) / 2}
    goals["os_strongest"] = max(rates)
    return {
        view: tuple(_error(m, a, goal) for m, a in zip(models, rates, strict=True))
        for view, goal in goals.items()
    }


def _error(model, accuracy, goal):
    c, r = model.confidence, model.chance
    if goal is None or goal == accuracy:
        return float(np.abs(c - r).mean())
    weight = r * goal / accuracy + (1 - r) * (1 - goal) / (1 - accuracy)
    said = expit(logit(np.clip(c, 1e-3, 1 - 1e-3)) + logit(goal) - logit(accuracy))
    return float((weight * np.abs(said - r * goal / accuracy / weight)).mean())


def truth(name: str) -> int:
    """Return -1 where the weak model is better calibrated, 1 the strong one, 0 neither."""
    sides = {0 if abs(a - b) < TIE else int(np.sign(a - b)) for a, b in view_errors(name).values()}
    return sides.pop() if len(sides) == 1 else 0


def largest_gap(name: str) -> float:
    """Return the largest true difference of errors in any view."""
    return max(abs(a - b) for a, b in view_errors(name).values())


def contradiction(name: str) -> bool:
    """Return whether two views truly prefer different models."""
    signs = {int(np.sign(a - b)) for a, b in view_errors(name).values() if abs(a - b) > TIE}
    return {-1, 1} <= signs


def views_of(confidence, correct, rng, *, resamples, target="weakest"):
    """Return, by model, the views with every partner, as a comparison makes them."""
    c, z = np.stack(confidence), np.stack(correct)
    names = tuple(map(str, range(len(c))))
    block = QuestionBlock(names, np.arange(c.shape[1]).astype(str), c, z)
    counts = resample_counts(block.size, resamples, rng)
    survey = survey_block(block, counts)
    return [
        all_partner_views(model_sums(block, counts, survey, m, bins=15), survey, m, target=target)
        for m in range(len(c))
    ]
