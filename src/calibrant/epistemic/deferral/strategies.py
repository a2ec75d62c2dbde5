"""Strategies of asking, each as a curve of cost against accuracy over its own dial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from calibrant.epistemic.deferral.answers import Answers
from calibrant.epistemic.deferral.cascade import Cascade, choose
from calibrant.epistemic.deferral.router import Router
from calibrant.epistemic.loss.decision import CostMatrix

__all__ = ["STRATEGIES", "Curve", "StrategyOptions", "curves", "pareto"]

Floats = npt.NDArray[np.float64]

# What each strategy turns: a tolerated risk, a confidence, a price per right answer.
STRATEGIES = {
    "risk": "cascade on epistemic risk",
    "risk_shrunk": "cascade on epistemic risk (shrunk leaves)",
    "risk_boosting": "cascade on epistemic risk (boosting)",
    "calibration": "cascade on calibration risk",
    "confidence": "cascade on raw confidence",
    "router": "predictive router (tree)",
    "router_knn": "predictive router (nearest neighbours)",
}
_POINTS = 41


@dataclass(frozen=True, slots=True)
class StrategyOptions:
    """Options that all strategies share; see `Cascade` and `Router`."""

    decision: str = "answer"
    costs: CostMatrix | None = None
    threshold: float | None = None
    recalibration: str = "platt"
    residuals: str = "tree"
    splits: str = "auto"
    min_samples_leaf: int = 15
    max_depth: int | None = None
    neighbours: int = 40
    neighbour_columns: tuple[str, ...] = ()
    strategies: tuple[str, ...] = ("risk", "calibration", "confidence", "router")


@dataclass(frozen=True, slots=True)
class Curve:
    """Mean cost and accuracy per setting of the dial, cheapest setting last.

    `chosen` holds, per setting, the share of queries that each model answers.
    """

    dial: Floats
    cost: Floats
    accuracy: Floats
    chosen: Floats = field(repr=False)


def curves(
    train: Answers, parts: Sequence[Answers], options: StrategyOptions, seed: int
) -> dict[str, list[Curve]]:
    """Fit every strategy on `train` and return its curve on each of `parts`.

    The settings of the dials come from the first part, so that all parts share them.
    """
    found: dict[str, list[Curve]] = {}
    for name in options.strategies:
        if name.startswith("router"):
            found[name] = _router_curves(name, train, parts, options, seed)
        else:
            found[name] = _cascade_curves(name, train, parts, options, seed)
    return found


def _cascade_curves(
    name: str, train: Answers, parts: Sequence[Answers], options: StrategyOptions, seed: int
) -> list[Curve]:
    variant = name.removeprefix("risk_") if name.startswith("risk_") else None
    policy = Cascade(
        train.models,
        rule="risk" if variant else name,
        decision=options.decision,
        costs=options.costs,
        threshold=options.threshold,
        recalibration=options.recalibration,
        model=variant or options.residuals,
        splits=options.splits,
        min_samples_leaf=options.min_samples_leaf,
        max_depth=options.max_depth,
        unseen="calibration",
        seed=seed,
    ).fit_answers(train)
    risks = [policy.risk(part) for part in parts]
    finite = risks[0][np.isfinite(risks[0])]
    # 0 is the setting of the paper; below it nothing ever stops a cascade.
    dial = np.concatenate([[-1.0, 0.0], np.quantile(finite, np.linspace(0, 1, _POINTS - 2))])
    made = []
    for part, risk in zip(parts, risks, strict=True):
        running = part.cost.cumsum(axis=1)
        points = [choose(risk, tolerance, fallback=policy.fallback) for tolerance in dial]
        made.append(
            _curve(dial, part, policy, [(c.chosen, _pick(running, c.asked - 1)) for c in points])
        )
    return made


def _router_curves(
    name: str, train: Answers, parts: Sequence[Answers], options: StrategyOptions, seed: int
) -> list[Curve]:
    near = name == "router_knn"

    def view(answers: Answers) -> Answers:
        if not (near and options.neighbour_columns):
            return answers
        frame = answers.features.select(options.neighbour_columns)
        return Answers(answers.models, frame, answers.confidence, answers.correct, answers.cost)

    router = Router(
        train.models,
        kind="knn" if near else "tree",
        k=min(options.neighbours, len(train)),
        splits=options.splits,
        min_samples_leaf=options.min_samples_leaf,
        decision=options.decision,
        costs=options.costs,
        threshold=options.threshold,
        unseen="calibration",
        seed=seed,
    ).fit_answers(view(train))
    scale = float(router.price_.max()) or 1.0
    dial = np.concatenate([[0.0], scale * np.logspace(-2, 5, _POINTS - 1)])[::-1]
    made = []
    for part in parts:
        accuracy = router.accuracy(view(part).features)
        picks = [np.argmax(worth * accuracy - router.price_, axis=1) for worth in dial]
        made.append(_curve(dial, part, router, [(p, _pick(part.cost, p)) for p in picks]))
    return made


def _pick(matrix: Floats, column: npt.NDArray[np.int64]) -> Floats:
    return matrix[np.arange(len(matrix)), column]


def _curve(
    dial: Floats,
    part: Answers,
    policy: Cascade | Router,
    points: list[tuple[npt.NDArray[np.int64], Floats]],
) -> Curve:
    hits = policy.aim.hit(part.confidence, part.correct)
    return Curve(
        dial,
        np.array([float(cost.mean()) for _, cost in points]),
        np.array([float(_pick(hits, chosen).mean()) for chosen, _ in points]),
        np.array(
            [np.bincount(chosen, minlength=len(part.models)) / len(part) for chosen, _ in points]
        ),
    )


def pareto(cost: Floats, accuracy: Floats) -> npt.NDArray[np.bool_]:
    """Return which points no other point beats in both cost and accuracy.

    Examples
    --------
    >>> pareto(np.array([1.0, 2.0, 3.0]), np.array([0.5, 0.4, 0.6])).tolist()
    [True, False, True]
    """
    order = np.lexsort((-accuracy, cost))
    best = np.maximum.accumulate(np.concatenate([[-np.inf], accuracy[order][:-1]]))
    result = np.zeros(len(cost), dtype=bool)
    result[order] = accuracy[order] > best
    return result
