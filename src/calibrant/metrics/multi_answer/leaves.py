"""The parts that a macro average is taken over: domains, and the kinds within Math."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core.arrays import Indices


@dataclass(frozen=True, slots=True)
class Leaf:
    """Rows that are pooled, and their weight in the average over domains."""

    domain: str
    subtype: str | None
    rows: Indices
    weight: float

    @property
    def name(self) -> str:
        """For example ``math/prime``."""
        return self.domain if self.subtype is None else f"{self.domain}/{self.subtype}"


def leaves(
    domain: ArrayLike,
    subtype: ArrayLike | None = None,
    *,
    nested: Collection[str] = ("math",),
) -> list[Leaf]:
    """Return the parts to pool within, with weights that sum to 1.

    Every domain weighs the same. A domain in `nested` is the mean of its subtypes, so each of
    Math's five kinds of numbers has a fifth of Math's weight.

    Examples
    --------
    >>> parts = leaves(["award", "math", "math"], ["", "prime", "cube"])
    >>> [(part.name, part.weight) for part in parts]
    [('award', 0.5), ('math/cube', 0.25), ('math/prime', 0.25)]
    """
    domains = np.asarray(domain).astype(str)
    kinds = None if subtype is None else np.asarray(subtype).astype(str)
    names = sorted(set(domains.tolist()))
    found = []
    for name in names:
        rows = np.flatnonzero(domains == name)
        parts: list[str | None] = [None]
        if kinds is not None and name in nested:
            parts = sorted(set(kinds[rows].tolist()))
        for part in parts:
            inner = rows if part is None or kinds is None else rows[kinds[rows] == part]
            found.append(Leaf(name, part, inner, 1 / len(names) / len(parts)))
    return found


def mixes_of(ks: Collection[int]) -> list[list[int]]:
    """Return the mixes that add one number of answers after the other.

    Examples
    --------
    >>> mixes_of([6, 1, 2])
    [[1], [1, 2], [1, 2, 6]]
    """
    ordered = sorted(set(ks))
    return [ordered[: end + 1] for end in range(len(ordered))]
