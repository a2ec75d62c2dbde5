"""An estimate: a value that never travels without its interval."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from msgspec import Struct


class EstimateEntry(Struct, frozen=True, kw_only=True):
    """A value with its interval; None where it is undefined."""

    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | float | None = None

    if not TYPE_CHECKING:
        # Sentences name the parts of what they are made of, as `documents.entries.Part` does.
        def __getitem__(self, name: str) -> float | None:
            return getattr(self, name)

    @property
    def number(self) -> float:
        """The value, where it is known to be defined."""
        assert self.value is not None
        return self.value

    def turned(self) -> EstimateEntry:
        """Return the same with the other sign."""
        ends = (self.value, self.high, self.low)
        value, low, high = (None if end is None else -end for end in ends)
        return EstimateEntry(value=value, low=low, high=high, n=self.n)

    @property
    def ends(self) -> tuple[float, float, float]:
        """The value and the ends of its interval, where all of them are known."""
        assert self.value is not None
        assert self.low is not None
        assert self.high is not None
        return self.value, self.low, self.high

    @property
    def numbers(self) -> tuple[float, float, float]:
        """Value and ends; NaN where they are undefined."""
        parts = (self.value, self.low, self.high)
        value, low, high = (math.nan if part is None else part for part in parts)
        return value, low, high


class Estimate(EstimateEntry, frozen=True):
    """A value with its interval.

    Parameters
    ----------
    value
        Point estimate; NaN where it is undefined.
    low, high
        Ends of the interval at `level`.
    n
        Units behind the estimate (questions, where a question has many rows).
    level
        Nominal coverage of the interval.
    interval
        How the interval was made, for example ``"bootstrap-percentile"`` or ``"delong"``.

    Examples
    --------
    >>> Estimate(0.1, 0.08, 0.13, n=200).to_dict()
    {'value': 0.1, 'low': 0.08, 'high': 0.13, 'n': 200}
    >>> print(Estimate(0.1, 0.08, 0.13, n=200))
    0.100 [0.080, 0.130]
    """

    value: float
    low: float
    high: float
    n: int
    level: float = 0.95
    interval: str = "bootstrap"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form; undefined numbers become ``None``."""
        return {
            "value": json_number(self.value),
            "low": json_number(self.low),
            "high": json_number(self.high),
            "n": int(self.n),
        }

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def json_number(value: float | None) -> float | None:
    """Return a number as JSON has it: None where it is undefined."""
    return None if value is None or not math.isfinite(value) else float(value)
