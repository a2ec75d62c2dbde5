"""Charts of monitoring: the gap over time, and the evidence of a change."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.report.charts.chart import Axis, Band, Chart, Dot, Line, Mark, Rule, between, bounds
from calibrant.report.charts.scales import percent, points, short_number

_MOST_EVIDENCE = 12.0
"""Powers of ten shown at most: beyond that the alarm is long since certain."""


def answer(document: Mapping[str, Any]) -> Chart | None:
    """Return the gap over time of the entry that matters most: one with an alarm before others."""
    entries = [entry for entry in document["results"] if entry.get("history")]
    entry = next((e for e in entries if e.get("alarm")), entries[0] if entries else None)
    return None if entry is None else _over_time(entry, "answer")


def further(document: Mapping[str, Any]) -> list[Chart]:
    """Return the gaps of the other entries, and the evidence of each."""
    entries = [entry for entry in document["results"] if entry.get("history")]
    first = next((e for e in entries if e.get("alarm")), entries[0] if entries else None)
    others = [_over_time(e, f"over-time-{n}") for n, e in enumerate(entries, 1) if e is not first]
    return [*others, *(_evidence(entry, n) for n, entry in enumerate(entries, 1))]


def _over_time(entry: Mapping[str, Any], name: str) -> Chart:
    history = [row for row in entry["history"] if row["gap"]["value"] is not None]
    most = max(row["n"] for row in history)
    # A batch of a few labels jumps about: it is small, and the line passes over it.
    steady = [(i, row["gap"]["value"]) for i, row in enumerate(history) if row["n"] >= most / 10]
    marks: list[Mark] = [Rule(0), *_alarm(entry, history), Line(steady, "plain", look="faint")]
    marks += [_stretch(row, place, row["n"] / most) for place, row in enumerate(history)]
    several = f", {entry['model']} / {entry['method']}" if name != "answer" else ""
    return Chart(
        name,
        f"Share right minus confidence over time, in points{several}",
        "Below 0 it says more than it knows. Lines: intervals. Diamonds: alarm.",
        Axis(names=_dates(history)),
        Axis("share right − confidence, points", words=points),
        marks,
    )


def _stretch(row: Mapping[str, Any], place: int, share: float) -> Dot:
    gap, alarm = row["gap"], bool(row.get("alarm"))
    tip = (
        f"{row['when']}: {points(gap['value'])}{between(gap, points)} points, right "
        f"{percent(row['accuracy']['value'])}, says {percent(row['mean_confidence']['value'])}, "
        f"{row['n']:,} labels{', alarm' if alarm else ''}"
    )
    return Dot(
        place,
        gap["value"],
        *bounds(gap),
        "second" if alarm else "first",
        "diamond" if alarm else "dot",
        0.6 if alarm else 0.5 * share,
        tip,
        f"when:{row['when']}",
    )


def _alarm(entry: Mapping[str, Any], history: Sequence[Mapping[str, Any]]) -> list[Rule]:
    alarm = entry.get("alarm") or {}
    places = [i for i, row in enumerate(history) if row["when"] == alarm.get("when")]
    return [Rule(i, "x", f"alarm {alarm['when']}", "second", dashed=True) for i in places[:1]]


def _dates(history: Sequence[Mapping[str, Any]]) -> list[str]:
    names = [str(row["when"])[:16] for row in history]
    if all(len(name) == 10 and name.endswith("-01") for name in names):
        # Months, by their first day.
        return [name[:7] for name in names]
    return names


def _evidence(entry: Mapping[str, Any], number: int) -> Chart:
    rows = entry["history"]
    # A logarithm of 0 has no place on the chart; capital that is lost is shown at 1e-6.
    places = [
        (i, min(math.log10(max(row["capital"], 1e-6)), _MOST_EVIDENCE))
        for i, row in enumerate(rows)
    ]
    alarm, limit = entry["alarm"], math.log10(entry["limit"])
    state = "no alarm" if alarm is None else f"alarm at {alarm['when']}, since {alarm['since']}"
    base = min(0.0, *(value for _, value in places))
    tips = [f"{row['when']}: a bet has grown to {row['capital']:.3g} times" for row in rows]
    return Chart(
        f"evidence-{number}",
        f"{entry['model']} / {entry['method']}: evidence of a change",
        f"Evidence against '{entry['reference']}', as powers of ten of a fair bet's capital; the "
        f"dashed line is the alarm. Here: {state}.",
        Axis(names=_dates(rows)),
        Axis("evidence, powers of ten", words=short_number),
        [
            Band([(place, base, value) for place, value in places], "first"),
            Line(places, tips=tips),
            Rule(limit, words=f"alarm at {entry['limit']:.3g}", tone="second", dashed=True),
        ],
    )
