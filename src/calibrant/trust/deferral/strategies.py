"""Strategies of asking, each as a curve of cost against accuracy; what is chosen among them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from calibrant.core.arrays import Estimate, Floats, Ints, Mask
from calibrant.trust.decision_risk import CostMatrix
from calibrant.trust.deferral.answers import Aim, Answers
from calibrant.trust.deferral.cascade import Cascade, choose
from calibrant.trust.deferral.mixing import Mix
from calibrant.trust.deferral.policy import AlwaysOne, Inner, ValuePolicy
from calibrant.trust.deferral.router import Router
from calibrant.trust.deferral.value import ValueModel

# What each strategy turns: a tolerated risk, a confidence, a price per right answer.
STRATEGIES = {
    "value": "expected gain",
    "risk": "risk, with columns",
    "excess": "excess risk over later models",
    "risk_shrunk": "risk, with columns (shrunk leaves)",
    "risk_boosting": "risk, with columns (boosting)",
    "calibration": "risk, confidence alone",
    "confidence": "stated confidence",
    "router": "chosen per question (tree)",
    "router_knn": "chosen per question (nearest)",
}
# Strategies whose dial is a risk that the user may give.
TOLERANT = ("risk", "excess")
_POINTS = 41
_VALUE_POINTS = 20
# By setting: who answers each question, and what was spent on it.
Points = list[tuple[Ints, Floats]]


class StrategyOptions(Struct, frozen=True):
    """Options that all strategies share; see `Cascade` and `Router`.

    `tolerance` is a further, last setting of the strategies ``"risk"`` and ``"excess"``.
    """

    decision: str = "answer"
    costs: CostMatrix | None = None
    threshold: float | None = None
    recalibration: str = "platt"
    min_samples_leaf: int = 15
    max_depth: int | None = None
    neighbours: int = 40
    tolerance: float | None = None
    strategies: tuple[str, ...] = ("value", "risk", "calibration", "confidence", "router")


class CostCurve(Struct, frozen=True):
    """Mean cost and accuracy per setting of the dial, cheapest setting last.

    `right` and `spent`: what each answer was worth and cost, shape (settings, queries).
    """

    dial: Floats
    cost: Floats
    accuracy: Floats
    right: Floats
    spent: Floats


class FittedStrategy(Struct, frozen=True):
    """A fitted strategy: its policy, the settings of its dial, and its curve on each part."""

    name: str
    policy: Inner
    dials: list[Any]
    curves: list[CostCurve]


def fit_strategies(
    train: Answers,
    parts: Sequence[Answers],
    options: StrategyOptions,
    seed: int,
    *,
    dials: Answers | None = None,
) -> list[FittedStrategy]:
    """Fit every strategy on `train` and measure all its settings on each of `parts`.

    The settings come from the first part, or else from the rows of `dials`. The strategy
    ``"single"`` is always asking one model, a setting per model.
    """
    fitting = _Fitting(train, parts, options, seed, parts[0] if dials is None else dials)
    return [fitting.strategy(name) for name in options.strategies]


class _Fitting(Struct, frozen=True):
    """The answers that fit, those that measure, and those whose risks are the settings."""

    train: Answers
    parts: Sequence[Answers]
    options: StrategyOptions
    seed: int
    source: Answers

    def strategy(self, name: str) -> FittedStrategy:
        """Return a fitted strategy."""
        if name in ("value", "single"):
            return self._value() if name == "value" else self._single()
        return self._router(name) if name.startswith("router") else self._cascade(name)

    def _single(self) -> FittedStrategy:
        names, aim = list(self.train.models), Aim.of(self.options)
        dials = list(range(len(names)))
        curves = []
        for part in self.parts:
            points = [(np.full(len(part), place), part.cost[:, place]) for place in dials]
            curves.append(_curve(np.array(dials, dtype=np.float64), part, aim, points))
        return FittedStrategy("single", AlwaysOne(names, names[-1]), dials, curves)

    def _value(self) -> FittedStrategy:
        aim = Aim.of(self.options)
        model = ValueModel(self.train.models, aim).fit(self.train)
        largest = float(self.train.cost[:, -1].mean())
        prices = np.concatenate([[0.0], np.logspace(-2.5, 1.4, _VALUE_POINTS)]) / largest
        dials = [(float(money), direct) for direct in (False, True) for money in prices]
        curves = []
        for part in self.parts:
            prepared = model.prepare(part)
            halves = [model.run(prepared, prices, direct=direct) for direct in (False, True)]
            points = [pair for person, paid in halves for pair in zip(person, paid, strict=True)]
            curves.append(_curve(np.arange(len(dials), dtype=np.float64), part, aim, points))
        return FittedStrategy("value", ValuePolicy(model, 0.0, direct=False), dials, curves)

    def _cascade(self, name: str) -> FittedStrategy:
        options = self.options
        variant = name.removeprefix("risk_") if name.startswith("risk_") else None
        policy = Cascade(
            self.train.models,
            rule="risk" if variant else name,
            decision=options.decision,
            costs=options.costs,
            threshold=options.threshold,
            recalibration=options.recalibration,
            model=variant or "tree",
            min_samples_leaf=options.min_samples_leaf,
            max_depth=options.max_depth,
            unseen="calibration",
            seed=self.seed,
        ).fit_answers(self.train)
        risks = [policy.risk(part) for part in self.parts]
        measurements = self.parts and self.source is self.parts[0]
        observed = risks[0] if measurements else policy.risk(self.source)
        finite = observed[np.isfinite(observed)]
        # 0 is the setting of the paper; below it nothing ever stops a cascade.
        dial = np.concatenate([[-1.0, 0.0], np.quantile(finite, np.linspace(0, 1, _POINTS - 2))])
        if name in TOLERANT and options.tolerance is not None:
            dial = np.append(dial, options.tolerance)
        curves = []
        for part, risk in zip(self.parts, risks, strict=True):
            running = part.cost.cumsum(axis=1)
            points = [choose(risk, tolerance, fallback=policy.fallback) for tolerance in dial]
            steps = [(c.chosen, _pick(running, c.asked - 1)) for c in points]
            curves.append(_curve(dial, part, policy.aim, steps))
        return FittedStrategy(name, policy, dial.tolist(), curves)

    def _router(self, name: str) -> FittedStrategy:
        options = self.options
        router = Router(
            self.train.models,
            kind="knn" if name == "router_knn" else "tree",
            k=min(options.neighbours, len(self.train)),
            min_samples_leaf=options.min_samples_leaf,
            decision=options.decision,
            costs=options.costs,
            threshold=options.threshold,
            unseen="calibration",
            seed=self.seed,
        ).fit_answers(self.train)
        scale = float(router.price_.max()) or 1.0
        dial = np.concatenate([[0.0], scale * np.logspace(-2, 5, _POINTS - 1)])[::-1]
        curves = []
        for part in self.parts:
            accuracy = router.accuracy_of(part)
            picks = [np.argmax(worth * accuracy - router.price_, axis=1) for worth in dial]
            points = [(person, _pick(part.cost, person)) for person in picks]
            curves.append(_curve(dial, part, router.aim, points))
        return FittedStrategy(name, router, dial.tolist(), curves)


def _pick(matrix: Floats, column: Ints) -> Floats:
    return matrix[np.arange(len(matrix)), column]


def _curve(dial: Floats, part: Answers, aim: Aim, points: Points) -> CostCurve:
    worth = aim.worth(part.confidence, part.correct)
    right = np.stack([_pick(worth, choice) for choice, _ in points])
    spending = np.stack([cost for _, cost in points])
    return CostCurve(dial, spending.mean(axis=1), right.mean(axis=1), right, spending)


def pareto(cost: Floats, accuracy: Floats) -> Mask:
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


class Target(Struct, frozen=True):
    """What the policy is to reach.

    Parameters
    ----------
    budget
        Mean cost per question, as a share of what the largest model costs.
    accuracy
        Accuracy to reach at the lowest cost; None with no budget: that of the largest model.
    margin
        With a guarantee: how much less accurate than the largest model is tolerated.
    delta
        Chance that the guarantee fails.
    strategy
        The strategy to save, whatever the others reach; None: the best one.
    """

    budget: float | None = None
    accuracy: float | None = None
    margin: float | None = None
    delta: float = 0.1
    strategy: str | None = None


class ChosenPolicy(Struct, frozen=True):
    """The policy chosen and why.

    Parameters
    ----------
    strategy
        Its name; ``"single"`` is always one model.
    policy, dials, share
        The fitted policy, the two settings of its dial, and the share of questions that meet the
        second.
    mix
        Positions of the settings, cost and accuracy.
    accuracy, cost, gain
        Of the mix, on questions that its policies had not seen; gain is that over the largest
        model, question by question.
    reasons
        Per strategy, why it was not taken.
    certified
        With a guarantee: how many settings passed, None without.
    how
        What was reached, in words.
    """

    strategy: str
    policy: Inner
    dials: tuple[Any, Any]
    share: float
    mix: Mix
    accuracy: Estimate
    cost: Estimate
    gain: Estimate
    reasons: dict[str, str] = {}
    certified: int | None = None
    how: str = ""
