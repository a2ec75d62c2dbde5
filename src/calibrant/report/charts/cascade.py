"""The chart of a cascade: accuracy against cost of every way to decide who answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.charts.chart import TONES, Axis, Chart, Dot, Line, between
from calibrant.report.charts.scales import percent


def answer(document: Mapping[str, Any]) -> Chart | None:
    """Return the curves of the first block, with the chosen setting."""
    return _curves(document["results"][0], "answer") if document["results"] else None


def further(document: Mapping[str, Any]) -> list[Chart]:
    """Return the curves of further blocks."""
    return [
        _curves(entry, f"cascade-{number}")
        for number, entry in enumerate(document["results"][1:], 2)
    ]


def _curves(entry: Mapping[str, Any], name: str) -> Chart:
    toned = list(zip(entry["strategies"], TONES, strict=False))
    models = [
        Dot(
            model["relative_cost"]["value"], model["accuracy"]["value"], tone="plain",
            shape="diamond", size=0.3, label=str(model["model"]),
            tip=f"{model['model']} alone: right {percent(model['accuracy']['value'])}",
            key=str(model["model"]),
        )
        for model in entry["models"]
    ]  # fmt: skip
    return Chart(
        name,
        "Accuracy against cost of each way to decide who answers",
        "Up and left is better. Diamonds: each model alone. Ring: the chosen setting. Point at a "
        "curve to read its settings.",
        Axis("cost, largest model alone = 100 %", low=0),
        Axis("share right"),
        [*(_strategy(part, tone) for part, tone in toned), *models, *_chosen(entry, dict(
            (part["name"], tone) for part, tone in toned))],
    )  # fmt: skip


def _strategy(part: Mapping[str, Any], tone: str) -> Line:
    words = str(part.get("words") or part["name"])
    curve = sorted(part["curve"], key=lambda point: point["relative_cost"]["value"])
    places = [(point["relative_cost"]["value"], point["accuracy"]["value"]) for point in curve]
    tips = [
        f"{words}, setting {point['dial']:.3g}: cost {percent(point['relative_cost']['value'])}, "
        f"right {percent(point['accuracy']['value'])}{between(point['accuracy'], percent)}"
        for point in curve
    ]
    return Line(places, tone, words, tips=tips, key=str(part["name"]))


def _chosen(entry: Mapping[str, Any], tones: Mapping[str, str]) -> list[Dot]:
    policy = entry.get("policy") or {}
    promise = policy.get("promise") or {}
    cost, right = ((promise.get(key) or {}).get("value") for key in ("relative_cost", "accuracy"))
    tone = tones.get(policy.get("rule") or "")
    if tone is None or cost is None or right is None:
        return []
    return [Dot(cost, right, tone=tone, shape="ring", label="chosen", side="beside")]
