"""Figure of a generated benchmark: questions by domain and number of right answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.figures.figure import Figure
from calibrant.report.figures.marks import tips
from calibrant.report.figures.theme import PALETTE, frame


def figures(document: Mapping[str, Any]) -> list[Figure]:
    """Return how many questions each domain has for each number of right answers."""
    rows = [
        {
            "domain": entry["domain"],
            "k": str(part["k"]),
            "questions": part["questions"],
            "short by": part["short_by"],
        }
        for entry in document["results"]
        for part in entry["by_k"]
    ]
    if not rows:
        return []
    spec = frame(
        {
            "data": {"values": rows},
            "mark": {"type": "bar"},
            "encoding": {
                "y": {"field": "domain", "type": "nominal", "title": None, "sort": None},
                "yOffset": {"field": "k", "type": "nominal", "sort": None},
                "x": {"field": "questions", "type": "quantitative", "axis": {"tickMinStep": 1}},
                "color": {
                    "field": "k",
                    "type": "nominal",
                    "title": "right answers",
                    "sort": None,
                    "scale": {"range": PALETTE},
                },
                "tooltip": tips("domain", "k", questions=",", **{"short by": ","}),
            },
        },
        width=380,
        height=max(60 * len(document["results"]), 80),
    )
    return [
        Figure(
            "questions",
            "Questions by number of right answers",
            "Bars of one length in every domain mean that results by k rest on equally many "
            "questions; a short bar is a number of answers for which the facts give fewer.",
            spec,
        )
    ]
