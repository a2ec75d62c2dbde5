"""Choose the policy to save: the best strategy on rows kept for choosing, mixed to the target."""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from calibrant.core.arrays import Floats, named_stream
from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.metrics.stats.intervals import mean_estimate
from calibrant.trust.deferral import mixing
from calibrant.trust.deferral.answers import Answers
from calibrant.trust.deferral.strategies import (
    STRATEGIES,
    TOLERANT,
    ChosenPolicy,
    FittedStrategy,
    StrategyOptions,
    Target,
    fit_strategies,
)

_FOLDS = 5
_CERTIFY = 0.3
FEWEST = 250
# How many standard errors better another strategy must be to replace the default, and to make a
# strategy that was asked for be refused.
_REPLACES = 1.0
_REFUSES = 1.96


def per_question(mix: mixing.Mix, values: Floats) -> Floats:
    """Return the expected value of each question under a mix, from those of the settings."""
    return np.asarray((1 - mix.share) * values[mix.first] + mix.share * values[mix.second])


class _Judged(Struct, frozen=True):
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

    def reach(
        self, target: Target, largest_cost: Floats, largest: float, questions: int | None
    ) -> tuple[mixing.Mix | None, str]:
        """Return the mix that reaches the target, or comes closest, and what it reaches.

        Parameters
        ----------
        target
            What is to be reached.
        largest_cost, largest
            What the largest model costs on each question, and its accuracy.
        questions
            How many questions make the choice that these stand for, where they are a part of them.
        """
        cost, accuracy = self.cost, self.accuracy
        if target.budget is not None:
            careful = mixing.careful_costs(self.spent, largest_cost, target.budget, questions)
            mix = mixing.at_budget(careful, accuracy, target.budget * float(largest_cost.mean()))
            if mix is not None:
                mix = mixing.mixed(mix.first, mix.second, mix.share, cost, accuracy)
            return mix, "most accurate in budget"
        goal = largest if target.accuracy is None else target.accuracy
        mix = mixing.at_accuracy(cost, accuracy, goal)
        if mix is not None:
            return mix, "cheapest that is accurate enough"
        most = mixing.at_budget(cost, accuracy, np.inf)
        return most, "most accurate; the accuracy asked for is not reached"

    def alone(self, at: int) -> mixing.Mix:
        """Return one setting as a mix."""
        return mixing.mixed(at, at, 0.0, self.cost, self.accuracy)


# A strategy, the mix that comes closest to the target, and what that reaches.
Reached = tuple[_Judged, mixing.Mix, str]


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
    selection = round(n * _CERTIFY) if target.margin is not None else 0
    choosing, difference = answers.rows(order[selection:]), answers.rows(order[:selection])
    if target.margin is None:
        return _best(_judged(choosing, [], options, seed), choosing, target, seed)
    return _certified(
        _judged(choosing, [difference], options, seed), choosing, target, target.margin
    )


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
    tolerant = strategy if strategy in TOLERANT else "risk"
    names = tuple(dict.fromkeys((*options.strategies, tolerant)))
    verdicts = _judged(answers, [], replace(options, strategies=names, tolerance=tolerance), seed)
    one = verdicts[tolerant]
    mix = one.alone(len(one.cost) - 1)
    values = one, mix, "the tolerance that was given"
    target = Target(budget=mix.cost / float(answers.cost[:, -1].mean()))
    for name, peer in _reached(verdicts, answers, target)[0].items():
        if name != tolerant and _lead(peer, values, target) > _REFUSES:
            better = f"{100 * (peer[1].accuracy - mix.accuracy):.1f} points more accurate"
            raise InputError(
                f"the tolerance {tolerance:g} is not saved: at the same cost "
                f"{STRATEGIES.get(name, 'always one model')} is {better}, on the same page",
                hint=Hint("leave {tolerance} out, or give {budget}", budget=f"{target.budget:.2f}"),
            )
    return _chosen(values, verdicts["single"])


def _refuse_few(n: int) -> None:
    if n < FEWEST:
        raise InputError(f"choosing a policy takes at least {FEWEST} questions; there are {n}")


def _judged(
    answers: Answers, apart: list[Answers], options: StrategyOptions, seed: int
) -> dict[str, _Judged]:
    """Return every strategy; its curves are those on rows kept apart."""
    options = replace(options, strategies=(*options.strategies, "single"))
    n = len(answers)
    fold = named_stream(seed, "choose policy", "folds").permutation(n) % _FOLDS
    right: dict[str, Floats] = {}
    cost: dict[str, Floats] = {}
    for number in range(_FOLDS):
        inside = np.flatnonzero(fold == number)
        train, verdicts = answers.rows(np.flatnonzero(fold != number)), answers.rows(inside)
        for item in fit_strategies(train, [verdicts], options, seed, dials=train):
            curve = item.curves[0]
            for table, values in ((right, curve.right), (cost, curve.spent)):
                table.setdefault(item.name, np.empty((len(values), n)))[:, inside] = values
    fitted = fit_strategies(answers, apart, options, seed, dials=answers)
    return {item.name: _Judged(item, right[item.name], cost[item.name]) for item in fitted}


def _best(
    verdicts: dict[str, _Judged], answers: Answers, target: Target, seed: int
) -> ChosenPolicy:
    reached, reasons = _reached(verdicts, answers, target)
    if not reached:
        raise InputError(_beyond_budget(answers, target.budget))
    winner = _winner(reached, target)
    best = reached[winner]
    for name, (_, peer, _) in reached.items():
        if name != winner:
            reasons[name] = _reason(peer, best[1], winner)
    request = target.strategy
    if request is not None and request != winner:
        if request not in reached:
            raise InputError(f"the strategy {request!r} cannot be saved: {reasons[request]}")
        if _lead(best, reached[request], target) > _REFUSES:
            raise InputError(
                f"the strategy {request!r} is not saved: {reasons[request]}",
                hint=f"save {winner!r}, which is better on the same page",
            )
        best = reached[request]
    measurements = _on_unseen(verdicts, answers, target, best, seed)
    return _chosen(best, verdicts["single"], measurements, reasons)


def _beyond_budget(answers: Answers, budget: float | None) -> str:
    """Say why nothing is in budget: it is too dear, or these questions are too few to be sure."""
    cost, largest = answers.cost.mean(axis=0), float(answers.cost[:, -1].mean())
    place = int(cost.argmin())
    text = (
        f"no policy costs as little as {budget:g} of the largest model; the cheapest model alone, "
        f"{answers.models[place]}, costs {cost[place] / largest:.3g}"
    )
    if budget is None or cost[place] > budget * largest:
        return text
    high = (
        mixing.careful_costs(answers.cost[:, [place]].T, answers.cost[:, -1], budget)[0] / largest
    )
    return f"{text}, and by {len(answers):,} questions it may be {high:.3g}: costs differ too much"


def _reached(
    verdicts: dict[str, _Judged], answers: Answers, target: Target, questions: int | None = None
) -> tuple[dict[str, Reached], dict[str, str]]:
    """Return the mix of each strategy that comes closest to the target, or why there is none."""
    largest = answers.cost[:, -1], float(verdicts["single"].accuracy[-1])
    reached: dict[str, Reached] = {}
    reasons: dict[str, str] = {}
    for name, item in verdicts.items():
        mix, how = item.reach(target, *largest, questions)
        if mix is None:
            reasons[name] = "every setting costs more than the budget"
        else:
            reached[name] = (item, mix, how)
    return reached, reasons


def _on_unseen(
    verdicts: dict[str, _Judged], answers: Answers, target: Target, whole: Reached, seed: int
) -> tuple[Floats, Floats]:
    """Return worth and cost of each question under a choice that the other half made.

    The choice that matches a target on some questions looks better there than elsewhere, so each
    half of the questions is measured with strategy and mix chosen on the other.
    """
    n = len(answers)
    first = named_stream(seed, "choose policy", "halves").permutation(n) < n // 2
    right, cost = np.empty(n), np.empty(n)
    for side in (first, ~first):
        rows, peers = np.flatnonzero(side), np.flatnonzero(~side)
        half = {
            name: _Judged(one.fitted, one.right[:, rows], one.spent[:, rows])
            for name, one in verdicts.items()
        }
        reached, _ = _reached(half, answers.rows(rows), target, n)
        name = target.strategy or (_winner(reached, target) if reached else "")
        one, mix = (verdicts[name], reached[name][1]) if name in reached else whole[:2]
        right[peers] = per_question(mix, one.right[:, peers])
        cost[peers] = per_question(mix, one.spent[:, peers])
    return right, cost


def _chosen(
    reached: Reached,
    singles: _Judged,
    measurements: tuple[Floats, Floats] | None = None,
    reasons: dict[str, str] | None = None,
    certified: int | None = None,
) -> ChosenPolicy:
    """Describe what was chosen; unless measured elsewhere, by the questions that judged it."""
    one, mix, how = reached
    right, cost = measurements or (per_question(mix, one.right), per_question(mix, one.spent))
    return ChosenPolicy(
        one.fitted.name,
        one.fitted.policy,
        (one.fitted.dials[mix.first], one.fitted.dials[mix.second]),
        mix.share,
        mix,
        mean_estimate(right),
        mixing.cost_estimate(cost),
        mean_estimate(right - singles.right[-1]),
        reasons or {},
        certified,
        how,
    )


def _winner(strategies: dict[str, Reached], target: Target) -> str:
    """Return the best strategy; the default is replaced only by one that is clearly better."""
    reached = {name: how for name, (_, _, how) in strategies.items() if "not reached" not in how}
    names = list(reached) or list(strategies)
    best = max(names, key=lambda name: _rank(strategies[name][1], target, bool(reached)))
    default = "value"
    if best == default or default not in names:
        return best
    return best if _lead(strategies[best], strategies[default], target) > _REPLACES else default


def _rank(mix: mixing.Mix, target: Target, reached: bool) -> tuple[float, float]:
    """Return what is compared: cost where all are accurate enough, else accuracy."""
    if target.budget is None and reached:
        return (-mix.cost, mix.accuracy)
    if target.budget is None and target.accuracy is not None:
        return (min(mix.accuracy, target.accuracy), -mix.cost)
    return (mix.accuracy, -mix.cost)


def _lead(item: Reached, peer: Reached, target: Target) -> float:
    """Return by how many standard errors one strategy is better, question by question."""
    costs = target.budget is None and "not reached" not in item[2]
    first, second = (
        per_question(mix, -part.spent if costs else part.right) for part, mix, _ in (item, peer)
    )
    gap = first - second
    error = float(gap.std(ddof=1)) / len(gap) ** 0.5
    return float(gap.mean()) / error if error > 0 else 0.0


def _reason(peer: mixing.Mix, mix: mixing.Mix, winner: str) -> str:
    gap, extra = peer.accuracy - mix.accuracy, peer.cost / mix.cost - 1
    dear, good = ("more" if size > 0 else "less" for size in (extra, gap))
    selection = STRATEGIES.get(winner, "always one model")
    return (
        f"it costs {100 * abs(extra):.0f} % {dear} than {selection} "
        f"and is {100 * abs(gap):.1f} points {good} accurate, on the questions kept for choosing"
    )


def _certified(
    verdicts: dict[str, _Judged], answers: Answers, target: Target, margin: float
) -> ChosenPolicy:
    """Test the settings of one strategy in the order of their accuracy on other rows."""
    one, singles = verdicts[target.strategy or next(iter(verdicts))], verdicts["single"]
    certifying = one.fitted.curves[0]
    largest_cost = float(answers.cost[:, -1].mean())
    passing = mixing.certified_settings(
        certifying.right,
        certifying.spent,
        singles.fitted.curves[0].right[-1],
        np.argsort(-one.accuracy, kind="stable").tolist(),
        margin=margin,
        delta=target.delta,
        budget=None if target.budget is None else target.budget * largest_cost,
        dearest=float(answers.cost.max(axis=0).sum()),
    )
    if not passing:
        largest = singles.alone(len(answers.models) - 1)
        reached = singles, largest, "nothing is certified: always the largest model"
        return _chosen(reached, singles, certified=0)
    place = min(passing, key=lambda setting: one.cost[setting])
    reached = one, one.alone(place), "cheapest setting whose guarantee holds"
    return _chosen(reached, singles, certified=len(passing))
