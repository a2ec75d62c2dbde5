"""Figures of Sem-ECE: convergence, and where the estimators part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.report.figures.figure import Figure
from calibrant.report.figures.marks import SHARE, tips
from calibrant.report.figures.theme import FIRST, GREY, SECOND, TEXT, frame

_COLOURS = {"domain": ["Sem1-ECE", "Sem2-ECE"], "range": [SECOND, FIRST]}
_COLOUR = {
    "field": "estimator",
    "type": "nominal",
    "scale": _COLOURS,
    "title": None,
    "legend": {"symbolOpacity": 1},
}


def semantic_figures(block: Mapping[str, Any], number: int) -> list[Figure]:
    """Return the reliability diagram, the convergence curve (with draws enough) and the strata."""
    found = []
    if block.get("reliability"):
        found.append(_reliability(block["reliability"], _name(block), number))
    if block.get("convergence"):
        found.append(_convergence(block, number))
    found.append(_strata(block, number))
    return found


def pooled_figures(pooled: Mapping[str, Any] | None, number: int) -> list[Figure]:
    """Return the reliability diagram over all models, where there are several."""
    if not pooled or pooled["models"] < 2 or not pooled.get("reliability"):
        return []
    return [_reliability(pooled["reliability"], f"All {pooled['models']} models", number)]


def _reliability(bins: Mapping[str, Any], name: str, number: int) -> Figure:
    rows = [
        {
            "estimator": kind,
            **{key: part[key] for key in ("confidence", "rate", "low", "high", "n")},
        }
        for kind, key in (("Sem1", "sem1"), ("Sem2", "sem2"))
        for part in bins[key]
    ]
    x = {"field": "confidence", **SHARE, "title": "share of draws with the leading meaning"}
    y = {"field": "rate", **SHARE, "title": "share right"}
    scale = {"domain": ["Sem1", "Sem2"], "range": _COLOURS["range"]}
    colour = {"field": "estimator", "type": "nominal", "scale": scale, "title": None}
    spec = frame(
        {
            "data": {"values": rows},
            "layer": [
                {
                    "data": {
                        "values": [{"confidence": 0, "rate": 0}, {"confidence": 1, "rate": 1}]
                    },
                    "mark": {"type": "line", "color": GREY, "strokeDash": [4, 3]},
                    "encoding": {"x": x, "y": y},
                },
                {
                    "mark": {"type": "rule", "opacity": 0.6},
                    "encoding": {
                        "x": x,
                        "y": {**y, "field": "low"},
                        "y2": {"field": "high"},
                        "color": colour,
                    },
                },
                {
                    "mark": {"type": "point", "filled": True, "opacity": 0.9},
                    "encoding": {
                        "x": x,
                        "y": y,
                        "color": colour,
                        "size": {"field": "n", "type": "quantitative", "legend": None},
                        "tooltip": tips(
                            "estimator",
                            confidence=".3f",
                            rate=".3f",
                            low=".3f",
                            high=".3f",
                            n=",",
                        ),
                    },
                },
            ],
        },
        height=240,
    )
    return Figure(
        f"meaning-reliability-{number + 1}",
        f"{name}: share right against the share of the leading meaning",
        "On the dashed line the share of draws is the share of right answers; below it the model "
        "is over-confident. Larger points have more questions; bars are 95 % intervals. Sem1 "
        "counts all draws, Sem2 only those that did not choose the leading meaning.",
        spec,
    )


def _convergence(block: Mapping[str, Any], number: int) -> Figure:
    rows = [
        {"draws": point["n"], "estimator": f"{name}-ECE", **point[name.lower()]}
        for point in block["convergence"]["points"]
        for name in ("Sem1", "Sem2")
    ]
    x = {"field": "draws", "type": "quantitative", "title": "draws per question"}
    spec = frame(
        {
            "data": {"values": rows},
            "layer": [
                {
                    "mark": {"type": "area", "opacity": 0.15},
                    "encoding": {
                        "x": x,
                        "y": {"field": "low", "type": "quantitative", "title": "ECE"},
                        "y2": {"field": "high"},
                        "color": _COLOUR,
                    },
                },
                {
                    "mark": {"type": "line", "point": True},
                    "encoding": {
                        "x": x,
                        "y": {"field": "value", "type": "quantitative", "title": "ECE"},
                        "color": _COLOUR,
                        "tooltip": tips("estimator", draws=",", value=".3f", low=".3f", high=".3f"),
                    },
                },
            ],
        },
        height=240,
    )
    return Figure(
        f"convergence-{number + 1}",
        f"{_name(block)}: Sem1 and Sem2 as draws are added",
        "Sem1's confidence is too high, Sem2's too low, both less so with more draws. The error "
        "with unlimited draws may lie outside both curves.",
        spec,
    )


def _strata(block: Mapping[str, Any], number: int) -> Figure:
    rows = [
        {
            "margin": (row["low"] + row["high"]) / 2,
            "estimator": name,
            "ece": row[key],
            **_band(row.get(f"{key}_band")),
            "n": row["n"],
            **_difference(row["ece_gap"]),
        }
        for row in block["strata"]
        for name, key in (("Sem1-ECE", "sem1"), ("Sem2-ECE", "sem2"))
    ]
    x = {
        "field": "margin",
        "type": "quantitative",
        "title": "margin of the two most frequent meanings",
        "scale": {"domain": [0, 1]},
    }
    y = {"field": "ece", "type": "quantitative", "title": "ECE"}
    bands = {
        "mark": {"type": "area", "opacity": 0.15},
        "encoding": {
            "x": x,
            "y": {**y, "field": "from"},
            "y2": {"field": "to"},
            "color": _COLOUR,
        },
    }
    lines = {
        "mark": {"type": "line", "point": True},
        "encoding": {
            "x": x,
            "y": y,
            "color": _COLOUR,
            "tooltip": tips(
                "estimator",
                **{"margin": ".2f", "ece": ".3f", "from": ".3f", "to": ".3f", "n": ","},
                **{"Sem1 - Sem2": "+.3f"},
                **{"difference from": "+.3f", "difference to": "+.3f"},
            ),
        },
    }
    drawn = {"data": {"values": rows}, "layer": [bands, lines]}
    spec = frame(
        {"layer": [*_boundaries(block["boundaries"]), drawn, _numbers(rows, x, y)]}, height=240
    )
    return Figure(
        f"margins-{number + 1}",
        f"{_name(block)}: calibration error by margin",
        "The estimators agree where one meaning clearly leads (right of the second dashed line) "
        "and part where the race is close (left of the first, where chance in the choice of the "
        "mode dominates). Bands are intervals, with the number of questions above. "
        "The interval of the difference is with the numbers.",
        spec,
    )


def _name(block: Mapping[str, Any]) -> str:
    """Name a block by its model and, where questions are grouped, by its group."""
    groups = [f"{key} = {value}" for key, value in (block.get("group") or {}).items()]
    return ", ".join([str(block["model"]), *groups])


def _band(found: Mapping[str, Any] | None) -> dict[str, Any]:
    return {"from": (found or {}).get("low"), "to": (found or {}).get("high")}


def _numbers(
    rows: Sequence[Mapping[str, Any]], x: Mapping[str, Any], y: Mapping[str, Any]
) -> dict[str, Any]:
    """Write the number of questions of each stratum above its bands."""
    tops: dict[float, dict[str, Any]] = {}
    for row in rows:
        top = max(row["ece"], row["to"] or 0.0)
        known = tops.setdefault(row["margin"], {"margin": row["margin"], "n": row["n"], "ece": top})
        known["ece"] = max(known["ece"], top)
    return {
        "data": {"values": list(tops.values())},
        "mark": {"type": "text", "fontSize": 11, "color": TEXT, "dy": -7},
        "encoding": {
            "x": x,
            "y": y,
            "text": {"field": "n", "type": "quantitative", "format": ","},
        },
    }


def _difference(gap: Mapping[str, Any] | None) -> dict[str, Any]:
    found = gap or {"value": None, "low": None, "high": None}
    names = ("Sem1 - Sem2", "difference from", "difference to")
    ends = (found["value"], found["low"], found["high"])
    # A difference of equal errors is 0 but for rounding.
    shown = (None if end is None else round(end, 9) + 0.0 for end in ends)
    return dict(zip(names, shown, strict=True))


def _boundaries(at: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the lines between the regimes, with their names."""
    bounds = [
        {"at": at["jensen"], "name": "low margin from here"},
        {"at": at["large_margin"], "name": "large margin from here"},
    ]
    lines = {
        "data": {"values": bounds},
        "mark": {"type": "rule", "color": GREY, "strokeDash": [4, 3]},
        "encoding": {
            "x": {"field": "at", "type": "quantitative"},
            "tooltip": tips("name", at=".3f"),
        },
    }
    return [lines, *(_boundary_name(bound, place) for place, bound in enumerate(bounds))]


def _boundary_name(bound: dict[str, Any], place: int) -> dict[str, Any]:
    """Name a boundary beside its line, each one line lower: the two may lie close together."""
    return {
        "data": {"values": [bound]},
        "mark": {"type": "text", "align": "left", "dx": 4, "fontSize": 11, "color": TEXT},
        "encoding": {
            "x": {"field": "at", "type": "quantitative"},
            "y": {"value": 8 + 14 * place},
            "text": {"field": "name", "type": "nominal"},
        },
    }
