"""Entries of groups, decisions, cascades and mended confidences."""

from __future__ import annotations

from typing import Any

import msgspec

from calibrant.documents.entries import UNDEFINED, EstimateEntry, Part


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
    columns: MendColumns | None
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


class MendColumns(Part, frozen=True, kw_only=True):
    """Other columns that a map reads, or why it does not."""

    names: list[str]
    verdict: str
    promise: MendPromise | None
    map: MendCurve | None
    score: dict[str, Any] | None


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
