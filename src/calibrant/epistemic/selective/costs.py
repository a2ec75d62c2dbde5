"""What it costs to answer wrongly and to ask somebody else, and the cheapest threshold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.core.arrays import Floats, Mask
from calibrant.core.errors import InputError
from calibrant.core.estimate import Estimate
from calibrant.epistemic.selective.certify import error_curve


@dataclass(frozen=True, slots=True)
class AskingCosts:
    """Costs per question: of a wrong answer, and of asking somebody else instead.

    Examples
    --------
    >>> AskingCosts(wrong=10, ask=1).limit
    0.1
    """

    wrong: float
    ask: float

    def __post_init__(self) -> None:
        if not all(math.isfinite(cost) and cost > 0 for cost in (self.wrong, self.ask)):
            raise InputError(
                f"costs are numbers above 0, got wrong={self.wrong:g}, ask={self.ask:g}"
            )

    @property
    def limit(self) -> float:
        """The chance of error above which asking is cheaper."""
        return self.ask / self.wrong

    @classmethod
    def of(cls, costs: Any) -> AskingCosts | None:
        """Return costs from itself, None, or a mapping with ``wrong`` and ``ask``."""
        if costs is None or isinstance(costs, AskingCosts):
            return costs
        if not isinstance(costs, Mapping) or set(costs) != {"wrong", "ask"}:
            given = ", ".join(costs) if isinstance(costs, Mapping) else repr(costs)
            raise InputError(
                f"costs need 'wrong' and 'ask', got {given}", hint="give costs wrong=10,ask=1"
            )
        return cls(float(costs["wrong"]), float(costs["ask"]))

    def per_row(self, answered: Mask, wrong: Floats) -> Floats:
        """Return what each question costs."""
        return np.where(answered, self.wrong * wrong, self.ask)

    def to_dict(self) -> dict[str, float]:
        """Return plain data."""
        return {"wrong": self.wrong, "ask": self.ask}


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """Mean cost per question: of the policy, of always answering, of always asking.

    `saved` is what the policy saves against the cheaper of the two, on rows that did not choose
    its threshold.
    """

    policy: Estimate
    always_answer: Estimate
    always_ask: float
    saved: Estimate


def cheapest(score: Floats, wrong: Floats, grid: Floats, costs: AskingCosts) -> float | None:
    """Return the threshold of `grid` with the lowest cost; None where never answering is cheaper.

    Examples
    --------
    >>> score = np.array([0.9, 0.8, 0.2, 0.1])
    >>> cheapest(score, np.array([0.0, 0.0, 1.0, 1.0]), score, AskingCosts(wrong=3, ask=1))
    0.8
    """
    reached, errors = error_curve(score, wrong, grid)
    saved = costs.ask * reached - costs.wrong * errors
    best = int(np.argmax(saved))
    return float(grid[best]) if saved[best] > 0 else None
