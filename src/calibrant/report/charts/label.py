"""Charts of labelling: the running estimate, and where the gap is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.charts.chart import Axis, Band, Chart, Dot, Line, Rule, between
from calibrant.report.charts.scales import in_points, percent, points, short_number

_STANDARD_ERRORS = 1.96
"""On either side of a gap, for 95 %."""


def answer(document: Mapping[str, Any]) -> Chart | None:
    """Return the calibration error with its interval as labels came in."""
    entry = next((e for e in document["results"] if len(e.get("history") or ()) > 1), None)
    return None if entry is None else _running(entry, "answer")


def further(document: Mapping[str, Any]) -> list[Chart]:
    """Return where the gap is, for each labelled block."""
    return [
        _gaps(entry, number)
        for number, entry in enumerate(document["results"], 1)
        if entry.get("gaps")
    ]


def _running(entry: Mapping[str, Any], name: str) -> Chart:
    # The first looks know nothing yet, and their intervals would hide what the last ones know.
    least = entry["history"][-1]["labels"] / 10
    known = [
        (row["labels"], row["ece"])
        for row in entry["history"]
        if row["labels"] >= least and row["ece"]["value"] is not None
    ]
    tips = [
        f"{labels:,} labels: {in_points(round(ece['value'], 3))}{between(ece, in_points)} points"
        for labels, ece in known
    ]
    labels, ece = known[-1]
    now = f"{points(ece['value'])[1:]} points now"
    return Chart(
        name,
        "Calibration error and its interval, as labels came in",
        "Shaded: interval that holds at every look.",
        Axis("labels so far", words=short_number, low=0),
        Axis("calibration error, points", words=in_points, low=0),
        [
            Band([(n, e["low"], e["high"]) for n, e in known], "first"),
            Line([(n, e["value"]) for n, e in known], tips=tips),
            Dot(labels, ece["value"], shape="ring", label=now, side="above"),
        ],
    )


def _gaps(entry: Mapping[str, Any], number: int) -> Chart:
    known = [
        part
        for part in entry["gaps"]
        if part["labels"] and part["gap"] is not None and part["standard_error"] is not None
    ]
    most = max((part["share"] for part in known), default=1) or 1
    unseen = sum(not part["labels"] for part in entry["gaps"])
    bins, are = ("1 bin has", "is") if unseen == 1 else (f"{unseen} bins have", "are")
    missing = f" {bins} no label yet and {are} not shown." if unseen else ""
    return Chart(
        f"gaps-{number}",
        f"{entry['model']} / {entry['method']}: where the gap is",
        "Share right minus confidence in each bin, plus or minus two standard errors (within what "
        "is possible); below 0 is over-confident. Large dots are bins that hold many items."
        f"{missing}",
        Axis("confidence", low=0, high=1),
        Axis("share right − confidence, points", words=points),
        [Rule(0), *(_gap(part, part["share"] / most) for part in known)],
    )


def _gap(part: Mapping[str, Any], size: float) -> Dot:
    start, end = part["bin"]
    spread = _STANDARD_ERRORS * part["standard_error"]
    # No share is below 0 or above 1, so no gap leaves the range that the bin allows.
    low, high = max(part["gap"] - spread, -end), min(part["gap"] + spread, 1 - start)
    tip = (
        f"{percent(start)} to {percent(end)}: {points(part['gap'])} ({points(low)} to "
        f"{points(high)}), {part['labels']:,} labels, {percent(part['share'])} of the items"
    )
    key = f"bin:{start:g}:{end:g}"
    return Dot((start + end) / 2, part["gap"], low, high, "second", size=size, tip=tip, key=key)
