"""Entries of plans, labels and what is watched."""

from __future__ import annotations

from typing import Any

import msgspec

from calibrant.documents.entries import Part


class PlanEntry(Part, frozen=True, kw_only=True):
    """Labels for a precision, or the precision of labels."""

    error_rate: float
    lipschitz: float
    precision: float | None = None
    labels: int | None = None
    passive_labels: int | None = None
    active_labels: int | None = None
    notes: list[str] = msgspec.field(default_factory=list)


class MonitorEntry(Part, frozen=True, kw_only=True):
    """One model and method that is watched."""

    model: str
    method: str
    n: int
    alarm: dict[str, Any] | None = None
    history: list[dict[str, Any]] = msgspec.field(default_factory=list)
    expiry: dict[str, Any] | None = None
