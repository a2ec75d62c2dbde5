"""A column that may be the confidence or the outcome: with its values, its score and its doubts."""

import numpy as np
from msgspec import Struct

from calibrant.core.arrays import Floats
from calibrant.data.reading.scales import RANKS


class SaidCandidate(Struct):
    """What may be the confidence.

    Attributes
    ----------
    column
        The column; several, separated by commas, hold a class probability each.
    score
        How strongly name and content speak for it.
    named
        How strongly the name alone does.
    scale
        How it is written.
    values
        The confidences of the rows that are looked at.
    doubt
        What has to be asked before it is used; empty where nothing is.
    notes
        What is said about the way it is read.
    """

    column: str
    score: float
    named: float
    scale: str
    values: Floats
    doubt: str = ""
    notes: tuple[str, ...] = ()
    probs: str = ""

    @property
    def ranked(self) -> bool:
        """Whether the values have an order alone."""
        return self.scale in RANKS


class OutcomeCandidate(Struct):
    """What may be the outcome: a column, or an answer beside what would have been right."""

    column: str
    score: float
    values: Floats
    right: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()
    doubt: str = ""
    notes: tuple[str, ...] = ()
    answer: str = ""
    gold: str = ""
    graded: bool = False
    inverted: bool = False
    verified: bool = False
    closed: bool = True
    happened: bool = False
    leftover: bool = False
    conflict: "OutcomeCandidate | None" = None
    same: str = ""

    @property
    def pair(self) -> bool:
        """Whether two columns are held against each other."""
        return bool(self.gold)


class Match(Struct, frozen=True):
    """How a confidence and an outcome go together on the rows that are looked at."""

    n: int
    right: float
    said: float
    auroc: float
    z: float


def match(said: SaidCandidate, outcome: OutcomeCandidate) -> Match:
    """Return rows, share right, mean confidence and how well the confidence ranks."""
    p, y = said.values, outcome.values
    inside = np.isfinite(p) if said.ranked else (p >= -1e-9) & (p <= 1 + 1e-6)
    overlap = inside & np.isfinite(y)
    p, y = p[overlap], y[overlap]
    if not p.size:
        return Match(0, np.nan, np.nan, 0.5, 0.0)
    auroc, z = _ranked(p, y > 0.5)
    mean = np.nan if said.ranked else float(p.mean())
    return Match(int(p.size), float(y.mean()), mean, auroc, z)


def _ranked(p: Floats, right: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> tuple[float, float]:
    """Return the area under the curve and how many standard errors it is from chance."""
    ones_vector, zeros = int(right.sum()), int((~right).sum())
    if not ones_vector or not zeros:
        return 0.5, 0.0
    _, place, counts = np.unique(p, return_inverse=True, return_counts=True)
    rank = (np.cumsum(counts) - (counts - 1) / 2)[place]
    area = (rank[right].sum() - ones_vector * (ones_vector + 1) / 2) / (ones_vector * zeros)
    return float(area), float(
        (area - 0.5) / np.sqrt((ones_vector + zeros + 1) / (12 * ones_vector * zeros))
    )


def agreement(left: OutcomeCandidate, right: OutcomeCandidate) -> tuple[int, float]:
    """Return how many rows both speak of, and the share in which they say the same."""
    overlap = np.isfinite(left.values) & np.isfinite(right.values)
    count = int(overlap.sum())
    equal = float((left.values[overlap] == right.values[overlap]).mean()) if count else 0.0
    return count, equal


def say_the_same(left: OutcomeCandidate, right: OutcomeCandidate) -> bool:
    """Return whether two outcomes are one."""
    count, equal = agreement(left, right)
    return count > 5 and equal > 0.98


class ReadingChoice(Struct):
    """One way to read a table."""

    said: tuple[SaidCandidate, ...]
    outcome: OutcomeCandidate
    score: float
    doubts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    match: Match | None = None
    models: tuple[str, ...] = ()
    outcomes: tuple[OutcomeCandidate, ...] = ()

    @property
    def matches(self) -> list[Match]:
        """How each confidence goes with its outcome."""
        own = self.outcomes or (self.outcome,) * len(self.said)
        return [
            match(confidence, outcome) for confidence, outcome in zip(self.said, own, strict=True)
        ]
