"""Small linear models stored as plain numbers: their columns, and what a confidence alone says."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import polars as pl

from calibrant.core.arrays import Floats
from calibrant.core.stored import Stored
from calibrant.epistemic.features import FeatureEncoder, column_numbers
from calibrant.stats.logistic import intercept_free

# A logit of 0 or 1 is kept finite, and no standardised value reaches further than this.
_EDGE = 1e-4
_FARTHEST = 4.0
_FEW_VALUES = 2
_MANY_CATEGORIES = 200
# Numbers of 0 or more that reach this far (token counts, prices, ages in days) are skewed.
_LONG = 50.0
_ATOM_ROWS = 30
_ATOM_SHARE = 0.01
_MOST_KNOTS = 20
# Ranks come from this many quantiles, so that a stored basis is small and exact.
_QUANTILES = 257


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
        self._starts = [sum(sizes[:at]) for at in range(len(sizes))]
        number = [at for at, item in enumerate(encoder.features_) if item.levels is None]
        self._of_numbers = list(zip(number, self.numbers_, strict=True))
        self._of_levels = [at for at in range(len(sizes)) if at not in number]
        return self

    @property
    def names(self) -> list[str]:
        """The columns that a row must have."""
        levels = [self.encoder_.names[at] for at in self._of_levels]
        return [*(number.name for number in self.numbers_), *levels]

    def parts(self, frame: pl.DataFrame) -> tuple[Floats, Floats]:
        """Return the standardised numbers, and 0 and 1 per value of each category."""
        matrix = self.encoder_.transform(frame)
        numbers = np.empty((frame.height, len(self.numbers_)))
        for place, (at, number) in enumerate(self._of_numbers):
            numbers[:, place] = number.standardised(matrix[:, at])
        categories = np.zeros((frame.height, self.width))
        for at in self._of_levels:
            known = np.flatnonzero(np.isfinite(matrix[:, at]))
            categories[known, self._starts[at] + matrix[known, at].astype(np.intp)] = 1.0
        return numbers, categories

    def parts_one(self, row: Mapping[str, Any]) -> tuple[list[float], list[int]]:
        """Return the numbers of one row, and which columns of 0 and 1 are 1."""
        values = self.encoder_.transform_one(row)
        numbers = [number.standardised_one(values[at]) for at, number in self._of_numbers]
        return numbers, [
            self._starts[at] + int(values[at]) for at in self._of_levels if values[at] == values[at]
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        numbers = [asdict(number) for number in self.numbers_]
        return {"encoder": self.encoder_.to_dict(), "numbers": numbers}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Columns:
        """Return the columns that `to_dict` described."""
        numbers = [NumberColumn(**item) for item in data["numbers"]]
        return cls()._with(FeatureEncoder.from_dict(data["encoder"]), numbers)


@dataclass
class ConfidenceBasis(Stored):
    """Columns that describe any smooth or jumpy dependence on a confidence.

    An intercept, one indicator per frequent value (an atom: at least 30 rows and 1 % of them) and
    a linear spline in the rank of the other values. No label enters it.

    Examples
    --------
    >>> basis = ConfidenceBasis().fit(np.repeat([0.5, 0.9], 100))
    >>> basis.transform(np.array([0.5, 0.9])).tolist()
    [[1.0, 1.0], [1.0, 0.0]]
    """

    atoms: Floats = field(default_factory=lambda: np.empty(0))
    quantiles: Floats = field(default_factory=lambda: np.empty(0))
    knots: Floats = field(default_factory=lambda: np.empty(0))

    @property
    def all_atoms(self) -> bool:
        """Whether there is nothing beside the atoms."""
        return not len(self.quantiles)

    def fit(self, confidence: Floats, *, knots: int | None = None) -> ConfidenceBasis:
        """Learn atoms and ranks from the confidences; `knots` overrides n^(1/3), at most 20."""
        values, counts = np.unique(confidence, return_counts=True)
        self.atoms = values[counts >= max(_ATOM_ROWS, _ATOM_SHARE * len(confidence))]
        others = confidence[~np.isin(confidence, self.atoms)]
        self.quantiles = self.knots = np.empty(0)
        if len(others) < _ATOM_ROWS:
            return self
        grid = np.linspace(0, 1, _QUANTILES)
        self.quantiles = np.quantile(others, grid)
        count = min(_MOST_KNOTS, max(2, round(len(others) ** (1 / 3)))) if knots is None else knots
        self.knots = np.linspace(0, 1, count + 1)[1:-1]
        return self

    def transform(self, confidence: Floats) -> Floats:
        """Return one row of columns per confidence; the first column is 1."""
        f = np.asarray(confidence, dtype=np.float64)
        # With nothing but atoms the last indicator follows from the intercept.
        atoms = self.atoms[:-1] if self.all_atoms else self.atoms
        columns = [np.ones(len(f)), *((f == atom).astype(np.float64) for atom in atoms)]
        if not self.all_atoms:
            rank = np.interp(f, self.quantiles, np.linspace(0, 1, len(self.quantiles)))
            beside = ~np.isin(f, self.atoms)
            columns += [np.where(beside, rank, 0.0)]
            columns += [np.where(beside, np.maximum(rank - knot, 0), 0.0) for knot in self.knots]
        return np.column_stack(columns)


def projector(columns: Floats) -> Floats:
    """Return an orthonormal basis of the span of `columns`; dependent ones are left out.

    Examples
    --------
    >>> projector(np.array([[1.0, 1.0], [1.0, 1.0]])).shape
    (2, 1)
    """
    # Through the small Gram matrix: far cheaper than a decomposition of the rows.
    scale = np.sqrt((columns**2).sum(axis=0))
    scaled = columns / np.where(scale > 0, scale, 1.0)
    values, vectors = np.linalg.eigh(scaled.T @ scaled)
    kept = values > 1e-9 * values.max()
    basis: Floats = scaled @ (vectors[:, kept] / np.sqrt(values[kept]))
    return basis


def project(basis: Floats, values: Floats) -> Floats:
    """Return the part of `values` that an orthonormal basis explains."""
    explained: Floats = basis @ (basis.T @ values)
    return explained


def ridge_linear(design: Floats, targets: Floats, ridge: float) -> Floats:
    """Return the coefficients of a linear regression, one column per column of `targets`.

    Examples
    --------
    >>> x = np.column_stack([np.ones(4), [0.0, 1.0, 2.0, 3.0]])
    >>> ridge_linear(x, np.array([[1.0], [3.0], [5.0], [7.0]]), 1e-9).round(3).ravel().tolist()
    [1.0, 2.0]
    """
    gram = design.T @ design
    gram[np.diag_indices_from(gram)] += intercept_free(design, ridge)
    return np.asarray(np.linalg.solve(gram, design.T @ targets), dtype=np.float64)
