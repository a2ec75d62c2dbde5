"""Features for trees: numbers as they are, categories as explicit ranks, nothing imputed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from calibrant.core.arrays import Floats
from calibrant.core.errors import InputError
from calibrant.core.hints import Hint
from calibrant.core.registry import did_you_mean
from calibrant.records import read_table

# A histogram has 255 bins: with more categories two of them would share a bin.
MAX_CATEGORIES = 255
UNSEEN_RULES = ("error", "calibration")


@dataclass(frozen=True, slots=True)
class Feature:
    """A feature; `levels` holds the categories in order of their code, None for a number."""

    name: str
    levels: tuple[str, ...] | None = None


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
            raise InputError(
                f"features must be a table or a 2-d array, got an array with {features.ndim} axes",
                hint="use features.reshape(-1, 1) for a single feature",
            )
        return pl.DataFrame(
            {f"x{position}": features[:, position] for position in range(features.shape[1])}
        )
    return read_table(features)


class FeatureEncoder:
    """Turn a table into numbers for a tree, and thresholds back into words.

    Categories are ranked by their mean target in the rows given to `fit`: a threshold on the
    rank is then the best split into two sets of categories (Fisher's result for squared error).

    Parameters
    ----------
    unseen
        What an unseen category means later: ``"error"``, or ``"calibration"`` (the row gets no
        correction beyond recalibration).

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

    def __init__(self, *, unseen: str = "error") -> None:
        if unseen not in UNSEEN_RULES:
            raise InputError(f"unseen must be one of {', '.join(UNSEEN_RULES)}, got {unseen!r}")
        self.unseen = unseen

    @property
    def names(self) -> list[str]:
        """The names of the features, in order."""
        return [feature.name for feature in self.features_]

    def fit(self, features: Any, target: Floats) -> FeatureEncoder:
        """Learn which columns are numbers and in which order the categories come."""
        frame = as_frame(features)
        if not frame.columns:
            raise InputError(
                "at least one feature is needed", hint=Hint("name columns with {features}")
            )
        if frame.height != len(target):
            raise InputError(f"{frame.height} rows of features for {len(target)} outcomes")
        self.features_ = tuple(_learn(frame[name], target) for name in frame.columns)
        self._index()
        return self

    def _index(self) -> None:
        self._codes = [
            None
            if feature.levels is None
            else {text: code for code, text in enumerate(feature.levels)}
            for feature in self.features_
        ]

    def transform(self, features: Any) -> Floats:
        """Return one float64 row per row of the table; unseen categories are NaN where allowed."""
        frame = as_frame(features)
        _require_columns(frame.columns, self.names)
        # Columns in one piece: they are written and read one at a time.
        matrix = np.empty((frame.height, len(self.features_)), dtype=np.float64, order="F")
        for position, feature in enumerate(self.features_):
            matrix[:, position] = self._column(frame[feature.name], feature)
        return matrix

    def _column(self, column: pl.Series, feature: Feature) -> Floats:
        if feature.levels is None:
            return _numbers(column)
        text = _texts(column)
        codes = text.replace_strict(
            list(feature.levels),
            list(range(len(feature.levels))),
            default=None,
            return_dtype=pl.Float64,
        )
        if codes.null_count() and self.unseen == "error":
            row = int(codes.is_null().arg_max() or 0)
            raise _unseen(feature, text[row], row=row + 1)
        return codes.fill_null(float("nan")).to_numpy()

    def transform_one(self, query: Mapping[str, Any]) -> list[float]:
        """Return the row of a single query; the quick way that a server takes."""
        row = []
        for feature, codes in zip(self.features_, self._codes, strict=True):
            if feature.name not in query:
                _require_columns(list(query), self.names)
            value = query[feature.name]
            if codes is None:
                row.append(_number(value, feature.name))
            else:
                code = codes.get(_text(value, feature.name))
                if code is None and self.unseen == "error":
                    raise _unseen(feature, value)
                row.append(float("nan") if code is None else float(code))
        return row

    def to_dict(self) -> dict[str, Any]:
        """Return the encoder as plain data."""
        return {
            "unseen": self.unseen,
            "features": [
                {"name": feature.name, "levels": feature.levels} for feature in self.features_
            ],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> FeatureEncoder:
        """Return the encoder that `to_dict` described."""
        encoder = cls(unseen=data["unseen"])
        encoder.features_ = tuple(
            Feature(item["name"], None if item["levels"] is None else tuple(item["levels"]))
            for item in data["features"]
        )
        encoder._index()
        return encoder


def _learn(column: pl.Series, target: Floats) -> Feature:
    if column.dtype.is_numeric():
        _numbers(column)
        return Feature(column.name)
    text = _texts(column)
    means = (
        pl.DataFrame({"level": text, "target": target})
        .group_by("level")
        .agg(pl.col("target").mean())
        .sort("target", "level")
    )
    if means.height > MAX_CATEGORIES:
        raise InputError(
            f"the feature {column.name!r} has {means.height} categories, at most "
            f"{MAX_CATEGORIES} can be told apart",
            hint="group rare categories, or leave an identifier out",
        )
    return Feature(column.name, tuple(means["level"].to_list()))


def _texts(column: pl.Series) -> pl.Series:
    if column.dtype.is_nested() or column.dtype.is_temporal():
        raise InputError(
            f"the feature {column.name!r} holds {column.dtype}, not a number or a category",
            hint="turn it into numbers or text first",
        )
    _refuse_missing(column)
    return column.cast(pl.String)


def _numbers(column: pl.Series) -> Floats:
    if not (column.dtype.is_numeric() or column.dtype == pl.Boolean):
        raise InputError(
            f"the feature {column.name!r} was a number when the tree was fitted, now it is "
            f"{column.dtype}",
            hint="give the column in the type it was fitted with",
        )
    _refuse_missing(column)
    values: Floats = column.cast(pl.Float64).to_numpy()
    if not np.isfinite(values).all():
        row = int(np.argmax(~np.isfinite(values)))
        raise InputError(
            f"the feature {column.name!r} must be a finite number, got {values[row]}",
            row=row + 1,
            hint="drop the row or fill the value in a way you can defend",
        )
    return values


def _refuse_missing(column: pl.Series) -> None:
    if column.null_count():
        raise InputError(
            f"the feature {column.name!r} is missing",
            row=int(column.is_null().arg_max() or 0) + 1,
            hint="drop the row, or give missing values a category of their own",
        )


def _number(value: Any, name: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InputError(f"the feature {name!r} must be a number, got {value!r}") from None
    if number - number != 0.0:
        raise InputError(f"the feature {name!r} must be a finite number, got {value!r}")
    return number


def _text(value: Any, name: str) -> str:
    if value is None:
        raise InputError(f"the feature {name!r} is missing")
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _require_columns(found: Sequence[str], needed: Sequence[str]) -> None:
    missing = [name for name in needed if name not in found]
    if missing:
        raise InputError(
            f"the feature {missing[0]!r} is missing; needed: {', '.join(needed)}",
            hint=did_you_mean(missing[0], list(found)) if found else "give the features by name",
        )


def _unseen(feature: Feature, value: object, *, row: int | None = None) -> InputError:
    known = feature.levels or ()
    shown = ", ".join(sorted(known)[:8]) + (", ..." if len(known) > 8 else "")
    return InputError(
        f"the feature {feature.name!r} has the category {value!r}, which was not in the rows the "
        f"tree was fitted on (known: {shown})",
        row=row,
        hint="fit again with such rows, or use unseen='calibration' to give them no correction",
    )
