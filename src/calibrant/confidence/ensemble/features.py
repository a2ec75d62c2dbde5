"""One column per method, on a scale that a logistic curve can use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from calibrant.core.arrays import Floats
from calibrant.core.errors import InputError
from calibrant.stats.isotonic import isotonic_fit

_EDGE = 0.01


def logit(value: Floats) -> Floats:
    """Return the log-odds, held within those of 0.01 and 0.99."""
    inside = np.clip(value, _EDGE, 1.0 - _EDGE)
    odds: Floats = np.log(inside / (1.0 - inside))
    return odds


def wide(
    scores: pl.DataFrame, methods: Sequence[str], extra: Sequence[str] = ()
) -> tuple[pl.DataFrame, Floats, Floats]:
    """Return keys, one column per method (and extra column), and the grades.

    Every method must be about the same answer of a question: its grade is what is predicted.
    A question without one of the methods has NaN there.
    """
    chosen = scores.filter(pl.col("method").is_in(list(methods)) & pl.col("correct").is_not_null())
    absent = sorted(set(methods) - set(chosen["method"].unique()))
    if absent:
        raise InputError(f"there are no graded scores of {', '.join(absent)}")
    key = [name for name in ("question_id", "model") if name in chosen.columns]
    grades = chosen.group_by(key, maintain_order=True).agg(
        pl.col("correct").first(), pl.col("correct").n_unique().alias("grades")
    )
    mixed = int((grades["grades"] > 1).sum())
    if mixed:
        raise InputError(
            f"the methods are about different answers in {mixed:,} questions",
            hint='score with about="greedy", so that every method is about the greedy answer',
        )
    table = grades.select(*key, "correct")
    for method in methods:
        column = chosen.filter(pl.col("method") == method).select(
            *key, pl.col("confidence").alias(method)
        )
        table = table.join(column, on=key, how="left", maintain_order="left")
    for name in extra:
        column = chosen.group_by(key, maintain_order=True).agg(pl.col(name).first())
        table = table.join(column, on=key, how="left", maintain_order="left")
    values = table.select(
        pl.col(name).cast(pl.Float64).fill_null(float("nan")) for name in (*methods, *extra)
    ).to_numpy()
    return table.select(key), values, table["correct"].to_numpy().astype(np.float64)


@dataclass(frozen=True, slots=True)
class Scale:
    """Centre and spread of a column; a missing value becomes the centre."""

    centre: float
    spread: float

    @classmethod
    def of(cls, values: Floats) -> Scale:
        """Return the scale of a column."""
        known = values[np.isfinite(values)]
        if not known.size:
            return cls(0.0, 1.0)
        return cls(float(known.mean()), float(known.std()) or 1.0)

    def __call__(self, values: Floats) -> Floats:
        """Return the column in spreads from its centre."""
        scaled = np.clip((values - self.centre) / self.spread, -4.0, 4.0)
        return np.nan_to_num(scaled, nan=0.0)


@dataclass(frozen=True, slots=True)
class Curve:
    """A rising step curve from a score to the share of right answers."""

    knots: tuple[float, ...]
    levels: tuple[float, ...]

    @classmethod
    def fit(cls, values: Floats, correct: Floats) -> Curve:
        """Return the isotonic fit, pulled to the mean as if two further questions had it."""
        known = np.isfinite(values)
        points, place = np.unique(values[known], return_inverse=True)
        weight = np.bincount(place, minlength=points.size).astype(np.float64)
        right = np.bincount(place, weights=correct[known], minlength=points.size).astype(float)
        level = isotonic_fit(weight, right)
        pooled = np.bincount(np.searchsorted(np.unique(level), level), weights=weight)
        mass = pooled[np.searchsorted(np.unique(level), level)]
        mean = float(correct.mean())
        level = (level * mass + 2.0 * mean) / (mass + 2.0)
        return cls(tuple(points.tolist()), tuple(np.maximum.accumulate(level).tolist()))

    def __call__(self, values: Floats) -> Floats:
        """Return the share of right answers at these scores."""
        if not self.knots:
            return np.full(values.shape, 0.5)
        filled = np.where(np.isfinite(values), values, np.median(self.knots))
        return np.interp(filled, self.knots, self.levels)

    def to_dict(self) -> Mapping[str, list[float]]:
        """Return plain lists."""
        return {"knots": list(self.knots), "levels": list(self.levels)}
