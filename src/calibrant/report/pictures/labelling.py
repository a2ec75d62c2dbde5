"""Pictures of labelling: what labels can show, what they have shown, and change over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.report.pictures.lines import Chart, Mark, Series, line_chart
from calibrant.report.pictures.picture import Picture
from calibrant.report.pictures.scales import (
    Axis,
    in_points,
    nice_ticks,
    percent,
    points,
    short_number,
    upright,
)
from calibrant.report.pictures.svg import Drawing


def plan_picture(document: Mapping[str, Any]) -> Picture | None:
    """Return the smallest error that can be shown against the number of labels."""
    curve = document.get("curve") or []
    series = [
        Series(name, tone, sorted((p[key], p["precision"]) for p in curve if p.get(key)))
        for name, tone, key in (
            ("random labels", "second", "passive_labels"),
            ("chosen labels", "first", "active_labels"),
        )
    ]
    series = [part for part in series if part.places]
    if not series:
        return None
    label = "Labels against the smallest calibration error they can show"
    chart = Chart(
        label,
        "labels",
        "smallest error shown, points",
        series,
        _wanted(document),
        x_ticks=short_number,
        y_ticks=in_points,
        x_log=True,
        y_log=True,
    )
    return Picture(
        label,
        "At worst this many labels are needed for a claim of this size; rates with constant 1.",
        lambda wide: line_chart(chart, wide=wide),
    )


def _wanted(document: Mapping[str, Any]) -> list[Mark]:
    """Mark what was asked for on each curve."""
    wanted = (document.get("settings") or {}).get("precision")
    if wanted is None:
        return []
    return [
        Mark(f"{document[key]:,}", document[key], wanted, tone, ring=True, side=side)
        for key, tone, side in (
            ("passive_labels", "second", "right"),
            ("active_labels", "first", "left"),
        )
        if document.get(key)
    ]


def label_picture(document: Mapping[str, Any]) -> Picture | None:
    """Return the calibration error with its interval as labels came in."""
    entry = next((e for e in document["results"] if len(e.get("history") or ()) > 1), None)
    if entry is None:
        return None
    # The first looks know nothing yet, and their intervals would hide what the last ones know.
    least = entry["history"][-1]["labels"] / 10
    looks = [row for row in entry["history"] if row["labels"] >= least]
    known = [row for row in looks if row["ece"]["value"] is not None]
    places = [(row["labels"], row["ece"]["value"]) for row in known]
    ends = [(row["ece"]["low"], row["ece"]["high"]) for row in known]
    label = "Calibration error and its interval, as labels came in"
    chart = Chart(
        label,
        "labels so far",
        "calibration error, points",
        [Series("", "first", places, ends)],
        [
            Mark(
                f"{points(places[-1][1])[1:]} points now",
                *places[-1],
                tone="first",
                ring=True,
                side="above",
            )
        ],
        x_ticks=short_number,
        y_ticks=in_points,
        y_from=0.0,
    )
    return Picture(
        label,
        "Shaded: interval that holds at every look.",
        lambda wide: line_chart(chart, wide=wide),
    )


def monitor_picture(document: Mapping[str, Any]) -> Picture | None:
    """Return the run chart of the entry that matters most: one with an alarm before others."""
    entries = [entry for entry in document["results"] if entry.get("history")]
    if not entries:
        return None
    entry = next((e for e in entries if e.get("alarm")), entries[0])
    label = "Share right minus confidence over time, in points"
    return Picture(
        label,
        "Below 0 it says more than it knows. Lines: intervals. Diamonds: alarm.",
        lambda wide: _run_chart(entry, label, wide=wide),
    )


def _run_chart(entry: Mapping[str, Any], label: str, *, wide: bool) -> str:
    history: Sequence[Mapping[str, Any]] = [
        row for row in entry["history"] if row["gap"]["value"] is not None
    ]
    width, height = (760.0, 420.0) if wide else (350.0, 360.0)
    ends = [
        row["gap"][name]
        for row in history
        for name in ("low", "high")
        if row["gap"][name] is not None
    ]
    values = [*ends, *(row["gap"]["value"] for row in history), 0.0]
    spare = (max(values) - min(values)) * 0.05 or 0.02
    y = Axis(min(values) - spare, max(values) + spare, height - 46, 24)
    x = Axis(0, max(len(history) - 1, 1), 62, width - 16)
    drawing = Drawing(width, height, label, kind="run")
    ticks = [(v, points(v) if v else "0") for v in nice_ticks(y.low, y.high, 5)]
    upright(drawing, y, ticks, x.start - 8, width - 8)
    drawing.line(x.start - 8, y(0), width - 8, y(0), "zero")
    drawing.text(0, 13, "share right − confidence, points", "axis")
    _dates(drawing, history, x, height, most=6 if wide else 3)
    _alarm_line(drawing, entry, history, x, (24, height - 46))
    most = max(row["n"] for row in history)
    # A batch of a few labels jumps about: it is small, and the line passes over it.
    steady = [(x(i), y(r["gap"]["value"])) for i, r in enumerate(history) if r["n"] >= most / 10]
    drawing.open_group("plain", "over time")
    drawing.polyline(steady, "series faint")
    drawing.close_group()
    for place, row in enumerate(history):
        _stretch(drawing, row, x(place), y, share=row["n"] / most)
    return drawing.svg()


def _stretch(
    drawing: Drawing, row: Mapping[str, Any], place: float, y: Axis, *, share: float
) -> None:
    gap = row["gap"]
    alarm = bool(row.get("alarm"))
    words = (
        f"{row['when']}: {points(gap['value'])} points, right {percent(row['accuracy']['value'])}, "
        f"says {percent(row['mean_confidence']['value'])}, {row['n']:,} labels"
    )
    drawing.open_group("second" if alarm else "first", words)
    if gap["low"] is not None and gap["high"] is not None:
        kind = "stick" if share >= 0.1 else "stick pale-stick"
        drawing.line(place, y(gap["low"]), place, y(gap["high"]), kind)
    if alarm:
        drawing.diamond(place, y(gap["value"]), 6.5, "mark")
    else:
        drawing.circle(place, y(gap["value"]), 2 + 3 * share**0.5, "mark")
    drawing.close_group()


def _dates(
    drawing: Drawing, history: Sequence[Mapping[str, Any]], x: Axis, height: float, *, most: int
) -> None:
    step = max(1, -(-len(history) // most))
    names = [str(row["when"])[:16] for row in history]
    if all(len(name) == 10 and name.endswith("-01") for name in names):
        # Months, by their first day.
        names = [name[:7] for name in names]
    if len({name[:5] for name in names}) == 1 and most < 6 and all(len(n) == 10 for n in names):
        # On a phone the year is said once.
        names = [names[0], *(name[5:] for name in names[1:])]
    elif most < 6 and all(len(name) == 10 for name in names):
        names = [name[:7] for name in names]
    for place in range(0, len(history), step):
        # The last one would hang over the edge.
        anchor = "end" if x(place) > x.end - 30 else "middle" if place else "start"
        drawing.text(x(place), height - 26, names[place], "tick", anchor=anchor)


def _alarm_line(
    drawing: Drawing,
    entry: Mapping[str, Any],
    history: Sequence[Mapping[str, Any]],
    x: Axis,
    reach: tuple[float, float],
) -> None:
    alarm = entry.get("alarm")
    if not alarm:
        return
    place = next((i for i, row in enumerate(history) if row["when"] == alarm["when"]), None)
    if place is None:
        return
    drawing.open_group("second", f"alarm at {alarm['when']}")
    drawing.line(x(place), reach[0], x(place), reach[1], "dashed")
    late = x(place) > (x.start + x.end) / 2
    side = -8 if late else 8
    drawing.text(
        x(place) + side,
        reach[0] + 12,
        f"alarm {alarm['when']}",
        "label",
        anchor="end" if late else "start",
    )
    drawing.close_group()
