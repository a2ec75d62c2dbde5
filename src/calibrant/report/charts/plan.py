"""Charts of a plan: labels against the error they can show, and what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from calibrant.report.charts import leaderboard
from calibrant.report.charts.chart import Axis, Chart, Dot, Line
from calibrant.report.charts.floors import floor_chart
from calibrant.report.charts.scales import in_points, short_number

_CHOICES = (
    ("random labels", "second", "passive_labels"),
    ("chosen labels", "first", "active_labels"),
)

_SIDES: tuple[Literal["right", "left"], ...] = ("right", "left")


def answer(document: Mapping[str, Any]) -> Chart | None:
    """Return the smallest error that can be shown against the number of labels, or the ranks."""
    curve = document.get("curve") or []
    lines = [
        _line(sorted((p[key], p["precision"]) for p in curve if p.get(key)), tone, name)
        for name, tone, key in _CHOICES
    ]
    lines = [line for line in lines if line.places]
    if not lines:
        ranked = document.get("leaderboard")
        return leaderboard.answer(ranked) if ranked else None
    return Chart(
        "answer",
        "Labels against the smallest calibration error they can show",
        "At worst this many labels are needed for a claim of this size; rates with constant 1.",
        Axis("labels", words=short_number, scale="log"),
        Axis("smallest error shown, points", words=in_points, scale="log"),
        [*lines, *_wanted(document)],
    )


def _line(places: list[tuple[float, float]], tone: str, name: str) -> Line:
    tips = [f"{labels:,.0f} {name}: {in_points(error)} points" for labels, error in places]
    return Line(places, tone, name, tips=tips)


def _wanted(document: Mapping[str, Any]) -> list[Dot]:
    """Mark what was asked for on each curve."""
    wanted = (document.get("settings") or {}).get("precision")
    passive, active = (document.get(key) for _, _, key in _CHOICES)
    dots = []
    if wanted is not None and passive:
        dots.append(
            Dot(passive, wanted, tone="second", shape="ring", label=f"{passive:,}", side="right")
        )
    if wanted is not None and active:
        dots.append(
            Dot(active, wanted, tone="first", shape="ring", label=f"{active:,}", side="left")
        )
    return dots


def further(document: Mapping[str, Any]) -> list[Chart]:
    """Return what was measured on the table, and the ranks."""
    blocks = document.get("measured") or []
    several = len({block["method"] for block in blocks}) > 1
    rows = [
        (
            f"{block['model']} / {block['method']}" if several else str(block["model"]),
            block["verification"]["resolution"]["ece"],
            block["verification"],
            block["verification"]["resolution"]["if_calibrated"],
        )
        for block in blocks
    ]
    found = floor_chart(rows, expected="95 % of calibrated ones")
    ranks = leaderboard.answer(document["leaderboard"]) if document.get("leaderboard") else None
    # Without curves the ranks are the answer already.
    if ranks is None or ranks == answer(document):
        return found
    return [*found, replace(ranks, name="leaderboard")]
