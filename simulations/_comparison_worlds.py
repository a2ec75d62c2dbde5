"""Two models with a known truth: their errors on every footing, and the laws of what they say.

Calibration error here is E|c - r(c)| with r(c) the chance of being right given the confidence c.
Several verdicts can be true of one world; differences below 0.0075 count as ties.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit
from scipy.stats import beta

from calibrant.comparison.evidence import pair_evidences
from calibrant.comparison.footings import all_footings
from calibrant.comparison.pipeline import PairViews
from calibrant.comparison.questions import QuestionBlock, resample_counts
from calibrant.comparison.sums import model_sums
from calibrant.comparison.survey import survey_block

TIE = 0.0075
MARGIN = 0.05
HALF = MARGIN / 2
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


def stated_by_outcome(values, right, wrong):
    """A model that says one of some values, by a law given right and a law given wrong."""
    values, right, wrong = map(np.asarray, (values, right, wrong))

    def make(rng, z, accuracy):
        laws = [rng.choice(values.size, z.size, p=law) for law in (wrong, right)]
        place = np.where(z == 1, laws[1], laws[0])
        up, down = right[place] * accuracy, wrong[place] * (1 - accuracy)
        return Answers(values[place], z, up / (up + down))

    return make


def betas_by_outcome(right, wrong, say=same):
    def make(rng, z, accuracy):
        c = np.where(z == 1, rng.beta(*right, z.size), rng.beta(*wrong, z.size))
        up, down = beta.pdf(c, *right) * accuracy, beta.pdf(c, *wrong) * (1 - accuracy)
        return Answers(say(c), z, up / (up + down))

    return make


def given_outcome(*makers, shared=0.0):
    """Models whose statements depend on the outcome alone; some errors may be shared."""

    def make(world, rng, n):
        first = rng.random(n)
        second = np.where(rng.random(n) < shared, first, rng.random(n))
        return tuple(
            maker(rng, (draw < a).astype(float), a)
            for maker, draw, a in zip(makers, (first, second), world.accuracy, strict=True)
        )

    return make


def near_one(rng, n):
    return 1 - 1e-4 * rng.random(n)


def flat(said):
    """A model whose chance is the same everywhere, whatever it says."""

    def make(rng, d, accuracy):
        p = np.full(d.size, accuracy)
        return Answers(said(rng, d.size), (rng.random(d.size) < p).astype(float), p)

    return make


def skilled(says):
    return lambda rng, d, accuracy: drawn(chances(accuracy, rng, d), says, rng)


def mixed(*makers):
    def make(world, rng, n):
        d = rng.normal(0, 1.2, n)
        return tuple(maker(rng, d, a) for maker, a in zip(makers, world.accuracy, strict=True))

    return make


def offsets(*sizes, shared=False):
    """Equal accuracy, confidences too high by so many points; errors may be shared."""

    def make(_, rng, n):
        out, u, p = [], rng.random(n), 0.15 + 0.7 * rng.beta(2, 1.5, n)
        for place, size in enumerate(sizes):
            if not shared:
                p, u = 0.15 + 0.7 * rng.beta(2, 1.5, n), rng.random(n)
            elif place:
                u = np.where(rng.random(n) < 0.8, u, rng.random(n))
            out.append(Answers(p + size, (u < p).astype(float), p))
        return tuple(out)

    return make


def few_large(rng, d, accuracy):
    """A tenth of the statements say 97 % and are right in 30 %; the rest is calibrated."""
    p = np.minimum(np.clip(chances(accuracy, rng, d), 0.05, 0.95), 0.96)
    hit = rng.random(d.size) < 0.1
    r = np.where(hit, 0.3, p)
    said = np.where(hit, 0.97 + 0.02 * rng.random(d.size), p)
    return Answers(said, (rng.random(d.size) < r).astype(float), r)


def many_small(rng, d, accuracy):
    return drawn(np.clip(chances(accuracy, rng, d), 0.05, 0.95), moved(0.65), rng)


def shared_errors(world, rng, n):
    d, e, u = rng.normal(0, 1.2, n), rng.normal(0, 0.75, n), rng.random(n)
    out = []
    for place, (a, says) in enumerate(zip(world.accuracy, world.says, strict=True)):
        p = chances(a, rng, d, e + rng.normal(0, 0.28, n))
        if place:
            u = np.where(rng.random(n) < 0.7, u, rng.random(n))
        out.append(Answers(says(p), (u < p).astype(float), p))
    return tuple(out)


VERBAL = [0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0]
LOUD = stated_by_outcome(
    VERBAL,
    [0.01, 0.02, 0.04, 0.10, 0.18, 0.30, 0.27, 0.08],
    [0.05, 0.08, 0.13, 0.20, 0.20, 0.20, 0.11, 0.03],
)
CALM = stated_by_outcome(
    VERBAL,
    [0.06, 0.10, 0.20, 0.24, 0.20, 0.12, 0.06, 0.02],
    [0.30, 0.25, 0.20, 0.12, 0.06, 0.04, 0.02, 0.01],
)
CALMEST = stated_by_outcome(
    VERBAL,
    [0.20, 0.25, 0.20, 0.15, 0.10, 0.05, 0.03, 0.02],
    [0.55, 0.20, 0.12, 0.06, 0.03, 0.02, 0.01, 0.01],
)
THREE = ([0.6, 0.8, 0.95], [0.1, 0.4, 0.5], [0.4, 0.4, 0.2])
ANY = stated_by_outcome(THREE[0], [0.3, 0.4, 0.3], [0.3, 0.4, 0.3])
BY = stated_by_outcome(*THREE)
NINE = stated_by_outcome([0.9], [1.0], [1.0])
NEARLY_NINE = stated_by_outcome([0.8, 0.9], [0.001, 0.999], [0.001, 0.999])
BETAS = betas_by_outcome((8, 2), (5, 3))
SURE = flat(near_one)


def less(by):
    return lambda c: np.clip(c - by, 0, 1)


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
    World("same law, all say .9", make=given_outcome(NINE, NINE)),
    World("same law, .1 % say .8", make=given_outcome(NEARLY_NINE, NEARLY_NINE)),
    World("same law, 3 values, any outcome", make=given_outcome(ANY, ANY)),
    World("same law, 3 values", make=given_outcome(BY, BY)),
    World("same law, 3 values .30/.90", (0.3, 0.9), make=given_outcome(BY, BY)),
    World("same law, under-confident", make=given_outcome(*[betas_by_outcome((4, 6), (2, 6))] * 2)),
    World("same law, verbal .45/.70", (0.45, 0.7), make=given_outcome(LOUD, LOUD)),
    World(
        "same law, verbal, shared errors .60/.68",
        (0.6, 0.68),
        make=given_outcome(LOUD, LOUD, shared=0.8),
    ),
    World("same law, verbal, equal accuracy", (0.6, 0.6), make=given_outcome(LOUD, LOUD)),
    World(
        "nearly the same law: strong says .02 less",
        make=given_outcome(BETAS, betas_by_outcome((8, 2), (5, 3), less(0.02))),
    ),
    World(
        "strong says .06 more",
        make=given_outcome(
            betas_by_outcome((8, 3), (5, 4)), betas_by_outcome((8, 3), (5, 4), less(-0.06))
        ),
    ),
    World(
        "strong says .06 less",
        make=given_outcome(BETAS, betas_by_outcome((8, 2), (5, 3), less(0.06))),
    ),
    World(
        "strong says .10 less",
        make=given_outcome(BETAS, betas_by_outcome((8, 2), (5, 3), less(0.10))),
    ),
    World("verbal, strong calmer", (0.45, 0.7), make=given_outcome(LOUD, CALM)),
    World("verbal, weak calmer", (0.45, 0.7), make=given_outcome(CALMEST, LOUD)),
    World("both saturated .60/.80", (0.6, 0.8), make=mixed(SURE, SURE)),
    World("both saturated .30/.90", (0.3, 0.9), make=mixed(SURE, SURE)),
    World(
        "strong saturated .90, weak says .905 (.30)",
        (0.3, 0.9),
        make=mixed(flat(lambda rng, n: np.clip(0.905 + rng.normal(0, 0.01, n), 0, 1)), SURE),
    ),
    World("strong saturated .80, weak +1 (.50)", (0.5, 0.8), make=mixed(skilled(moved(1)), SURE)),
    World("strong saturated .80, weak calibrated", (0.75, 0.8), make=mixed(skilled(same), SURE)),
    World(
        "weak +1.1 (.40), strong says .99 (.85)",
        (0.4, 0.85),
        make=mixed(skilled(moved(1.1)), flat(lambda _, n: np.full(n, 0.99))),
    ),
    World("weak +.5 (.50), strong +2 (.90)", (0.5, 0.9), (moved(0.5), moved(2))),
    World("weak -.6 (.50), strong -1.2 (.90)", (0.5, 0.9), (moved(-0.6), moved(-1.2))),
    World("equal accuracy, 8 / 12 points", make=offsets(0.08, 0.12)),
    World("equal accuracy, 2 / 12 points", make=offsets(0.02, 0.12)),
    World("equal accuracy, 0 / 7 points", make=offsets(0.0, 0.07)),
    World("equal accuracy, 6 / 12 points", make=offsets(0.06, 0.12)),
    World("equal accuracy, 8 / 12, shared errors", make=offsets(0.08, 0.12, shared=True)),
    World("few large / many small errors", (0.62, 0.62), make=mixed(few_large, many_small)),
    World("few large / many small errors .50/.75", make=mixed(few_large, many_small)),
    World("shared errors .62/.68, strong +1", (0.62, 0.68), (same, moved(1)), shared_errors),
    World("weak +1.5", says=(moved(1.5), same)),
    World("strong +1.5", says=(same, moved(1.5))),
]
# Where a wrong rule errs most: calibrated pairs of different accuracy, alike errors, small gaps.
HARDEST = [PAIRS[i] for i in (0, 1, 4, 5, 6, 7, 16, 18)]
RARE = World("calibrated .93/.97, errors are rare", (0.93, 0.97))


def _weighed(model, accuracy, goal, clip):
    """Return weights, statements and chances of a model at a common accuracy."""
    c, r = model.confidence, model.chance
    weight = r * goal / accuracy + (1 - r) * (1 - goal) / (1 - accuracy)
    shift = logit(goal) - logit(accuracy)
    moved_to = c
    if clip and abs(shift) > 1e-9:
        moved_to = expit(logit(np.clip(c, clip, 1 - clip)) + shift)
    return weight, moved_to, r * goal / accuracy / weight


@lru_cache
def facts(name: str, size: int = 400_000) -> dict[str, float]:
    """Return what is true of a world, see `facts_of`."""
    world = next(world for world in (*PAIRS, RARE) if world.name == name)
    return facts_of(world.draw(np.random.default_rng(7), size))


def facts_of(models) -> dict[str, float]:
    """Return the true gaps (first minus second) on every footing, their roots, and the laws."""
    rates = [float(model.chance.mean()) for model in models]
    if abs(rates[0] - rates[1]) < 0.004:
        rates = [sum(rates) / 2] * 2
    found: dict[str, float] = {"lead": rates[0] - rates[1]}

    def gap(key, goal, clip):
        errors = []
        for model, rate in zip(models, rates, strict=True):
            w, c, r = _weighed(model, rate, rate if goal is None else goal, clip)
            errors.append(((w * np.abs(c - r)).mean(), np.sqrt((w * (c - r) ** 2).mean())))
        found[key] = float(errors[0][0] - errors[1][0])
        found[f"{key} rms"] = float(errors[0][1] - errors[1][1])

    gap("raw", None, 0)
    for key, goal in zip(("os_a", "os_b"), rates, strict=True):
        gap(key, goal, 0.005)
        gap(f"{key}_near", goal, 1e-6)
        gap(f"da {key}", goal, 0)
    found["sda"] = (found["da os_a"] + found["da os_b"]) / 2
    found["sos"] = (found["os_a"] + found["os_b"]) / 2
    grid = np.linspace(0, 1, 4001)
    for outcome in (0, 1):
        shares = []
        for model in models:
            own = np.sort(model.confidence[model.correct == outcome])
            shares.append(np.searchsorted(own, grid, side="right") / own.size)
        found[f"law {outcome}"] = float(np.abs(shares[0] - shares[1]).mean())
    return found


def true_verdicts(t: dict[str, float]) -> set[tuple[str, int]]:
    """Return all verdicts that are true where these are the facts, with whom each names."""
    five = ("raw", "os_a", "os_b", "os_a_near", "os_b_near")
    ok: set[tuple[str, int]] = set()
    more = 0 if abs(t["lead"]) < 0.004 else -1 if t["lead"] > 0 else 1
    equal = max(abs(t[key]) for key in five) <= MARGIN
    if equal:
        ok.add(("equivalent", 0))
    if more and (equal or max(t["law 0"], t["law 1"]) <= MARGIN):
        # Which of the two is said hangs on whether rows show a footing against, not on the truth.
        ok |= {("only more accurate", more), ("more accurate, alike", more)}
    for side in (-1, 1):
        if min(side * t[key] for key in (*five, "sda")) > TIE:
            large = min(side * t[f"{key} rms"] for key in five[:3]) <= -HALF
            ok.add(("depends: size of errors" if large else "better", side))
        against = max(side * t[key] for key in five[1:]) < -TIE
        if side * t["raw"] > HALF and against and max(side * t["sda"], side * t["sos"]) < -HALF:
            ok.add(("reversal", side))
    four = [t[key] for key in ("raw", "os_a", "os_b", "sda")]
    low, high = min(four), max(four)
    opposite = high > HALF and low < -HALF
    if opposite or (high > MARGIN and low < HALF) or (low < -MARGIN and high > -HALF):
        ok.add(("depends: footing", 0))
    if max(abs(t[key] - t[f"{key}_near"]) for key in ("os_a", "os_b")) > HALF:
        ok.add(("depends: near-certain", 0))
    return ok


def verdict_of(decision) -> tuple[str, int]:
    """Return a decision in the words of `true_verdicts`."""
    on = decision.depends_on
    return (f"{decision.word}: {on}" if on else decision.word), decision.winner


def repeated(models, rng, times):
    """Return rows of questions that were asked several times: same words, half the outcomes."""
    cluster = np.repeat(np.arange(models[0].chance.size), times)
    rows = []
    for model in models:
        again = (rng.random(cluster.size) < model.chance[cluster]).astype(float)
        same_outcome = rng.random(cluster.size) < 0.5
        outcome = np.where(same_outcome, model.correct[cluster], again)
        rows.append((model.confidence[cluster], outcome))
    return rows, cluster


def views_of(confidence, correct, rng, *, resamples, target="weakest", cluster=None):
    """Return the survey, and by model the footings with every partner, as a comparison does."""
    c, z = np.stack(confidence), np.stack(correct)
    names = tuple(map(str, range(len(c))))
    block = QuestionBlock(names, np.arange(c.shape[1]).astype(str), c, z, cluster)
    counts = resample_counts(block.size, resamples, rng, cluster)
    survey = survey_block(block, counts)
    return survey, [
        all_footings(model_sums(block, counts, survey, m, bins=15), survey, m, target=target)
        for m in range(len(c))
    ]


def evidence_of(models, rng, *, resamples, cluster=None):
    """Return the evidence about every pair of models (confidence, grade), in order."""
    c, z = zip(*models, strict=True)
    survey, views = views_of(c, z, rng, resamples=resamples, cluster=cluster)
    pairs = [(a, b) for a in range(len(c)) for b in range(a + 1, len(c))]
    both = [PairViews(a, b, views[a][b], views[b][a]) for a, b in pairs]
    return pairs, pair_evidences(both, survey, margin=MARGIN)
