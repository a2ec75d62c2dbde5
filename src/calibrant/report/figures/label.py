"""Figures of labelling: the running estimate, and where the gap is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.figures.figure import Figure
from calibrant.report.figures.marks import tips
from calibrant.report.figures.theme import FIRST, GREY, SECOND, frame

_HALF_WIDTHS = 1.96
"""Standard errors on either side of a gap, for 95 %."""


def figures(document: Mapping[str, Any]) -> list[Figure]:
    """Return, for each labelled block, the estimate after each batch and the gap by confidence."""
    found = []
    for number, entry in enumerate(document["results"], 1):
        if entry.get("history"):
            found.append(_history(entry, number))
        if entry.get("gaps"):
            found.append(_gaps(entry, number))
    return found


def _place(entry: Mapping[str, Any]) -> str:
    return f"{entry['model']} / {entry['method']}"


def _history(entry: Mapping[str, Any], number: int) -> Figure:
    rows = [
        {"labels": step["labels"], "batch": step["batch"], **_ends(step["ece"])}
        for step in entry["history"]
    ]
    x = {"field": "labels", "type": "quantitative", "scale": {"zero": False}}
    y = {"type": "quantitative", "title": "ECE of the whole table"}
    spec = frame(
        {
            "data": {"values": rows},
            "layer": [
                {
                    "mark": {"type": "area", "color": FIRST, "opacity": 0.2},
                    "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
                },
                {
                    "mark": {
                        "type": "line",
                        "color": FIRST,
                        "point": {"color": FIRST, "size": 50},
                    },
                    "encoding": {
                        "x": x,
                        "y": {**y, "field": "value"},
                        "tooltip": tips(batch=",", labels=",", value=".3f", low=".3f", high=".3f"),
                    },
                },
            ],
        },
        width=380,
        height=240,
    )
    return Figure(
        f"running-{number}",
        f"{_place(entry)}: the estimate as labels come in",
        "Line: calibration error of the whole table, estimated after each batch; band: its "
        "interval. It narrows with every batch; whether one may stop is said by the interval that "
        "holds for all looks, in the table.",
        spec,
    )


def _gaps(entry: Mapping[str, Any], number: int) -> Figure:
    rows = [
        {
            "from": part["bin"][0],
            "to": part["bin"][1],
            "middle": (part["bin"][0] + part["bin"][1]) / 2,
            "gap": part["gap"],
            # No share is below 0 or above 1, so no gap leaves the range that the bin allows.
            "low": max(part["gap"] - _HALF_WIDTHS * part["standard_error"], -part["bin"][1]),
            "high": min(part["gap"] + _HALF_WIDTHS * part["standard_error"], 1 - part["bin"][0]),
            "labels": part["labels"],
            "share": part["share"],
        }
        for part in entry["gaps"]
        if part["labels"] and part["gap"] is not None and part["standard_error"] is not None
    ]
    unseen = sum(not part["labels"] for part in entry["gaps"])
    x = {"field": "middle", "type": "quantitative", "scale": {"domain": [0, 1]}}
    x["title"] = "confidence"
    y = {"type": "quantitative", "title": "share right - confidence"}
    spec = frame(
        {
            "layer": [
                {
                    "data": {"values": [{"zero": 0}]},
                    "mark": {"type": "rule", "color": GREY},
                    "encoding": {"y": {**y, "field": "zero"}},
                },
                {
                    "data": {"values": rows},
                    "mark": {"type": "rule", "color": SECOND, "strokeWidth": 1.5},
                    "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
                },
                {
                    "data": {"values": rows},
                    "mark": {"type": "point", "filled": True, "color": SECOND, "opacity": 1},
                    "encoding": {
                        "x": x,
                        "y": {**y, "field": "gap"},
                        "size": {"field": "share", "type": "quantitative", "legend": None},
                        "tooltip": tips(
                            gap="+.3f", low="+.3f", high="+.3f", labels=",", share=".1%"
                        ),
                    },
                },
            ]
        },
        width=380,
        height=240,
    )
    bins = "1 bin has" if unseen == 1 else f"{unseen} bins have"
    are = "is" if unseen == 1 else "are"
    missing = f" {bins} no label yet and {are} not shown." if unseen else ""
    return Figure(
        f"gaps-{number}",
        f"{_place(entry)}: where the gap is",
        "Share right minus confidence in each bin, plus or minus two standard errors (within what "
        "is possible); below 0 is over-confident. Large dots are bins that hold many items."
        f"{missing}",
        spec,
    )


def _ends(estimate: Mapping[str, Any]) -> dict[str, Any]:
    return {name: estimate[name] for name in ("value", "low", "high")}
