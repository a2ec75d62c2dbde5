"""The claims of `judge` in worlds whose truth is known: all that is said of one table."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
import polars as pl

from calibrant.data.judge_table import JudgeColumns, read_judge_table
from calibrant.findings.claims.judge import MODEL_LEVEL, POSITION_LEVEL, joined_claims
from calibrant.labels.judge_entry import JudgeView, judge_entry
from calibrant.labels.judge_leans import one_order_lean, sign_test
from calibrant.labels.people_ratings import contrast
from calibrant.metrics.stats.judges import agreement, quadratic_kappa, row_mean
from calibrant.verbs.judge import judge
from simulations.claims.harness import Said, World

RUNS = 1_000
# Of two models that are alike one is called better in nearly 4 %: so many show it to be below 5 %.
ALIKE = 4_000
ITEMS, MANY = 1_000, 400_000
MARGIN, SPAN, AGREE = 0.02, 4.0, 0.1


@dataclass(frozen=True)
class Ratings:
    """Ratings 1 to 5 of answers by several models; two people and a judge see their quality.

    `gap`: the best model's quality over the others'; `favour`: what the judge adds for it;
    `level`, `slope`: where the judge starts, and what it makes of a point of quality; `noise_judge`
    and `noise_people`: spread of their errors; `good`: mean quality, near the top where large;
    `rare`: share of answers below 5, of which the judge sees six in ten; `together`: answers to a
    question, which is named and which the judge reads too high or too low as a whole; `who`: all
    rate all, two each of 12 or of 40 people, a third on few rows, or where two disagree.
    """

    models: int = 2
    gap: float = 0.0
    level: float = 0.0
    slope: float = 1.0
    noise_judge: float = 0.7
    noise_people: float = 0.7
    favour: float = 0.0
    good: float = 3.2
    people: int = 2
    binary: bool = False
    rare: float = 0.0
    together: int = 1
    who: str = "all"

    def drawn(self, rng, n):
        """Return model codes, scores, and ratings of `people`."""
        model, noise_judge = rng.integers(0, self.models, n), self.noise_judge
        quality = 0.9 * rng.standard_normal(n) + self.gap * (model == 0)
        if self.rare:
            return model, *self._nearly_all_alike(rng, n)
        judge_sees = self.good + self.level + self.slope * quality + self.favour * (model == 0)
        if self.together > 1:
            judge_sees = judge_sees + noise_judge * rng.standard_normal(n)[self.questions(n)]
        score = judge_sees + noise_judge * rng.standard_normal(n)
        errors = self.noise_people * rng.standard_normal((n, self.people))
        people = (self.good + quality)[:, None] + errors
        if self.binary:
            return model, (score > 3.5).astype(float), (people > 3.5).astype(float)
        return model, np.clip(np.round(score), 1, 5), np.clip(np.round(people), 1, 5)

    def _nearly_all_alike(self, rng, n):
        bad, seen = rng.random(n) < self.rare, rng.random(n) < 0.6
        below = np.clip(np.round(2.5 + 0.7 * rng.standard_normal((n, self.people))), 1, 4)
        # So many false alarms that it is neither lenient nor harsh.
        alarm = rng.random(n) < 1.65 * self.rare
        score = np.where(np.where(seen, bad, alarm), 3.0, 5.0)
        return score, np.where(bad[:, None], below, 5.0)

    def questions(self, n):
        """Return what each row is about."""
        return np.arange(n) // self.together

    def columns(self, rng, people):
        """Return people's ratings as they stand in a table."""
        n = len(people)
        if self.who == "disputed":
            third = np.where(people[:, 0] != people[:, 1], people[:, 2], np.nan)
            return np.column_stack([people[:, :2], third])
        if self.who == "few":
            return np.column_stack(
                [people[:, :2], np.where(rng.random(n) < 0.03, people[:, 2], np.nan)]
            )
        if self.who == "all":
            return people
        crowd = int(self.who)
        found, raters = np.full((n, crowd), np.nan), rng.random((n, crowd)).argsort(axis=1)
        for place, rating in enumerate(people.T):
            found[np.arange(n), raters[:, place]] = rating
        return found


@cache
def truth(world):
    """Return what is true of a world: from many items."""
    rng = np.random.default_rng(99)
    model, score, people = world.drawn(rng, MANY)
    part = slice(0, 100_000)
    y = row_mean(people if world.who != "disputed" else world.columns(rng, people))
    agreed = agreement(quadratic_kappa, score[part], people[part]) if world.people > 1 else None
    return {
        "lenience": float((score - y).mean()),
        "agreement": 0.0 if agreed is None else float(agreed[0][0] - agreed[1][0]),
        "models": [float(y[model == code].mean()) for code in range(world.models)],
        "meaning": {value: float(y[score == value].mean()) for value in np.unique(score)},
    }


@cache
def at_lenience(world, target):
    """Return the world whose judge says so much more than people."""
    low, high = -2.0, 2.0
    for _ in range(12):
        middle = (low + high) / 2
        below = truth(replace(world, level=middle))["lenience"] < target
        low, high = (middle, high) if below else (low, middle)
    return replace(world, level=high)


@cache
def at_agreement(world, target):
    """Return the world whose judge agrees so much less with people than they do."""
    low, high = world.noise_people, 3.0
    for _ in range(10):
        middle = (low + high) / 2
        above = truth(replace(world, noise_judge=middle))["agreement"] > target
        low, high = (middle, high) if above else (low, middle)
    return replace(world, noise_judge=high)


@cache
def _table(world):
    """Return a table of a world as it is read: reading is the same for all of them."""
    rng = np.random.default_rng(7)
    model, score, people = world.drawn(rng, ITEMS)
    # A rating that few have: the ends of both scales are the same in all tables.
    score[:2], people[:2] = (
        (0, 1) if world.binary else (1, 5),
        ((0,), (1,)) if world.binary else ((1,), (5,)),
    )
    seen = world.columns(rng, people)
    columns = {f"p{k}": person for k, person in enumerate(seen.T)}
    frame = pl.DataFrame({"model": _names(model), "judge": score, **columns}, nan_to_null=True)
    return read_judge_table(frame, JudgeColumns(judge=["judge"], human=list(columns)))


def _names(model):
    return np.char.add("m", model.astype(str))


def _view(rng, world, n):
    """Return a judge beside people who rated `n` rows, and what they would say of all."""
    model, score, people = world.drawn(rng, ITEMS)
    rated = np.isin(np.arange(ITEMS), rng.choice(ITEMS, n, replace=False))
    people = world.columns(rng, people)
    table = copy(_table(world))
    table.scores = {"judge": score}
    table.people = np.where(rated[:, None], people, np.nan)
    table.sides = np.unique(_names(model), return_inverse=True)[1][:, None]
    table.item = world.questions(ITEMS)
    return JudgeView(table, "judge", score, table.scales["judge"]), people


def _run(rng, *, world, n):
    """Yield the claims of one table of which `n` rows are rated at random."""
    view, people = _view(rng, world, n)
    entry, _ = judge_entry(view, {}, {})
    known, span = truth(world), 1.0 if world.binary else SPAN
    mean = entry.people_mean.combined
    inside = mean.low <= row_mean(people).mean() <= mean.high
    # Every sentence on the mean tells its interval.
    yield Said("judge.people_mean", True, not inside)
    for claim in joined_claims([entry], margin=MARGIN):
        yield from _said(claim, known, world, span, entry)


def _model_better(rng, *, world, n):
    """Return whether one of two models is called better: the test that the claim makes."""
    view = _view(rng, world, n)[0]
    gap = contrast(view.pool, [view.table.sides[:, 0] == code for code in (0, 1)], beyond=True)
    first, second = truth(world)["models"]
    shown = gap is not None and gap.p_value <= MODEL_LEVEL
    wrong = shown and (first - second) * np.sign(gap.value) <= 0.01
    return Said("judge.model_better", shown, wrong)


def _said(claim, known, world, span, entry):
    shown, near = claim.outcome == "shown", claim.outcome == "equivalent"
    # The truth is known to within this.
    close = 0.004 * span
    if claim.id in ("judge.lenient", "judge.harsh"):
        sign = 1 if claim.id == "judge.lenient" else -1
        wrong = shown and sign * known["lenience"] <= close
        wrong |= near and abs(known["lenience"]) >= MARGIN * span - close / 4
        yield Said(claim.id, shown or near, wrong)
    elif claim.id == "judge.agrees_less":
        wrong = (shown and known["agreement"] >= -0.005) or (
            near and known["agreement"] <= -AGREE + 0.003
        )
        yield Said(claim.id, shown or near, wrong)
    elif claim.id == "judge.meaning":
        most = max(entry.map, key=lambda row: row.labels)
        inside = most.low <= known["meaning"][most.score] <= most.high
        yield Said(claim.id, True, not inside)
    elif claim.id == "judge.favours":
        best = claim.subject.get("model") == "m0"
        yield Said(claim.id, shown, not best or world.favour * (claim.value or 0.0) <= 0)
    elif claim.id == "judge.model_better":
        place = {f"m{code}": mean for code, mean in enumerate(known["models"])}
        losers = claim.subject.get("b", ()) if shown else ()
        wrong = any(place[claim.subject["a"]] <= place[loser] + 0.01 for loser in losers)
        yield Said(claim.id, shown, wrong)


def _pair_columns(
    rng, *, judge_first, people_first, people_longer, judge_longer, first_better, order, rated, n
):
    """Return verdicts on pairs as a table has them.

    `judge_first`, `people_first`: chance that a doubtful verdict (three in ten) goes to the first
    place; `people_longer`, `judge_longer`: share of pairs of which people, and a judge, take the
    longer; `first_better`: share of pairs in which the first side is better; `order`: both orders
    are judged, one of them, or the first side always stands first.
    """
    better = rng.random(n) < first_better
    longer = np.where(better, rng.random(n) < people_longer, rng.random(n) >= people_longer)
    sure = rng.random(n) < 0.7
    lean = rng.random(n) < judge_longer

    def verdict(first, chance):
        doubtful = np.where(rng.random(n) < chance, first, ~first)
        return np.where(rng.random(n) < 0.5, doubtful, np.where(lean, longer, ~longer))

    first = rng.random(n) < 0.5 if order != "fixed" else np.ones(n, bool)
    seen = rng.random(n) < rated
    words = np.array(["B", "A"])
    person = better
    if people_first != 0.5:
        place = np.where(rng.random(n) < people_first, first, ~first)
        person = np.where(rng.random(n) < 0.7, better, place)
    columns = {
        "judge": words[np.where(sure, better, verdict(first, judge_first)).astype(int)],
        "person": np.where(seen, words[person.astype(int)], ""),
        "long_a": np.where(longer, 20, 10), "long_b": np.where(longer, 10, 20),
        "other": words[np.where(sure, better, verdict(~first, judge_first)).astype(int)],
        "first": words[first.astype(int)],
    }  # fmt: skip
    if order == "both":
        # The other order of the same pair, shown in the order A, B.
        for name, shown in (("judge", np.ones(n, bool)), ("other", np.zeros(n, bool))):
            verdicts = np.where(sure, better, verdict(shown, judge_first))
            columns[name] = words[verdicts.astype(int)]
    return columns


def _position(rng, *, judge_first, order, **world):
    """Return whether a lean to a place is shown: the test that the claim makes."""
    columns = _pair_columns(rng, judge_first=judge_first, order=order, **world)
    score, other, first = (columns[name] == "A" for name in ("judge", "other", "first"))
    if order == "both":
        value = float((score * 1 - other).sum())
        shown = sign_test(score * 1.0 - other) <= POSITION_LEVEL
    else:
        lean = one_order_lean(score * 1.0, first * 1.0, np.zeros((score.size, 0), int))
        value, shown = lean.value or 0.0, lean.p is not None and lean.p <= POSITION_LEVEL
    return Said("judge.position", shown, (judge_first - 0.5) * value <= 0)


def _pairs(rng, *, judge_first, judge_longer, order, **world):
    """Yield the claims on pairs: which place, and which length, the judge leans to."""
    world |= {"judge_first": judge_first, "judge_longer": judge_longer, "order": order}
    columns = _pair_columns(rng, **world)
    shown = {"swapped": "other"} if order == "both" else {"first": "first"}
    found = judge(pl.DataFrame(columns), judge=["judge"], human=["person"],
                  features=["long_a", "long_b"], existing="random", **shown)  # fmt: skip
    for claim in found.claims:
        shown, value = claim.outcome == "shown", claim.value or 0.0
        if claim.id == "judge.position":
            yield Said(claim.id, shown, (judge_first - 0.5) * value <= 0)
        elif claim.id == "judge.length":
            yield Said(claim.id, shown, (judge_longer - 0.5) * value <= 0)


_EVEN = {"judge_first": 0.5, "people_first": 0.5, "people_longer": 0.5, "judge_longer": 0.5,
         "first_better": 0.5}  # fmt: skip
_POWER = ("judge.favours", "judge.model_better")


def worlds():
    """Yield all worlds."""
    plain = Ratings()
    table = {
        "nobody is favoured": plain,
        "the better model, noisy judge": Ratings(gap=1.0, noise_judge=1.2, noise_people=0.5),
        "the better model, noisy people": Ratings(gap=1.0, noise_judge=0.5, noise_people=1.2),
        "the better model, judge squeezes": Ratings(gap=1.0, slope=0.5),
        "near the top of the scale": Ratings(good=4.6, level=0.1),
        "yes and no": Ratings(binary=True),
        "yes and no, rarely no": Ratings(binary=True, good=4.9),
        "twelve models": Ratings(models=12),
        "twelve models, one better, noisy judge": Ratings(models=12, gap=1.0, noise_judge=1.2),
        "the judge is as good as a person": Ratings(noise_judge=0.7, noise_people=0.7),
        "a useless judge": Ratings(slope=0.0),
    }
    for name, world in table.items():
        for n in (60, 100, 300):
            yield _world(f"{name}, {n} rated", world, n)
    edge = at_lenience(plain, MARGIN * SPAN + 0.003)
    weak = at_agreement(plain, -AGREE - 0.003)
    for n in (100, 300):
        yield _world(f"a mean just beyond the margin, {n} rated", edge, n)
        yield _world(f"agreement .1 below that of people, {n} rated", weak, n)
    real = {
        "favour of .4": replace(plain, favour=0.4),
        "favour of .4 for the better model": replace(plain, favour=0.4, gap=0.6),
        "lenient by .4": replace(plain, level=0.4),
    }
    for name, world in real.items():
        power = ("judge.lenient",) if "lenient" in name else _POWER[:1]
        for n in (100, 300):
            yield _world(f"{name}, {n} rated", world, n, power)
    ahead = Ratings(models=4, gap=0.8)
    yield _world("one of four is better by .8, 300 rated", ahead, 300, _POWER[1:])
    yield from _pair_worlds()
    yield from _harder_worlds()


def _harder_worlds():
    """Yield people who do not all rate all, rows that hang together, and rare ratings."""
    asked = Ratings(together=5)
    table = {
        "five answers to a question, named": asked,
        "five answers to a question, named, one model better": replace(asked, gap=1.0),
        "two each of 12 people": Ratings(who="12"),
        "two each of 12 people, a poor judge": Ratings(who="12", noise_judge=1.3),
        "two each of 40 people, the better model": Ratings(who="40", gap=1.0),
        "a third person on few rows, a poor judge": Ratings(who="few", people=3, noise_judge=1.3),
        "a third person where two disagree": Ratings(who="disputed", people=3),
        "95 in 100 ratings are 5": Ratings(rare=0.05),
        "90 in 100 ratings are 5, four models": Ratings(rare=0.1, models=4),
        "3 in 100 are no, four models": Ratings(binary=True, good=5.7, models=4),
    }
    for name, world in table.items():
        for n in (100, 300):
            yield _world(f"{name}, {n} rated", world, n)
    three = Ratings(models=3, favour=0.8)
    yield _world("one of three is favoured by .8, 300 rated", three, 300, _POWER[:1])


def _world(name, world, n, power=()):
    alike = world.models == 2 and not world.gap
    more = ("judge.model_better", partial(_model_better, world=world, n=n), ALIKE)
    return World(name, partial(_run, world=world, n=n), power, RUNS, more if alike else None)


def _pair_worlds():
    for order in ("both", "one"):
        title = f"{order} orders" if order == "both" else "one order"
        for name, lean in {
            "no lean": {},
            "people prefer the longer": {"people_longer": 0.75},
            "people prefer the shorter": {"people_longer": 0.25},
        }.items():
            for n in (100, 400):
                yield _pair_world(f"pairs, {name}, {title}, {n}", order, n, lean)
        lean = {"judge_first": 0.8}
        yield _pair_world(f"pairs, a doubt goes to the first in 80 %, {title}, 400", order, 400,
                          lean, ("judge.position",))  # fmt: skip
    lean = {"judge_longer": 1.0}
    name = "pairs, a doubt goes to the longer, 400"
    yield _pair_world(name, "both", 400, lean, ("judge.length",))
    lean = {"people_first": 0.8}
    yield _pair_world("pairs, people lean to the first, one order, 400", "one", 400, lean)
    better = {"first_better": 0.7}
    yield _pair_world("pairs, the first side is better, one order, 400", "one", 400, better)
    yield _pair_world("pairs, the better is always first, 400", "fixed", 400, better)


def _pair_world(name, order, n, lean, power=()):
    options = {**_EVEN, **lean, "order": order, "rated": 0.8, "n": n}
    alone = ("judge.position", partial(_position, **options), ALIKE)
    return World(name, partial(_pairs, **options), power, RUNS, alone)
