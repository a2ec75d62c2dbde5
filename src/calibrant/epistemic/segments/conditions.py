"""Rules that say who belongs to a group: written by people, found by search, applied alike."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from calibrant.core.arrays import Mask
from calibrant.core.errors import InputError, did_you_mean, require_known
from calibrant.core.stored import Stored

_OPERATORS = ("<=", ">=", "!=", "==", "<", ">", "=")
_JOINED = re.compile(r"\s+and\s+", re.IGNORECASE)
_PART = re.compile(r"^\s*(?P<name>.+?)\s*(?P<sign><=|>=|!=|==|<|>|=)\s*(?P<value>.+?)\s*$")


@dataclass(frozen=True, slots=True)
class Condition(Stored):
    """One comparison: a column, ``<``, ``<=``, ``>``, ``>=``, ``=`` or ``!=``, and a value."""

    column: str
    sign: str
    value: float | str

    @property
    def text(self) -> str:
        """The comparison in words."""
        value = f"{self.value:.10g}" if isinstance(self.value, float) else self.value
        return f"{self.column} {self.sign} {value}"

    def mask(self, frame: pl.DataFrame) -> Mask:
        """Return which rows hold it."""
        column = frame[self.column]
        if isinstance(self.value, str):
            same = (column.cast(pl.String) == self.value).to_numpy()
            return same if self.sign == "=" else ~same
        return np.asarray(_compare(column.cast(pl.Float64).to_numpy(), self.sign, self.value))

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Return whether one row holds it."""
        if row.get(self.column) is None:
            raise InputError(f"the column {self.column!r} is missing in this row")
        value = row[self.column]
        if isinstance(self.value, str):
            text = ("true" if value else "false") if isinstance(value, bool) else str(value)
            return (text == self.value) == (self.sign == "=")
        return bool(_compare(float(value), self.sign, self.value))


def _compare(values: Any, sign: str, at: float) -> Any:
    if sign == "<":
        return values < at
    if sign == "<=":
        return values <= at
    if sign == ">":
        return values > at
    if sign == ">=":
        return values >= at
    return values == at if sign == "=" else values != at


@dataclass(frozen=True, slots=True)
class Rule(Stored):
    """Conditions that must all hold; `name` is what people call the group."""

    conditions: tuple[Condition, ...]
    name: str | None = None

    @property
    def text(self) -> str:
        """The rule in words."""
        return " and ".join(condition.text for condition in self.conditions)

    @property
    def label(self) -> str:
        """The name, or else the rule in words."""
        return self.name or self.text

    def mask(self, frame: pl.DataFrame) -> Mask:
        """Return which rows belong to the group."""
        inside = np.ones(frame.height, dtype=bool)
        for condition in self.conditions:
            inside &= condition.mask(frame)
        return inside

    def holds(self, row: Mapping[str, Any]) -> bool:
        """Return whether one row belongs to the group."""
        return all(condition.holds(row) for condition in self.conditions)


def parse_rule(text: str, frame: pl.DataFrame) -> Rule:
    """Return the rule that a person wrote, checked against the columns of `frame`.

    A name may stand in front, followed by a colon.

    Examples
    --------
    >>> people = pl.DataFrame({"age": [20, 40], "sex": ["F", "M"]})
    >>> rule = parse_rule("young women: age<25 and sex=F", people)
    >>> rule.name, rule.text, rule.mask(people).tolist()
    ('young women', 'age < 25 and sex = F', [True, False])
    """
    name, body = None, text
    head, colon, tail = text.partition(":")
    if colon and not any(sign in head for sign in _OPERATORS):
        name, body = head.strip() or None, tail
    parts = [_parse_part(part, frame, text) for part in _JOINED.split(body.strip())]
    return Rule(tuple(parts), name)


def _parse_part(part: str, frame: pl.DataFrame, whole: str) -> Condition:
    found = _PART.match(part)
    if found is None:
        raise InputError(
            f"the group {whole!r} cannot be read: {part!r} is no comparison",
            hint='write it as "age<25 and sex=F"',
        )
    column, sign, value = found["name"], found["sign"].replace("==", "="), found["value"]
    require_known(
        [column], frame.columns, f"the group {whole!r} names the column {{}}, which is not there"
    )
    value = value.strip("\"'")
    if frame[column].dtype.is_numeric():
        return Condition(column, sign, _number(value, column, whole))
    if sign not in ("=", "!="):
        raise InputError(f"the group {whole!r} compares {column!r}, a category, with {sign!r}")
    known = frame[column].cast(pl.String).unique().to_list()
    if value not in known:
        names: Sequence[str] = [str(level) for level in known]
        raise InputError(
            f"the group {whole!r} names {value!r}, but {column!r} never has that value",
            hint=did_you_mean(value, list(names)),
        )
    return Condition(column, sign, value)


def _number(text: str, column: str, whole: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(
            f"the group {whole!r} compares {column!r}, a number, with {text!r}"
        ) from None
    return value
