"""Strategies against each other over many splits, with intervals and an honest verdict."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from calibrant.core.arrays import Floats
from calibrant.core.errors import InputError
from calibrant.core.estimate import Estimate
from calibrant.core.rng import named_stream
from calibrant.epistemic.deferral.answers import Answers
from calibrant.epistemic.deferral.split_intervals import SplitMeans
from calibrant.epistemic.deferral.stage import Aim
from calibrant.epistemic.deferral.strategies import (
    STRATEGIES,
    Curve,
    StrategyOptions,
    curves,
    pareto,
)

BUDGETS = (0.25, 0.5, 0.75, 1.0)
# With fewer, a part that fits, chooses or measures may hold no question at all.
_FEWEST = 20


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """How queries are dealt: a test part, and within the rest a part that picks the settings."""

    splits: int = 20
    test_share: float = 0.5
    choice_share: float = 0.2
    learning_splits: int = 5
    level: float = 0.95
    seed: int = 0


def tournament(
    answers: Answers,
    options: StrategyOptions,
    plan: SplitPlan,
    *,
    mapper: Callable[..., Iterable[dict[str, Any]]] = map,
) -> dict[str, Any]:
    """Return models, curves, chosen points, comparisons and a verdict as a plain entry.

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
    runs = list(mapper(partial(_run, answers, options, plan), range(plan.splits)))
    n = round(len(answers) * plan.test_share)

    means = SplitMeans(n, plan.test_share, plan.level)
    strategies = [_strategy(name, runs, means) for name in options.strategies]
    _mark_pareto(strategies, runs)
    comparisons = [
        {
            "a": options.strategies[0],
            "b": other,
            "area": means.plain(
                [run["areas"][options.strategies[0]] - run["areas"][other] for run in runs]
            ),
        }
        for other in options.strategies[1:]
    ]
    entry = {
        "n": len(answers),
        "n_test": n,
        "splits": plan.splits,
        "models": _models(answers, runs, means),
        "features": {
            "question": answers.features.columns,
            "answer": sorted(
                {c for table in answers.answer_features.values() for c in table.columns}
            ),
        },
        "strategies": strategies,
        "comparisons": comparisons,
        "largest": answers.models[-1],
        "learning_curve": _learning(answers, options, plan),
    }
    return entry | {"verdict": _verdict(entry)}


def _run(
    answers: Answers,
    options: StrategyOptions,
    plan: SplitPlan,
    turn: int,
    labels: int | None = None,
) -> dict[str, Any]:
    """Fit on one part, pick the settings on another, measure on the third."""
    rng = named_stream(plan.seed, "tournament", turn)
    order = rng.permutation(len(answers))
    cut = round(len(answers) * plan.test_share)
    test, rest = order[:cut], order[cut:]
    rest = rest if labels is None else rest[:labels]
    held = round(len(rest) * plan.choice_share)
    choice, train = answers.rows(rest[:held]), answers.rows(rest[held:])
    judged = answers.rows(test)
    found = curves(train, [choice, judged], options, seed=turn)
    aim = Aim.of(options)
    hits = aim.worth(judged.confidence, judged.correct)
    chance = aim.worth(choice.confidence, choice.correct)
    costs = judged.cost.mean(axis=0)
    paths = {
        "cascade": (judged.cost[:, 0].mean(), judged.cost.sum(axis=1).mean()),
        "router": (judged.cost.min(axis=1).mean(), judged.cost.max(axis=1).mean()),
    }
    largest = {"accuracy": float(hits[:, -1].mean()), "cost": float(costs[-1])}
    picked = {"accuracy": float(chance[:, -1].mean()), "cost": float(choice.cost[:, -1].mean())}
    return {
        "curves": {name: pair[1] for name, pair in found.items()},
        "models": {"accuracy": hits.mean(axis=0), "cost": costs},
        "largest": largest,
        # What the cheapest and the dearest path cost, as shares of the largest model's cost.
        "paths": {name: np.array(ends) / largest["cost"] for name, ends in paths.items()},
        "areas": {
            name: _area(pair[0], pair[1], float(costs.min()), largest["cost"])
            for name, pair in found.items()
        },
        "points": {
            name: _points(pair[0], pair[1], picked, largest) for name, pair in found.items()
        },
    }


def _within(choice: Curve, judged: Curve, budget: Floats) -> Floats:
    """Return the accuracy that a strategy reaches with each budget, on the test part.

    Settings that another one beats in cost and accuracy are left out, as the choice part shows
    it; between two settings queries are dealt at random so that the mean cost is the budget.
    """
    kept = pareto(choice.cost, choice.accuracy)
    order = np.argsort(judged.cost[kept], kind="stable")
    return np.asarray(np.interp(budget, judged.cost[kept][order], judged.accuracy[kept][order]))


def _area(choice: Curve, judged: Curve, low: float, high: float) -> float:
    """Return the mean accuracy over budgets between the cheapest and the largest model."""
    if not high > low:
        return float("nan")
    return float(_within(choice, judged, np.linspace(low, high, 200)).mean())


def _points(
    choice: Curve, judged: Curve, picked: dict[str, float], largest: dict[str, float]
) -> dict[str, dict[str, float]]:
    """Return settings picked on the choice part, as measured on the test part."""
    settings: dict[str, int | None] = {}
    settings["best"] = int(np.lexsort((choice.cost, -choice.accuracy))[0])
    enough = np.flatnonzero(choice.accuracy >= picked["accuracy"])
    settings["match"] = int(enough[np.argmin(choice.cost[enough])]) if enough.size else None
    zero = np.flatnonzero(choice.dial == 0.0)
    if zero.size and choice.dial[0] == -1.0:
        settings["zero"] = int(zero[0])
    reached = _within(choice, judged, np.array(BUDGETS) * largest["cost"])
    budgets = {
        f"budget_{budget:g}": {
            "gain": accuracy - largest["accuracy"],
            "relative_cost": min(budget, float(judged.cost.max() / largest["cost"])),
            "accuracy": accuracy,
        }
        for budget, accuracy in zip(BUDGETS, reached, strict=True)
    }
    return budgets | {
        name: {
            "gain": judged.accuracy[at] - largest["accuracy"] if at is not None else np.nan,
            "relative_cost": judged.cost[at] / largest["cost"] if at is not None else np.nan,
            "accuracy": judged.accuracy[at] if at is not None else np.nan,
        }
        for name, at in settings.items()
    }


def _strategy(name: str, runs: list[dict[str, Any]], means: SplitMeans) -> dict[str, Any]:
    picked = [run["curves"][name] for run in runs]
    relative = np.array(
        [curve.cost / run["largest"]["cost"] for curve, run in zip(picked, runs, strict=True)]
    )
    accuracy = np.array([curve.accuracy for curve in picked])
    dial = np.mean([curve.dial for curve in picked], axis=0)
    kind = "router" if name.startswith("router") else "cascade"
    least, most = np.array([run["paths"][kind] for run in runs]).T
    return {
        "name": name,
        "words": STRATEGIES[name],
        "area": means.share([run["areas"][name] for run in runs]),
        "points": {
            point: _point([run["points"][name][point] for run in runs], point, least, most, means)
            for point in runs[0]["points"][name]
        },
        "curve": [
            {
                "dial": float(dial[at]),
                "relative_cost": means.between(relative[:, at], least, most),
                "accuracy": means.share(accuracy[:, at]),
            }
            for at in range(len(dial))
        ],
    }


def _point(
    found: list[dict[str, float]], point: str, least: Floats, most: Floats, means: SplitMeans
) -> dict[str, Any]:
    """Return one chosen setting: accuracy and cost keep to their range, a gain has either sign."""
    cost = np.array([one["relative_cost"] for one in found])
    known = np.isfinite(cost)
    # A budget is set, not found: it is the same in all splits, or cannot be spent in some.
    fixed = point.startswith("budget") and np.ptp(cost) == 0
    return {
        "accuracy": means.share([one["accuracy"] for one in found]),
        "gain": means.plain([one["gain"] for one in found]),
        "relative_cost": means.plain(cost)
        if fixed
        else means.between(cost[known], least[known], most[known]),
        "splits": sum(np.isfinite(one["gain"]) for one in found),
    }


def _mark_pareto(strategies: list[dict[str, Any]], runs: list[dict[str, Any]]) -> None:
    """Mark the settings that no setting of any strategy nor any single model beats."""
    singles = len(runs[0]["models"]["cost"])
    points = [point for strategy in strategies for point in strategy["curve"]]
    largest = np.mean([run["largest"]["cost"] for run in runs])
    cost = np.array(
        [point["relative_cost"].value for point in points]
        + [
            float(np.mean([run["models"]["cost"][m] for run in runs]) / largest)
            for m in range(singles)
        ]
    )
    accuracy = np.array(
        [point["accuracy"].value for point in points]
        + [float(np.mean([run["models"]["accuracy"][m] for run in runs])) for m in range(singles)]
    )
    for point, kept in zip(points, pareto(cost, accuracy), strict=False):
        point["pareto"] = bool(kept)


def _models(
    answers: Answers, runs: list[dict[str, Any]], means: SplitMeans
) -> list[dict[str, Any]]:
    return [
        {
            "model": name,
            "accuracy": means.share([run["models"]["accuracy"][position] for run in runs]),
            "relative_cost": means.positive(
                [run["models"]["cost"][position] / run["largest"]["cost"] for run in runs]
            ),
            "mean_cost": float(answers.cost[:, position].mean()),
            "without_confidence": int(np.isnan(answers.confidence[:, position]).sum()),
        }
        for position, name in enumerate(answers.models)
    ]


def _learning(answers: Answers, options: StrategyOptions, plan: SplitPlan) -> list[dict[str, Any]]:
    """Return the areas as the number of labelled queries grows."""
    most = len(answers) - round(len(answers) * plan.test_share)
    sizes = [size for size in (250, 500, 1000, 2000, 4000, 8000, 16000, 32000) if size < most]
    small = replace(plan, splits=min(plan.splits, plan.learning_splits))
    means = SplitMeans(round(len(answers) * plan.test_share), plan.test_share, plan.level)
    result = []
    for size in [*sizes, most] if plan.learning_splits >= 2 else []:
        try:
            runs = [
                _run(answers, options, small, turn, labels=size) for turn in range(small.splits)
            ]
        except InputError:
            continue
        areas = {
            name: means.share([run["areas"][name] for run in runs]) for name in options.strategies
        }
        result.append({"labels": size, "areas": areas})
    return result


def _verdict(entry: dict[str, Any]) -> dict[str, Any]:
    """Say which strategy has the highest area and what is really shown."""
    ranked = sorted(entry["strategies"], key=lambda item: -_value(item["area"]))
    first = entry["strategies"][0]["name"]
    shown = {
        pair["b"]: "better"
        if pair["area"].low > 0
        else "worse"
        if pair["area"].high < 0
        else "even"
        for pair in entry["comparisons"]
    }
    point = entry["strategies"][0]["points"]["best"]
    gain, cost = point["gain"], point["relative_cost"]
    return {
        "highest_area": ranked[0]["name"],
        "compared": first,
        "against": shown,
        "beats_largest": bool(gain.low > 0),
        "beats_largest_at_half_cost": bool(gain.low > 0 and cost.high <= 0.5),
        "best_gain": gain,
        "best_relative_cost": cost,
    }


def _value(estimate: Estimate) -> float:
    return estimate.value if math.isfinite(estimate.value) else -math.inf
