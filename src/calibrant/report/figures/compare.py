"""Figures of a comparison: what matching outcomes does to every gap, and shared blind spots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.figures.figure import Figure
from calibrant.report.figures.theme import FIRST, GREY, SECOND, frame

__all__ = ["figures"]

_HISTOGRAMS_SHOWN = 3


def figures(document: Mapping[str, Any]) -> list[Figure]:
    """Return the scatter of raw against aligned gaps, and both-wrong histograms."""
    found = [_scatter(document)]
    detailed = [pair for pair in document["pairs"] if pair.get("shared")]
    for number, pair in enumerate(detailed[:_HISTOGRAMS_SHOWN]):
        if pair["shared"]["both_wrong"]["n"]:
            found.append(_both_wrong(pair, number))
    return found


def _scatter(document: Mapping[str, Any]) -> Figure:
    rows = [
        {
            "pair": f"{pair['a']} - {pair['b']}",
            "raw": pair["gaps"]["raw"]["ece"]["value"],
            "aligned": pair["gaps"]["da"]["ece"]["value"],
            "accuracy": pair["accuracy_gap"]["value"],
            "tie": "tie" if pair["ties"]["da"]["ece"] else "resolved",
        }
        for pair in document["pairs"]
    ]
    zero = {"data": {"values": [{"zero": 0}]}, "mark": {"type": "rule", "color": GREY}}
    spec = frame(
        {
            "layer": [
                {**zero, "encoding": {"x": {"field": "zero", "type": "quantitative"}}},
                {**zero, "encoding": {"y": {"field": "zero", "type": "quantitative"}}},
                {
                    "data": {"values": rows},
                    "mark": {"type": "point", "filled": True, "size": 70, "opacity": 0.9},
                    "encoding": {
                        "x": {"field": "raw", "type": "quantitative", "title": "raw ECE gap"},
                        "y": {
                            "field": "aligned",
                            "type": "quantitative",
                            "title": "ECE gap at equal accuracy (DA)",
                        },
                        "color": {
                            "field": "tie",
                            "type": "nominal",
                            "title": None,
                            "scale": {"domain": ["resolved", "tie"], "range": [FIRST, GREY]},
                        },
                        "tooltip": [
                            {"field": "pair", "type": "nominal"},
                            {"field": "raw", "type": "quantitative", "format": "+.3f"},
                            {"field": "aligned", "type": "quantitative", "format": "+.3f"},
                            {"field": "accuracy", "type": "quantitative", "format": "+.3f"},
                        ],
                    },
                },
            ]
        },
        width=360,
    )
    return Figure(
        "gaps",
        "What is left of each gap at equal accuracy",
        "Each point is a pair. In the upper left and lower right quadrants the order of the two "
        "models turns round once accuracy is matched; grey points are ties for these labels.",
        spec,
    )


def _both_wrong(pair: Mapping[str, Any], number: int) -> Figure:
    half = pair["shared"]["both_wrong"]
    rows = [
        {"confidence": (place + 0.5) / len(half[f"histogram_{key}"]), "rows": count, "model": name}
        for key, name in (("a", pair["a"]), ("b", pair["b"]))
        for place, count in enumerate(half[f"histogram_{key}"])
    ]
    spec = frame(
        {
            "data": {"values": rows},
            "mark": {"type": "line", "interpolate": "step", "strokeWidth": 2},
            "encoding": {
                "x": {
                    "field": "confidence",
                    "type": "quantitative",
                    "scale": {"domain": [0, 1]},
                },
                "y": {"field": "rows", "type": "quantitative", "title": "questions"},
                "color": {
                    "field": "model",
                    "type": "nominal",
                    "title": None,
                    "scale": {"domain": [pair["a"], pair["b"]], "range": [FIRST, SECOND]},
                    "legend": {"orient": "top"},
                },
            },
        },
        height=180,
    )
    return Figure(
        f"both-wrong-{number + 1}",
        f"Shared blind spots: {pair['a']} and {pair['b']}",
        f"Confidence of both models on the {half['n']:,} questions that both get wrong: mass on "
        "the right is over-confidence that neither can blame on hard luck.",
        spec,
    )
