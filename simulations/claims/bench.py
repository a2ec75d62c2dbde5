"""The claims of `bench evaluate` and `bench check` in worlds whose truth is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial

import numpy as np

from calibrant.bench.evaluation_claims import evaluation_claims
from calibrant.bench.macro import ScoreRows, macro_auroc
from calibrant.bench.multi_answer import gap_change
from calibrant.bench.question_report import question_claims
from calibrant.bench.questions.build import build_benchmark
from calibrant.bench.questions.check import check_questions, spot_check
from calibrant.bench.significance import (
    ALPHA,
    Setting,
    correct_comparisons,
    leading_method,
    tests_against,
)
from calibrant.core.document import plain
from calibrant.findings.claims.margins import COMPARISON_MARGIN
from calibrant.findings.documents import typed
from calibrant.metrics import auroc
from simulations.claims.harness import RUNS, Said, World

BEST, AGAINST, MISLED = "bench.best_method", "bench.against_reference", "bench.misled_by_k"
HOLD, BROKEN, SHARE = "bench.questions_hold", "bench.questions_broken", "bench.share_wrong"
DRAWS = 200
MANY = 1_000_000
KS = (1, 2, 4, 6)
DOMAINS = ("award", "river")
MIDDLE, RARE = (0.25, 0.75), (0.955, 0.985)
# Truths below this are 0 but for the noise of their own simulation.
ZERO = 0.003


@dataclass(frozen=True)
class Scores:
    """A world of methods that say the chance of being right plus noise.

    `noise` is the width of the noise by method: equal widths, equal AUROC. `slope` is what a
    method's confidence loses from the fewest right answers to the most. `rise` is what accuracy
    gains. `steps` rounds confidences, so that they tie. `apart` is the share of questions on
    which each method is about an answer of its own, with its own grade. `first` is the share of
    questions in the first domain.
    """

    noise: Mapping[str, float]
    slope: Mapping[str, float] = field(default_factory=dict)
    chance: tuple[float, float] = MIDDLE
    rise: float = 0.0
    steps: int = 0
    apart: float = 0.0
    first: float = 0.5

    def draw(self, n: int, rng: np.random.Generator):
        """Return k, domain, and by method confidence and grade."""
        place = rng.integers(len(KS), size=n)
        domain = np.where(rng.random(n) < self.first, *DOMAINS)
        far = place / (len(KS) - 1)
        chance = rng.uniform(*self.chance, size=n) + self.rise * (far - 0.5)
        shared = rng.random(n) < chance
        found = {}
        for name, width in self.noise.items():
            said = chance + rng.uniform(-width, width, size=n) - self.slope.get(name, 0.0) * far
            if self.steps:
                said = np.round(said * self.steps) / self.steps
            grade = shared
            if self.apart:
                own = rng.random(n) < self.apart
                grade = np.where(own, rng.random(n) < chance, shared)
            found[name] = np.clip(said, 0, 1), grade.astype(float)
        return np.asarray(KS)[place], domain, found

    def truth(self) -> tuple[dict[str, float], dict[str, float]]:
        """Return AUROC with all k pooled, and the change of the gap, by method."""
        k, _, found = self.draw(MANY, np.random.default_rng(7))
        areas, gaps = {}, {}
        seen: dict[tuple[float, float], str] = {}
        for name, (said, grade) in found.items():
            # Methods of one law have one truth.
            first = seen.setdefault((self.noise[name], self.slope.get(name, 0.0)), name)
            if first != name:
                areas[name], gaps[name] = areas[first], gaps[first]
                continue
            areas[name] = float(auroc(said, grade))
            gaps[name] = float(np.subtract(*(said[k == end].mean() for end in (6, 1)))) - self.rise
        return areas, gaps


def document(world: Scores, n: int, rng: np.random.Generator):
    """Return what the claims read of an evaluation of one data set."""
    k, domain, found = world.draw(n, rng)
    names = list(world.noise)
    rows = {
        name: ScoreRows(np.arange(n), said, grade, k, domain, None)
        for name, (said, grade) in found.items()
    }
    setting = Setting(DRAWS, n, 0.95, int(rng.integers(2**31)), "m")
    mixes = [[1], list(KS)]
    tests = tests_against(rows, names[0], mixes, setting)
    results = []
    for name, own in rows.items():
        ends = [own.of_k([end]) for end in (KS[0], KS[-1])]
        area = macro_auroc(own.confidence, own.correct, own.domains()).estimate
        results.append(
            {
                "model": "m",
                "method": name,
                "compared": True,
                "mixes": [{"auroc": area}],
                "change": {"from": KS[0], "to": KS[-1], "gap": gap_change(*ends)},
                "significance": tests[name],
            }
        )
    correct_comparisons(test for entry in results for test in entry["significance"])
    first = leading_method(rows, mixes[-1], setting)
    leading = [] if first is None else [first]
    head = {"schema": "calibrant.multi_answer/1"}
    return plain({**head, "reference": names[0], "leading": leading, "results": results})


def evaluated(rng, world: Scores, n: int, areas, gaps):
    made = document(world, n, rng)
    reference = made["reference"]
    for claim in evaluation_claims(typed(made), COMPARISON_MARGIN):
        name = claim.subject["method"]
        asserts = claim.outcome in ("shown", "equivalent")
        if claim.id == BEST:
            others = [areas[other] for other in areas if other != name]
            yield Said(claim.id, asserts, areas[name] <= max(others) + ZERO)
            continue
        truth = gaps[name] if claim.id == MISLED else areas[reference] - areas[name]
        yield Said(claim.id, asserts, _false(claim.outcome, claim.value, truth))
    # Stars in the table of mixes come from the same corrected tests.
    for entry in made["results"]:
        for test in entry["significance"]:
            truth = areas[reference] - areas[entry["method"]]
            if test["p_adjusted"] is not None and test["p_adjusted"] <= ALPHA:
                false = _false("shown", test["difference"]["value"], truth)
                # Where k matters, one mix may differ from another: only nulls are known there.
                yield Said(AGAINST, True, false and abs(truth) < ZERO)


def _false(outcome: str, value: float, truth: float) -> bool:
    if outcome == "equivalent":
        return abs(truth) > COMPARISON_MARGIN
    return abs(truth) < ZERO or truth * value < 0


ALIKE = {"a": 0.2, "b": 0.2, "c": 0.2}
EVALUATED: dict[str, tuple[Scores, Sequence[int]]] = {
    "three methods alike, confidence follows k": (Scores(ALIKE), (100, 400)),
    "alike, accuracy rises with k and confidence follows": (Scores(ALIKE, rise=0.2), (400,)),
    "alike, all fall with k": (
        Scores(ALIKE, slope=dict.fromkeys(ALIKE, 0.2), rise=0.1), (400,)),
    "alike, five values": (Scores(ALIKE, steps=5), (400,)),
    "alike, answers differ in 30 %": (Scores(ALIKE, apart=0.3), (400,)),
    "alike, errors are rare": (Scores({"a": 0.01, "b": 0.01, "c": 0.01}, chance=RARE), (200, 800)),
    "alike, hardly ever right": (
        Scores({"a": 0.01, "b": 0.01, "c": 0.01}, chance=(0.015, 0.045)), (400,)),
    "alike, one domain is small": (Scores(ALIKE, first=0.08), (300,)),
    "eight methods alike": (Scores({f"m{i}": 0.2 for i in range(8)}), (300,)),
    "one of three is worse": (Scores({"a": 0.05, "b": 0.05, "c": 0.25}), (400,)),
    "one of three is better": (Scores({"a": 0.02, "b": 0.27, "c": 0.27}), (1_000,)),
    "difference at the margin": (Scores({"a": 0.0, "b": 0.255}), (1_500,)),
    "one falls with k": (Scores(ALIKE, slope={"a": 0.25}), (400,)),
    "confidence falls by the margin": (
        Scores(ALIKE, slope=dict.fromkeys(ALIKE, 0.0505)), (1_500,)),
}  # fmt: skip


def evaluated_worlds():
    for name, (world, sizes) in EVALUATED.items():
        areas, gaps = world.truth()
        power: list[str] = []
        ordered = sorted(areas.values())
        if ordered[-1] - ordered[-2] > 0.02:
            power.append(BEST)
        if ordered[-1] - ordered[0] > 0.02:
            power.append(AGAINST)
        if max(map(abs, gaps.values())) > 0.1:
            power.append(MISLED)
        for n in sizes:
            run = partial(evaluated, world=world, n=n, areas=areas, gaps=gaps)
            yield World(f"{name}, {n:,} questions", run, tuple(power))


@cache
def benchmark():
    """Return true questions of three domains."""
    return build_benchmark(["math", "language", "region"], KS, 40, seed=3).questions


def _swapped(questions, place, rng):
    """Give a question one answer that is right for another question only."""
    own = questions[place]
    names = {name for forms in own.references for name in forms}
    others = [
        forms
        for other in questions
        if other.domain == own.domain
        for forms in other.references
        if not names & set(forms)
    ]
    wrong = others[int(rng.integers(len(others)))]
    kept = list(own.references)
    kept[int(rng.integers(len(kept)))] = wrong
    return replace(own, references=tuple(kept))


def _lost(questions, place, rng):
    """Take an answer away from a question."""
    own = questions[place]
    gone = int(rng.integers(len(own.references)))
    return replace(own, references=own.references[:gone] + own.references[gone + 1 :])


def _added(questions, place, rng):
    """Add an answer that is right for another question only."""
    more = _swapped(questions, place, rng).references
    own = questions[place]
    new = next(forms for forms in more if forms not in own.references)
    return replace(own, references=(*own.references, new))


ERRORS = {"an answer of another question": _swapped, "an answer is missing": _lost,
          "a wrong answer more": _added}  # fmt: skip


def checked(rng, plant, number=20):
    """Check some questions; `plant` changes one of them."""
    every = benchmark()
    chosen = [every[i] for i in rng.choice(len(every), number, replace=False)]
    if plant is not None:
        place = int(rng.integers(number))
        if plant is not _lost or len(chosen[place].references) > 1:
            chosen[place] = plant(chosen, place, rng) if plant is _lost else plant(
                [chosen[place], *every], 0, rng)  # fmt: skip
        else:
            chosen[place] = replace(chosen[place], references=())
    for claim in question_claims(checked_document(chosen, None)):
        yield Said(claim.id, True, (claim.id == HOLD) == (plant is not None))


def checked_document(questions, ticks):
    """Return what the claims read of a check."""
    head = {"schema": "calibrant.bench_check/1"}
    return typed(plain({**head, **check_questions(questions), "spot_check": ticks}))


def ticked(rng, wrong, number):
    """A person ticks a sample; the share of wrong questions is known."""
    ticks = {f"q{i}": bool(right) for i, right in enumerate(rng.random(number) >= wrong)}
    for claim in question_claims(checked_document([], spot_check(ticks))):
        if claim.id == SHARE:
            yield Said(claim.id, True, wrong > most_wrong_of(ticks))


def most_wrong_of(ticks):
    from calibrant.bench.question_report import most_wrong

    return most_wrong(sum(not right for right in ticks.values()), len(ticks))


def worlds():
    """Yield all worlds."""
    yield from evaluated_worlds()
    yield World("true questions", partial(checked, plant=None), (HOLD,))
    for name, plant in ERRORS.items():
        yield World(f"one of 20 questions: {name}", partial(checked, plant=plant), (BROKEN,))
    for wrong, number in ((0.01, 30), (0.05, 30), (0.2, 30), (0.05, 200), (0.5, 10)):
        run = partial(ticked, wrong=wrong, number=number)
        yield World(f"{wrong:.0%} wrong, {number} sampled", run, (SHARE,), runs=2 * RUNS)
