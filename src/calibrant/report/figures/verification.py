"""Figure of what labels can show: calibration errors beside their floors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.report.figures.figure import Figure
from calibrant.report.figures.marks import interval_rule, names, tips
from calibrant.report.figures.theme import FIRST, GREY, SECOND, THIRD, frame

_SHOWN = 20
_MARKS = (
    ("ECE", FIRST, "circle"),
    ("", GREY, "diamond"),
    ("passive floor", SECOND, "triangle-left"),
    ("active floor", THIRD, "triangle-left"),
)


def floor_figure(
    entries: Sequence[tuple[str, Mapping[str, Any], Mapping[str, Any], float | None]],
    *,
    expected: str = "ECE if calibrated",
) -> list[Figure]:
    """Return one figure of (name, ECE, verification block, chance), or none.

    `expected` says what the last number is: what a calibrated model shows on average, or at most.
    """
    known = [entry for entry in entries if entry[1]["value"] is not None][:_SHOWN]
    if not known:
        return []
    rows = []
    for name, ece, block, chance in known:
        rows.append({"model": name, "what": "ECE", "value": ece["value"], **_ends(ece)})
        rows.append({"model": name, "what": expected, "value": chance})
        for key, what in (("passive_floor", "passive floor"), ("active_floor", "active floor")):
            floor = block[key]
            value = floor["value"] if isinstance(floor, Mapping) else floor
            rows.append({"model": name, "what": what, "value": value})
    rows = [row for row in rows if row["value"] is not None]
    y = names("model")
    x = {"type": "quantitative", "title": "calibration error"}
    domain, colours, shapes = (list(part) for part in zip(*_MARKS, strict=True))
    domain = [name or expected for name in domain]
    spec = frame(
        {
            "data": {"values": rows},
            "layer": [
                interval_rule(y, x, FIRST),
                {
                    "mark": {"type": "point", "filled": True, "size": 80, "opacity": 1},
                    "encoding": {
                        "y": y,
                        "x": {**x, "field": "value"},
                        "color": {
                            "field": "what",
                            "type": "nominal",
                            "title": None,
                            "scale": {"domain": domain, "range": colours},
                            "legend": {"orient": "top", "columns": 2},
                        },
                        "shape": {
                            "field": "what",
                            "type": "nominal",
                            "title": None,
                            "scale": {"domain": domain, "range": shapes},
                        },
                        "tooltip": tips("model", "what", value=".3f", low=".3f", high=".3f"),
                    },
                },
            ],
        },
        width=320,
        height=max(26 * len(known), 80),
    )
    more = len(entries) - len(known)
    return [
        Figure(
            "floors",
            "What these labels can show",
            "An ECE to the right of its passive floor and of what a calibrated model would show "
            "is more than chance; one to the left of them is beyond these labels."
            + (f" The first {len(known)} of {len(entries)}." if more else ""),
            spec,
        )
    ]


def _ends(estimate: Mapping[str, Any]) -> dict[str, Any]:
    return {"low": estimate["low"], "high": estimate["high"]}
