"""Small pieces that several figures share."""

from __future__ import annotations

from typing import Any

# An axis from 0 to 1 with as many labels as never meet.
SHARE: dict[str, Any] = {
    "type": "quantitative",
    "scale": {"domain": [0, 1]},
    "axis": {"values": [0, 0.2, 0.4, 0.6, 0.8, 1], "format": ".1f"},
}


def tips(*fields: str, **formats: str) -> list[dict[str, Any]]:
    """Return a tooltip: plain names first, then numbers with their format.

    Examples
    --------
    >>> tips("model", ece=".3f")[1]
    {'field': 'ece', 'type': 'quantitative', 'format': '.3f'}
    """
    words = [{"field": field, "type": "nominal"} for field in fields]
    numbers = [
        {"field": field, "type": "quantitative", "format": form} for field, form in formats.items()
    ]
    return [*words, *numbers]


def names(field: str, *, sort: Any = None) -> dict[str, Any]:
    """Return a y axis of names in the order of the data, long ones cut at the axis."""
    return {
        "field": field,
        "type": "nominal",
        "title": None,
        "sort": sort,
        "axis": {"labelLimit": 420},
    }


def interval_rule(y: dict[str, Any], x: dict[str, Any], colour: str) -> dict[str, Any]:
    """Return a horizontal interval from the fields ``low`` and ``high``."""
    return {
        "mark": {"type": "rule", "color": colour, "strokeWidth": 1.5},
        "encoding": {"y": y, "x": {**x, "field": "low"}, "x2": {"field": "high"}},
    }
