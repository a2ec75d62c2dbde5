"""Methods against each other on the questions that both have scored, judged on one outcome.

Two methods may be about two answers to a question, and these may have two grades. A comparison
gives both methods the grade of one answer; where grades differ, it is made for each answer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.core.rng import named_stream
from calibrant.metrics.multi_answer.leaves import Leaf
from calibrant.metrics.multi_answer.rows import ScoreRows
from calibrant.metrics.multi_answer.significance import Comparison, compare_aurocs


@dataclass(frozen=True, slots=True)
class Setting:
    """How methods are compared: draws of the test, questions in each, level, seed and model."""

    draws: int
    items: int
    level: float
    seed: int
    model: str


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two methods on the questions that both have scored."""

    first: ScoreRows
    second: ScoreRows
    mix: Sequence[int]
    setting: Setting

    @classmethod
    def of(cls, first: ScoreRows, second: ScoreRows, mix: Sequence[int], setting: Setting) -> _Pair:
        _, left, right = np.intersect1d(first.question, second.question, return_indices=True)
        kept = np.isin(first.k[left], list(mix))
        return cls(first.take(left[kept]), second.take(right[kept]), mix, setting)

    @property
    def n(self) -> int:
        return int(self.first.correct.size)

    @property
    def outcomes_differ(self) -> int:
        """Questions where the answers of the two methods have different grades."""
        return int(np.count_nonzero(self.first.correct != self.second.correct))

    def test(self, kind: str) -> Comparison:
        """Compare on the first method's answers by domain or in one pool, or on the second's."""
        pooled = [Leaf("all", None, np.arange(self.n), 1.0)]
        outcome = self.second.correct if kind == "own" else self.first.correct
        return compare_aurocs(
            (self.first.confidence, outcome),
            (self.second.confidence, outcome),
            pooled if kind == "pooled" else self.first.domains(),
            draws=self.setting.draws,
            items=self.setting.items,
            level=self.setting.level,
            # The draws depend on the mix only, so all methods meet the same questions.
            rng=named_stream(self.setting.seed, "test", self.setting.model, kind, self.mix),
        )


def tests_against(
    rows: Mapping[str, ScoreRows],
    name: str,
    reference: str,
    mixes: Sequence[Sequence[int]],
    setting: Setting,
) -> list[dict[str, Any]]:
    """Return the tests of one method against the reference, one per mix."""
    if name == reference or reference not in rows:
        return []
    found = []
    for mix in mixes:
        pair = _Pair.of(rows[reference], rows[name], mix, setting)
        if pair.n:
            asked = int(np.isin(rows[reference].k, list(mix)).sum())
            found.append(_entry(pair, reference, asked))
    return found


def _entry(pair: _Pair, reference: str, asked: int) -> dict[str, Any]:
    macro, pooled = pair.test("macro"), pair.test("pooled")
    own = pair.test("own") if pair.outcomes_differ else macro
    return {
        "mix": list(pair.mix),
        "n": pair.n,
        "items": macro.items,
        "not_shared": asked - pair.n,
        "difference": macro.difference,
        "error": macro.error,
        "freedom": macro.freedom,
        "p": macro.p,
        "p_student": macro.p_student,
        "pooled_difference": pooled.difference,
        "pooled_p": pooled.p,
        "pooled_p_student": pooled.p_student,
        "outcome": f"the answer that {reference} is about",
        "outcomes_differ": pair.outcomes_differ,
        "own_difference": own.difference,
        "own_p": own.p,
        "own_p_student": own.p_student,
    }


def leading_method(
    rows: Mapping[str, ScoreRows],
    areas: Mapping[str, float],
    mix: Sequence[int],
    setting: Setting,
) -> dict[str, Any] | None:
    """Test the method with the largest AUROC against every other one.

    Whoever reads the largest of many numbers has chosen it, so its p-value is the largest of
    those against the others, times their number (Bonferroni): then it is at most as likely as
    that p-value that a method that is not the best of all is called so.

    Parameters
    ----------
    rows
        Scores of one model, by method.
    areas
        Macro AUROC of every method on the mix; NaN where it is undefined.
    mix
        Numbers of right answers that are pooled.
    setting
        How to compare.
    """
    ranked = sorted(
        (name for name in areas if not math.isnan(areas[name])), key=lambda n: -areas[n]
    )
    if len(ranked) < 2:
        return None
    best, others = ranked[0], ranked[1:]
    against: list[dict[str, Any]] = []
    for name in others:
        pair = _Pair.of(rows[best], rows[name], mix, setting)
        tests = [pair.test("macro")] if pair.n else []
        tests += [pair.test("own")] if pair.n and pair.outcomes_differ else []
        defined = [test for test in tests if not math.isnan(test.p_student)]
        if not defined or len(defined) < len(tests):
            continue
        # The comparison has to hold for the answers of either method.
        weakest = min(defined, key=_signed_distance)
        against.append(
            {
                "method": name,
                "n": pair.n,
                "difference": weakest.difference,
                "error": weakest.error,
                "freedom": weakest.freedom,
                "p_student": weakest.p_student if weakest.difference.value > 0 else 1.0,
            }
        )
    p_values = [test["p_student"] for test in against]
    p_value = min(1.0, len(p_values) * max(p_values)) if p_values else None
    return {"method": best, "mix": list(mix), "methods": len(ranked), "p_value": p_value,
            "against": against}  # fmt: skip


def _signed_distance(test: Comparison) -> float:
    """Return how many standard errors the difference lies above 0."""
    if test.error == 0:
        return math.copysign(math.inf, test.difference.value) if test.difference.value else 0.0
    return test.difference.value / test.error
