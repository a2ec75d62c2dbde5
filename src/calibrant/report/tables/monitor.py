"""Monitoring as text: alarms first, then the latest stretches of time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.blocks import Paragraph, Table
from calibrant.report.cells import number_cell, percent_cell, points_cell, said_cell
from calibrant.report.tables.remarks import rows_left_out

_LAST = 12
_MONTH = 30


def blocks(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Return the blocks of a ``calibrant.monitor/1`` document."""
    said = [str(claim["text"]) for claim in document.get("claims") or ()]
    parts: list[Paragraph | Table] = [Paragraph(text, strong=True) for text in said]
    entries = document["results"]
    # A short view has room for one table: that of an alarm, where there is one.
    first = next((entry for entry in entries if entry["alarm"]), entries[0])
    for entry in entries:
        if not said:
            parts.append(Paragraph(_verdict(entry), strong=True))
        parts.append(_history(entry, named=len(entries) > 1, main=entry is first))
        slope = entry["drift_per_day"]
        if slope:
            change = points_cell({name: _MONTH * slope[name] for name in ("value", "low", "high")})
            parts.append(Paragraph(f"Right minus says changes by {change} points in 30 days."))
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
            f"Evidence {entry['capital']:.3g}; the alarm is at {entry['limit']:.3g}."
        )
    place = "overall"
    if alarm["bin"] is not None:
        place = f"at confidence {alarm['bin'][0]:.2f} to {alarm['bin'][1]:.2f}"
    return (
        f"{name}: ALARM at {alarm['when']}: more {alarm['direction']} {place} than "
        f"{entry['reference']}, since about {alarm['since']} (p = {alarm['p_value']:.2g}; any "
        f"false alarm has probability at most {entry['alpha']:g})."
    )


def _history(entry: Mapping[str, Any], *, named: bool, main: bool) -> Table:
    rows = tuple(
        (
            row["when"] + (" ALARM" if row["alarm"] else ""),
            number_cell(row["n"]),
            percent_cell(row["accuracy"]),
            percent_cell(row["mean_confidence"]),
            points_cell(row["gap"]),
            said_cell(row["capital"], f"{row['capital']:.3g}" if row["capital"] < 1e6 else "> 1e6"),
        )
        for row in entry["history"][-_LAST:]
    )
    note = (
        "Difference: right minus says, in points. Evidence of a change: what a bet against "
        f"'no change' has won; the alarm is at {entry['limit']:.3g}."
    )
    if entry["batches"] > _LAST:
        note += f" The last {_LAST} of {entry['batches']:,}; the JSON document holds more."
    columns = ("when", "labels", "right", "says", "difference", "evidence")
    name = f"{entry['model']} / {entry['method']}" if named else None
    return Table(
        columns, rows, title=name or "", note=f"{name}. {note}" if name else note, main=main
    )


def _expiry(expiry: Mapping[str, Any]) -> str:
    date = f", on {expiry['date']}" if expiry["date"] else ""
    return (
        f"A verification to +/- {expiry['precision']:g} holds for {expiry['days']:,.0f} days"
        f"{date}, at a drift of {expiry['drift_per_day']:.2g} per day ({expiry['drift_source']})."
    )
