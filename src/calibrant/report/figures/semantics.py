"""Figures of meanings and grades: who decided, and why answers stayed open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.figures.figure import Figure
from calibrant.report.figures.marks import tips
from calibrant.report.figures.theme import FIRST, frame

_PARTS = (
    ("graders", "who graded the answers", "Which rule or judge gave each grade."),
    ("joined_by", "who joined the answers", "Which rule or judge put an answer into its meaning."),
)


def figures(document: Mapping[str, Any]) -> list[Figure]:
    """Return bars of graders and of the rules that joined answers."""
    return [
        _bars(name, title, caption, document[name])
        for name, title, caption in _PARTS
        if document.get(name)
    ]


def _bars(name: str, title: str, caption: str, counts: Mapping[str, int]) -> Figure:
    rows = [{"by": str(key), "answers": count} for key, count in counts.items()]
    spec = frame(
        {
            "data": {"values": rows},
            "mark": {"type": "bar", "color": FIRST, "height": 16},
            "encoding": {
                "y": {"field": "by", "type": "nominal", "title": None, "sort": "-x"},
                "x": {"field": "answers", "type": "quantitative"},
                "tooltip": tips("by", answers=","),
            },
        },
        width=340,
        height=max(24 * len(rows), 60),
    )
    return Figure(name.replace("_", "-"), title.capitalize(), caption, spec)
