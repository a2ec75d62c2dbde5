"""Entries of `judge`: what a judge is worth, beside people."""

from __future__ import annotations

from calibrant.core.estimate import EstimateEntry
from calibrant.findings.documents.entries import Part


class PeopleMean(Part, frozen=True, kw_only=True):
    """People's mean over all items, in people's units."""

    combined: EstimateEntry
    people_only: EstimateEntry
    judge_only: float | None
    lenience: EstimateEntry
    width_ratio: float
    labels_saved: int


class PeopleAgreement(Part, frozen=True, kw_only=True):
    """How far people agree with each other, and by how much the judge agrees less (below 0)."""

    count: int
    items: int
    order: EstimateEntry
    kappa: EstimateEntry | None
    order_difference: EstimateEntry
    kappa_difference: EstimateEntry | None


class ScoreMeaning(Part, frozen=True, kw_only=True):
    """A score of the judge, what people's mean is there, and labels nearest to it."""

    score: float
    value: float
    low: float
    high: float
    labels: int
    people: float | None


class JudgeBias(Part, frozen=True, kw_only=True):
    """A lean of the judge: by model, feature, length or position; `p` is not corrected."""

    kind: str
    name: str | None
    value: float | None
    low: float | None
    high: float | None
    p: float | None
    method: str
    labels: int
    judge_share: float | None = None
    people_share: float | None = None
    flips: int | None = None


class JudgedModel(Part, frozen=True, kw_only=True):
    """People's mean for one model or group, with the judge's own."""

    name: str
    n: int
    labels: int
    combined: EstimateEntry
    judge_only: float
    strength: EstimateEntry | None


class JudgedPair(Part, frozen=True, kw_only=True):
    """By how much people put the first model above the second."""

    a: str
    b: str
    difference: EstimateEntry
    win_rate: EstimateEntry | None
    strength: EstimateEntry | None
    p_adjusted: float | None


class LabelsNeeded(Part, frozen=True, kw_only=True):
    """Labels in all until people's mean is known to within plus or minus `precision`."""

    precision: float
    labels: int


class Disagreement(Part, frozen=True, kw_only=True):
    """An item whose rating by people surprises most, given the judge's score."""

    row: int
    question: str | None
    model: str | None
    text: str | None
    judge: float
    people: float
    expected: float


class JudgeScale(Part, frozen=True, kw_only=True):
    """How the judge and people rate."""

    kind: str
    judge: list[float]
    people: list[float]
    words: list[str]
    same: bool


class JudgeEntry(Part, frozen=True, kw_only=True):
    """One judge beside people."""

    judge: str
    n: int
    labels: int
    scale: JudgeScale
    people_mean: PeopleMean
    order: EstimateEntry
    kappa: EstimateEntry | None
    people: PeopleAgreement | None
    map: list[ScoreMeaning]
    bias: list[JudgeBias]
    models: list[JudgedModel]
    groups: list[JudgedModel]
    pairs: list[JudgedPair]
    labels_needed: LabelsNeeded | None
    disagreements: list[Disagreement]
    cost: float | None
    path: str | None
