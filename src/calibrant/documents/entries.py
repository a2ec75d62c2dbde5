"""Entries of the documents: one class per kind of block, pair, group or plan."""

from __future__ import annotations

from typing import Any

import msgspec

from calibrant.documents.parts import (
    UNDEFINED,
    EstimateEntry,
    Keys,
    Metrics,
    Part,
    ReliabilityCurve,
    Thresholds,
    Verification,
)


class AuditEntry(Part, frozen=True, kw_only=True):
    """The audit of one model and method, or of one group of it."""

    model: str
    method: str
    n: int
    metrics: Metrics
    group: Keys = None
    questions: int | None = None
    probability: bool = True
    verification: Verification | None = None
    reliability: ReliabilityCurve | None = None
    thresholds: Thresholds | None = None
    verdict: dict[str, Any] | None = None
    grading: dict[str, Any] | None = None
    notes: list[str] = msgspec.field(default_factory=list)


class SemanticEntry(Part, frozen=True, kw_only=True):
    """Calibration over meanings (Sem-ECE) of one model."""

    model: str
    sem1: EstimateEntry
    sem2: EstimateEntry
    questions: int
    draws: int | None = None
    accuracy: EstimateEntry = UNDEFINED


class CompareView(Part, frozen=True, kw_only=True):
    """Errors under one way of matching outcomes."""

    brier: EstimateEntry = UNDEFINED
    ece: EstimateEntry = UNDEFINED


class CompareViews(Part, frozen=True, kw_only=True):
    """Raw, and instance-, distribution- and candidate-aligned."""

    raw: CompareView = CompareView()
    ia: CompareView = CompareView()
    da: CompareView = CompareView()
    ca: CompareView = CompareView()


class CompareEntry(Part, frozen=True, kw_only=True):
    """One model in a comparison."""

    model: str
    accuracy: EstimateEntry
    views: CompareViews
    method: str | None = None
    group: Keys = None
    n: int | None = None
    mean_confidence: EstimateEntry = UNDEFINED
    verification: Verification | None = None


class PairEntry(Part, frozen=True, kw_only=True):
    """Two models in a comparison."""

    a: str
    b: str
    gaps: CompareViews
    tie: bool
    method: str | None = None
    group: Keys = None
    n: int | None = None
    accuracy_gap: EstimateEntry = UNDEFINED
    reversal: dict[str, bool | None] = msgspec.field(default_factory=dict)
    retention: float | None = None
    verdict: str | None = None
    winner: str | None = None
    depends_on: str | None = None
    text: str | None = None


class GroupEntry(Part, frozen=True, kw_only=True):
    """A group of rows, described by a rule."""

    rule: str
    n: int
    mean_confidence: float | EstimateEntry
    rate: float | EstimateEntry
    gap: float | EstimateEntry
    flagged: bool


class GroupsEntry(Part, frozen=True, kw_only=True):
    """The groups of one model and method."""

    model: str
    method: str
    n: int
    groups: list[GroupEntry]
    grouping_loss: EstimateEntry = UNDEFINED
    calibration_loss: EstimateEntry = UNDEFINED


class CascadeModel(Part, frozen=True, kw_only=True):
    """A model of a cascade."""

    model: str
    accuracy: EstimateEntry
    mean_cost: float | None = None
    relative_cost: EstimateEntry = UNDEFINED


class Strategy(Part, frozen=True, kw_only=True):
    """A strategy of asking several models."""

    name: str
    area: EstimateEntry = UNDEFINED
    words: str | None = None
    curve: list[dict[str, Any]] = msgspec.field(default_factory=list)


class CascadeEntry(Part, frozen=True, kw_only=True):
    """The strategies of asking several models."""

    n: int
    models: list[CascadeModel]
    strategies: list[Strategy]
    largest: str | None = None
    policy: dict[str, Any] | None = None
    verdict: dict[str, Any] | None = None


class PlanEntry(Part, frozen=True, kw_only=True):
    """Labels for a precision, or the precision of labels."""

    error_rate: float
    lipschitz: float
    precision: float | None = None
    labels: int | None = None
    passive_labels: int | None = None
    active_labels: int | None = None
    notes: list[str] = msgspec.field(default_factory=list)


class MendEntry(Part, frozen=True, kw_only=True):
    """What the confidence of one model and method means."""

    model: str
    method: str
    n: int
    verdict: str
    rising: bool
    deviance: float
    map: MendCurve
    promise: MendPromise
    reference: list[float]
    columns: list[dict[str, Any]]
    offset: float
    fitted_on: dict[str, Any]
    table: list[MendMeaning]
    path: str | None


class MendCurve(Part, frozen=True, kw_only=True):
    """A map at its knots, in log odds."""

    knots: list[float]
    log_odds: list[float]
    low: list[float]
    high: list[float]


class MendPromise(Part, frozen=True, kw_only=True):
    """How far off a map is on average at most, and what it gains."""

    off_by: float | None
    certainty: float
    gain: float
    gain_low: float | None


class MendMeaning(Part, frozen=True, kw_only=True):
    """A stated value, and what it means."""

    says: float
    means: float
    low: float
    high: float
    n: int
    right: float


class MonitorEntry(Part, frozen=True, kw_only=True):
    """One model and method that is watched."""

    model: str
    method: str
    n: int
    alarm: dict[str, Any] | None = None
    history: list[dict[str, Any]] = msgspec.field(default_factory=list)
    expiry: dict[str, Any] | None = None
