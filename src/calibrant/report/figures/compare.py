"""Figures of a comparison: what matching outcomes does to every gap, and shared blind spots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.figures.figure import Figure
from calibrant.report.figures.marks import SHARE, names, tips
from calibrant.report.figures.theme import FIRST, GREY, SECOND, frame

_HISTOGRAMS_SHOWN = 3
_LEAGUES_SHOWN = 3
_VIEWS = {
    "raw": "as answered",
    "os_weakest": "at the weakest accuracy",
    "os_strongest": "at the strongest accuracy",
}
_STATES = {
    "field": "state",
    "type": "nominal",
    "title": None,
    "scale": {
        "domain": ["one is better", "depends on the accuracy", "equivalent or undecided"],
        "range": [FIRST, SECOND, GREY],
    },
    "legend": {"orient": "top"},
}


def figures(document: Mapping[str, Any]) -> list[Figure]:
    """Return the scatter of raw against aligned gaps, the league, and both-wrong histograms."""
    found = [_scatter(document), *_leagues(document)]
    detailed = [
        pair
        for pair in document["pairs"]
        if pair.get("shared") and pair["shared"]["both_wrong"]["n"]
    ]
    several = len({pair["method"] for pair in document["pairs"]}) > 1
    return found + [
        _both_wrong(pair, number, several=several)
        for number, pair in enumerate(detailed[:_HISTOGRAMS_SHOWN])
    ]


def note(document: Mapping[str, Any]) -> str:
    """Say how many figures of pairs and methods are left out."""
    pairs = sum(bool(pair.get("shared")) for pair in document["pairs"])
    blocks = len(_blocks(document))
    left_out = []
    if pairs > _HISTOGRAMS_SHOWN:
        left_out.append(f"shared blind spots of the first {_HISTOGRAMS_SHOWN} of {pairs} pairs")
    if blocks > _LEAGUES_SHOWN:
        left_out.append(f"leagues of the first {_LEAGUES_SHOWN} of {blocks} confidences")
    return (
        f"Shown: {', '.join(left_out)}; compare fewer models to see the others." if left_out else ""
    )


def _scatter(document: Mapping[str, Any]) -> Figure:
    rows = [_point(pair) for pair in document["pairs"]]
    # Each axis has room for all that is drawn along it, intervals too.
    wide, high = _reach(rows, "raw"), _reach(rows, "aligned", "low", "high")
    x = {"field": "raw", "type": "quantitative", "title": "raw ECE gap", "scale": _around(wide)}
    y = {
        "type": "quantitative",
        "title": "ECE gap at equal accuracy",
        "scale": _around(high),
    }
    names_shown = ("pair", "method", "state")
    numbers = dict.fromkeys(("raw", "aligned", "low", "high", "accuracy"), "+.3f")
    intervals = {
        "data": {"values": rows},
        "mark": {"type": "rule", "strokeWidth": 1, "opacity": 0.6, "color": GREY},
        "encoding": {"x": x, "y": {**y, "field": "low"}, "y2": {"field": "high"}},
    }
    points = {
        "data": {"values": rows},
        "mark": {"type": "point", "filled": True, "size": 70, "opacity": 0.95},
        "encoding": {
            "x": x,
            "y": {**y, "field": "aligned"},
            "color": _STATES,
            "tooltip": tips(*names_shown, **numbers),
        },
    }
    spec = frame({"layer": [*_quadrants(wide, high, x, y), intervals, points]}, width=360)
    return Figure(
        "gaps",
        "What is left of each gap at equal accuracy",
        "Each point is a pair, brought to its mean accuracy with the confidences moved "
        "along. In the shaded quadrants the order of the two models turns round. Colours: the "
        "verdict on each pair, corrected for all pairs. Lines: intervals of each gap alone.",
        spec,
    )


def _point(pair: Mapping[str, Any]) -> dict[str, Any]:
    aligned = _aligned(pair)
    return {
        "pair": f"{pair['a']} - {pair['b']}",
        "method": pair["method"],
        "raw": pair["gaps"]["raw"]["ece"]["value"],
        "aligned": aligned["value"],
        "low": aligned["low"],
        "high": aligned["high"],
        "accuracy": pair["accuracy_gap"]["value"],
        "state": _state(pair),
    }


def _state(pair: Mapping[str, Any]) -> str:
    """Return the verdict on a pair; documents of 0.1 say no more than whether it is a tie."""
    outcome = pair.get("outcome", "undecided" if pair["tie"] else "shown")
    known = {"shown": "one is better", "depends": "depends on the accuracy"}
    return known.get(outcome, "equivalent or undecided")


def _aligned(pair: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the gap at equal accuracy; documents of 0.1 have the reweighted one alone."""
    found: Mapping[str, Any] = (pair["gaps"].get("os_mean") or pair["gaps"]["da"])["ece"]
    return found


def _reach(rows: list[dict[str, Any]], *fields: str) -> float:
    sizes = [abs(row[name]) for row in rows for name in fields if row[name] is not None]
    return max(sizes, default=0.0) * 1.15 or 0.01


def _around(reach: float) -> dict[str, Any]:
    return {"domain": [-reach, reach], "nice": False}


def _quadrants(
    wide: float, high: float, x: dict[str, Any], y: dict[str, Any]
) -> list[dict[str, Any]]:
    """Shade the quadrants in which the order turns round, and draw the axes."""
    shaded = [
        {"left": -wide, "right": 0, "bottom": 0, "top": high},
        {"left": 0, "right": wide, "bottom": -high, "top": 0},
    ]
    zero = {"data": {"values": [{"zero": 0}]}, "mark": {"type": "rule", "color": GREY}}
    return [
        {
            "data": {"values": shaded},
            "mark": {"type": "rect", "color": SECOND, "opacity": 0.1},
            "encoding": {
                "x": {**x, "field": "left"},
                "x2": {"field": "right"},
                "y": {**y, "field": "bottom"},
                "y2": {"field": "top"},
            },
        },
        {**zero, "encoding": {"x": {**x, "field": "zero"}}},
        {**zero, "encoding": {"y": {**y, "field": "zero"}}},
    ]


def _blocks(document: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    return list(
        dict.fromkeys((entry["method"], str(entry.get("group"))) for entry in document["results"])
    )


def _leagues(document: Mapping[str, Any]) -> list[Figure]:
    found = []
    for number, (method, group) in enumerate(_blocks(document)[:_LEAGUES_SHOWN]):
        entries = [
            entry
            for entry in document["results"]
            if (entry["method"], str(entry.get("group"))) == (method, group)
        ]
        found.append(_league(entries, number))
    return found


def _league(entries: list[Mapping[str, Any]], number: int) -> Figure:
    ranked = sorted(entries, key=lambda entry: entry["views"]["raw"]["ece"]["value"])
    shown = [view for view in _VIEWS if all(view in entry["views"] for entry in entries)]
    rows = [
        {
            "model": entry["model"],
            "view": _VIEWS[view],
            **{name: entry["views"][view]["ece"][name] for name in ("value", "low", "high")},
        }
        for entry in ranked
        for view in shown
    ]
    y = names("model")
    x = {"type": "quantitative", "title": "ECE"}
    offset = {"field": "view", "type": "nominal", "sort": None}
    colour = {
        "field": "view",
        "type": "nominal",
        "title": None,
        "scale": {
            "domain": [_VIEWS[view] for view in shown],
            "range": [GREY, FIRST, SECOND][: len(shown)],
        },
        "legend": {"orient": "top"},
    }
    spec = frame(
        {
            "data": {"values": rows},
            "encoding": {"y": y, "yOffset": offset, "color": colour},
            "layer": [
                {
                    "mark": {"type": "rule", "strokeWidth": 1.5},
                    "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}},
                },
                {
                    "mark": {"type": "point", "filled": True, "size": 60, "opacity": 1},
                    "encoding": {
                        "x": {**x, "field": "value"},
                        "tooltip": tips("model", "view", value=".3f", low=".3f", high=".3f"),
                    },
                },
            ],
        },
        width=320,
        height=max(40 * len(ranked), 80),
    )
    method = ranked[0]["method"]
    group = " / ".join(str(value) for value in (ranked[0].get("group") or {}).values())
    return Figure(
        f"league-{number + 1}",
        f"Calibration error of each model: {method}{': ' + group if group else ''}",
        "As answered, and odds-shifted to the accuracy of the weakest and of the strongest model, "
        "with intervals; the lowest as answered first. Which models are ties is said in the table.",
        spec,
    )


def _both_wrong(pair: Mapping[str, Any], number: int, *, several: bool) -> Figure:
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
                "x": {"field": "confidence", **SHARE},
                "y": {"field": "rows", "type": "quantitative", "title": "questions"},
                "color": {
                    "field": "model",
                    "type": "nominal",
                    "title": None,
                    "scale": {"domain": [pair["a"], pair["b"]], "range": [FIRST, SECOND]},
                    "legend": {"orient": "top"},
                },
                "tooltip": tips("model", confidence=".3f", rows=","),
            },
        },
        height=180,
    )
    return Figure(
        f"both-wrong-{number + 1}",
        f"Shared blind spots: {pair['a']} and {pair['b']}"
        + (f", {pair['method']}" if several else ""),
        f"Confidence of both models on the {half['n']:,} questions that both get wrong: mass on "
        "the right is over-confidence that neither can blame on hard luck.",
        spec,
    )
