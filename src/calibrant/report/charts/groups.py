"""Charts of groups: what is special about each, what the error is made of, how to mend it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.charts.chart import (
    TONES,
    Axis,
    Chart,
    Dot,
    Item,
    Line,
    Names,
    between,
    bounds,
)
from calibrant.report.charts.scales import percent, points, three_digits

_MOST = 16
_MOST_CURVES = 5
_PARTS = (
    ("calibration_loss", "calibration", "third"),
    ("grouping_loss", "grouping", "second"),
    ("rest", "rest", "plain"),
)


def answer(document: Mapping[str, Any]) -> Chart | None:
    """Return the groups by what is special about them, largest first."""
    entries = [entry for entry in document["results"] if entry["groups"]]
    if not entries:
        return None
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
    special = entries[0]["groups"][0].get("beyond") is not None
    than = "answers of equal confidence" if special else "share right"
    return Chart(
        "answer",
        f"How much more each group says than {than}, in points",
        f"Each group beyond those found before it. Lines: intervals. Grey: undecided.{more}",
        Axis(words=points, sides=("says too little", "says too much")),
        Names([item.row for item in shown]),
        shown,
    )


def _group(group: Mapping[str, Any], entry: Mapping[str, Any], *, several: bool) -> Item:
    beyond = group.get("beyond") or {"value": group["gap"], **(group.get("gap_interval") or {})}
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


def further(document: Mapping[str, Any]) -> list[Chart]:
    """Return what the Brier score is made of, the groups, and what each would need."""
    found = []
    for number, entry in enumerate(document["results"], 1):
        found.append(_decomposition(entry, number))
        if entry["groups"]:
            found.append(_said_and_right(entry, number))
        if curve := entry.get("reliability"):
            found += _corrections(entry, number, curve)
    return found


def _place(entry: Mapping[str, Any]) -> str:
    return f"{entry['model']} / {entry['method']}"


def _decomposition(entry: Mapping[str, Any], number: int) -> Chart:
    items = []
    for key, words, tone in _PARTS:
        found = entry[key]
        value = found["value"] or 0.0
        tip = f"{words}: {three_digits(value)}{between(found, three_digits)}"
        dots = [Dot(value, 0, *bounds(found), "ink", "none")]
        items.append(Item(words, tone, (0, value), dots=dots, words=three_digits(value), tip=tip))
    return Chart(
        f"decomposition-{number}",
        f"{_place(entry)}: what the Brier score is made of",
        "Calibration can be mended by recalibrating; grouping cannot: it is error inside groups of "
        "equal confidence. Both are lower bounds, with their intervals.",
        Axis("Brier score", words=three_digits),
        Names([words for _, words, _ in _PARTS]),
        items,
    )


def _said_and_right(entry: Mapping[str, Any], number: int) -> Chart:
    groups = entry["groups"][:_MOST]
    items = []
    for group in groups:
        right, says = group["rate"], group["mean_confidence"]
        flag = group["direction"] if group["flagged"] else "not flagged"
        ends = bounds(group["rate_interval"])
        items.append(
            Item(
                str(group["rule"]),
                str(group["direction"]).replace("-", "_") if group["flagged"] else "undecided",
                (right, says),
                thin=True,
                dots=[
                    Dot(right, 0, *ends, "ink", label="right"),
                    Dot(says, 0, tone="second", shape="ring", size=0.9, label="says"),
                ],
                words=points(says - right),
                tip=f"{group['rule']}: says {percent(says)}, right {percent(right)}"
                f"{between(group['rate_interval'], percent)}, {group['n']:,} rows, {flag}",
            )
        )
    return Chart(
        f"groups-{number}",
        f"{_place(entry)}: groups, costliest first",
        "A ring to the right of its dot promises too much. Groups were found on the rows shown; "
        "flags are controlled for the number of groups looked at. A group is a place to look.",
        Axis(),
        Names([str(group["rule"]) for group in groups]),
        items,
        end_title="gap",
    )


def _corrections(entry: Mapping[str, Any], number: int, curve: Mapping[str, Any]) -> list[Chart]:
    """Return the curves of the groups that differ most: with more, no colour could be told."""
    whole = list(zip(curve["confidence"], curve["recalibrated"], strict=True))
    ranked = sorted(curve["regions"], key=lambda region: -abs(region["shift"]))
    lines = [
        Line(places, tone, str(region["rule"]))
        for tone, region in zip(TONES[:_MOST_CURVES], ranked, strict=False)
        if (places := _region(region, whole))
    ]
    if not lines:
        return []
    return [
        Chart(
            f"corrections-{number}",
            f"{_place(entry)}: recalibration for everyone and by group",
            "Grey: recalibration for everyone. Coloured: what the groups that differ most would "
            "need on top, over the confidences that occur there. Curves apart from the grey one "
            "are grouping loss.",
            Axis("confidence", low=0, high=1),
            Axis("share right, by region", low=0, high=1),
            [
                Line([(0, 0), (1, 1)], "plain", look="dashed"),
                *lines,
                Line(whole, "plain", "everyone, recalibrated"),
            ],
        )
    ]


def _region(
    region: Mapping[str, Any], whole: list[tuple[float, float]]
) -> list[tuple[float, float]]:
    shift = region["shift"]
    return [
        (said, value + shift)
        for said, value in whole
        if region["confidence_low"] <= said <= region["confidence_high"] and 0 <= value + shift <= 1
    ]
