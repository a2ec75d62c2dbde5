"""Pictures of decisions: accuracy against cost, errors against how many are answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.pictures.lines import TONES, Chart, Mark, Series, line_chart
from calibrant.report.pictures.picture import Picture
from calibrant.report.pictures.scales import percent


def cascade_picture(document: Mapping[str, Any]) -> Picture | None:
    """Return accuracy against cost of every strategy, with the chosen setting."""
    if not document["results"]:
        return None
    entry = document["results"][0]
    series = [_strategy(part, tone) for part, tone in zip(entry["strategies"], TONES, strict=False)]
    label = "Accuracy against cost of each way to decide who answers"
    chart = Chart(
        label,
        "cost, largest model alone = 100 %",
        "share right",
        series,
        _cascade_marks(entry),
    )
    return Picture(
        label,
        "Up and left is better. Diamonds: each model alone. Ring: the chosen setting.",
        lambda wide: line_chart(chart, wide=wide),
    )


def _strategy(part: Mapping[str, Any], tone: str) -> Series:
    places = sorted(
        (point["relative_cost"]["value"], point["accuracy"]["value"]) for point in part["curve"]
    )
    return Series(str(part.get("words") or part["name"]), tone, places)


def _cascade_marks(entry: Mapping[str, Any]) -> list[Mark]:
    marks = [
        Mark(str(model["model"]), model["relative_cost"]["value"], model["accuracy"]["value"])
        for model in entry["models"]
    ]
    policy = entry.get("policy") or {}
    promise = policy.get("promise") or {}
    cost, right = (_number(promise.get(name)) for name in ("relative_cost", "accuracy"))
    for part, tone in zip(entry["strategies"], TONES, strict=False):
        if part["name"] == policy.get("rule") and cost is not None and right is not None:
            marks.append(Mark("chosen", cost, right, tone, ring=True, side="beside"))
    return marks


def decide_picture(document: Mapping[str, Any]) -> Picture | None:
    """Return error among the answered against the share answered, with the chosen threshold."""
    entry = next((e for e in document["results"] if e.get("curve")), None)
    if entry is None:
        return None
    pairs = [(_number(point["share"]), _number(point.get("error"))) for point in entry["curve"]]
    places = sorted((x, y) for x, y in pairs if x is not None and y is not None)
    wanted = (document.get("settings") or {}).get("max_error")
    label = "Wrong among the answered against how many are answered"
    answered, error = _number(entry.get("answered")), _number(entry.get("error"))
    marks = []
    if answered is not None and error is not None:
        marks.append(Mark("chosen", answered, error, "second", ring=True))
    chart = Chart(
        label,
        "share answered",
        "wrong among the answered",
        [Series("", "first", places)],
        marks,
        y_from=0.0,
        level=None if wanted is None else (float(wanted), f"limit {percent(float(wanted))}"),
    )
    return Picture(label, "Ring: the chosen threshold.", lambda wide: line_chart(chart, wide=wide))


def _number(value: Any) -> float | None:
    found = value["value"] if isinstance(value, Mapping) else value
    return None if found is None else float(found)
