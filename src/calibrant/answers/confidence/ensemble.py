"""Stacking: a logistic curve over several methods, or over their isotonic curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import starmap
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import orjson
import polars as pl

from calibrant.answers.confidence.compact import DrawTable
from calibrant.answers.confidence.method import METHODS, Options, register
from calibrant.core.arrays import Floats, named_stream
from calibrant.core.document import Stored, read_by
from calibrant.core.errors import InputError
from calibrant.metrics.stats.regressions import isotonic_fit, logistic_fit

_EDGE = 0.01


def logit(value: Floats) -> Floats:
    """Return the log-odds, held within those of 0.01 and 0.99."""
    inside = np.clip(value, _EDGE, 1.0 - _EDGE)
    return np.asarray(np.log(inside / (1.0 - inside)))


def wide(
    scores: pl.DataFrame, methods: Sequence[str], extra: Sequence[str] = ()
) -> tuple[pl.DataFrame, Floats, Floats]:
    """Return keys, one column per method (and extra column), and the grades.

    Every method must be about the same answer of a question: its grade is what is predicted.
    A question without one of the methods has NaN there.
    """
    choice = scores.filter(pl.col("method").is_in(list(methods)) & pl.col("correct").is_not_null())
    absent = sorted(set(methods) - set(choice["method"].unique()))
    if absent:
        raise InputError(f"there are no graded scores of {', '.join(absent)}")
    key = [name for name in ("question_id", "model") if name in choice.columns]
    grades = choice.group_by(key, maintain_order=True).agg(
        pl.col("correct").first(),
        pl.col("correct").n_unique().alias("grades"),
        pl.col(list(extra)).first(),
    )
    mixed = int((grades["grades"] > 1).sum())
    if mixed:
        raise InputError(
            f"the methods are about different answers in {mixed:,} questions",
            hint='score with about="greedy", so that every method is about the greedy answer',
        )
    table = grades.drop("grades")
    for method in methods:
        column = choice.filter(method=method).select(*key, pl.col("confidence").alias(method))
        table = table.join(column, on=key, how="left", maintain_order="left")
    values = table.select(
        pl.col(name).cast(pl.Float64).fill_null(float("nan")) for name in (*methods, *extra)
    ).to_numpy()
    return table.select(key), values, table["correct"].to_numpy().astype(np.float64)


class Standardisation(NamedTuple):
    """Centre and spread of a column; a missing value becomes the centre."""

    centre: float
    spread: float

    @classmethod
    def of(cls, values: Floats) -> Standardisation:
        """Return the scale of a column."""
        finite = values[np.isfinite(values)]
        if not finite.size:
            return cls(0.0, 1.0)
        return cls(float(finite.mean()), float(finite.std()) or 1.0)

    def __call__(self, values: Floats) -> Floats:
        """Return the column in spreads from its centre."""
        scaled = np.clip((values - self.centre) / self.spread, -4.0, 4.0)
        return np.nan_to_num(scaled, nan=0.0)


@dataclass(frozen=True, slots=True)
class Curve(Stored):
    """A rising step curve from a score to the share of right answers."""

    knots: tuple[float, ...]
    levels: tuple[float, ...]

    @classmethod
    def fit(cls, values: Floats, correct: Floats) -> Curve:
        """Return the isotonic fit, pulled to the mean as if two further questions had it."""
        finite = np.isfinite(values)
        points, place = np.unique(values[finite], return_inverse=True)
        weight = np.bincount(place, minlength=points.size).astype(np.float64)
        right = np.bincount(place, weights=correct[finite], minlength=points.size).astype(float)
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


Kind = Literal["logistic", "isotonic"]
_SCHEMA = "calibrant.ensemble/1"
_PENALTY = 1.0


@dataclass(frozen=True)
class Ensemble(Stored):
    """A fitted combination of methods; its value is the chance that the answer is right.

    Parameters
    ----------
    methods
        The methods, all about the greedy answer.
    kind
        ``logistic``: log-odds of probabilities and scaled other scores; ``isotonic``: log-odds
        of each method's own rising curve.
    extra
        Further columns that shift and tilt every method, for example ``predicted_k``.
    scales, curves, weights
        What was fitted.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> right = rng.random(300) < 0.5
    >>> table = pl.concat([pl.DataFrame({"question_id": np.arange(300).astype(str),
    ...     "method": name, "confidence": np.clip(0.3 + 0.4 * right + rng.normal(0, s, 300), 0, 1),
    ...     "correct": right.astype(float)}) for name, s in (("verb", 0.3), ("perplexity", 0.2))])
    >>> fitted = Ensemble.fit(table, ["verb", "perplexity"])
    >>> bool(fitted.predict(np.array([[0.9, 0.9]]))[0] > 0.8)
    True
    """

    methods: tuple[str, ...]
    kind: Kind
    extra: tuple[str, ...]
    scales: tuple[Standardisation, ...] = field(
        metadata=read_by(lambda all_: tuple(starmap(Standardisation, all_)))
    )
    curves: tuple[Curve, ...]
    weights: tuple[float, ...]
    questions: int = 0

    @classmethod
    def fit(
        cls,
        scores: pl.DataFrame,
        methods: Sequence[str],
        *,
        kind: Kind = "logistic",
        extra: Sequence[str] = (),
    ) -> Ensemble:
        """Fit to graded scores (a scores table, every method about the same answer)."""
        _, values, correct = wide(scores, methods, extra)
        return cls._fit(values, correct, methods, kind, extra)

    @classmethod
    def _fit(
        cls, values: Floats, right: Floats, methods: Sequence[str], kind: Kind, extra: Sequence[str]
    ) -> Ensemble:
        if kind not in ("logistic", "isotonic"):
            raise InputError(f"kind is logistic or isotonic, got {kind!r}")
        size = len(methods)
        curves: tuple[Curve, ...] = ()
        if kind == "isotonic":
            curves = tuple(Curve.fit(values[:, i], right) for i in range(size))
        raw = _raw(values, methods, curves)
        scales = tuple(Standardisation.of(raw[:, i]) for i in range(raw.shape[1]))
        design = _design(raw, scales, size)
        even = np.ones(right.size)
        first, slopes = logistic_fit(design, right, even, _PENALTY / right.size)
        weights = (first, *slopes.tolist())
        return cls(tuple(methods), kind, tuple(extra), scales, curves, weights, len(right))

    def predict(self, values: Floats) -> Floats:
        """Return the chance of being right for rows of method values (and extra columns)."""
        raw = _raw(np.asarray(values, dtype=np.float64), self.methods, self.curves)
        design = _design(raw, self.scales, len(self.methods))
        odds = self.weights[0] + design @ np.array(self.weights[1:])
        return np.asarray(1.0 / (1.0 + np.exp(-odds)))

    def save(self, path: str | Path) -> None:
        """Write the ensemble as plain JSON."""
        body = {"schema": _SCHEMA, **self.to_dict()}
        Path(path).write_bytes(orjson.dumps(body, option=orjson.OPT_INDENT_2) + b"\n")


def load_ensemble(path: str | Path) -> Ensemble:
    """Read an ensemble that was saved as JSON."""
    place = Path(path)
    if not place.is_file():
        raise InputError("the file of the ensemble does not exist", source=str(path))
    try:
        body = orjson.loads(place.read_bytes())
    except orjson.JSONDecodeError as error:
        raise InputError(f"not a JSON file: {error}", source=str(path)) from None
    if body.get("schema") != _SCHEMA:
        raise InputError(f"not a saved ensemble: schema is not {_SCHEMA}", source=str(path))
    return Ensemble.from_dict(body)


def cross_fit(
    scores: pl.DataFrame,
    methods: Sequence[str],
    *,
    kind: Kind = "logistic",
    extra: Sequence[str] = (),
    folds: int = 5,
    seed: int = 0,
    name: str = "ensemble",
) -> pl.DataFrame:
    """Return out-of-fold predictions as scores: no question is judged by a fit that saw it.

    Questions, not rows, are split: a question asked to several models is in one fold.
    """
    key, values, correct = wide(scores, methods, extra)
    ids = key["question_id"]
    kinds = ids.unique(maintain_order=True)
    if len(kinds) < 2 * folds:
        raise InputError(
            f"{folds} folds need at least {2 * folds} graded questions, got {len(kinds)}"
        )
    fold_of = named_stream(seed, "ensemble folds").permutation(len(kinds)) % folds
    fold = ids.replace_strict(kinds, fold_of, return_dtype=pl.Int64).to_numpy()
    value = np.full(correct.size, np.nan)
    for item in range(folds):
        held_out = fold == item
        fitted = Ensemble._fit(values[~held_out], correct[~held_out], methods, kind, extra)
        value[held_out] = fitted.predict(values[held_out])
    columns = {"confidence": pl.Series(value), "correct": pl.Series(correct)}
    return key.with_columns(method=pl.lit(name), **columns)


def _raw(values: Floats, methods: Sequence[str], curves: tuple[Curve, ...]) -> Floats:
    """Return each method's column as log-odds where it is a probability, then extra columns."""
    columns = list(values.T)
    for place, method in enumerate(methods):
        if curves:
            columns[place] = logit(curves[place](columns[place]))
        elif method in METHODS and METHODS[method].probability:
            columns[place] = logit(columns[place])
    extra = [np.log(np.maximum(column, 1e-12)) for column in columns[len(methods) :]]
    return np.column_stack([*columns[: len(methods)], *extra])


def _design(raw: Floats, scales: Sequence[Standardisation], size: int) -> Floats:
    """Return every scaled column, and each method times each extra column."""
    scaled = np.column_stack([scale(raw[:, i]) for i, scale in enumerate(scales)])
    tilted = [
        scaled[:, i] * scaled[:, j] for i in range(size) for j in range(size, scaled.shape[1])
    ]
    return np.column_stack([scaled, *tilted])


@register
def ensemble(table: DrawTable, options: Options) -> Floats:
    """Value of the ensemble that the option ``ensemble`` names."""
    if options.ensemble is None:
        return np.full(len(table), np.nan)
    fitted = load_ensemble(options.ensemble)
    if fitted.extra:
        raise InputError(
            f"this ensemble needs the columns {', '.join(fitted.extra)}, which draws do not have",
            source=options.ensemble,
        )
    inner = Options(about="greedy", similarity=options.similarity, seed=options.seed)
    columns = [METHODS[name].scored(table, inner).value for name in fitted.methods]
    value = fitted.predict(np.column_stack(columns))
    missing = np.all([np.isnan(column) for column in columns], axis=0)
    return np.where(missing, np.nan, value)
