"""Strategies against each other over many splits, with intervals and an honest verdict."""

import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from calibrant.core.arrays import Floats, named_stream
from calibrant.core.errors import InputError
from calibrant.findings.documents import decisions
from calibrant.trust.deferral.answers import Aim, Answers
from calibrant.trust.deferral.mixing import SplitMeans
from calibrant.trust.deferral.strategies import (
    STRATEGIES,
    CostCurve,
    StrategyOptions,
    fit_strategies,
    pareto,
)

BUDGETS = (0.25, 0.5, 0.75, 1.0)
# With fewer, a part that fits, chooses or measures may hold no question at all.
_FEWEST = 20
# Accuracy of a setting, its gain over the largest model, and its cost as a share of that one's.
Measured: TypeAlias = tuple[float, float, float]


class SplitPlan(Struct, frozen=True):
    """How queries are dealt: a test part, and within the rest a part that picks the settings."""

    splits: int = 20
    test_share: float = 0.5
    choice_share: float = 0.2
    learning_splits: int = 5
    level: float = 0.95
    seed: int = 0


class _Run(Struct, frozen=True):
    """What one split gave: curves on the test part, and numbers by model, strategy and setting.

    `paths`: what the cheapest and the dearest path cost, as shares of the largest model's cost.
    """

    curves: dict[str, CostCurve]
    accuracy: Floats
    cost: Floats
    paths: dict[str, Floats]
    areas: dict[str, float]
    points: dict[str, dict[str, Measured]]


def tournament(
    answers: Answers,
    options: StrategyOptions,
    plan: SplitPlan,
    *,
    mapper: Callable[..., Iterable[Any]] = map,
) -> decisions.CascadeEntry:
    """Return models, curves, chosen points, comparisons and a verdict; no policy is chosen yet.

    Splits are independent; `mapper` runs them, here or elsewhere, and keeps their order.
    """
    if plan.splits < 2:
        raise InputError(f"at least 2 splits are needed for an interval, got {plan.splits}")
    if len(answers) < _FEWEST:
        raise InputError(
            f"a cascade takes at least {_FEWEST} questions that all models answered; there are "
            f"{len(answers)}",
            hint="add questions, or leave out a model that lacks many",
        )
    runs: list[_Run] = list(mapper(partial(_run, answers, options, plan), range(plan.splits)))
    n = round(len(answers) * plan.test_share)
    means = SplitMeans(n, plan.test_share, plan.level)
    strategies = _marked([_strategy(name, runs, means) for name in options.strategies], runs)
    first, *peers = options.strategies
    leads = ((peer, [run.areas[first] - run.areas[peer] for run in runs]) for peer in peers)
    comparisons = [
        decisions.Comparison(a=first, b=peer, area=means.plain(lead)) for peer, lead in leads
    ]
    after = {name for table in answers.answer_features.values() for name in table.columns}
    return decisions.CascadeEntry(
        n=len(answers),
        n_test=n,
        splits=plan.splits,
        models=_models(answers, runs, means),
        features=decisions.CascadeColumns(question=answers.features.columns, answer=sorted(after)),
        strategies=strategies,
        comparisons=comparisons,
        largest=answers.models[-1],
        learning_curve=_learning(answers, options, plan),
        verdict=_verdict(strategies, comparisons),
        policy=decisions.CascadePolicy(
            rule=None, tolerance=None, chosen="", promise=None, path=None
        ),
        measure="worth" if options.costs is not None else "accuracy",
    )


def _run(
    answers: Answers, options: StrategyOptions, plan: SplitPlan, turn: int, most: int | None = None
) -> _Run:
    """Fit on one part, pick the settings on another, measure on the third."""
    order = named_stream(plan.seed, "tournament", turn).permutation(len(answers))
    cut = round(len(answers) * plan.test_share)
    test, remainder = order[:cut], order[cut:][:most]
    difference = round(len(remainder) * plan.choice_share)
    choice, train = answers.rows(remainder[:difference]), answers.rows(remainder[difference:])
    verdicts = answers.rows(test)
    fitted = fit_strategies(train, [choice, verdicts], options, turn)
    aim = Aim.of(options)
    accuracy = aim.worth(verdicts.confidence, verdicts.correct).mean(axis=0)
    cost = verdicts.cost.mean(axis=0)
    targets = float(aim.worth(choice.confidence, choice.correct)[:, -1].mean())
    paths = {
        "cascade": (verdicts.cost[:, 0].mean(), verdicts.cost.sum(axis=1).mean()),
        "router": (verdicts.cost.min(axis=1).mean(), verdicts.cost.max(axis=1).mean()),
    }
    largest = float(accuracy[-1]), float(cost[-1])
    return _Run(
        curves={item.name: item.curves[1] for item in fitted},
        accuracy=accuracy,
        cost=cost,
        paths={name: np.array(ends) / cost[-1] for name, ends in paths.items()},
        areas={item.name: _area(item.curves, float(cost.min()), largest[1]) for item in fitted},
        points={item.name: _points(item.curves, targets, *largest) for item in fitted},
    )


def _within(curves: list[CostCurve], budget: Floats) -> Floats:
    """Return the accuracy that a strategy reaches with each budget, on the test part.

    Settings that another one beats in cost and accuracy are left out, as the choice part shows
    it; between two settings queries are dealt at random so that the mean cost is the budget.
    """
    choice, verdicts = curves
    selection = pareto(choice.cost, choice.accuracy)
    order = np.argsort(verdicts.cost[selection], kind="stable")
    return np.asarray(
        np.interp(budget, verdicts.cost[selection][order], verdicts.accuracy[selection][order])
    )


def _area(curves: list[CostCurve], low: float, high: float) -> float:
    """Return the mean accuracy over budgets between the cheapest and the largest model."""
    if not high > low:
        return float("nan")
    return float(_within(curves, np.linspace(low, high, 200)).mean())


def _points(
    curves: list[CostCurve], target: float, largest: float, largest_cost: float
) -> dict[str, Measured]:
    """Return settings picked on the choice part, as measured on the test part."""
    choice, verdicts = curves
    settings: dict[str, int | None] = {}
    settings["best"] = int(np.lexsort((choice.cost, -choice.accuracy))[0])
    enough = np.flatnonzero(choice.accuracy >= target)
    settings["match"] = int(enough[np.argmin(choice.cost[enough])]) if enough.size else None
    zero = np.flatnonzero(choice.dial == 0.0)
    if zero.size and choice.dial[0] == -1.0:
        settings["zero"] = int(zero[0])
    reached = _within(curves, np.array(BUDGETS) * largest_cost)
    dearest = float(verdicts.cost.max() / largest_cost)
    points = {
        f"budget_{budget:g}": (accuracy, accuracy - largest, min(budget, dearest))
        for budget, accuracy in zip(BUDGETS, reached, strict=True)
    }
    for name, place in settings.items():
        right = math.nan if place is None else verdicts.accuracy[place]
        cost = math.nan if place is None else verdicts.cost[place]
        points[name] = (right, right - largest, cost / largest_cost)
    return points


def _strategy(name: str, runs: list[_Run], means: SplitMeans) -> decisions.Strategy:
    picked = [run.curves[name] for run in runs]
    relative = np.array([one.cost / run.cost[-1] for one, run in zip(picked, runs, strict=True)])
    accuracy = np.array([curve.accuracy for curve in picked])
    dial = np.mean([curve.dial for curve in picked], axis=0)
    kind = "router" if name.startswith("router") else "cascade"
    least, most = np.array([run.paths[kind] for run in runs]).T
    return decisions.Strategy(
        name=name,
        words=STRATEGIES[name],
        area=means.share([run.areas[name] for run in runs]),
        points={
            point: _point([run.points[name][point] for run in runs], point, least, most, means)
            for point in runs[0].points[name]
        },
        curve=[
            decisions.CurvePoint(
                dial=float(dial[place]),
                relative_cost=means.between(relative[:, place], least, most),
                accuracy=means.share(accuracy[:, place]),
                pareto=False,
            )
            for place in range(len(dial))
        ],
    )


def _point(
    runs: list[Measured], point: str, least: Floats, most: Floats, means: SplitMeans
) -> decisions.ChosenPoint:
    """Return one chosen setting: accuracy and cost keep to their range, a gain has either sign."""
    accuracy, gain, cost = np.array(runs).T
    spending = np.isfinite(cost)
    # A budget is set, not found: it is the same in all splits, or cannot be spent in some.
    fixed = point.startswith("budget") and np.ptp(cost) == 0
    return decisions.ChosenPoint(
        accuracy=means.share(accuracy),
        gain=means.plain(gain),
        relative_cost=means.plain(cost)
        if fixed
        else means.between(cost[spending], least[spending], most[spending]),
        splits=int(np.isfinite(gain).sum()),
    )


def _marked(strategies: list[decisions.Strategy], runs: list[_Run]) -> list[decisions.Strategy]:
    """Mark the settings that no setting of any strategy nor any single model beats."""
    points = [point for strategy in strategies for point in strategy.curve]
    singles = np.mean([run.cost for run in runs], axis=0)
    largest = np.mean([run.cost[-1] for run in runs])
    cost = [*(point.relative_cost.numbers[0] for point in points), *(singles / largest)]
    alone = np.mean([run.accuracy for run in runs], axis=0)
    accuracy = [*(point.accuracy.numbers[0] for point in points), *alone]
    selection = iter(pareto(np.array(cost), np.array(accuracy)).tolist())
    return [
        replace(item, curve=[replace(point, pareto=next(selection)) for point in item.curve])
        for item in strategies
    ]


def _models(answers: Answers, runs: list[_Run], means: SplitMeans) -> list[decisions.CascadeModel]:
    return [
        decisions.CascadeModel(
            model=name,
            accuracy=means.share([run.accuracy[position] for run in runs]),
            relative_cost=means.positive([run.cost[position] / run.cost[-1] for run in runs]),
            mean_cost=float(answers.cost[:, position].mean()),
            without_confidence=int(np.isnan(answers.confidence[:, position]).sum()),
        )
        for position, name in enumerate(answers.models)
    ]


def _learning(
    answers: Answers, options: StrategyOptions, plan: SplitPlan
) -> list[decisions.LearningPoint]:
    """Return the areas as the number of labelled queries grows."""
    tested = round(len(answers) * plan.test_share)
    most, splits = len(answers) - tested, min(plan.splits, plan.learning_splits)
    means = SplitMeans(tested, plan.test_share, plan.level)
    result: list[decisions.LearningPoint] = []
    for size in (250, 500, 1000, 2000, 4000, 8000, 16000, 32000, most):
        if size > most or splits < 2 or (result and result[-1].labels == size):
            continue
        try:
            runs = [_run(answers, options, plan, turn, most=size) for turn in range(splits)]
        except InputError:
            continue
        areas = {name: means.share([run.areas[name] for run in runs]) for name in runs[0].areas}
        result.append(decisions.LearningPoint(labels=size, areas=areas))
    return result


def _verdict(
    strategies: list[decisions.Strategy], comparisons: list[decisions.Comparison]
) -> decisions.CascadeVerdict:
    """Say which strategy has the highest area and what is really shown."""
    areas = {item.name: item.area.numbers[0] for item in strategies}
    ranking = {name: -math.inf if math.isnan(area) else area for name, area in areas.items()}
    display = {}
    for pair in comparisons:
        _, low, high = pair.area.numbers
        display[pair.b] = "better" if low > 0 else "worse" if high < 0 else "even"
    point = strategies[0].points["best"]
    gains = point.gain.numbers[1] > 0
    return decisions.CascadeVerdict(
        highest_area=max(ranking, key=lambda name: ranking[name]),
        compared=strategies[0].name,
        against=display,
        beats_largest=gains,
        beats_largest_at_half_cost=gains and point.relative_cost.numbers[2] <= 0.5,
        best_gain=point.gain,
        best_relative_cost=point.relative_cost,
    )
