"""Entries of answers that nobody stated a confidence for: shares right, repeats, differences."""

from __future__ import annotations

from calibrant.core.estimate import EstimateEntry
from calibrant.findings.documents.entries import Part


class AccuracyEntry(Part, frozen=True, kw_only=True):
    """How often one model, or one group of its answers, is right.

    `disagree` is the share of questions with several answers of which some are right and some
    wrong; None where no question has several.
    """

    model: str
    group: dict[str, str] | None
    n: int
    questions: int
    clusters: str | None
    accuracy: EstimateEntry
    disagree: EstimateEntry | None


class AccuracyPair(Part, frozen=True, kw_only=True):
    """By how much `a` is right more often than `b`, on the questions of both."""

    a: str
    b: str
    questions: int
    difference: EstimateEntry
    p: float
    p_adjusted: float
