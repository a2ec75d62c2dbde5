"""Columns of a table as numbers of one scale, for many rows at once or for a single one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from calibrant.core.arrays import Floats
from calibrant.core.errors import InputError
from calibrant.core.registry import did_you_mean

# A logit of 0 or 1 is kept finite, and no standardised value reaches further than this.
_EDGE = 1e-4
_FARTHEST = 4.0
_FEW_VALUES = 2
_MANY_CATEGORIES = 200
# Numbers of 0 or more that reach this far (token counts, prices, ages in days) are skewed.
_LONG = 50.0


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

    def standardised_one(self, value: Any) -> float:
        """Return one value as `standardised` does."""
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise InputError(f"{self.name!r} must be a number, got {value!r}") from None
        if not math.isfinite(number):
            raise InputError(f"{self.name!r} must be a finite number, got {value!r}")
        if self.scale == "logit":
            number = min(max(number, _EDGE), 1 - _EDGE)
            number = math.log(number / (1 - number))
        elif self.scale == "log":
            number = math.log1p(max(number, 0.0))
        result = (number - self.centre) / self.spread
        return min(max(result, -_FARTHEST), _FARTHEST)


def _scaled(values: Floats, scale: str) -> Floats:
    if scale == "logit":
        inside = np.clip(values, _EDGE, 1 - _EDGE)
        return np.log(inside / (1 - inside))
    return np.log1p(np.maximum(values, 0.0)) if scale == "log" else values


class Columns:
    """Numbers and categories of a table as columns of one scale.

    A category has one column of 0 and 1 per value; a value that was not seen has 0 in all of
    them, so that a ridge model treats it as the average one. Nothing is imputed.

    Examples
    --------
    >>> table = pl.DataFrame({"topic": ["law", "art"], "confidence": [0.9, 0.5]})
    >>> columns = Columns().fit(table)
    >>> columns.categories(table).tolist(), columns.category_one({"topic": "law"})
    ([[0.0, 1.0], [1.0, 0.0]], [1])
    >>> columns.numbers(table).ravel().round(3).tolist()
    [1.0, -1.0]
    """

    numbers_: tuple[NumberColumn, ...]
    levels_: dict[str, dict[str, int]]

    def fit(self, frame: pl.DataFrame) -> Columns:
        """Learn scales and categories; no outcome enters."""
        numbers, levels, width = [], {}, 0
        for column in frame.get_columns():
            _refuse(column)
            if column.dtype.is_numeric():
                numbers.append(NumberColumn.learn(column.name, _values(column)))
                continue
            found = column.cast(pl.String).value_counts(sort=True)
            names = sorted(found[column.name].head(_MANY_CATEGORIES).to_list())
            levels[column.name] = {name: width + at for at, name in enumerate(names)}
            width += len(names)
        self.numbers_, self.levels_ = tuple(numbers), levels
        return self

    @property
    def names(self) -> list[str]:
        """The columns that a row must have."""
        return [*(number.name for number in self.numbers_), *self.levels_]

    @property
    def width(self) -> int:
        """How many columns of 0 and 1 the categories have."""
        return sum(len(codes) for codes in self.levels_.values())

    def numbers(self, frame: pl.DataFrame) -> Floats:
        """Return the standardised numbers, one column each."""
        require(frame.columns, self.names)
        made = np.empty((frame.height, len(self.numbers_)))
        for at, number in enumerate(self.numbers_):
            _refuse(frame[number.name])
            made[:, at] = number.standardised(_values(frame[number.name]))
        return made

    def categories(self, frame: pl.DataFrame) -> Floats:
        """Return 0 and 1 per value of each category."""
        require(frame.columns, self.names)
        made = np.zeros((frame.height, self.width))
        for name, codes in self.levels_.items():
            _refuse(frame[name])
            values, where = np.unique(frame[name].cast(pl.String).to_numpy(), return_inverse=True)
            at = np.array([codes.get(value, -1) for value in values], dtype=np.int64)[where]
            known = np.flatnonzero(at >= 0)
            made[known, at[known]] = 1.0
        return made

    def numbers_one(self, row: Mapping[str, Any]) -> list[float]:
        """Return the standardised numbers of one row."""
        return [number.standardised_one(_given(row, number.name)) for number in self.numbers_]

    def category_one(self, row: Mapping[str, Any]) -> list[int]:
        """Return which columns of 0 and 1 are 1 for one row."""
        found = []
        for name, codes in self.levels_.items():
            text = level_text(_given(row, name))
            if text in codes:
                found.append(codes[text])
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return {
            "numbers": [
                {
                    "name": number.name,
                    "scale": number.scale,
                    "centre": number.centre,
                    "spread": number.spread,
                    "binary": number.binary,
                }
                for number in self.numbers_
            ],
            "categories": {name: list(codes) for name, codes in self.levels_.items()},
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Columns:
        """Return the columns that `to_dict` described."""
        columns = cls()
        columns.numbers_ = tuple(NumberColumn(**item) for item in data["numbers"])
        columns.levels_, width = {}, 0
        for name, levels in data["categories"].items():
            columns.levels_[name] = {level: width + at for at, level in enumerate(levels)}
            width += len(levels)
        return columns


def level_text(value: Any) -> str:
    """Return the name of a category as a table would write it; nothing is the empty one."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def require(found: Sequence[str], needed: Sequence[str]) -> None:
    """Refuse a table that lacks a column."""
    for name in needed:
        if name not in found:
            raise InputError(
                f"the column {name!r} is missing; the policy needs {', '.join(needed)}",
                hint=did_you_mean(name, list(found)) if found else None,
            )


def _given(row: Mapping[str, Any], name: str) -> Any:
    value = row.get(name)
    if value is None:
        require(list(row), [name])
        raise InputError(f"{name!r} is missing in this row")
    return value


def _values(column: pl.Series) -> Floats:
    if not (column.dtype.is_numeric() or column.dtype == pl.Boolean):
        raise InputError(
            f"{column.name!r} was a number when the policy was fitted, now it is {column.dtype}"
        )
    values: Floats = column.cast(pl.Float64).to_numpy()
    bad = ~np.isfinite(values)
    if bad.any():
        raise InputError(
            f"{column.name!r} must be a finite number, got {values[bad][0]}",
            row=int(np.argmax(bad)) + 1,
        )
    return values


def _refuse(column: pl.Series) -> None:
    if column.dtype.is_nested() or column.dtype.is_temporal():
        raise InputError(f"{column.name!r} holds {column.dtype}, not a number or a category")
    if column.null_count():
        raise InputError(
            f"{column.name!r} is missing",
            row=int(column.is_null().arg_max() or 0) + 1,
            hint="drop the row, or give missing values a category of their own",
        )
