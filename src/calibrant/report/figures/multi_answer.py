"""Figures of an evaluation with several right answers: by k, and on mixes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from calibrant.report.figures.figure import Figure
from calibrant.report.figures.marks import tips
from calibrant.report.figures.theme import GREY, PALETTE, frame
from calibrant.report.tables.multi_answer import coverage_words

_METHODS_SHOWN = 7
_ACCURACY = "(accuracy)"


def figures(document: Mapping[str, Any]) -> list[Figure]:
    """Return accuracy and confidence by k, and AUROC by mix, for each model."""
    found = []
    for number, (model, entries) in enumerate(_by_model(document).items(), 1):
        shown = _best(entries)
        found += [_by_k(model, shown, number), _by_mix(model, shown, number)]
        found.append(_coverage(model, document, number))
        found += [_by_tau(model, document, number), _masses(model, document, number)]
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


def _by_tau(model: str, document: Mapping[str, Any], number: int) -> Figure | None:
    rows = [
        {"tau": point["threshold"], "method": entry["method"], "AUROC": point["auroc"]}
        for entry in document.get("tuning") or []
        if entry["model"] == model
        for point in entry["curve"]
        if point["auroc"] is not None
    ]
    if not rows:
        return None
    return Figure(
        f"tau-{number}",
        f"{model}: AUROC against the threshold tau",
        "Meanings with less mass than tau are left out of the sum. AUROC on the fifth of the "
        "questions that the threshold is tuned on. Thresholds of sca are quantiles of the masses.",
        frame(
            {
                "data": {"values": rows},
                "mark": {"type": "line", "point": True, "strokeWidth": 2},
                "encoding": {
                    "x": {
                        "field": "tau",
                        "type": "quantitative",
                        "title": "tau",
                        # Masses of one part in a thousand and of ten draws on one axis.
                        "scale": {"type": "symlog", "constant": 0.01},
                    },
                    "y": {"field": "AUROC", "type": "quantitative", "scale": {"zero": False}},
                    "color": {"field": "method", "type": "nominal", "title": None,
                              "scale": {"range": PALETTE}},
                    "tooltip": tips("method", tau=".3g", AUROC=".3f"),
                },
            },
            height=240,
        ),
    )  # fmt: skip


def _masses(model: str, document: Mapping[str, Any], number: int) -> Figure | None:
    found = [entry for entry in document.get("masses") or [] if entry["model"] == model]
    if not found:
        return None
    names = [f"{low:g}-{high:g}" for low, high in pairwise(found[0]["edges"])] + ["above 1"]
    rows = [
        {"mass": name, "meanings": count}
        for name, count in zip(names, found[0]["counts"], strict=True)
    ]
    return Figure(
        f"masses-{number}",
        f"{model}: meanings by their mass",
        "Mass: summed probability of the draws of a meaning. Few meanings hold most of it; a "
        "threshold in the gap between them and the many small ones separates knowledge from noise.",
        frame(
            {
                "data": {"values": rows},
                "mark": {"type": "bar"},
                "encoding": {
                    "x": {"field": "mass", "type": "ordinal", "sort": names,
                          "title": "mass of a meaning", "axis": {"labelAngle": 0}},
                    "y": {"field": "meanings", "type": "quantitative", "title": "meanings"},
                    "color": {"value": PALETTE[0]},
                    "tooltip": tips("mass", meanings=","),
                },
            },
            height=200,
        ),
    )  # fmt: skip


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
