"""The scores of one model and method as arrays, one row per question."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import polars as pl

from calibrant.core.arrays import Array
from calibrant.metrics.multi_answer.leaves import Leaf, leaves


@dataclass(frozen=True)
class ScoreRows:
    """The scores of one model and method as arrays."""

    question: Array
    confidence: Array
    correct: Array
    k: Array
    domain: Array
    subtype: Array | None

    @classmethod
    def of(cls, frame: pl.DataFrame) -> ScoreRows:
        """Read the rows of one model and method from a table of scores."""
        subtype = frame["subtype"].fill_null("").to_numpy() if "subtype" in frame.columns else None
        return cls(
            question=frame["question_id"].to_numpy(),
            confidence=frame["confidence"].to_numpy().astype(np.float64),
            correct=frame["correct"].cast(pl.Float64).to_numpy(),
            k=frame["k"].to_numpy(),
            domain=frame["domain"].to_numpy(),
            subtype=subtype,
        )

    def take(self, rows: Array) -> ScoreRows:
        """Return these rows alone."""
        subtype = None if self.subtype is None else self.subtype[rows]
        return ScoreRows(
            self.question[rows],
            self.confidence[rows],
            self.correct[rows],
            self.k[rows],
            self.domain[rows],
            subtype,
        )

    def of_k(self, ks: Collection[int]) -> ScoreRows:
        """Return the questions with one of these numbers of right answers."""
        return self.take(np.flatnonzero(np.isin(self.k, list(ks))))

    def leaves(self) -> list[Leaf]:
        """Domains, and the kinds within Math: the parts of accuracy and confidence."""
        return leaves(self.domain, self.subtype)

    def domains(self) -> list[Leaf]:
        """Whole domains: AUROC pools the kinds of Math, as the paper does (C.2)."""
        return leaves(self.domain, None)
