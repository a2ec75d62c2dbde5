"""Charts of decisions: a threshold, what a stated confidence means, and who answers."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from calibrant.report.blocks import entry_name
from calibrant.report.charts.chart import TONES, Axis, Band, Chart, Dot, Line, Mark, Rule, between
from calibrant.report.charts.scales import percent


def charts(document: Mapping[str, Any]) -> Iterator[Chart]:
    """Yield the curve of the first block that has one, with the chosen threshold."""
    entry = next((e for e in document["results"] if e.get("curve")), None)
    if entry is None:
        return
    known = [
        p for p in entry["curve"] if p["share"] is not None and p["error"]["value"] is not None
    ]
    curve = sorted(known, key=lambda point: (point["share"], point["error"]["value"]))
    tips = [
        f"from {point['threshold']:.3g} on: answers {percent(point['share'])}, wrong among them "
        f"{percent(point['error']['value'])}{between(point['error'], percent)}"
        for point in curve
    ]
    marks: list[Mark] = [Line([(p["share"], p["error"]["value"]) for p in curve], tips=tips)]
    limit = (document.get("settings") or {}).get("max_error")
    if limit is not None:
        marks.append(Rule(float(limit), words=f"limit {percent(float(limit))}"))
    answered, error = ((entry.get(key) or {}).get("value") for key in ("answered", "error"))
    if answered is not None and error is not None:
        marks.append(Dot(answered, error, tone="second", shape="ring", label="chosen"))
    most = max([*(p["error"]["value"] for p in curve), float(limit or 0)], default=0.0)
    yield Chart(
        "answer",
        "Wrong among the answered against how many are answered",
        "Ring: the chosen threshold.",
        Axis("share answered", low=0),
        # Room above: a limit may be drawn there.
        Axis("wrong among the answered", low=0, high=min(1.0, max(1.25 * most, 0.05))),
        marks,
    )


def mend_charts(document: Mapping[str, Any]) -> Iterator[Chart]:
    """Yield what a stated confidence of each entry means."""
    for n, entry in enumerate(document["results"], 1):
        yield _meaning(entry, "answer" if n == 1 else f"mend-{n}")


def _meaning(entry: Mapping[str, Any], name: str) -> Chart:
    rows = entry["table"]
    most = max((row["n"] for row in rows), default=1) or 1
    whose = f", {entry_name(entry)}" if entry["model"] else ""
    return Chart(
        name,
        f"What a stated confidence means{whose}",
        "Line: the probability behind a stated value, with its interval. Dots: share right among "
        "the labels nearest to that value. Dashed: says what it means.",
        Axis("says", low=0, high=1),
        Axis("means", low=0, high=1),
        [
            Line([(0, 0), (1, 1)], "plain", look="dashed"),
            Band(_reach(entry), "first"),
            Line([(row["says"], row["means"]) for row in rows], tips=[_means(row) for row in rows]),
            *(
                Dot(row["says"], row["right"], tone="second", size=row["n"] / most,
                    tip=_means(row), key=f"says:{row['says']:g}")
                for row in rows
                if row["right"] is not None
            ),
        ],
    )  # fmt: skip


def _reach(entry: Mapping[str, Any]) -> list[tuple[float, float, float]]:
    """Return the interval at every stated value: between the rows of the table it is wider."""
    known = entry.get("map") or {}
    if entry.get("columns") or not known.get("low"):
        return [(r["says"], r["low"], r["high"]) for r in entry["table"] if r["low"] is not None]
    ends = zip(known["knots"], known["low"], known["high"], strict=True)
    return [(says, _share(low), _share(high)) for says, low, high in ends]


def _share(log_odds: float) -> float:
    return 0.5 + 0.5 * math.tanh(log_odds / 2)


def _means(row: Mapping[str, Any]) -> str:
    means = f"means {percent(row['means'])}{between(row, percent)}"
    right = "" if row["right"] is None else f", right {percent(row['right'])}"
    return f"says {percent(row['says'])}: {means}{right}, {row['n']:,} labels"


def cascade_charts(document: Mapping[str, Any]) -> Iterator[Chart]:
    """Yield accuracy against cost, with the chosen setting, of each block."""
    for n, entry in enumerate(document["results"], 1):
        yield _curves(entry, "answer" if n == 1 else f"cascade-{n}")


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
        [
            *(_strategy(part, tone) for part, tone in toned),
            *models,
            *_chosen(entry, {part["name"]: tone for part, tone in toned}),
        ],
    )


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
