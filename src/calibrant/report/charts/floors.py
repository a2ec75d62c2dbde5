"""What labels can show: calibration errors beside their floors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.report.charts.chart import Axis, Chart, Dot, Item, Names, Shape, bounds
from calibrant.report.charts.scales import in_points

_SHOWN = 20

Floor = tuple[str, Mapping[str, Any], Mapping[str, Any], float | None]
"""Name, ECE, `verification` block, and what chance shows."""


def floor_chart(entries: Sequence[Floor], *, expected: str = "if calibrated") -> list[Chart]:
    """Return one chart, or none where no error is known.

    `expected` says what the last number is: what a calibrated model shows on average, or at most.
    """
    known = [entry for entry in entries if entry[1]["value"] is not None][:_SHOWN]
    if not known:
        return []
    caption = (
        "An error to the right of its passive floor and of what a calibrated model would show is "
        "more than chance; one to the left of them is beyond these labels."
    )
    if len(entries) > len(known):
        caption += f" The first {len(known)} of {len(entries)}."
    legend: list[tuple[str, Shape, str]] = [
        ("first", "dot", "calibration error"),
        ("plain", "diamond", expected),
        ("second", "triangle", "passive floor"),
        ("third", "triangle", "active floor"),
    ]
    return [
        Chart(
            "floors",
            "What these labels can show",
            caption,
            Axis(words=in_points, low=0),
            Names([name for name, *_ in known]),
            [_item(entry, expected) for entry in known],
            legend=legend,
            end_title="points",
        )
    ]


def _item(entry: Floor, expected: str) -> Item:
    name, ece, block, chance = entry
    low, high = bounds(ece)
    floors = {key: _value(block[f"{key}_floor"]) for key in ("passive", "active")}
    others: list[tuple[float | None, str, Shape]] = [
        (floors["passive"], "second", "triangle"),
        (floors["active"], "third", "triangle"),
        (chance, "plain", "diamond"),
    ]
    dots = [
        Dot(value, 0, tone=tone, shape=shape) for value, tone, shape in others if value is not None
    ]
    numbers = [("ECE", ece["value"]), (expected, chance), *floors.items()]
    told = ", ".join(f"{words} {in_points(v)}" for words, v in numbers if v is not None)
    return Item(
        name,
        dots=[*dots, Dot(ece["value"], 0, low, high)],
        words=in_points(round(ece["value"], 3)),
        tip=f"{name}: {told} points",
    )


def _value(floor: Any) -> float | None:
    value: float | None = floor["value"] if isinstance(floor, Mapping) else floor
    return value
