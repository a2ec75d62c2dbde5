"""Figure of a plan: labels against precision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.figures.figure import Figure
from calibrant.report.figures.leaderboard import figures as leaderboard_figures
from calibrant.report.figures.theme import FIRST, SECOND, frame
from calibrant.report.figures.verification import floor_figure


def figures(document: Mapping[str, Any]) -> list[Figure]:
    """Return labels against precision, what was measured, and the leaderboard."""
    found = [*_labels(document), *_measured(document.get("measured") or [])]
    if document.get("leaderboard"):
        found += leaderboard_figures(document["leaderboard"])
    return found


def _labels(document: Mapping[str, Any]) -> list[Figure]:
    rows = [
        {"precision": point["precision"], "labels": point[key], "choice": name}
        for point in document["curve"]
        for name, key in (("as they come", "passive_labels"), ("active", "active_labels"))
        if point[key]
    ]
    if not rows:
        return []
    axis = {"type": "quantitative", "scale": {"type": "log"}}
    spec = frame(
        {
            "data": {"values": rows},
            "mark": {"type": "line", "strokeWidth": 2, "point": {"size": 25}},
            "encoding": {
                "x": {
                    **axis,
                    "field": "precision",
                    "title": "precision of the claim",
                    "axis": {"tickCount": 4},
                },
                "y": {**axis, "field": "labels", "axis": {"format": "~s", "tickCount": 6}},
                "color": {
                    "field": "choice",
                    "type": "nominal",
                    "title": None,
                    "scale": {"domain": ["as they come", "active"], "range": [SECOND, FIRST]},
                },
                "tooltip": [
                    {"field": "precision", "type": "quantitative", "format": ".3f"},
                    {"field": "labels", "type": "quantitative", "format": ","},
                    {"field": "choice", "type": "nominal"},
                ],
            },
        },
        width=420,
    )
    return [
        Figure(
            "labels",
            "Labels against precision",
            "How many labels a claim of this precision takes at least, for items as they come and "
            "for the best conceivable choice; worst-case rates with constant 1.",
            spec,
        )
    ]


def _measured(blocks: list[dict[str, Any]]) -> list[Figure]:
    several = len({block["method"] for block in blocks}) > 1
    rows = [
        (
            f"{block['model']} / {block['method']}" if several else str(block["model"]),
            block["verification"]["resolution"]["ece"],
            block["verification"],
            block["verification"]["resolution"]["if_calibrated"],
        )
        for block in blocks
    ]
    return floor_figure(rows, expected="95% of calibrated ones")
