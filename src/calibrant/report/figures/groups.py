"""Figures of a group audit: what the Brier score is made of, and the groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.figures.figure import Figure
from calibrant.report.figures.marks import names, tips
from calibrant.report.figures.theme import BAND, FIRST, GREY, SECOND, THIRD, frame

_MOST_GROUPS, _MOST_CURVES = 20, 5
_PARTS = (("calibration_loss", "calibration"), ("grouping_loss", "grouping"), ("rest", "rest"))


def figures(document: Mapping[str, Any]) -> list[Figure]:
    """Return a decomposition bar and the groups of each block."""
    found = []
    for number, entry in enumerate(document["results"], 1):
        found.append(_decomposition(entry, number))
        if entry["groups"]:
            found.append(_groups(entry, number))
        if regions := _region_curves(entry.get("reliability")):
            found.append(_corrections(entry, number, regions))
    return found


def _place(entry: Mapping[str, Any]) -> str:
    return f"{entry['model']} / {entry['method']}"


def _decomposition(entry: Mapping[str, Any], number: int) -> Figure:
    rows = [
        {"part": title, "value": entry[key]["value"], **_ends(entry[key])} for key, title in _PARTS
    ]
    spec = frame(
        {
            "data": {"values": rows},
            "encoding": {"y": {"field": "part", "type": "nominal", "title": None, "sort": None}},
            "layer": [
                {
                    "mark": {"type": "bar", "height": 18},
                    "encoding": {
                        "x": {
                            "field": "value",
                            "type": "quantitative",
                            "title": "Brier score",
                        },
                        "tooltip": tips("part", value=".4f", low=".4f", high=".4f"),
                        "color": {
                            "field": "part",
                            "type": "nominal",
                            "legend": None,
                            "scale": {
                                "domain": ["calibration", "grouping", "rest"],
                                "range": [THIRD, SECOND, BAND],
                            },
                        },
                    },
                },
                {
                    "mark": {"type": "rule", "color": GREY},
                    "encoding": {
                        "x": {"field": "low", "type": "quantitative"},
                        "x2": {"field": "high"},
                    },
                },
            ],
        },
        width=420,
        height=110,
    )
    return Figure(
        f"decomposition-{number}",
        f"{_place(entry)}: what the Brier score is made of",
        "Calibration can be mended by recalibrating; grouping cannot: it is error inside groups of "
        "equal confidence. Both are lower bounds, with their intervals.",
        spec,
    )


def _groups(entry: Mapping[str, Any], number: int) -> Figure:
    rows = [
        {
            # Numbered, because a narrow screen cuts long rules short.
            "rule": f"{place}. {group['rule']}",
            "says": group["mean_confidence"],
            "is": group["rate"],
            "low": group["rate_interval"]["low"],
            "high": group["rate_interval"]["high"],
            "n": group["n"],
            "flag": group["direction"] if group["flagged"] else "not flagged",
        }
        for place, group in enumerate(entry["groups"][:_MOST_GROUPS], 1)
    ]
    y = names("rule")
    x = {"type": "quantitative", "title": "confidence (ring) and share right (dot)"}
    shown = tips("rule", "flag", n=",", says=".3f", **{"is": ".3f"}, low=".3f", high=".3f")
    spec = frame(
        {
            "data": {"values": rows},
            "layer": [
                {
                    "mark": {"type": "rule", "color": FIRST},
                    "encoding": {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}},
                },
                {
                    "mark": {
                        "type": "point",
                        "filled": True,
                        "color": FIRST,
                        "size": 60,
                        "opacity": 1,
                    },
                    "encoding": {"y": y, "x": {**x, "field": "is"}, "tooltip": shown},
                },
                {
                    "mark": {
                        "type": "point",
                        "size": 70,
                        "color": SECOND,
                        "strokeWidth": 2,
                        "opacity": 1,
                    },
                    "encoding": {"y": y, "x": {**x, "field": "says"}, "tooltip": shown},
                },
            ],
        },
        width=320,
        height=max(26 * len(rows), 80),
    )
    return Figure(
        f"groups-{number}",
        f"{_place(entry)}: groups, costliest first",
        "A ring to the right of its dot promises too much. Groups were found on the rows shown; "
        "flags are controlled for the number of groups looked at. A group is a place to look.",
        spec,
    )


def _region_curves(curve: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Return the curves of the groups that differ most: with more, no colour could be told."""
    if not curve:
        return []
    told = sorted(curve["regions"], key=lambda region: -abs(region["shift"]))[:_MOST_CURVES]
    return [
        {"confidence": said, "corrected": value + region["shift"], "rule": region["rule"]}
        for region in told
        for said, value in zip(curve["confidence"], curve["recalibrated"], strict=True)
        if region["confidence_low"] <= said <= region["confidence_high"]
        and 0 <= value + region["shift"] <= 1
    ]


def _corrections(entry: Mapping[str, Any], number: int, regions: list[dict[str, Any]]) -> Figure:
    curve = entry["reliability"]
    whole = [
        {"confidence": said, "corrected": value, "rule": "everyone, recalibrated"}
        for said, value in zip(curve["confidence"], curve["recalibrated"], strict=True)
    ]
    x = {"field": "confidence", "type": "quantitative", "scale": {"domain": [0, 1]}}
    y = {
        "field": "corrected",
        "type": "quantitative",
        "scale": {"domain": [0, 1]},
        "title": "share right, by region",
    }
    colour = {
        "field": "rule",
        "type": "nominal",
        "title": None,
        "legend": {"labelLimit": 440, "orient": "bottom", "columns": 1},
    }
    ends = [{"confidence": 0, "corrected": 0}, {"confidence": 1, "corrected": 1}]
    spec = frame(
        {
            "layer": [
                {
                    "data": {"values": ends},
                    "mark": {"type": "line", "color": GREY, "strokeDash": [4, 4]},
                    "encoding": {"x": x, "y": y},
                },
                {
                    "data": {"values": regions},
                    "mark": {"type": "line", "strokeWidth": 2},
                    "encoding": {
                        "x": x,
                        "y": y,
                        "color": colour,
                        "tooltip": tips("rule", confidence=".3f", corrected=".3f"),
                    },
                },
                {
                    "data": {"values": whole},
                    "mark": {"type": "line", "color": GREY, "strokeWidth": 3},
                    "encoding": {
                        "x": x,
                        "y": y,
                        "tooltip": tips("rule", confidence=".3f", corrected=".3f"),
                    },
                },
            ]
        },
        width=360,
    )
    return Figure(
        f"corrections-{number}",
        f"{_place(entry)}: recalibration for everyone and by group",
        "Grey: recalibration for everyone. Coloured: what the groups that differ most would need "
        "on top, over the confidences that occur there. Curves apart from the grey one are "
        "grouping loss.",
        spec,
    )


def _ends(estimate: Mapping[str, Any]) -> dict[str, Any]:
    return {"low": estimate["low"], "high": estimate["high"]}
