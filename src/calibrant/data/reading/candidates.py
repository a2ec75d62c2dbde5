"""A column that may be the confidence or the outcome: its scale, score and doubts."""

from __future__ import annotations

import re

import numpy as np
from msgspec import Struct

from calibrant.core.arrays import Floats
from calibrant.data.reading import FRACTION, PERCENT

LEVELS, MIXED, RANK, RANK_DOWN = "levels", "mixed", "rank", "rank-down"
RANKS = frozenset([RANK, RANK_DOWN])
"""Scales of which only the order tells: a high value means sure, or a low one."""
# Tops of questionnaires, and the shares from which a column is surely on one scale.
_TOPS = (4, 5, 7, 10)
_MIXED_LEAST, _SOME, _MOST = 0.03, 0.5, 0.9
_LEAST_LEVELS = 10


class Scale(Struct, frozen=True):
    """A scale, and what makes it doubtful: nothing, `levels`, `mixed` or `rank`."""

    scale: str = FRACTION
    doubt: str = ""


def scale_of(values: Floats, name: str = "") -> Scale:
    """Return the scale that numbers are on, as far as they say it.

    Parameters
    ----------
    values
        Numbers of a column that is a confidence; NaN where there is none.
    name
        Its name: `certainty (1-5)` says which levels there are.

    Examples
    --------
    >>> scale_of(np.array([0.2, 0.9])), scale_of(np.array([55.0, 90.0])).scale
    (Scale(scale='fraction', doubt=''), 'percent')
    >>> scale_of(np.array([1.0, 4.0, 5.0] * 4)), scale_of(np.array([0.9, 0.8, 85.0])).doubt
    (Scale(scale='1-5', doubt='levels'), 'mixed')
    """
    finite = values[np.isfinite(values) & (values != -1)]
    highest = float(finite.max(initial=0.0))
    if highest <= 1 or highest > 100 or finite.min() < 0:
        return Scale()
    positive = finite[finite > 0]
    above = float((positive > 1).mean())
    whole = bool((finite == np.round(finite)).all())
    if highest <= _TOPS[-1]:
        several = finite.size >= _LEAST_LEVELS and np.unique(finite).size > 1
        single = above < _SOME and np.unique(finite[finite > 1]).size < 2
        levels = whole and several and not single
        return Scale(levels_of(finite, name), LEVELS) if levels else Scale()
    if not whole and _is_mixed(finite):
        return Scale(MIXED, MIXED)
    return Scale(PERCENT if above >= _SOME else FRACTION)


def _is_mixed(known_values: Floats) -> bool:
    """Return whether shares and percentages stand in one column."""
    small = float((known_values <= 1).mean())
    if not _MIXED_LEAST < small < 1 - _MIXED_LEAST:
        return False
    shares = ((known_values > 0.3) & (known_values <= 1)).mean()
    return bool(shares > 0.8 * small and (known_values[known_values > 1] > 10).mean() > _MOST)


def levels_of(known: Floats, name: str) -> str:
    """Return the levels that a name states, or else the usual ones that hold all values.

    Examples
    --------
    >>> levels_of(np.array([1.0, 4.0]), "sure"), levels_of(np.array([2.0]), "sure (1-7)")
    ('1-4', '1-7')
    """
    confidence = re.search(r"(\d+)\s*(?:[-–/]|to)+\s*(\d+)", name)
    if confidence and int(confidence[1]) < int(confidence[2]) and known.max() <= int(confidence[2]):
        return f"{int(confidence[1])}-{int(confidence[2])}"
    highest, lowest = float(known.max()), float(known.min())
    top = 10 if "10" in re.findall(r"\d+", name) else next(t for t in _TOPS if t >= highest)
    return f"{0 if lowest < 1 or top == _TOPS[-1] else 1}-{top}"


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
    conflict: OutcomeCandidate | None = None
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
    mean = np.nan if said.ranked else float(p.mean())
    return Match(int(p.size), float(y.mean()), mean, *_ranked(p, y > 0.5))


def _ranked(p: Floats, right: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> tuple[float, float]:
    """Return the area under the curve and how many standard errors it is from chance."""
    ones, zeros = int(right.sum()), int((~right).sum())
    if not ones or not zeros:
        return 0.5, 0.0
    _, place, counts = np.unique(p, return_inverse=True, return_counts=True)
    rank = (np.cumsum(counts) - (counts - 1) / 2)[place]
    area = float((rank[right].sum() - ones * (ones + 1) / 2) / (ones * zeros))
    return area, (area - 0.5) / float(np.sqrt((ones + zeros + 1) / (12 * ones * zeros)))


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
        return [match(*both) for both in zip(self.said, self.each_outcome, strict=True)]

    @property
    def each_outcome(self) -> tuple[OutcomeCandidate, ...]:
        """The outcome of each confidence."""
        return self.outcomes or (self.outcome,) * len(self.said)
