"""Figures of an audit: reliability diagrams and Sem-ECE curves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.figures.figure import Figure
from calibrant.report.figures.semantic import semantic_figures
from calibrant.report.figures.theme import BAND, FIRST, GREY, SECOND, frame

__all__ = ["figures"]

_DIAGRAMS_SHOWN = 12


def figures(document: Mapping[str, Any]) -> list[Figure]:
    """Return a reliability diagram per block (the first few), then the Sem-ECE figures."""
    blocks = [entry for entry in document["results"] if entry.get("reliability")]
    found = [_reliability(entry, number) for number, entry in enumerate(blocks[:_DIAGRAMS_SHOWN])]
    for number, block in enumerate(document.get("sem_ece") or []):
        found.extend(semantic_figures(block, number))
    return found


def _reliability(entry: Mapping[str, Any], number: int) -> Figure:
    group = entry.get("group") or {}
    place = " / ".join([entry["model"], entry["method"], *group.values()])
    ece = entry["metrics"]["ece"]
    spec = frame(
        {
            "width": 320,
            "vconcat": [
                {"width": 320, "height": 300, "layer": _diagram_layers(entry["reliability"])},
                {"width": 320, "height": 60, **_histogram(entry["reliability"]["histogram"])},
            ],
            "spacing": 8,
        }
    )
    spec.pop("width")
    spec.pop("height")
    return Figure(
        f"reliability-{number + 1}",
        place,
        f"Share of right answers against confidence for {place}. Points: bins with their "
        f"intervals; line: isotonic curve; grey: where a perfectly calibrated model would lie at "
        f"n = {entry['n']:,}. ECE {ece['value']:.3f}, interval {ece['low']:.3f} to "
        f"{ece['high']:.3f}.",
        spec,
    )


def _diagram_layers(reliability: Mapping[str, Any]) -> list[dict[str, Any]]:
    curve = reliability["curve"]
    names = ("confidence", "rate", "band_low", "band_high")
    columns = zip(*(curve[name] for name in names), strict=True)
    points = [dict(zip(names, row, strict=True)) for row in columns]
    axis_x = {"field": "confidence", "type": "quantitative", "scale": {"domain": [0, 1]}}
    axis_y = {"type": "quantitative", "scale": {"domain": [0, 1]}, "title": "share right"}
    tips = [
        {"field": "confidence", "type": "quantitative", "format": ".3f"},
        {"field": "rate", "type": "quantitative", "format": ".3f", "title": "share right"},
        {"field": "low", "type": "quantitative", "format": ".3f"},
        {"field": "high", "type": "quantitative", "format": ".3f"},
        {"field": "n", "type": "quantitative", "format": ","},
    ]
    return [
        {
            "data": {"values": points},
            "mark": {"type": "area", "color": BAND, "opacity": 0.45},
            "encoding": {
                "x": axis_x,
                "y": {**axis_y, "field": "band_low"},
                "y2": {"field": "band_high"},
            },
        },
        {
            "data": {"values": [{"confidence": 0, "rate": 0}, {"confidence": 1, "rate": 1}]},
            "mark": {"type": "line", "color": GREY, "strokeDash": [4, 4], "strokeWidth": 1},
            "encoding": {"x": axis_x, "y": {**axis_y, "field": "rate"}},
        },
        {
            "data": {"values": points},
            "mark": {"type": "line", "color": SECOND, "strokeWidth": 2},
            "encoding": {"x": axis_x, "y": {**axis_y, "field": "rate"}},
        },
        {
            "data": {"values": reliability["bins"]},
            "mark": {"type": "rule", "color": FIRST, "strokeWidth": 1.5},
            "encoding": {
                "x": axis_x,
                "y": {**axis_y, "field": "low"},
                "y2": {"field": "high"},
            },
        },
        {
            "data": {"values": reliability["bins"]},
            "mark": {"type": "point", "color": FIRST, "filled": True, "size": 45, "opacity": 1},
            "encoding": {"x": axis_x, "y": {**axis_y, "field": "rate"}, "tooltip": tips},
        },
    ]


def _histogram(counts: list[int]) -> dict[str, Any]:
    step = 1 / len(counts)
    rows = [
        {"from": place * step, "to": (place + 1) * step, "rows": count}
        for place, count in enumerate(counts)
    ]
    return {
        "data": {"values": rows},
        "mark": {"type": "bar", "color": FIRST, "opacity": 0.6},
        "encoding": {
            "x": {
                "field": "from",
                "type": "quantitative",
                "bin": {"binned": True, "step": step},
                "scale": {"domain": [0, 1]},
                "title": "confidence",
            },
            "x2": {"field": "to"},
            "y": {
                "field": "rows",
                "type": "quantitative",
                "title": "rows",
                "axis": {"tickCount": 2},
            },
            "tooltip": [{"field": "rows", "type": "quantitative", "format": ","}],
        },
    }
