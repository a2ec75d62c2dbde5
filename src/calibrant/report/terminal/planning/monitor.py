"""Monitoring as text: alarms first, then the latest stretches of time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.blocks import Paragraph, Table, estimate_cell
from calibrant.report.left_out import rows_left_out

__all__ = ["blocks"]

_LAST = 12


def blocks(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Return the blocks of a ``calibrant.monitor/1`` document."""
    said = [str(claim["text"]) for claim in document.get("claims") or ()]
    parts: list[Paragraph | Table] = [Paragraph(text, strong=True) for text in said]
    for entry in document["results"]:
        if not said:
            parts.append(Paragraph(_verdict(entry), strong=True))
        parts.append(_history(entry))
        slope = entry["drift_per_day"]
        if slope:
            change = estimate_cell(slope, digits=5)
            parts.append(Paragraph(f"Change of accuracy minus confidence per day: {change}."))
        if entry["expiry"]:
            parts.append(Paragraph(_expiry(entry["expiry"])))
    parts.extend(rows_left_out(document))
    return parts


def _verdict(entry: Mapping[str, Any]) -> str:
    name = f"{entry['model']} / {entry['method']}"
    alarm = entry["alarm"]
    if alarm is None:
        return (
            f"{name}: no alarm in {entry['n']:,} labels. Reference: {entry['reference']}. "
            f"Capital {entry['capital']:.3g} of {entry['limit']:.3g} (alarm)."
        )
    place = "overall"
    if alarm["bin"] is not None:
        place = f"at confidence {alarm['bin'][0]:.2f} to {alarm['bin'][1]:.2f}"
    return (
        f"{name}: ALARM at {alarm['when']}: more {alarm['direction']} {place} than "
        f"{entry['reference']}, since about {alarm['since']} (p = {alarm['p_value']:.2g}; any "
        f"false alarm has probability at most {entry['alpha']:g})."
    )


def _history(entry: Mapping[str, Any]) -> Table:
    rows = tuple(
        (
            row["when"] + (" ALARM" if row["alarm"] else ""),
            f"{row['n']:,}",
            estimate_cell(row["accuracy"], digits=2),
            estimate_cell(row["mean_confidence"], digits=2),
            estimate_cell(row["gap"], digits=2),
            f"{row['capital']:.3g}" if row["capital"] < 1e6 else "> 1e6",
        )
        for row in entry["history"][-_LAST:]
    )
    note = ""
    if entry["batches"] > _LAST:
        note = f"the last {_LAST} of {entry['batches']:,}; the JSON document holds more"
    return Table(
        ("when", "labels", "accuracy", "confidence", "right - said", "capital"), rows, note=note
    )


def _expiry(expiry: Mapping[str, Any]) -> str:
    date = f", on {expiry['date']}" if expiry["date"] else ""
    return (
        f"A verification to +/- {expiry['precision']:g} holds for {expiry['days']:,.0f} days"
        f"{date}, at a drift of {expiry['drift_per_day']:.2g} per day ({expiry['drift_source']})."
    )
