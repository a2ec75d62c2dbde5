"""Figure of a leaderboard: values with intervals, and ranks that the data leave open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.figures.figure import Figure
from calibrant.report.figures.marks import interval_rule, names, tips
from calibrant.report.figures.theme import FIRST, GREY, SECOND, frame


def figures(document: Mapping[str, Any]) -> list[Figure]:
    """Return one figure: every model with its interval, tied models in one colour."""
    metric = document["metric"]
    rows = [
        {
            "model": entry["model"],
            "value": entry[metric]["value"],
            "low": entry[metric]["low"],
            "high": entry[metric]["high"],
            "ranks": _ranks(entry["rank_low"], entry["rank_high"]),
            "state": "rank is settled" if entry["rank_low"] == entry["rank_high"] else "tied",
        }
        for entry in document["results"]
    ]
    y = names("model")
    x = {"type": "quantitative", "title": metric, "scale": {"zero": False}}
    spec = frame(
        {
            "data": {"values": rows},
            "layer": [
                interval_rule(y, x, GREY),
                {
                    "mark": {"type": "point", "filled": True, "size": 70, "opacity": 1},
                    "encoding": {
                        "y": y,
                        "x": {**x, "field": "value"},
                        "color": {
                            "field": "state",
                            "type": "nominal",
                            "title": None,
                            "scale": {
                                "domain": ["rank is settled", "tied"],
                                "range": [FIRST, SECOND],
                            },
                            "legend": {"orient": "top"},
                        },
                        "tooltip": tips(
                            "model", "ranks", "state", value=".3f", low=".3f", high=".3f"
                        ),
                    },
                },
                {
                    "mark": {"type": "text", "align": "left", "dx": 8, "fontSize": 11},
                    "encoding": {
                        "y": y,
                        "x": {**x, "field": "high"},
                        "text": {"field": "ranks", "type": "nominal"},
                    },
                },
            ],
        },
        width=320,
        height=max(24 * len(rows), 80),
    )
    return [
        Figure(
            "leaderboard",
            f"Ranks by {metric}, with what the data leave open",
            "Each model with its interval; beside it the ranks that are compatible with the data, "
            "for all models at once.",
            spec,
        )
    ]


def _ranks(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} to {high}"
