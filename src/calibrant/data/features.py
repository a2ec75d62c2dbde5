"""Columns of a table as numbers: one encoder for trees, linear models and boosting.

A number stays as it is, a category becomes a code, and nothing is imputed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from msgspec import Struct
from msgspec.structs import asdict

from calibrant.core.arrays import Floats, Mask
from calibrant.core.errors import InputError, did_you_mean, require_choice
from calibrant.core.hints import Hint
from calibrant.data import read_table

# A histogram has 255 bins: with more categories two of them would share a bin.
MAX_CATEGORIES = 255
UNSEEN_RULES = ("error", "calibration")


def checked_pair(
    confidence: npt.ArrayLike, correct: npt.ArrayLike, frame: pl.DataFrame | None = None
) -> tuple[Floats, Floats]:
    """Return confidence and outcome as float arrays after checking ranges and lengths."""
    f = np.asarray(confidence, dtype=np.float64)
    y = np.asarray(correct, dtype=np.float64)
    if f.ndim != 1 or f.shape != y.shape:
        raise InputError(
            f"confidence and correct must be of one length, got shapes {f.shape} and {y.shape}"
        )
    if frame is not None and frame.height != len(f):
        raise InputError(f"{frame.height} rows of features for {len(f)} confidences")
    hint = "recalibrate a score that is no probability, or drop the row"
    _refuse_first(~((f >= 0) & (f <= 1)), f, "a confidence must be between 0 and 1", hint)
    _refuse_first((y != 0) & (y != 1), y, "an outcome must be 0 or 1")
    return f, y


def _refuse_first(bad: Mask, values: Floats, rule: str, hint: str | None = None) -> None:
    """Refuse the first value that breaks a rule."""
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(f"{rule}, got {values[row]}", row=row + 1, hint=hint)


def as_frame(features: Any) -> pl.DataFrame:
    """Return features as a polars frame; the columns of a 2-d array are called x0, x1, ...

    Examples
    --------
    >>> as_frame(np.zeros((3, 2))).columns
    ['x0', 'x1']
    """
    if isinstance(features, pl.DataFrame):
        return features
    if isinstance(features, np.ndarray):
        if features.ndim != 2:
            rule = (
                f"features must be a table or a 2-d array, got an array with {features.ndim} axes"
            )
            raise InputError(rule, hint="use features.reshape(-1, 1) for a single feature")
        return pl.DataFrame({f"x{place}": column for place, column in enumerate(features.T)})
    return read_table(features)


class Feature(Struct, frozen=True):
    """A feature; `levels` holds the categories in order of their code, None for a number."""

    name: str
    levels: tuple[str, ...] | None = None


class FeatureEncoder:
    """Turn a table into numbers, one column per feature.

    With a target, categories are ranked by its mean: a threshold on the rank is then the best
    split into two sets of categories (Fisher's result for squared error). Without one they are in
    the order of their names, and no outcome can leak.

    Parameters
    ----------
    unseen
        What an unseen category means later: ``"error"``, or ``"calibration"`` (NaN; the row gets
        no correction beyond recalibration).
    most
        Categories told apart. With a target more are refused, else rarer ones count as unseen.

    Examples
    --------
    >>> table = {"sex": ["f", "m", "m", "f"], "age": [20, 30, 40, 50]}
    >>> encoder = FeatureEncoder().fit(table, np.array([0.0, 1.0, 1.0, 0.0]))
    >>> encoder.features_[0].levels
    ('f', 'm')
    >>> encoder.transform(table).tolist()
    [[0.0, 20.0], [1.0, 30.0], [1.0, 40.0], [0.0, 50.0]]
    """

    features_: tuple[Feature, ...]

    def __init__(self, *, unseen: str = "error", most: int = MAX_CATEGORIES) -> None:
        require_choice("unseen", unseen, UNSEEN_RULES)
        self.unseen, self.most = unseen, most

    @property
    def names(self) -> list[str]:
        """The names of the features, in order."""
        return [feature.name for feature in self.features_]

    def fit(self, features: Any, target: Floats | None = None) -> FeatureEncoder:
        """Learn which columns are numbers and in which order the categories come."""
        frame = as_frame(features)
        if not frame.columns:
            raise InputError(
                "at least one feature is needed", hint=Hint("name columns with {features}")
            )
        if target is not None and frame.height != len(target):
            raise InputError(f"{frame.height} rows of features for {len(target)} outcomes")
        return self._with(self._learn(column, target) for column in frame.get_columns())

    def _with(self, features: Any) -> FeatureEncoder:
        self.features_ = tuple(features)
        levels = [feature.levels for feature in self.features_]
        self._codes = [None if ls is None else {x: n for n, x in enumerate(ls)} for ls in levels]
        return self

    def _learn(self, column: pl.Series, target: Floats | None) -> Feature:
        if column.dtype.is_numeric():
            column_numbers(column)
            return Feature(column.name)
        text = _texts(column)
        if target is None:
            frequent = text.value_counts(sort=True)[text.name].head(self.most)
            return Feature(column.name, tuple(frequent.sort().to_list()))
        table = pl.DataFrame({"level": text, "target": target})
        means = table.group_by("level").agg(pl.mean("target")).sort("target", "level")
        if means.height > self.most:
            rule = f"the feature {column.name!r} has {means.height} categories, at most "
            rule += f"{self.most} can be told apart"
            raise InputError(rule, hint="group rare categories, or leave an identifier out")
        return Feature(column.name, tuple(means["level"].to_list()))

    def transform(self, features: Any) -> Floats:
        """Return one float64 row per row of the table; unseen categories are NaN where allowed."""
        frame = as_frame(features)
        require(frame.columns, self.names)
        # Columns in one piece: they are written and read one at a time.
        matrix = np.empty((frame.height, len(self.features_)), dtype=np.float64, order="F")
        for position, feature in enumerate(self.features_):
            matrix[:, position] = self._column(frame[feature.name], feature)
        return matrix

    def _column(self, column: pl.Series, feature: Feature) -> Floats:
        if feature.levels is None:
            return column_numbers(column)
        text = _texts(column)
        known = {level: code for code, level in enumerate(feature.levels)}
        codes = text.replace_strict(known, default=None, return_dtype=pl.Float64)
        if codes.null_count() and self.unseen == "error":
            row = int(codes.is_null().arg_max() or 0)
            raise _unseen(feature, text[row], row=row + 1)
        return codes.fill_null(float("nan")).to_numpy()

    def transform_one(self, query: Mapping[str, object]) -> list[float]:
        """Return the row of a single query; the quick way that a server takes."""
        row = []
        for feature, codes in zip(self.features_, self._codes, strict=True):
            name = feature.name
            if name not in query:
                require(list(query), self.names)
            value: Any = query[name]
            if codes is None:
                try:
                    number = float(value)
                except (TypeError, ValueError):
                    rule = f"the feature {name!r} must be a number, got {value!r}"
                    raise InputError(rule) from None
                if number - number != 0.0:
                    raise InputError(f"the feature {name!r} must be a finite number, got {value!r}")
                row.append(number)
                continue
            if value is None:
                raise InputError(f"the feature {name!r} is missing")
            code = codes.get(level_text(value))
            if code is None and self.unseen == "error":
                raise _unseen(feature, value)
            row.append(float("nan") if code is None else float(code))
        return row

    def to_dict(self) -> dict[str, object]:
        """Return the encoder as plain data."""
        return {"unseen": self.unseen, "features": [asdict(feature) for feature in self.features_]}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> FeatureEncoder:
        """Return the encoder that `to_dict` described."""
        return cls(unseen=data["unseen"])._with(
            Feature(item["name"], None if item["levels"] is None else tuple(item["levels"]))
            for item in data["features"]
        )


def level_text(value: Any) -> str:
    """Return the name of a category as a table would write it; nothing is the empty one."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def require(columns: Sequence[str], needed: Sequence[str]) -> None:
    """Refuse a table or row that lacks a column."""
    name = next((name for name in needed if name not in columns), None)
    if name is not None:
        hint = did_you_mean(name, list(columns)) if columns else "give the features by name"
        rule = f"the feature {name!r} is missing; needed: {', '.join(needed)}"
        raise InputError(rule, hint=hint)


def _texts(column: pl.Series) -> pl.Series:
    if column.dtype.is_nested() or column.dtype.is_temporal():
        rule = f"the feature {column.name!r} holds {column.dtype}, not a number or a category"
        raise InputError(rule, hint="turn it into numbers or text first")
    _refuse_missing(column)
    return column.cast(pl.String)


def column_numbers(column: pl.Series) -> Floats:
    """Return the numbers of a column, or refuse one that holds something else."""
    if not (column.dtype.is_numeric() or column.dtype == pl.Boolean):
        raise InputError(
            f"the feature {column.name!r} was a number when it was fitted, now it is "
            f"{column.dtype}",
            hint="give the column in the type it was fitted with",
        )
    _refuse_missing(column)
    values: Floats = column.cast(pl.Float64).to_numpy()
    rule = f"the feature {column.name!r} must be a finite number"
    hint = "drop the row or fill the value in a way you can defend"
    _refuse_first(~np.isfinite(values), values, rule, hint)
    return values


def _refuse_missing(column: pl.Series) -> None:
    if column.null_count():
        raise InputError(
            f"the feature {column.name!r} is missing",
            row=int(column.is_null().arg_max() or 0) + 1,
            hint="drop the row, or give missing values a category of their own",
        )


def _unseen(feature: Feature, value: object, *, row: int | None = None) -> InputError:
    categories = feature.levels or ()
    text = ", ".join(sorted(categories)[:8]) + (", ..." if len(categories) > 8 else "")
    return InputError(
        f"the feature {feature.name!r} has the category {value!r}, which was not in the rows it "
        f"was fitted on (known: {text})",
        row=row,
        hint="fit again with such rows, or use unseen='calibration' to give them no correction",
    )
