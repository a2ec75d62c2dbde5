"""The chance of being right, learned from columns and stored as plain numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np
import polars as pl
from scipy.special import expit

from calibrant.core.arrays import Floats
from calibrant.data.features import FeatureEncoder, column_numbers
from calibrant.metrics.stats.regressions import intercept_free, ridge_logistic

# A logit of 0 or 1 is kept finite, and no standardised value reaches further than this.
_EDGE = 1e-4
_FARTHEST = 4.0
_FEW_VALUES = 2
_MANY_CATEGORIES = 200
# Numbers of 0 or more that reach this far (token counts, prices, ages in days) are skewed.
_LONG = 50.0
_RIDGE = 3.0
_MOST_PRODUCTS = 6


@dataclass(frozen=True, slots=True)
class NumberColumn:
    """A number: its scale (``logit``, ``log`` or ``plain``), then centre and spread there."""

    name: str
    scale: str
    centre: float
    spread: float
    binary: bool

    @classmethod
    def learn(cls, name: str, values: Floats) -> NumberColumn:
        """Choose the scale from the range of the values; no outcome is looked at."""
        binary = len(np.unique(values)) <= _FEW_VALUES
        scale = "plain"
        if values.min() >= 0:
            scale = "logit" if values.max() <= 1 and not binary else "plain"
            scale = "log" if values.max() > _LONG else scale
        on_scale = _scaled(values, scale)
        spread = float(on_scale.std())
        return cls(name, scale, float(on_scale.mean()), spread if spread > 0 else 1.0, binary)

    def standardised(self, values: Floats) -> Floats:
        """Return the values in standard deviations from the mean, at most four."""
        result = (_scaled(values, self.scale) - self.centre) / self.spread
        return np.clip(result, -_FARTHEST, _FARTHEST)

    def standardised_one(self, number: float) -> float:
        """Return one value as `standardised` does."""
        if self.scale == "logit":
            number = min(max(number, _EDGE), 1 - _EDGE)
            number = math.log(number / (1 - number))
        elif self.scale == "log":
            number = math.log1p(max(number, 0.0))
        return min(max((number - self.centre) / self.spread, -_FARTHEST), _FARTHEST)


def _scaled(values: Floats, scale: str) -> Floats:
    if scale == "logit":
        inside = np.clip(values, _EDGE, 1 - _EDGE)
        return np.log(inside / (1 - inside))
    return np.log1p(np.maximum(values, 0.0)) if scale == "log" else values


class Columns:
    """Encoded features on one scale: numbers standardised, a column of 0 and 1 per category.

    A category that was not seen has 0 in all its columns, so that a ridge model treats it as the
    average one.

    Examples
    --------
    >>> table = pl.DataFrame({"topic": ["law", "art"], "confidence": [0.9, 0.5]})
    >>> columns = Columns().fit(table)
    >>> numbers, categories = columns.parts(table)
    >>> categories.tolist(), numbers.ravel().round(3).tolist()
    ([[0.0, 1.0], [1.0, 0.0]], [1.0, -1.0])
    >>> columns.parts_one({"topic": "law", "confidence": 0.9})[1]
    [1]
    """

    numbers_: tuple[NumberColumn, ...]

    def fit(self, frame: pl.DataFrame) -> Columns:
        """Learn scales and categories; no outcome enters."""
        encoder = FeatureEncoder(unseen="calibration", most=_MANY_CATEGORIES).fit(frame)
        names = [feature.name for feature in encoder.features_ if feature.levels is None]
        return self._with(encoder, [NumberColumn.learn(n, column_numbers(frame[n])) for n in names])

    def _with(self, encoder: FeatureEncoder, numbers: Sequence[NumberColumn]) -> Columns:
        self.encoder_, self.numbers_ = encoder, tuple(numbers)
        sizes = [0 if item.levels is None else len(item.levels) for item in encoder.features_]
        self.width = sum(sizes)
        # Where the columns of 0 and 1 of each feature begin.
        self._starts = [sum(sizes[:place]) for place in range(len(sizes))]
        number = [place for place, item in enumerate(encoder.features_) if item.levels is None]
        self._of_numbers = list(zip(number, self.numbers_, strict=True))
        self._of_levels = [place for place in range(len(sizes)) if place not in number]
        return self

    @property
    def names(self) -> list[str]:
        """The columns that a row must have."""
        levels = [self.encoder_.names[place] for place in self._of_levels]
        return [*(number.name for number in self.numbers_), *levels]

    def parts(self, frame: pl.DataFrame) -> tuple[Floats, Floats]:
        """Return the standardised numbers, and 0 and 1 per value of each category."""
        matrix = self.encoder_.transform(frame)
        numbers = np.empty((frame.height, len(self.numbers_)))
        for place, (position, number) in enumerate(self._of_numbers):
            numbers[:, place] = number.standardised(matrix[:, position])
        categories = np.zeros((frame.height, self.width))
        for position in self._of_levels:
            rows = np.flatnonzero(np.isfinite(matrix[:, position]))
            categories[rows, self._starts[position] + matrix[rows, position].astype(np.intp)] = 1.0
        return numbers, categories

    def parts_one(self, row: Mapping[str, object]) -> tuple[list[float], list[int]]:
        """Return the numbers of one row, and which columns of 0 and 1 are 1."""
        values = self.encoder_.transform_one(row)
        numbers = [number.standardised_one(values[place]) for place, number in self._of_numbers]
        seen = (place for place in self._of_levels if values[place] == values[place])
        return numbers, [self._starts[place] + int(values[place]) for place in seen]

    def to_dict(self) -> dict[str, object]:
        """Return plain data."""
        numbers = [asdict(number) for number in self.numbers_]
        return {"encoder": self.encoder_.to_dict(), "numbers": numbers}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Columns:
        """Return the columns that `to_dict` described."""
        numbers = [NumberColumn(**item) for item in data["numbers"]]
        return cls()._with(FeatureEncoder.from_dict(data["encoder"]), numbers)


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

    def fit(
        self, frame: pl.DataFrame, correct: Floats, weights: Floats | None = None
    ) -> LearnedScore:
        """Learn from graded rows."""
        self.columns_ = Columns().fit(frame)
        self._index()
        design = self._design(frame)
        penalty = intercept_free(design, _RIDGE)
        self.coefficients_ = ridge_logistic(design, correct, penalty, weights=weights)
        return self

    def _index(self) -> None:
        numbers = self.columns_.numbers_
        self._curved = [place for place, number in enumerate(numbers) if not number.binary]
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
        return np.asarray(expit(self._design(frame) @ self.coefficients_))

    def predict_one(self, row: Mapping[str, object]) -> float:
        """Return the estimated chance of being right for one row."""
        numbers, codes = self.columns_.parts_one(row)
        weights, place = self.coefficients_.tolist(), 1 + self.columns_.width
        total = weights[0] + sum(weights[1 + code] for code in codes)
        terms = [*numbers, *(numbers[k] ** 2 for k in self._curved)]
        terms += [numbers[a] * numbers[b] for a, b in self._pairs]
        total += sum(weight * term for weight, term in zip(weights[place:], terms, strict=True))
        return 1.0 / (1.0 + math.exp(-total)) if total > -700 else 0.0

    def to_dict(self) -> dict[str, object]:
        """Return plain data."""
        columns, coefficients = self.columns_.to_dict(), self.coefficients_.tolist()
        return {"kind": self.kind, "columns": columns, "coefficients": coefficients}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> LearnedScore:
        """Return the score that `to_dict` described."""
        score = cls()
        score.columns_ = Columns.from_dict(data["columns"])
        score.coefficients_ = np.asarray(data["coefficients"], dtype=np.float64)
        score._index()
        return score
