"""Figures of an audit: reliability diagrams and Sem-ECE curves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.answers import told
from calibrant.report.figures.figure import Figure
from calibrant.report.figures.marks import SHARE, tips
from calibrant.report.figures.semantic import pooled_figures, semantic_figures
from calibrant.report.figures.theme import BAND, FIRST, GREY, SECOND, frame
from calibrant.report.figures.verification import floor_figure

_DIAGRAMS_SHOWN = 12


def figures(document: Mapping[str, Any]) -> list[Figure]:
    """Return a reliability diagram per block (the first few), then the Sem-ECE figures."""
    results = told(document)["results"]
    blocks = [entry for entry in results if entry.get("reliability")]
    several = len({entry["method"] for entry in results}) > 1
    found = [
        _reliability(entry, number, several=several)
        for number, entry in enumerate(blocks[:_DIAGRAMS_SHOWN])
    ]
    meanings = document.get("sem_ece") or []
    found += pooled_figures(document.get("sem_ece_pooled"), len(meanings))
    for number, block in enumerate(meanings):
        found.extend(semantic_figures(block, number))
    return [*found, *_floors(results)]


def note(document: Mapping[str, Any]) -> str:
    """Say how many reliability diagrams are left out."""
    number = sum(bool(entry.get("reliability")) for entry in told(document)["results"])
    if number <= _DIAGRAMS_SHOWN:
        return ""
    return (
        f"Reliability diagrams of the first {_DIAGRAMS_SHOWN} of {number} confidences; audit the "
        "others alone to see theirs."
    )


def _floors(results: list[Mapping[str, Any]]) -> list[Figure]:
    several = len({entry["method"] for entry in results}) > 1
    return floor_figure(
        [
            (
                _place(entry, several=several),
                entry["metrics"]["ece"],
                entry["verification"],
                entry["calibration_test"]["expected_ece"],
            )
            for entry in results
            if entry.get("verification") and "ece" in entry["metrics"]
        ]
    )


def _place(entry: Mapping[str, Any], *, several: bool) -> str:
    """Name what a figure is about; the method is left out where there is only one."""
    group = entry.get("group") or {}
    values = (f"{key}={value}" for key, value in group.items())
    method = [entry["method"]] if several else []
    return " / ".join([entry["model"], *method, *values])


def _reliability(entry: Mapping[str, Any], number: int, *, several: bool) -> Figure:
    place = _place(entry, several=several)
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
    axis_x = {"field": "confidence", **SHARE}
    axis_y = {**SHARE, "title": "share right"}
    shown = tips(
        confidence=".3f", rate=".3f", low=".3f", high=".3f", n=",", lower=".2f", upper=".2f"
    )
    curve_shown = tips(confidence=".3f", rate=".3f", band_low=".3f", band_high=".3f")
    return [
        {
            "data": {"values": points},
            "mark": {"type": "area", "color": BAND, "opacity": 0.45},
            "encoding": {
                "x": axis_x,
                "y": {**axis_y, "field": "band_low"},
                "y2": {"field": "band_high"},
                "tooltip": curve_shown,
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
            "encoding": {
                "x": axis_x,
                "y": {**axis_y, "field": "rate"},
                "tooltip": curve_shown,
            },
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
            "encoding": {"x": axis_x, "y": {**axis_y, "field": "rate"}, "tooltip": shown},
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
                **SHARE,
                "bin": {"binned": True, "step": step},
                "title": "confidence",
            },
            "x2": {"field": "to"},
            "y": {
                "field": "rows",
                "type": "quantitative",
                "title": "rows",
                "axis": {"tickCount": 2},
            },
            "tooltip": tips(**{"from": ".2f", "to": ".2f", "rows": ","}),
        },
    }
