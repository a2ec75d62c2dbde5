"""The chart of a decision: errors against how many questions are answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.charts.chart import Axis, Chart, Dot, Line, Mark, Rule, between
from calibrant.report.charts.scales import percent


def answer(document: Mapping[str, Any]) -> Chart | None:
    """Return the curve of the first block that has one, with the chosen threshold."""
    entry = next((e for e in document["results"] if e.get("curve")), None)
    if entry is None:
        return None
    known = [
        p for p in entry["curve"] if p["share"] is not None and p["error"]["value"] is not None
    ]
    curve = sorted(known, key=lambda point: (point["share"], point["error"]["value"]))
    tips = [
        f"from {point['threshold']:.3g} on: answers {percent(point['share'])}, wrong among them "
        f"{percent(point['error']['value'])}{between(point['error'], percent)}"
        for point in curve
    ]
    marks: list[Mark] = [Line([(p["share"], p["error"]["value"]) for p in curve], tips=tips)]
    limit = (document.get("settings") or {}).get("max_error")
    if limit is not None:
        marks.append(Rule(float(limit), words=f"limit {percent(float(limit))}"))
    answered, error = ((entry.get(key) or {}).get("value") for key in ("answered", "error"))
    if answered is not None and error is not None:
        marks.append(Dot(answered, error, tone="second", shape="ring", label="chosen"))
    most = max([*(p["error"]["value"] for p in curve), float(limit or 0)], default=0.0)
    return Chart(
        "answer",
        "Wrong among the answered against how many are answered",
        "Ring: the chosen threshold.",
        Axis("share answered", low=0),
        # Room above: a limit may be drawn there.
        Axis("wrong among the answered", low=0, high=min(1.0, max(1.25 * most, 0.05))),
        marks,
    )
