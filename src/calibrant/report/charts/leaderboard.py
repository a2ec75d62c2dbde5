"""The chart of a leaderboard: values with intervals, and ranks that the data leave open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.charts.chart import Axis, Chart, Dot, Item, Names, between, bounds
from calibrant.report.charts.scales import in_points, percent

_MOST = 40


def answer(document: Mapping[str, Any]) -> Chart | None:
    """Return every model with its interval, best first."""
    metric, entries = document["metric"], document["results"][:_MOST]
    words = percent if metric == "accuracy" else in_points
    if not entries:
        return None
    more = len(document["results"]) - len(entries)
    return Chart(
        "answer",
        f"Models by {metric}, with intervals",
        "Grey: the data leave the rank open."
        + (f" The first {_MOST} of {_MOST + more:,}." if more else ""),
        Axis(metric if words is percent else f"{metric}, points", words=words),
        Names([str(entry["model"]) for entry in entries]),
        [_item(entry, entry[metric], words) for entry in entries],
    )


def _item(entry: Mapping[str, Any], value: Mapping[str, Any], words: Any) -> Item:
    low, high, name = entry["rank_low"], entry["rank_high"], str(entry["model"])
    tone = "first" if low == high else "undecided"
    rank = str(low) if low == high else f"{low} to {high}"
    said = words(round(value["value"], 3))
    tip = f"{name}: {said}{between(value, words)}, rank {rank}"
    dots = [Dot(value["value"], 0, *bounds(value), tone)]
    return Item(name, tone, dots=dots, words=said, tip=tip, key=name)
