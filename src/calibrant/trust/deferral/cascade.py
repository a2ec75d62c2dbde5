"""Cascades: ask the cheapest model first and go on while the risk of its answer is too high."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from msgspec import Struct

from calibrant.core.arrays import Floats, Ints, named_stream
from calibrant.core.errors import InputError, require_choice, require_known
from calibrant.data.features import as_frame
from calibrant.trust import residual_models
from calibrant.trust.deferral.answers import (
    RULES,
    Aim,
    Answers,
    Stage,
    gather_answers,
    model_matrix,
)
from calibrant.trust.policy import Row, Said, SavedPolicy, Step, stated_confidence


class Choice(Struct, frozen=True):
    """Per query, which model answers and how many were asked."""

    chosen: Ints
    asked: Ints


def choose(risk: Floats, tolerance: float, *, fallback: str = "lowest") -> Choice:
    """Return who answers, given the risk of every model's answer.

    The first model with risk at most `tolerance` answers. If none has, the one with the lowest
    risk does (``fallback="lowest"``), or the last one (``"last"``). A model without a
    confidence has infinite risk; where no model has one, the last answers.

    Examples
    --------
    >>> choose(np.array([[0.1, 0.0], [0.3, 0.2], [0.3, 0.4]]), 0.1).chosen.tolist()
    [0, 1, 0]
    """
    stops = risk <= tolerance
    subset = stops.any(axis=1)
    first = stops.argmax(axis=1)
    last = risk.shape[1] - 1
    lowest = np.where(np.isfinite(risk).any(axis=1), risk.argmin(axis=1), last)
    peer = lowest if fallback == "lowest" else np.full(len(risk), last)
    return Choice(np.where(subset, first, peer), np.where(subset, first + 1, last + 1))


@dataclass(eq=False, repr=False)
class Cascade(SavedPolicy):
    """Route queries through models in order of cost.

    Parameters
    ----------
    models
        Names, cheapest first.
    rule
        ``"risk"``: the epistemic risk, from recalibrated confidence plus residual;
        ``"excess"``: how much more a later model's answer is expected to be worth, never below 0;
        ``"calibration"``: the risk that recalibration alone shows; ``"confidence"``: 1 minus the
        raw confidence.
    tolerance
        Stop at the first answer whose risk is at most this.
    decision, costs, threshold
        What is decided, see `Aim`. ``"answer"``: `correct` holds the grade of each model's own
        answer. ``"class"``: `correct` is the outcome and the models' answer is whether their
        confidence reaches the threshold.
    recalibration, model, shares, min_samples_leaf, seed
        As in `TreeGroupingLoss`.
    max_depth
        Depth of a tree, unlimited by default.
    unseen
        What an unseen category means when routing: ``"error"``, or ``"calibration"``.

    Attributes
    ----------
    stages_ : list of Stage
        The fitted models.

    References
    ----------
    Melo, Varoquaux and Le Morvan, section 4.3.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> hard = rng.integers(0, 2, size=2000)
    >>> right = {"small": rng.random(2000) < 0.9 - 0.6 * hard, "large": rng.random(2000) < 0.9}
    >>> said = {"small": np.full(2000, 0.6), "large": np.full(2000, 0.9)}
    >>> policy = Cascade(["small", "large"], tolerance=0.2)
    >>> policy = policy.fit({"hard": hard}, said, right, price={"small": 1, "large": 10})
    >>> policy.route({"hard": 0}, {}).model
    'small'
    >>> policy.route({"hard": 0}, {"small": 0.6}).action
    'answer'
    >>> policy.route({"hard": 1}, {"small": 0.6}).model
    'large'
    """

    stored_as = "cascade"
    stored = ("rule", "tolerance", "aim", "stages_")

    models: Sequence[str]
    _: KW_ONLY
    rule: str = "risk"
    tolerance: float = 0.0
    decision: str = "answer"
    costs: Any = None
    threshold: float | None = None
    recalibration: str = "platt"
    model: str = "tree"
    shares: Sequence[float] = residual_models.SHARES
    min_samples_leaf: int = 15
    max_depth: int | None = None
    unseen: str = "error"
    seed: int = 0
    aim: Aim = field(init=False)
    stages_: list[Stage] = field(init=False)

    def __post_init__(self) -> None:
        require_choice("rule", self.rule, RULES)
        self.models, self.aim = list(self.models), Aim.of(self)

    @property
    def fallback(self) -> str:
        """Who answers where no model stops: the last one for plain confidence, else the lowest."""
        return "last" if self.rule == "confidence" else "lowest"

    def fit(
        self,
        features: Any,
        confidence: Any,
        correct: Any,
        *,
        price: Any,
        answer_features: Mapping[str, Any] | None = None,
    ) -> Cascade:
        """Fit each model's risk.

        Parameters
        ----------
        features
            What is known of a query before any model is asked.
        confidence, correct
            By model (mapping or columns): the confidence, NaN where there is none, and the
            grade of that very answer (or the outcome, one array for all).
        price
            By model, a number or one per query; policies store the mean.
        answer_features
            By model, a table of what is known once it has answered (its length, for example).
        """
        return self.fit_answers(
            gather_answers(self.models, features, confidence, correct, price, answer_features)
        )

    def fit_answers(self, answers: Answers) -> Cascade:
        """Fit each model's risk from aligned answers."""
        self.stages_ = [self._fit_stage(answers, position) for position in range(len(self.models))]
        return self

    def _fit_stage(self, answers: Answers, position: int) -> Stage:
        name, price = self.models[position], float(answers.cost[:, position].mean())
        if self.rule == "confidence":
            return Stage(name, price, None, None)
        confidence = np.flatnonzero(~np.isnan(answers.confidence[:, position]))
        if self.rule == "excess":
            return Stage(name, price, None, None, self._rivals(answers, position, confidence))
        f, y = answers.confidence[confidence, position], answers.correct[confidence, position]
        if self.rule == "calibration":
            return Stage(
                name, price, residual_models.fit_recalibrator(self.recalibration, f, y), None
            )
        rng, least = named_stream(self.seed, "cascade", name), self.min_samples_leaf
        calibration, fitting, evaluation = residual_models.three_parts(
            y, rng, shares=self.shares, min_samples_leaf=least
        )
        recalibrator = residual_models.fit_recalibrator(
            self.recalibration, f[calibration], y[calibration]
        )
        residual = y - recalibrator.transform(f)
        frame = answers.known_after(name)[confidence]
        fitted = self._residual_model()
        if self.model in ("tree", "shrunk"):
            fitted.fit_parts(
                frame[fitting], residual[fitting], frame[evaluation], residual[evaluation]
            )
        else:
            rows = np.sort(np.concatenate([fitting, evaluation]))
            fitted.fit(frame[rows], residual[rows])
        return Stage(name, price, recalibrator, fitted)

    def _residual_model(self) -> residual_models.ResidualModel:
        return residual_models.residual_model(
            self.model,
            min_samples_leaf=self.min_samples_leaf,
            max_depth=self.max_depth,
            unseen=self.unseen,
            seed=self.seed,
        )

    def _rivals(
        self, answers: Answers, position: int, confidence: Ints
    ) -> tuple[residual_models.ResidualModel, ...]:
        """Return, per later model, what its answer is worth beyond that of this one."""
        worth = self.aim.worth(answers.confidence, answers.correct)[confidence]
        frame = Stage.described(
            answers.known_after(self.models[position])[confidence],
            answers.confidence[confidence, position],
        )
        gains = worth[:, position + 1 :] - worth[:, [position]]
        return tuple(self._residual_model().fit(frame, gain) for gain in gains.T)

    def risk(self, answers: Answers) -> Floats:
        """Return the risk of every model's answer, shape (queries, models)."""
        risks = [
            stage.risk(answers.known_after(stage.name), confidence, self.aim)
            for stage, confidence in zip(self.stages_, answers.confidence.T, strict=True)
        ]
        return np.stack(risks, axis=1)

    def route_batch(
        self, features: Any, confidence: Any, *, answer_features: Mapping[str, Any] | None = None
    ) -> Choice:
        """Return who answers each of many queries."""
        frame = as_frame(features)
        confidences = model_matrix(confidence, self.models, frame.height, "confidence")
        extra = {name: as_frame(table) for name, table in (answer_features or {}).items()}
        # Neither grades nor prices enter a risk.
        nothing = np.full_like(confidences, np.nan)
        answers = Answers(tuple(self.models), frame, confidences, nothing, nothing, extra)
        return choose(self.risk(answers), self.tolerance, fallback=self.fallback)

    def route(self, features: Row, answers_so_far: Mapping[str, Said]) -> Step:
        """Return what to do next with one query.

        Parameters
        ----------
        features
            What is known of the query.
        answers_so_far
            By model, in the order of the cascade: its confidence (None if it gave none), or a
            mapping with ``confidence`` and the features of its answer.
        """
        request = len(answers_so_far)
        if list(answers_so_far) != self.models[:request]:
            require_known(answers_so_far, self.models, "the cascade has no model {}")
            raise InputError(
                "answers so far must come in the order of the cascade, "
                f"{' -> '.join(self.models)}, got {', '.join(answers_so_far)}"
            )
        if request == 0:
            return Step("ask", self.models[0])
        risk = self._risk_of(features, answers_so_far, request - 1)
        if risk <= self.tolerance:
            return Step("answer", self.models[request - 1], risk)
        if request < len(self.models):
            return Step("ask", self.models[request], risk)
        risks = [self._risk_of(features, answers_so_far, turn) for turn in range(request)]
        lowest = min(risks)
        last = self.fallback == "last" or lowest == float("inf")
        winner = request - 1 if last else risks.index(lowest)
        return Step("answer", self.models[winner], risks[winner])

    def _risk_of(self, features: Row, answers: Mapping[str, Said], position: int) -> float:
        answer = answers[self.models[position]]
        confidence = stated_confidence(answer)
        if confidence is None:
            return float("inf")
        query = {**features, **answer} if isinstance(answer, Mapping) else features
        return self.stages_[position].risk_one(query, confidence, self.aim)

    def with_dial(self, dial: Any) -> Cascade:
        """Return the fitted policy with another tolerance."""
        policy = copy(self)
        policy.tolerance = float(dial)
        return policy

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Cascade:
        """Return a policy that decides as the one that `to_dict` described, bit for bit."""
        policy = super().from_dict(data)
        policy.models = [stage.name for stage in policy.stages_]
        return policy
