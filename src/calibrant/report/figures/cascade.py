"""Figure of a cascade: accuracy against cost, with a slider on the threshold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.figures.figure import Figure
from calibrant.report.figures.marks import tips
from calibrant.report.figures.theme import GREY, frame

_SLIDER = {
    "input": "range",
    "min": 0,
    "max": 1,
    "step": 0.02,
    "name": "Threshold, from one end of each curve to the other ",
}


def figures(document: Mapping[str, Any]) -> list[Figure]:
    """Return the cost-accuracy curves of each entry."""
    return [_curves(entry, number) for number, entry in enumerate(document["results"], 1)]


def _curves(entry: Mapping[str, Any], number: int) -> Figure:
    rows = _rows(entry)
    readout = {
        "signal": "position",
        "columns": ["strategy", "setting", "cost", "accuracy", "low", "high"],
        "rows": rows,
    }
    spec = frame(
        {
            "params": [{"name": "position", "value": 0.5, "bind": _SLIDER}],
            "layer": _layers(rows, _models(entry)),
            # The page shows these numbers beside the slider; exports leave them out.
            "usermeta": {"readout": readout},
        },
        width=460,
    )
    return Figure(
        f"cascade-{number}",
        "Accuracy against cost",
        "Lines: strategies over all of their settings; dots: the setting chosen with the slider, "
        "with its numbers in the table; diamonds: each model alone. Up and left is better.",
        spec,
    )


def _rows(entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "strategy": strategy["words"],
            "place": place,
            "count": len(strategy["curve"]),
            "setting": point["dial"],
            "cost": point["relative_cost"]["value"],
            "accuracy": point["accuracy"]["value"],
            "low": point["accuracy"]["low"],
            "high": point["accuracy"]["high"],
        }
        for strategy in entry["strategies"]
        for place, point in enumerate(strategy["curve"])
    ]


def _models(entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "model": item["model"],
            "cost": item["relative_cost"]["value"],
            "accuracy": item["accuracy"]["value"],
        }
        for item in entry["models"]
    ]


def _layers(rows: list[dict[str, Any]], models: list[dict[str, Any]]) -> list[dict[str, Any]]:
    place = {
        "x": {
            "field": "cost",
            "type": "quantitative",
            "scale": {"zero": False, "padding": 24},
            "title": "cost, largest model = 1",
        },
        "y": {
            "field": "accuracy",
            "type": "quantitative",
            "scale": {"zero": False, "padding": 24},
            "title": "accuracy",
        },
    }
    colour = {"field": "strategy", "type": "nominal", "title": None, "legend": {"labelLimit": 260}}
    shown = tips("strategy", setting=".3~g", cost=".3f", accuracy=".3f", low=".3f", high=".3f")
    order = {"field": "cost", "type": "quantitative"}
    return [
        {
            "data": {"values": rows},
            "mark": {"type": "line", "strokeWidth": 2},
            "encoding": {**place, "color": colour, "order": order, "tooltip": shown},
        },
        {
            "data": {"values": rows},
            "transform": [{"filter": "datum.place == round(position * (datum.count - 1))"}],
            "mark": {"type": "point", "filled": True, "size": 90, "opacity": 1},
            "encoding": {**place, "color": colour, "tooltip": shown},
        },
        {
            "data": {"values": models},
            "mark": {"type": "point", "shape": "diamond", "size": 90, "color": GREY},
            "encoding": {**place, "tooltip": tips("model", cost=".3f", accuracy=".3f")},
        },
        # Curves rise from the cheapest model to the largest: names keep out of their way.
        *(
            {
                "data": {"values": chosen},
                "mark": {"type": "text", "dy": shift, "fontSize": 12},
                "encoding": {**place, "text": {"field": "model"}},
            }
            for chosen, shift in ((models[:-1], 16), (models[-1:], -12))
        ),
    ]
