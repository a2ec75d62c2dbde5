"""Figures of an evaluation with several right answers: by k, and on mixes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.report.figures.figure import Figure
from calibrant.report.figures.marks import tips
from calibrant.report.figures.theme import GREY, PALETTE, frame
from calibrant.report.terminal.evidence.multi_answer import coverage_words

__all__ = ["figures", "note"]

_METHODS_SHOWN = 7
_ACCURACY = "(accuracy)"


def figures(document: Mapping[str, Any]) -> list[Figure]:
    """Return accuracy and confidence by k, and AUROC by mix, for each model."""
    found = []
    for number, (model, entries) in enumerate(_by_model(document).items(), 1):
        shown = _best(entries)
        found += [_by_k(model, shown, number), _by_mix(model, shown, number)]
        found.append(_coverage(model, document, number))
    return [figure for figure in found if figure is not None]


def note(document: Mapping[str, Any]) -> str:
    """Say how many methods the charts leave out."""
    most = max((len(entries) for entries in _by_model(document).values()), default=0)
    if most <= _METHODS_SHOWN:
        return ""
    return (
        f"Charts show the {_METHODS_SHOWN} methods with the largest AUROC on the widest mix, of "
        f"{most}; the tables have them all."
    )


def _by_model(document: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    found: dict[str, list[Mapping[str, Any]]] = {}
    for entry in document["results"]:
        found.setdefault(entry["model"], []).append(entry)
    return found


def _best(entries: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    def rank(entry: Mapping[str, Any]) -> float:
        value = entry["mixes"][-1]["auroc"]["value"] if entry["mixes"] else None
        return 0.0 if value is None else -value

    return sorted(entries, key=rank)[:_METHODS_SHOWN]


def _by_k(model: str, entries: list[Mapping[str, Any]], number: int) -> Figure | None:
    rows = [
        {"k": point["k"], "method": _ACCURACY, **point["accuracy"]}
        for point in entries[0]["by_k"]
        if point["accuracy"]["value"] is not None
    ]
    for entry in entries:
        for point in entry["by_k"]:
            confidence = point["confidence"]
            if confidence is not None and confidence["value"] is not None:
                rows.append({"k": point["k"], "method": entry["method"], **confidence})
    if not rows:
        return None
    return Figure(
        f"by-k-{number}",
        f"{model}: accuracy and confidence by number of right answers",
        "With more right answers accuracy (grey, dashed; that of the answers of "
        f"{entries[0]['method']}) should rise; a confidence that falls takes variety for doubt. "
        "Upright lines: intervals. Choose a method in the legend to see it alone.",
        _lines(rows, "k", "number of right answers", "mean confidence, accuracy"),
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
    return Figure(
        f"by-mix-{number}",
        f"{model}: telling right from wrong on mixes",
        "AUROC when questions with one and with several right answers are pooled; 0.5 is chance. "
        "A line that falls to the right is a confidence that several right answers mislead. "
        "Upright lines: intervals.",
        _lines(rows, "mix", "mix of numbers of right answers", "AUROC"),
    )


def _coverage(model: str, document: Mapping[str, Any], number: int) -> Figure | None:
    rows = [
        {"k": entry["k"], **entry["coverage"]}
        for entry in document.get("coverage") or []
        if entry["model"] == model and entry["coverage"]["value"] is not None
    ]
    if not rows:
        return None
    spec = _lines(
        [{**row, "method": "known answers"} for row in rows],
        "k",
        "number of right answers",
        "meanings held likely",
    )
    rule = document.get("coverage_rule") or {}
    return Figure(
        f"coverage-{number}",
        f"{model}: how many answers it holds likely",
        f"{coverage_words(rule)} A model that knows all right answers has a line that rises.",
        spec,
    )


def _lines(rows: list[dict[str, Any]], field: str, title: str, y: str) -> dict[str, Any]:
    methods = list(dict.fromkeys(row["method"] for row in rows))
    others = [name for name in methods if name != _ACCURACY]
    colours = [GREY, *PALETTE] if _ACCURACY in methods else PALETTE
    domain = [_ACCURACY, *others] if _ACCURACY in methods else others
    # From few to many, wherever a line begins.
    order = sorted({row[field] for row in rows}, key=lambda name: (len(str(name)), str(name)))
    x: dict[str, Any] = {"field": field, "type": "ordinal", "title": title, "sort": order}
    x["axis"] = {"labelAngle": 0}
    x["scale"] = {"paddingInner": 0.6 if len(domain) > 1 else 0.2, "paddingOuter": 0.3}
    value = {"type": "quantitative", "title": y, "scale": {"zero": False}}
    colour = {
        "field": "method",
        "type": "nominal",
        "title": None,
        "sort": domain,
        "scale": {"domain": domain, "range": colours[: len(domain)]},
    }
    offset = {"field": "method", "type": "nominal", "sort": domain}
    faint = {"condition": {"param": "chosen", "value": 1}, "value": 0.12}
    dash = {
        "condition": {"test": f"datum.method == '{_ACCURACY}'", "value": [4, 3]},
        "value": [1, 0],
    }
    return frame(
        {
            "data": {"values": rows},
            # Side by side, so that the intervals of several methods do not cover each other.
            "encoding": {"x": x, "xOffset": offset, "color": colour, "opacity": faint},
            "layer": [
                {
                    "mark": {"type": "rule", "strokeWidth": 1},
                    "encoding": {"y": {**value, "field": "low"}, "y2": {"field": "high"}},
                },
                {
                    "mark": {"type": "line", "strokeWidth": 2},
                    "encoding": {"y": {**value, "field": "value"}, "strokeDash": dash},
                },
                {
                    "mark": {"type": "point", "filled": True, "size": 45},
                    "params": [
                        {
                            "name": "chosen",
                            "select": {"type": "point", "fields": ["method"]},
                            "bind": "legend",
                        }
                    ],
                    "encoding": {
                        "y": {**value, "field": "value"},
                        "tooltip": tips("method", field, value=".3f", low=".3f", high=".3f", n=","),
                    },
                },
            ],
        },
        height=260,
    )
