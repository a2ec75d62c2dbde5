"""The chart of a mend: what a stated confidence means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.charts.chart import Axis, Band, Chart, Dot, Line, between
from calibrant.report.charts.scales import percent


def answer(document: Mapping[str, Any]) -> Chart | None:
    """Return the curve of the first entry."""
    return _meaning(document["results"][0], "answer") if document["results"] else None


def further(document: Mapping[str, Any]) -> list[Chart]:
    """Return the curves of further entries."""
    return [_meaning(entry, f"mend-{n}") for n, entry in enumerate(document["results"][1:], 2)]


def _meaning(entry: Mapping[str, Any], name: str) -> Chart:
    rows = entry["table"]
    most = max((row["n"] for row in rows), default=1) or 1
    whose = f", {entry['model']} / {entry['method']}" if entry["model"] else ""
    return Chart(
        name,
        f"What a stated confidence means{whose}",
        "Line: the probability behind a stated value, with its interval. Dots: share right among "
        "the labels nearest to that value. Dashed: says what it means.",
        Axis("says", low=0, high=1),
        Axis("means", low=0, high=1),
        [
            Line([(0, 0), (1, 1)], "plain", look="dashed"),
            Band([(r["says"], r["low"], r["high"]) for r in rows if r["low"] is not None], "first"),
            Line([(row["says"], row["means"]) for row in rows], tips=[_words(row) for row in rows]),
            *(
                Dot(row["says"], row["right"], tone="second", size=row["n"] / most,
                    tip=_words(row), key=f"says:{row['says']:g}")
                for row in rows
                if row["right"] is not None
            ),
        ],
    )  # fmt: skip


def _words(row: Mapping[str, Any]) -> str:
    means = f"means {percent(row['means'])}{between(row, percent)}"
    right = "" if row["right"] is None else f", right {percent(row['right'])}"
    return f"says {percent(row['says'])}: {means}{right}, {row['n']:,} labels"
