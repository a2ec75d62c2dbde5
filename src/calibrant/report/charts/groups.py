"""The chart of groups: what is special about each."""

from collections.abc import Iterator, Mapping
from typing import Any

from calibrant.report.charts.chart import Axis, Chart, Dot, Item, Names, between, bounds
from calibrant.report.charts.scales import percent, points

_MOST = 16


def charts(document: Mapping[str, Any]) -> Iterator[Chart]:
    """Yield the groups by what is special about them, largest first."""
    entries = [entry for entry in document["results"] if entry["groups"]]
    if not entries:
        return
    several = len(entries) > 1
    found = [
        _group(group, entry, several=several)
        for entry in entries
        for group in entry["groups"]
        # The same rows under another name are no group of their own.
        if not group.get("echo_of")
    ]
    ranked = sorted(found, key=lambda item: -abs((item.bar or (0, 0))[1]))
    shown = ranked[:_MOST]
    more = f" {len(ranked) - _MOST:,} more are in the table." if len(ranked) > _MOST else ""
    yield Chart(
        "answer",
        "How much more each group says than answers of equal confidence, in points",
        f"Each group beyond those found before it. Lines: intervals. Grey: undecided.{more}",
        Axis(words=points, sides=("says too little", "says too much")),
        Names([item.row for item in shown]),
        shown,
    )


def _group(group: Mapping[str, Any], entry: Mapping[str, Any], *, several: bool) -> Item:
    beyond = group["beyond"]
    tone = str(group["direction"]).replace("-", "_") if group["flagged"] else "undecided"
    name = f"{entry['model']}: {group['rule']}" if several else str(group["rule"])
    said, right = percent(group["mean_confidence"]), percent(group["rate"])
    value = beyond["value"]
    return Item(
        name,
        tone,
        (0, value),
        dots=[Dot(value, 0, *bounds(beyond), "ink", "none")],
        words=points(value),
        tip=f"{name}: {points(value)}{between(beyond, points)}. {group['n']:,} rows, says {said}, "
        f"right {right}",
        key=f"{entry['model']}␟{entry['method']}␟{group['rule']}",
    )
