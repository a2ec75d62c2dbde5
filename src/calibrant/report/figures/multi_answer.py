"""Figures of an evaluation with several right answers: by k, and on mixes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.figures.figure import Figure
from calibrant.report.figures.theme import frame

__all__ = ["figures"]


def figures(document: Mapping[str, Any]) -> list[Figure]:
    """Return accuracy and confidence by k, and AUROC by mix, for each model."""
    models = dict.fromkeys(entry["model"] for entry in document["results"])
    found = []
    for number, model in enumerate(models, 1):
        entries = [entry for entry in document["results"] if entry["model"] == model]
        found += [_by_k(model, entries, number), _by_mix(model, entries, number)]
    return [figure for figure in found if figure is not None]


def _by_k(model: str, entries: list[Mapping[str, Any]], number: int) -> Figure | None:
    rows = []
    for entry in entries:
        for point in entry["by_k"]:
            confidence = point["confidence"]
            if confidence is not None and confidence["value"] is not None:
                rows.append({"k": point["k"], "method": entry["method"], **confidence})
    for point in entries[0]["by_k"]:
        if point["accuracy"]["value"] is not None:
            rows.append({"k": point["k"], "method": "(accuracy)", **point["accuracy"]})
    if not rows:
        return None
    return Figure(
        f"by-k-{number}",
        f"{model}: accuracy and confidence by number of right answers",
        "With more right answers accuracy should rise; a confidence that falls takes variety for "
        "doubt.",
        _lines(rows, "k", "number of right answers", "mean"),
    )


def _by_mix(model: str, entries: list[Mapping[str, Any]], number: int) -> Figure | None:
    rows = [
        {"mix": "+".join(str(k) for k in point["mix"]), "method": entry["method"], **point["auroc"]}
        for entry in entries
        for point in entry["mixes"]
        if point["auroc"]["value"] is not None
    ]
    if not rows:
        return None
    spec = _lines(rows, "mix", "mix of numbers of right answers", "AUROC")
    spec["encoding"]["x"]["type"] = "nominal"
    return Figure(
        f"by-mix-{number}",
        f"{model}: telling right from wrong on mixes",
        "AUROC when questions with one and with several right answers are pooled; 0.5 is chance.",
        spec,
    )


def _lines(rows: list[dict[str, Any]], field: str, title: str, y: str) -> dict[str, Any]:
    return frame(
        {
            "data": {"values": rows},
            "mark": {"type": "line", "point": True},
            "encoding": {
                "x": {"field": field, "type": "ordinal", "title": title, "sort": None},
                "y": {
                    "field": "value",
                    "type": "quantitative",
                    "title": y,
                    "scale": {"zero": False},
                },
                "color": {
                    "field": "method",
                    "type": "nominal",
                    "title": None,
                    "scale": {"scheme": "tableau20"},
                },
                "tooltip": [
                    {"field": "method", "type": "nominal"},
                    {"field": field, "type": "ordinal"},
                    {"field": "value", "type": "quantitative", "format": ".3f"},
                    {"field": "low", "type": "quantitative", "format": ".3f"},
                    {"field": "high", "type": "quantitative", "format": ".3f"},
                ],
            },
        },
        height=260,
    )
