"""Charts of what labels can show: of a plan, of an audit, and the ranks of a leaderboard."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from calibrant.report.blocks import entry_name
from calibrant.report.charts import chart
from calibrant.report.charts.scales import in_points, percent, short_number

_CHOICES: tuple[tuple[str, str, str, Literal["left", "right"]], ...] = (
    ("random labels", "second", "passive_labels", "right"),
    ("chosen labels", "first", "active_labels", "left"),
)
_SHOWN, _MOST = 20, 40

Floor = tuple[str, Mapping[str, Any], Mapping[str, Any], float | None]
"""Name, ECE, `verification` block, and what chance shows."""


def charts(document: Mapping[str, Any]) -> Iterator[chart.Chart]:
    """Yield the smallest error shown against labels, what was measured, and the ranks."""
    curve, wanted = document.get("curve") or [], (document.get("settings") or {}).get("precision")
    lines, dots = [], []
    for name, tone, key, side in _CHOICES:
        places = sorted((p[key], p["precision"]) for p in curve if p.get(key))
        tips = [f"{labels:,.0f} {name}: {in_points(error)} points" for labels, error in places]
        lines += [chart.Line(places, tone, name, tips=tips)] if places else []
        if wanted is not None and document.get(key):
            label = f"{document[key]:,}"
            dots.append(
                chart.Dot(document[key], wanted, tone=tone, shape="ring", label=label, side=side)
            )
    ranked = document.get("leaderboard")
    if lines:
        yield chart.Chart(
            "answer",
            "Labels against the smallest calibration error they can show",
            "At worst this many labels are needed for a claim of this size; rates with constant 1.",
            chart.Axis("labels", words=short_number, scale="log"),
            chart.Axis("smallest error shown, points", words=in_points, scale="log"),
            [*lines, *dots],
        )
    elif ranked:
        yield from leaderboard_charts(ranked)
    blocks = document.get("measured") or []
    several = len({block["method"] for block in blocks}) > 1
    rows = [
        (
            entry_name(block) if several else str(block["model"]),
            block["verification"]["resolution"]["ece"],
            block["verification"],
            block["verification"]["resolution"]["if_calibrated"],
        )
        for block in blocks
    ]
    yield from floor_chart(rows, expected="95 % of calibrated ones")
    if lines and ranked:
        yield from leaderboard_charts(ranked, name="leaderboard")


def floor_chart(
    entries: Sequence[Floor], *, expected: str = "if calibrated"
) -> Iterator[chart.Chart]:
    """Yield one chart, or none where no error is known.

    `expected` says what the last number is: what a calibrated model shows on average, or at most.
    """
    known = [entry for entry in entries if entry[1]["value"] is not None][:_SHOWN]
    if not known:
        return
    caption = (
        "An error to the right of its passive floor and of what a calibrated model would show is "
        "more than chance; one to the left of them is beyond these labels."
    )
    if len(entries) > len(known):
        caption += f" The first {len(known)} of {len(entries)}."
    legend: list[tuple[str, chart.Shape, str]] = [
        ("first", "dot", "calibration error"),
        ("plain", "diamond", expected),
        ("second", "triangle", "passive floor"),
        ("third", "triangle", "active floor"),
    ]
    yield chart.Chart(
        "floors",
        "What these labels can show",
        caption,
        chart.Axis(words=in_points, low=0),
        chart.Names([name for name, *_ in known]),
        [_error(entry, expected) for entry in known],
        legend=legend,
        end_title="points",
    )


def _error(entry: Floor, expected: str) -> chart.Item:
    name, ece, block, chance = entry
    low, high = chart.bounds(ece)
    floors = {key: _value(block[f"{key}_floor"]) for key in ("passive", "active")}
    others: list[tuple[float | None, str, chart.Shape]] = [
        (floors["passive"], "second", "triangle"),
        (floors["active"], "third", "triangle"),
        (chance, "plain", "diamond"),
    ]
    dots = [
        chart.Dot(value, 0, tone=tone, shape=shape)
        for value, tone, shape in others
        if value is not None
    ]
    numbers = [("ECE", ece["value"]), (expected, chance), *floors.items()]
    told = ", ".join(f"{words} {in_points(v)}" for words, v in numbers if v is not None)
    return chart.Item(
        name,
        dots=[*dots, chart.Dot(ece["value"], 0, low, high)],
        words=in_points(round(ece["value"], 3)),
        tip=f"{name}: {told} points",
    )


def _value(floor: Any) -> float | None:
    value: float | None = floor["value"] if isinstance(floor, Mapping) else floor
    return value


def leaderboard_charts(document: Mapping[str, Any], name: str = "answer") -> Iterator[chart.Chart]:
    """Yield every model with its interval, best first."""
    metric, entries = document["metric"], document["results"][:_MOST]
    words = percent if metric == "accuracy" else in_points
    if not entries:
        return
    more = len(document["results"]) - len(entries)
    yield chart.Chart(
        name,
        f"Models by {metric}, with intervals",
        "Grey: the data leave the rank open."
        + (f" The first {_MOST} of {_MOST + more:,}." if more else ""),
        chart.Axis(metric if words is percent else f"{metric}, points", words=words),
        chart.Names([str(entry["model"]) for entry in entries]),
        [_rank(entry, entry[metric], words) for entry in entries],
    )


def _rank(entry: Mapping[str, Any], value: Mapping[str, Any], words: Any) -> chart.Item:
    low, high, name = entry["rank_low"], entry["rank_high"], str(entry["model"])
    tone = "first" if low == high else "undecided"
    rank = str(low) if low == high else f"{low} to {high}"
    said = words(round(value["value"], 3))
    tip = f"{name}: {said}{chart.between(value, words)}, rank {rank}"
    dots = [chart.Dot(value["value"], 0, *chart.bounds(value), tone)]
    return chart.Item(name, tone, dots=dots, words=said, tip=tip, key=name)
