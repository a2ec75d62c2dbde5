"""One model of a cascade: its recalibration, its residuals, its price."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from calibrant.core.arrays import Floats
from calibrant.core.errors import require_choice
from calibrant.core.stored import Stored, read_by
from calibrant.data.features import as_frame
from calibrant.metrics.recalibration.base import Calibrator
from calibrant.metrics.recalibration.cross_fit import calibrator_from_dict
from calibrant.trust.loss.decision import CostMatrix, expected_cost, pointwise_risk
from calibrant.trust.policy_file import Row
from calibrant.trust.trees.residuals import ResidualModel, residual_model_from_dict

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
