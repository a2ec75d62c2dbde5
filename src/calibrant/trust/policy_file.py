"""What every saved policy shares: its file, what it says to do next, and a stated confidence."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from calibrant.core.arrays import Floats
from calibrant.core.document import Stored, dump_document
from calibrant.core.errors import InputError

SCHEMA = "calibrant.policy/1"
CONFIDENCE = "confidence"
CALLER = "caller."
"""Stands before the name of what a caller says of a question, in the rows of what was served."""
Cell: TypeAlias = str | float | Floats | None
Row: TypeAlias = Mapping[str, Cell]
Said: TypeAlias = float | Row | None
"""A model's confidence (None if it gave none), or with it the features of its answer."""


class SavedPolicy(Stored):
    """A policy that is written as JSON."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the policy as plain data."""
        return {"schema": SCHEMA, **super().to_dict()}

    def save(self, path: str | Path) -> None:
        """Write the policy as JSON."""
        Path(path).write_bytes(dump_document(self.to_dict()))


@dataclass(frozen=True, slots=True)
class Step:
    """What to do next with one query.

    Parameters
    ----------
    action
        ``"ask"`` the model, or ``"answer"`` with what it said.
    model
        Its name.
    risk
        Estimated risk of the answer; None before anything was asked.
    """

    action: str
    model: str
    risk: float | None = None


def stated_confidence(said: Said) -> float | None:
    """Return the confidence of an answer, None where there is none; another one is refused.

    Examples
    --------
    >>> stated_confidence({"confidence": 0.8, "length": 12}), stated_confidence(float("nan"))
    (0.8, None)
    """
    value = said.get(CONFIDENCE) if isinstance(said, Mapping) else said
    if value is None:
        return None
    if isinstance(value, np.ndarray):
        raise InputError("this policy is about single answers: it takes one confidence, not a list")
    number = math.inf if isinstance(value, str) else float(value)
    if 0.0 <= number <= 1.0:
        return number
    if number != number:
        return None
    raise InputError(f"a confidence must be between 0 and 1, got {value!r}")
