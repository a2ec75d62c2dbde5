"""Figures of monitoring: the gap over time, and the evidence of a change."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from calibrant.report.figures.figure import Figure
from calibrant.report.figures.marks import tips
from calibrant.report.figures.theme import BAND, FIRST, GREY, SECOND, frame

_MOST_EVIDENCE = 12.0
"""Powers of ten shown at most: beyond that the alarm is long since certain."""


def figures(document: Mapping[str, Any]) -> list[Figure]:
    """Return the gap and the capital over time, one figure per block."""
    return [
        _over_time(entry, number)
        for number, entry in enumerate(document["results"], 1)
        if entry["history"]
    ]


def _rows(entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "place": place,
            "when": row["when"],
            "n": row["n"],
            "accuracy": row["accuracy"]["value"],
            "confidence": row["mean_confidence"]["value"],
            "gap": row["gap"]["value"],
            "low": row["gap"]["low"],
            "high": row["gap"]["high"],
            "capital": row["capital"],
            # A logarithm of 0 has no place on the chart; capital that is lost is shown at 1e-6.
            "evidence": min(math.log10(max(row["capital"], 1e-6)), _MOST_EVIDENCE),
            "state": "alarm" if row["alarm"] else "no alarm",
        }
        for place, row in enumerate(entry["history"], 1)
    ]


def _over_time(entry: Mapping[str, Any], number: int) -> Figure:
    rows = _rows(entry)
    alarm = entry["alarm"]
    state = "no alarm" if alarm is None else f"alarm at {alarm['when']}, since {alarm['since']}"
    spec = frame(
        {
            "data": {"values": rows},
            "vconcat": [
                {"width": 460, "height": 200, "layer": _gap_layers()},
                {"width": 460, "height": 120, "layer": _capital_layers(entry["limit"])},
            ],
            "spacing": 10,
        }
    )
    spec.pop("width")
    spec.pop("height")
    return Figure(
        f"monitor-{number}",
        f"{entry['model']} / {entry['method']}: gap and evidence over time",
        "Above: share right minus confidence in each stretch of time, with intervals; below 0 is "
        f"over-confident. Below: evidence against '{entry['reference']}', as powers of ten of a "
        f"fair bet's capital; the dashed line is the alarm. Here: {state}.",
        spec,
    )


def _x(title: str | None) -> dict[str, Any]:
    return {
        "field": "when",
        "type": "ordinal",
        "sort": None,
        "title": title,
        "axis": {"labelOverlap": "greedy", "labelAngle": 0, "labelSeparation": 24}
        if title
        else None,
    }


def _gap_layers() -> list[dict[str, Any]]:
    y = {"type": "quantitative", "title": "share right - confidence"}
    colour = {
        "field": "state",
        "type": "nominal",
        "title": None,
        "scale": {"domain": ["no alarm", "alarm"], "range": [FIRST, SECOND]},
        "legend": {"orient": "top"},
    }
    return [
        {
            "data": {"values": [{"zero": 0}]},
            "mark": {"type": "rule", "color": GREY},
            "encoding": {"y": {**y, "field": "zero"}},
        },
        {
            "mark": {"type": "rule", "strokeWidth": 1.2},
            "encoding": {
                "x": _x(None),
                "y": {**y, "field": "low"},
                "y2": {"field": "high"},
                "color": colour,
            },
        },
        {
            "mark": {"type": "point", "filled": True, "size": 40, "opacity": 1},
            "encoding": {
                "x": _x(None),
                "y": {**y, "field": "gap"},
                "color": colour,
                "tooltip": tips(
                    "when",
                    "state",
                    n=",",
                    gap="+.3f",
                    low="+.3f",
                    high="+.3f",
                    accuracy=".3f",
                    confidence=".3f",
                ),
            },
        },
    ]


def _capital_layers(limit: float) -> list[dict[str, Any]]:
    y = {"type": "quantitative", "title": "evidence, log10"}
    return [
        {
            "mark": {"type": "area", "color": BAND, "line": {"color": FIRST}, "opacity": 0.3},
            "encoding": {
                "x": _x("time"),
                "y": {**y, "field": "evidence"},
                "tooltip": tips("when", "state", capital=".3~g", evidence=".2f"),
            },
        },
        {
            "data": {"values": [{"alarm at": math.log10(limit)}]},
            "mark": {"type": "rule", "color": SECOND, "strokeDash": [4, 3]},
            "encoding": {
                "y": {**y, "field": "alarm at"},
                "tooltip": tips(**{"alarm at": ".2f"}),
            },
        },
    ]
