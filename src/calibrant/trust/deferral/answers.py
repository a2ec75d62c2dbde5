"""The answers of several models to the same queries, and each model as a priced stage."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from msgspec import Struct

from calibrant.core.arrays import Floats, Ints
from calibrant.core.document import Stored, read_by
from calibrant.core.errors import InputError, did_you_mean, require_choice
from calibrant.data.features import as_frame
from calibrant.metrics.recalibration.base import Calibrator
from calibrant.metrics.recalibration.calibrators import calibrator_from_dict
from calibrant.trust.decision_risk import CostMatrix, expected_cost, pointwise_risk
from calibrant.trust.policy import Cell, Row
from calibrant.trust.residual_models import ResidualModel, residual_model_from_dict

EVERY_QUESTION = {"every_question": "all"}
"""What is known of a question of which nothing is known beforehand."""


class Answers(Struct, frozen=True):
    """What each model said to each query, models in order of cost.

    Parameters
    ----------
    models
        Names, cheapest first.
    features
        What is known of a query before any model is asked.
    confidence
        Shape (queries, models); NaN where a model gave none.
    correct
        Shape (queries, models): the grade of each answer, or the outcome, repeated.
    cost
        Shape (queries, models): what asking costs.
    answer_features
        Per model, what is known once it has answered.
    vectors
        Embedding of each query, whole, for routers that look at neighbours.
    """

    models: tuple[str, ...]
    features: pl.DataFrame
    confidence: Floats
    correct: Floats
    cost: Floats
    answer_features: Mapping[str, pl.DataFrame] = {}
    vectors: Floats | None = None

    def __len__(self) -> int:
        return len(self.confidence)

    def known_after(self, model: str) -> pl.DataFrame:
        """Return all features that are known once `model` has answered."""
        extra = self.answer_features.get(model)
        return (
            self.features if extra is None else pl.concat([self.features, extra], how="horizontal")
        )

    def rows(self, rows: Ints) -> Answers:
        """Return the answers to some of the queries."""
        return Answers(
            self.models,
            self.features[rows],
            self.confidence[rows],
            self.correct[rows],
            self.cost[rows],
            {name: frame[rows] for name, frame in self.answer_features.items()},
            None if self.vectors is None else self.vectors[rows],
        )


def every_question(n: int) -> pl.DataFrame:
    """Return the features of questions of which nothing is known before a model is asked.

    Examples
    --------
    >>> every_question(2).to_dict(as_series=False)
    {'every_question': ['all', 'all']}
    """
    return pl.DataFrame({name: [value] * n for name, value in EVERY_QUESTION.items()})


def model_matrix(values: Any, models: Sequence[str], n: int, what: str) -> Floats:
    """Return `values` (by model, by column, or one for all queries) as a matrix.

    Examples
    --------
    >>> model_matrix({"a": 1.0, "b": [2.0, 3.0]}, ["a", "b"], 2, "price").tolist()
    [[1.0, 2.0], [1.0, 3.0]]
    """
    if isinstance(values, Mapping | pl.DataFrame):
        names = list(values.columns if isinstance(values, pl.DataFrame) else values)
        for model in models:
            if model not in names:
                raise InputError(
                    f"the {what} of the model {model!r} is missing",
                    hint=did_you_mean(model, [str(name) for name in names]),
                )
        columns = [np.asarray(values[model], dtype=np.float64) for model in models]
        return np.stack([np.broadcast_to(column, (n,)) for column in columns], axis=1)
    matrix = np.asarray(values, dtype=np.float64)
    if matrix.ndim == 1 and len(matrix) == n:
        return np.repeat(matrix[:, None], len(models), axis=1)
    if matrix.shape != (n, len(models)):
        raise InputError(
            f"the {what} must have one row per query and one column per model, "
            f"({n}, {len(models)}), got {matrix.shape}"
        )
    return matrix


def gather_answers(
    models: Sequence[str],
    features: Any,
    confidence: Any,
    correct: Any,
    price: Any,
    answer_features: Mapping[str, Any] | None = None,
) -> Answers:
    """Check and align everything that a policy learns from."""
    frame = as_frame(features)
    n = frame.height
    if len(set(models)) != len(models) or not models:
        raise InputError(f"models must be different names, at least one, got {list(models)}")
    f = model_matrix(confidence, models, n, "confidence")
    bad = (f < 0) | (f > 1)
    if bad.any():
        row = int(np.argmax(bad.any(axis=1)))
        raise InputError(
            f"a confidence must be between 0 and 1, or NaN for none, got {f[row].tolist()}",
            row=row + 1,
        )
    y = model_matrix(correct, models, n, "correct")
    if not np.isin(y, (0.0, 1.0)).all():
        row = int(np.argmax(~np.isin(y, (0.0, 1.0)).all(axis=1)))
        raise InputError(f"a grade must be 0 or 1, got {y[row].tolist()}", row=row + 1)
    cost = model_matrix(price, models, n, "price")
    if not (np.isfinite(cost).all() and (cost >= 0).all()):
        raise InputError("a price must be a finite number, at least 0")
    extra = {model: as_frame(table) for model, table in (answer_features or {}).items()}
    for model, table in extra.items():
        if model not in models or table.height != n:
            raise InputError(
                f"answer features must name a model of the cascade and have {n} rows, got "
                f"{model!r} with {table.height}"
            )
    return Answers(tuple(models), frame, f, y, cost, extra)


# Where a question carries its whole embedding.
VECTOR = "embedding"


class QuestionEmbedding:
    """Add an embedding to a question, as it was done to those that a policy was fitted on.

    Parameters
    ----------
    about
        What a saved policy holds: ``column`` of the text, name of the ``embedder``, ``centre``
        and ``axes`` of its components.
    embedder
        What embeds: it has a ``name`` and ``embed(texts)``. Another one than the policy was
        fitted with is refused.

    Examples
    --------
    >>> class Letters:
    ...     name = "letters"
    ...     def embed(self, texts):
    ...         return [[text.count("a"), text.count("b")] for text in texts]
    >>> about = {"column": "q", "embedder": "letters", "centre": [0, 0], "axes": [[1, 0]]}
    >>> QuestionEmbedding(about, Letters()).described({"q": "abba"})["q_1"]
    2.0
    """

    def __init__(self, about: Mapping[str, Any], embedder: Any) -> None:
        if embedder.name != about["embedder"]:
            raise InputError(
                f"the policy was fitted with {about['embedder']}, here is {embedder.name}",
                hint="install that version, or fit the policy again",
            )
        self.embedder = embedder
        self.column = str(about["column"])
        self.centre = np.asarray(about["centre"], dtype=np.float64)
        self.axes = np.asarray(about["axes"], dtype=np.float64)

    def described(self, question: Row) -> dict[str, Cell]:
        """Return the question with its components and its whole embedding."""
        text = question.get(self.column) or question.get("text")
        if text is None:
            raise InputError(f"the question has no {self.column!r} to be embedded")
        vector = np.asarray(self.embedder.embed([str(text)]), dtype=np.float64)[0]
        points = (vector - self.centre) @ self.axes.T
        names = (f"{self.column}_{number + 1}" for number in range(len(points)))
        return {**question, VECTOR: vector, **dict(zip(names, points.tolist(), strict=True))}


DECISIONS = ("answer", "class")
RULES = ("risk", "excess", "calibration", "confidence")

# What a model said, among the columns that tell whether a later one would do better.
_SAID = "its stated confidence"

# Giving an answer that is wrong costs 1 and nothing else costs anything: t* is 1 and the risk
# of an answer is the estimated chance that it is wrong.
_ANSWER_COSTS = CostMatrix(c00=0.0, c01=0.0, c10=1.0, c11=0.0)


@dataclass(frozen=True, slots=True)
class Aim(Stored):
    """What is decided and what it costs.

    Parameters
    ----------
    decision
        ``"answer"``: each model gives its own answer and the confidence says whether it is
        right; the answer is given in any case. ``"class"``: the confidence is that of outcome 1
        and the decision is 1 where it reaches the threshold.
    costs
        Cost matrix; None means the natural one of the decision.
    threshold
        Where the confidence decides 1 (``"class"`` only); None means t*.
    """

    decision: str = "answer"
    costs: CostMatrix | None = None
    threshold: float | None = None

    def __post_init__(self) -> None:
        require_choice("decision", self.decision, DECISIONS)

    @classmethod
    def of(cls, options: Any) -> Aim:
        """Return the aim that options name; costs may be written in any of their ways."""
        costs = None if options.costs is None else CostMatrix.of(options.costs)
        return cls(options.decision, costs, options.threshold)

    @property
    def matrix(self) -> CostMatrix:
        """The cost matrix in use."""
        if self.costs is not None:
            return self.costs
        return _ANSWER_COSTS if self.decision == "answer" else CostMatrix()

    @property
    def cut(self) -> float:
        """The confidence from which the decision is 1; an answer is always given."""
        if self.decision == "answer":
            return -math.inf
        return self.matrix.threshold if self.threshold is None else self.threshold

    def worth(self, confidence: Floats, correct: Floats) -> Floats:
        """Return what each answer is worth, from 0 (the dearest mistake) to 1 (costs nothing).

        Without costs of its own it is 1 for a right answer and 0 for a wrong one.
        """
        if self.decision == "answer":
            return correct
        cost = self.matrix.spent(confidence >= self.cut, correct)
        least, most = _range(self.matrix)
        return np.asarray(1.0 - (cost - least) / (most - least))

    def doubt(self, confidence: Floats) -> Floats:
        """Return what the answer is expected to cost by the model's own word, from 0 to 1.

        Without costs of its own it is 1 minus the confidence in the answer that is given.
        """
        if self.decision == "answer":
            return 1.0 - confidence
        least, most = _range(self.matrix)
        cost = expected_cost(confidence >= self.cut, confidence, self.matrix)
        return np.asarray((cost - least) / (most - least))


def _range(costs: CostMatrix) -> tuple[float, float]:
    """Return the least and the most that a decision can cost."""
    values = costs.to_dict().values()
    return min(values), max(values)


def _rivals(stored: list[dict[str, Any]]) -> tuple[ResidualModel, ...]:
    return tuple(map(residual_model_from_dict, stored))


@dataclass(frozen=True, slots=True)
class Stage(Stored):
    """A fitted model of a cascade."""

    name: str
    price: float
    recalibrator: Calibrator | None = field(metadata=read_by(calibrator_from_dict))
    residual: ResidualModel | None = field(metadata=read_by(residual_model_from_dict))
    rivals: tuple[ResidualModel, ...] | None = field(default=None, metadata=read_by(_rivals))
    """Excess risk: per later model, what its answer is worth beyond this one's."""

    @staticmethod
    def described(features: Any, confidence: Floats) -> pl.DataFrame:
        """Return the columns that rivals look at: the features, and what this model said."""
        return as_frame(features).with_columns(pl.Series(_SAID, confidence))

    def risk(self, features: Any, confidence: Floats, aim: Aim) -> Floats:
        """Return the risk per row; infinite where the model gave no confidence."""
        risk = np.full(len(confidence), np.inf)
        stated_confidence = ~np.isnan(confidence)
        f = confidence[stated_confidence]
        if self.rivals is not None:
            frame = self.described(features, confidence).filter(stated_confidence)
            # An answer that no later model would better has no excess risk at all.
            gains = [rival.predict(frame) for rival in self.rivals]
            risk[stated_confidence] = np.max([np.zeros(len(f)), *gains], axis=0)
            return risk
        if self.recalibrator is None:
            risk[stated_confidence] = aim.doubt(f)
            return risk
        p = self.recalibrator.transform(f)
        if self.residual is not None:
            part = features if stated_confidence.all() else features.filter(stated_confidence)
            p = p + self.residual.predict(part)
        risk[stated_confidence] = pointwise_risk(p, f, aim.matrix, threshold=aim.cut)
        return risk

    def risk_one(self, query: Row, confidence: float, aim: Aim) -> float:
        """Return the risk of one answer."""
        f = np.array([confidence])
        if self.rivals is not None:
            row = {**query, _SAID: confidence}
            return max([0.0, *(rival.predict_one(row) for rival in self.rivals)])
        if self.recalibrator is None:
            return float(aim.doubt(f)[0])
        p = self.recalibrator.transform(f)
        if self.residual is not None:
            p = p + self.residual.predict_one(query)
        return float(pointwise_risk(p, f, aim.matrix, threshold=aim.cut)[0])
