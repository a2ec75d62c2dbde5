"""Choose the policy to save: the best strategy on rows kept for choosing, mixed to the target."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calibrant.core.arrays import Floats
from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.core.rng import named_stream
from calibrant.epistemic.deferral import mixing
from calibrant.epistemic.deferral.answers import Answers
from calibrant.epistemic.deferral.strategies import (
    STRATEGIES,
    TOLERANT,
    ChosenPolicy,
    FittedStrategy,
    StrategyOptions,
    Target,
    fit_strategies,
    single_models,
)
from calibrant.stats.intervals import mean_estimate

_FOLDS = 5
_CERTIFY = 0.3
FEWEST = 250
# How many standard errors better another strategy must be to replace the default, and to make a
# strategy that was asked for be refused.
_REPLACES = 1.0
_REFUSES = 1.96


def reach(
    spent: Floats,
    accuracy: Floats,
    target: Target,
    largest_cost: Floats,
    largest: float,
    *,
    questions: int | None = None,
) -> tuple[mixing.Mix | None, str]:
    """Return the mix that reaches the target, or comes closest, and what it reaches.

    Parameters
    ----------
    spent, accuracy
        Cost of each setting and question, and accuracy of each setting.
    target
        What is to be reached.
    largest_cost, largest
        What the largest model costs on each question, and its accuracy.
    questions
        How many questions make the choice that these stand for, where they are a part of them.
    """
    cost = np.asarray(spent.mean(axis=1))
    if target.budget is not None:
        careful = mixing.careful_costs(spent, largest_cost, target.budget, questions)
        found = mixing.at_budget(careful, accuracy, target.budget * float(largest_cost.mean()))
        if found is not None:
            found = mixing.mixed(found.first, found.second, found.share, cost, accuracy)
        return found, "most accurate in budget"
    wanted = largest if target.accuracy is None else target.accuracy
    found = mixing.at_accuracy(cost, accuracy, wanted)
    if found is not None:
        return found, "cheapest that is accurate enough"
    return mixing.at_budget(
        cost, accuracy, np.inf
    ), "most accurate; the accuracy asked for is not reached"


def per_question(mix: mixing.Mix, values: Floats) -> Floats:
    """Return the expected value of each question under a mix, from those of the settings."""
    return np.asarray((1 - mix.share) * values[mix.first] + mix.share * values[mix.second])


@dataclass(frozen=True, slots=True)
class _Judged:
    """A strategy fitted on all rows; worth and cost of its settings on rows it had not seen."""

    fitted: FittedStrategy
    right: Floats
    spent: Floats

    @property
    def accuracy(self) -> Floats:
        return np.asarray(self.right.mean(axis=1))

    @property
    def cost(self) -> Floats:
        return np.asarray(self.spent.mean(axis=1))


def choose_policy(
    answers: Answers, options: StrategyOptions, target: Target, *, seed: int
) -> ChosenPolicy:
    """Choose among all strategies by cross-fitting, and certify on further rows if asked.

    Each fifth of the questions is judged by policies fitted on the others; the policy that is
    returned is fitted on all of them. With a guarantee 30 % of the questions are kept apart.
    """
    n = len(answers)
    _refuse_few(n)
    order = named_stream(seed, "choose policy").permutation(n)
    kept = round(n * _CERTIFY) if target.margin is not None else 0
    own, apart = answers.rows(order[kept:]), answers.rows(order[:kept])
    if target.margin is None:
        return _best(_judged(own, [], options, seed), own, target, seed)
    return _certified(_judged(own, [apart], options, seed), own, target)


def given_tolerance(
    answers: Answers,
    options: StrategyOptions,
    tolerance: float,
    *,
    seed: int,
    strategy: str | None = None,
) -> ChosenPolicy:
    """Measure a cascade of a given tolerance; refuse it where another does better at its cost."""
    _refuse_few(len(answers))
    own = strategy if strategy in TOLERANT else "risk"
    names = tuple(dict.fromkeys((*options.strategies, own)))
    judged = _judged(answers, [], replace(options, strategies=names, tolerance=tolerance), seed)
    one, singles = judged[own], judged["single"]
    at = len(one.cost) - 1
    mix = mixing.mixed(at, at, 0.0, one.cost, one.accuracy)
    how = "the tolerance that was given"
    target = Target(budget=mix.cost / float(answers.cost[:, -1].mean()))
    found, _ = _reached(judged, answers, target)
    for name, other in found.items():
        if name != own and _lead(other, (one, mix, how), target) > _REFUSES:
            better = f"{100 * (other[1].accuracy - mix.accuracy):.1f} points more accurate"
            raise InputError(
                f"the tolerance {tolerance:g} is not saved: at the same cost "
                f"{STRATEGIES.get(name, 'always one model')} is {better}, on the same page",
                hint=Hint("leave {tolerance} out, or give {budget}", budget=f"{target.budget:.2f}"),
            )
    return _chosen(one, mix, _measured(one, mix, singles), {}, how)


def _refuse_few(n: int) -> None:
    if n < FEWEST:
        raise InputError(f"choosing a policy takes at least {FEWEST} questions; there are {n}")


def _judged(
    answers: Answers, apart: list[Answers], options: StrategyOptions, seed: int
) -> dict[str, _Judged]:
    """Return every strategy; its curves are those on rows kept apart."""
    n = len(answers)
    fold = named_stream(seed, "choose policy", "folds").permutation(n) % _FOLDS
    right: dict[str, Floats] = {}
    spent: dict[str, Floats] = {}
    for number in range(_FOLDS):
        inside = np.flatnonzero(fold == number)
        train, judged = answers.rows(np.flatnonzero(fold != number)), answers.rows(inside)
        for one in _all(train, [judged], options, seed):
            curve = one.curves[0]
            for table, values in ((right, curve.right), (spent, curve.spent)):
                table.setdefault(one.name, np.empty((len(values), n)))[:, inside] = values
    fitted = _all(answers, apart, options, seed)
    return {one.name: _Judged(one, right[one.name], spent[one.name]) for one in fitted}


def _all(
    train: Answers, parts: list[Answers], options: StrategyOptions, seed: int
) -> list[FittedStrategy]:
    return [
        *fit_strategies(train, parts, options, seed, dials=train),
        single_models(train.models, parts, options),
    ]


def _best(judged: dict[str, _Judged], answers: Answers, target: Target, seed: int) -> ChosenPolicy:
    found, reasons = _reached(judged, answers, target)
    if not found:
        raise InputError(_beyond_budget(answers, target.budget))
    winner = _winner(found, target)
    one, mix, how = found[winner]
    for name, (_, other, _) in found.items():
        if name != winner:
            reasons[name] = _reason(other, mix, winner)
    if target.strategy is not None and target.strategy != winner:
        one, mix, how = _asked_for(found, reasons, target, winner)
    right, spent = _on_unseen(judged, answers, target, (one, mix, how), seed)
    largest = judged["single"].right[-1]
    return _chosen(one, mix, (right, spent, largest), reasons, how)


def _beyond_budget(answers: Answers, budget: float | None) -> str:
    """Say why nothing is in budget: it is too dear, or these questions are too few to be sure."""
    cost, largest = answers.cost.mean(axis=0), float(answers.cost[:, -1].mean())
    at = int(cost.argmin())
    text = (
        f"no policy costs as little as {budget:g} of the largest model; the cheapest model alone, "
        f"{answers.models[at]}, costs {cost[at] / largest:.3g}"
    )
    if budget is None or cost[at] > budget * largest:
        return text
    high = mixing.careful_costs(answers.cost[:, [at]].T, answers.cost[:, -1], budget)[0] / largest
    return f"{text}, and by {len(answers):,} questions it may be {high:.3g}: costs differ too much"


def _reached(
    judged: dict[str, _Judged], answers: Answers, target: Target, questions: int | None = None
) -> tuple[dict[str, Reached], dict[str, str]]:
    """Return the mix of each strategy that comes closest to the target, or why there is none."""
    largest_cost = answers.cost[:, -1]
    largest = float(judged["single"].accuracy[-1])
    found: dict[str, Reached] = {}
    reasons: dict[str, str] = {}
    for name, one in judged.items():
        mix, how = reach(
            one.spent, one.accuracy, target, largest_cost, largest, questions=questions
        )
        if mix is None:
            reasons[name] = "every setting costs more than the budget"
        else:
            found[name] = (one, mix, how)
    return found, reasons


def _on_unseen(
    judged: dict[str, _Judged], answers: Answers, target: Target, whole: Reached, seed: int
) -> tuple[Floats, Floats]:
    """Return worth and cost of each question under a choice that the other half made.

    The choice that matches a target on some questions looks better there than elsewhere, so each
    half of the questions is measured with strategy and mix chosen on the other.
    """
    n = len(answers)
    first = named_stream(seed, "choose policy", "halves").permutation(n) < n // 2
    right, spent = np.empty(n), np.empty(n)
    for side in (first, ~first):
        rows, others = np.flatnonzero(side), np.flatnonzero(~side)
        half = {
            name: _Judged(one.fitted, one.right[:, rows], one.spent[:, rows])
            for name, one in judged.items()
        }
        found, _ = _reached(half, answers.rows(rows), target, n)
        name = target.strategy or (_winner(found, target) if found else "")
        mix = found[name][1] if name in found else whole[1]
        one = judged[name] if name in found else whole[0]
        right[others] = per_question(mix, one.right[:, others])
        spent[others] = per_question(mix, one.spent[:, others])
    return right, spent


def _chosen(
    one: _Judged,
    mix: mixing.Mix,
    measured: tuple[Floats, Floats, Floats],
    reasons: dict[str, str],
    how: str,
    certified: int | None = None,
) -> ChosenPolicy:
    right, spent, largest = measured
    return ChosenPolicy(
        one.fitted.name,
        one.fitted.policy,
        (one.fitted.dials[mix.first], one.fitted.dials[mix.second]),
        mix.share,
        mix,
        mean_estimate(right),
        mixing.cost_estimate(spent),
        mean_estimate(right - largest),
        reasons,
        certified,
        how,
    )


def _score(mix: mixing.Mix, target: Target) -> tuple[float, float]:
    """Return what is compared: accuracy in a budget, else cost once accurate enough."""
    if target.budget is not None:
        return (mix.accuracy, -mix.cost)
    wanted = target.accuracy
    return (min(mix.accuracy, wanted) if wanted is not None else mix.accuracy, -mix.cost)


def _winner(found: dict[str, Reached], target: Target) -> str:
    """Return the best strategy; the default is replaced only by one that is clearly better."""
    reached = {name: how for name, (_, _, how) in found.items() if "not reached" not in how}
    names = list(reached) or list(found)
    best = max(names, key=lambda name: _rank(found[name][1], target, bool(reached)))
    default = "value"
    if best == default or default not in names:
        return best
    lead = _lead(found[best], found[default], target)
    return best if lead > _REPLACES else default


def _rank(mix: mixing.Mix, target: Target, reached: bool) -> tuple[float, float]:
    if target.budget is None and reached:
        return (-mix.cost, mix.accuracy)
    return _score(mix, target)


def _lead(one: Reached, other: Reached, target: Target) -> float:
    """Return by how many standard errors one strategy is better, question by question."""
    costs = target.budget is None and "not reached" not in one[2]
    values = []
    for judged, mix, _ in (one, other):
        values.append(per_question(mix, -judged.spent if costs else judged.right))
    gap = values[0] - values[1]
    error = float(gap.std(ddof=1)) / len(gap) ** 0.5
    return float(gap.mean()) / error if error > 0 else 0.0


def _reason(other: mixing.Mix, mix: mixing.Mix, winner: str) -> str:
    gap, extra = other.accuracy - mix.accuracy, other.cost / mix.cost - 1
    dear, good = ("more" if size > 0 else "less" for size in (extra, gap))
    taken = STRATEGIES.get(winner, "always one model")
    return (
        f"it costs {100 * abs(extra):.0f} % {dear} than {taken} "
        f"and is {100 * abs(gap):.1f} points {good} accurate, on the questions kept for choosing"
    )


def _asked_for(
    found: dict[str, Reached],
    reasons: dict[str, str],
    target: Target,
    winner: str,
) -> Reached:
    """Return the strategy that was asked for, unless another one is clearly better."""
    name = str(target.strategy)
    if name not in found:
        raise InputError(f"the strategy {name!r} cannot be saved: {reasons[name]}")
    if _lead(found[winner], found[name], target) > _REFUSES:
        raise InputError(
            f"the strategy {name!r} is not saved: {reasons[name]}",
            hint=f"save {winner!r}, which is better on the same page",
        )
    return found[name]


def _certified(judged: dict[str, _Judged], answers: Answers, target: Target) -> ChosenPolicy:
    """Test the settings of one strategy in the order of their accuracy on other rows."""
    name = target.strategy or next(iter(judged))
    one, singles = judged[name], judged["single"]
    certifying = one.fitted.curves[0]
    largest_cost = float(answers.cost[:, -1].mean())
    budget = None if target.budget is None else target.budget * largest_cost
    assert target.margin is not None
    passed = mixing.certified_settings(
        certifying.right,
        certifying.spent,
        singles.fitted.curves[0].right[-1],
        np.argsort(-one.accuracy, kind="stable").tolist(),
        margin=target.margin,
        delta=target.delta,
        budget=budget,
        dearest=float(answers.cost.max(axis=0).sum()) if budget is not None else None,
    )
    if not passed:
        last = len(answers.models) - 1
        mix = mixing.mixed(last, last, 0.0, singles.cost, singles.accuracy)
        how = "nothing is certified: always the largest model"
        return _chosen(singles, mix, _measured(singles, mix, singles), {}, how, 0)
    at = min(passed, key=lambda setting: one.cost[setting])
    mix = mixing.mixed(at, at, 0.0, one.cost, one.accuracy)
    how = "cheapest setting whose guarantee holds"
    return _chosen(one, mix, _measured(one, mix, singles), {}, how, len(passed))


def _measured(one: _Judged, mix: mixing.Mix, singles: _Judged) -> tuple[Floats, Floats, Floats]:
    return per_question(mix, one.right), per_question(mix, one.spent), singles.right[-1]


# A strategy, the mix that comes closest to the target, and what that reaches.
Reached = tuple[_Judged, mixing.Mix, str]
