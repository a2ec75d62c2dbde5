"""Figure of a cascade: accuracy against cost, with a slider on the threshold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.figures.figure import Figure
from calibrant.report.figures.theme import GREY, frame

__all__ = ["figures"]


def figures(document: Mapping[str, Any]) -> list[Figure]:
    """Return the cost-accuracy curves of each entry."""
    return [_curves(entry, number) for number, entry in enumerate(document["results"], 1)]


def _curves(entry: Mapping[str, Any], number: int) -> Figure:
    rows = [
        {
            "strategy": strategy["words"],
            "step": place / max(len(strategy["curve"]) - 1, 1),
            "setting": point["dial"],
            "cost": point["relative_cost"]["value"],
            "accuracy": point["accuracy"]["value"],
            "low": point["accuracy"]["low"],
            "high": point["accuracy"]["high"],
        }
        for strategy in entry["strategies"]
        for place, point in enumerate(strategy["curve"])
    ]
    models = [
        {
            "model": item["model"],
            "cost": item["relative_cost"]["value"],
            "accuracy": item["accuracy"]["value"],
        }
        for item in entry["models"]
    ]
    x = {"field": "cost", "type": "quantitative", "title": "cost, largest model = 1"}
    y = {"type": "quantitative", "scale": {"zero": False}, "title": "accuracy"}
    colour = {"field": "strategy", "type": "nominal", "title": None, "legend": {"labelLimit": 260}}
    tips = [
        {"field": "strategy", "type": "nominal"},
        {"field": "setting", "type": "quantitative", "format": ".3f"},
        {"field": "cost", "type": "quantitative", "format": ".3f"},
        {"field": "accuracy", "type": "quantitative", "format": ".3f"},
    ]
    spec = frame(
        {
            "params": [
                {
                    "name": "position",
                    "value": 0.5,
                    "bind": {
                        "input": "range",
                        "min": 0,
                        "max": 1,
                        "step": 0.02,
                        "name": "threshold, from always-cheapest to always-largest ",
                    },
                }
            ],
            "layer": [
                {
                    "data": {"values": rows},
                    "mark": {"type": "line", "strokeWidth": 2},
                    "encoding": {
                        "x": x,
                        "y": {**y, "field": "accuracy"},
                        "color": colour,
                        "order": {"field": "cost", "type": "quantitative"},
                        "tooltip": tips,
                    },
                },
                {
                    "data": {"values": rows},
                    "transform": [{"filter": "abs(datum.step - position) <= 0.025"}],
                    "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
                    "encoding": {
                        "x": x,
                        "y": {**y, "field": "accuracy"},
                        "color": colour,
                        "tooltip": tips,
                    },
                },
                {
                    "data": {"values": models},
                    "mark": {"type": "point", "shape": "diamond", "size": 90, "color": GREY},
                    "encoding": {
                        "x": x,
                        "y": {**y, "field": "accuracy"},
                        "tooltip": [{"field": "model", "type": "nominal"}],
                    },
                },
            ],
        },
        width=460,
    )
    return Figure(
        f"cascade-{number}",
        "Accuracy against cost",
        "Lines: strategies over all of their settings; dots: the setting chosen with the slider; "
        "diamonds: each model alone. Up and left is better.",
        spec,
    )
