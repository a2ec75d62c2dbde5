"""Arrays and their types, seeded generators that fill them, and a value with its interval."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike, NDArray

Array: TypeAlias = NDArray[Any]
Floats: TypeAlias = NDArray[np.float64]
Indices: TypeAlias = NDArray[np.intp]
Ints: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
Objects: TypeAlias = NDArray[np.object_]
MaybeArray: TypeAlias = ArrayLike | None


Stream: TypeAlias = np.random.Generator
RngLike: TypeAlias = Stream | int | None


def as_generator(rng: RngLike) -> np.random.Generator:
    """Return a generator: itself, one seeded with the number, or a fresh one for ``None``."""
    return rng if isinstance(rng, np.random.Generator) else np.random.default_rng(rng)


def named_stream(seed: int, *names: object) -> np.random.Generator:
    """Return the generator that belongs to `names` under `seed`.

    Blocks that own a named stream give the same numbers whether they run alone, in another
    order or in another process.

    Examples
    --------
    >>> a = named_stream(0, "model", "verb").random()
    >>> b = named_stream(0, "model", "verb").random()
    >>> a == b
    True
    """
    digest = hashlib.blake2b(repr(tuple(map(str, names))).encode(), digest_size=16).digest()
    words = np.frombuffer(digest, dtype=np.uint32)
    return np.random.default_rng([int(seed), *(int(word) for word in words)])


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
