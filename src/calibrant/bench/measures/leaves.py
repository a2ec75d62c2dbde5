"""Leaves of an evaluation: a domain, a number of right answers, and the rows there."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import polars as pl
from msgspec import Struct
from msgspec.structs import astuple
from numpy.typing import ArrayLike

from calibrant.core.arrays import Array, Indices


class Leaf(Struct, frozen=True):
    """Rows that are pooled, and their weight in the average over domains."""

    domain: str
    subtype: str | None
    rows: Indices
    weight: float

    @property
    def name(self) -> str:
        """For example ``math/prime``."""
        return self.domain if self.subtype is None else f"{self.domain}/{self.subtype}"


# The domain whose kinds are parts of their own.
_NESTED = "math"


def leaves(domain: ArrayLike, subtype: ArrayLike | None = None) -> list[Leaf]:
    """Return the parts to pool within, with weights that sum to 1.

    Every domain weighs the same. Math is the mean of its subtypes, so each of its five kinds of
    numbers has a fifth of its weight.

    Examples
    --------
    >>> parts = leaves(["award", "math", "math"], ["", "prime", "cube"])
    >>> [(part.name, part.weight) for part in parts]
    [('award', 0.5), ('math/cube', 0.25), ('math/prime', 0.25)]
    """
    domains = np.asarray(domain).astype(str)
    kinds = None if subtype is None else np.asarray(subtype).astype(str)
    names = sorted(set(domains.tolist()))
    parts = []
    for name in names:
        rows, share = np.flatnonzero(domains == name), 1 / len(names)
        if kinds is None or name != _NESTED:
            parts.append(Leaf(name, None, rows, share))
            continue
        nested = sorted(set(kinds[rows].tolist()))
        parts += [Leaf(name, k, rows[kinds[rows] == k], share / len(nested)) for k in nested]
    return parts


def mixes_of(ks: Collection[int]) -> list[list[int]]:
    """Return the mixes that add one number of answers after the other.

    Examples
    --------
    >>> mixes_of([6, 1, 2])
    [[1], [1, 2], [1, 2, 6]]
    """
    ordered = sorted(set(ks))
    return [ordered[: end + 1] for end in range(len(ordered))]


class ScoreRows(Struct, frozen=True):
    """The scores of one model and method as arrays."""

    question: Array
    confidence: Array
    correct: Array
    k: Array
    domain: Array
    subtype: Array | None

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.correct.size)

    @classmethod
    def of(cls, frame: pl.DataFrame) -> ScoreRows:
        """Read the rows of one model and method from a table of scores."""
        subtype = frame["subtype"].fill_null("").to_numpy() if "subtype" in frame.columns else None
        return cls(
            question=frame["question_id"].to_numpy(),
            confidence=frame["confidence"].to_numpy().astype(np.float64),
            correct=frame["correct"].cast(pl.Float64).to_numpy(),
            k=frame["k"].to_numpy(),
            domain=frame["domain"].to_numpy(),
            subtype=subtype,
        )

    def take(self, rows: Array) -> ScoreRows:
        """Return these rows alone."""
        return ScoreRows(*(None if column is None else column[rows] for column in astuple(self)))

    def of_k(self, ks: Collection[int]) -> ScoreRows:
        """Return the questions with one of these numbers of right answers."""
        return self.take(np.flatnonzero(np.isin(self.k, list(ks))))

    def shared(self, other: ScoreRows) -> tuple[ScoreRows, ScoreRows]:
        """Return the rows of the questions that both have, in the same order."""
        _, own, peers = np.intersect1d(self.question, other.question, return_indices=True)
        return self.take(own), other.take(peers)

    def leaves(self) -> list[Leaf]:
        """Domains, and the kinds within Math: the parts of accuracy and confidence."""
        return leaves(self.domain, self.subtype)

    def domains(self) -> list[Leaf]:
        """Whole domains: AUROC pools the kinds of Math, as the paper does (C.2)."""
        return leaves(self.domain, None)
