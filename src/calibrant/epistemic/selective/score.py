"""The score that is held against the threshold: the confidence itself, or one learned from more."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
from scipy.special import expit

from calibrant.core.arrays import Floats
from calibrant.core.errors import InputError
from calibrant.epistemic.linear import Columns
from calibrant.epistemic.policy import CONFIDENCE
from calibrant.stats.logistic import intercept_free, ridge_logistic

_RIDGE = 3.0
_MOST_PRODUCTS = 6


class RawScore:
    """The confidence itself."""

    kind = "confidence"
    names = (CONFIDENCE,)

    def predict(self, frame: pl.DataFrame) -> Floats:
        """Return the score per row."""
        values: Floats = frame[CONFIDENCE].cast(pl.Float64).to_numpy()
        return values

    def predict_one(self, row: Mapping[str, Any]) -> float:
        """Return the score of one row."""
        return float(row[CONFIDENCE])

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {"kind": self.kind}


class LearnedScore:
    """The chance of being right by a ridge logistic regression, stored as plain coefficients.

    Numbers enter with their square and their products, categories with one coefficient per value.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> table = pl.DataFrame({"confidence": rng.random(600), "tokens": rng.integers(1, 900, 600)})
    >>> right = (rng.random(600) < np.where(table["tokens"] < 300, 0.9, 0.4)).astype(float)
    >>> score = LearnedScore().fit(table, right)
    >>> score.predict_one({"confidence": 0.5, "tokens": 100}) > 0.7
    True
    """

    kind = "learned"
    columns_: Columns
    coefficients_: Floats

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that a row must have."""
        return tuple(self.columns_.names)

    def fit(self, frame: pl.DataFrame, correct: Floats) -> LearnedScore:
        """Learn from graded rows."""
        self.columns_ = Columns().fit(frame)
        self._index()
        design = self._design(frame)
        self.coefficients_ = ridge_logistic(design, correct, intercept_free(design, _RIDGE))
        return self

    def _index(self) -> None:
        numbers = self.columns_.numbers_
        self._curved = [at for at, number in enumerate(numbers) if not number.binary]
        self._pairs = list(combinations(range(len(numbers)), 2))[:_MOST_PRODUCTS]

    def _design(self, frame: pl.DataFrame) -> Floats:
        numbers, categories = self.columns_.parts(frame)
        parts = [
            np.ones((frame.height, 1)),
            categories,
            numbers,
            numbers[:, self._curved] ** 2,
            *(numbers[:, [a]] * numbers[:, [b]] for a, b in self._pairs),
        ]
        return np.concatenate(parts, axis=1)

    def predict(self, frame: pl.DataFrame) -> Floats:
        """Return the estimated chance of being right, per row."""
        rates: Floats = expit(self._design(frame) @ self.coefficients_)
        return rates

    def predict_one(self, row: Mapping[str, Any]) -> float:
        """Return the estimated chance of being right for one row."""
        numbers, codes = self.columns_.parts_one(row)
        weights, at = self.coefficients_.tolist(), 1 + self.columns_.width
        total = weights[0] + sum(weights[1 + code] for code in codes)
        terms = [*numbers, *(numbers[k] ** 2 for k in self._curved)]
        terms += [numbers[a] * numbers[b] for a, b in self._pairs]
        total += sum(weight * term for weight, term in zip(weights[at:], terms, strict=True))
        return 1.0 / (1.0 + math.exp(-total)) if total > -700 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "kind": self.kind,
            "columns": self.columns_.to_dict(),
            "coefficients": self.coefficients_.tolist(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> LearnedScore:
        """Return the score that `to_dict` described."""
        score = cls()
        score.columns_ = Columns.from_dict(data["columns"])
        score.coefficients_ = np.asarray(data["coefficients"], dtype=np.float64)
        score._index()
        return score


Score = RawScore | LearnedScore


def score_from_dict(data: Mapping[str, Any]) -> Score:
    """Return the score that its `to_dict` described."""
    if data["kind"] == RawScore.kind:
        return RawScore()
    if data["kind"] == LearnedScore.kind:
        return LearnedScore.from_dict(data)
    raise InputError(f"unknown kind of score {data['kind']!r} in the policy")
