"""Tables of `decide`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.blocks import Paragraph, Table, number_cell, percent_cell, share_cell
from calibrant.report.left_out import rows_left_out

__all__ = ["blocks"]

_SHOWN = 10


def blocks(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Return the promise and the curve of each model and method."""
    parts: list[Paragraph | Table] = [
        Paragraph(claim["text"], strong=True) for claim in document["claims"]
    ]
    for entry in document["results"]:
        parts.append(_curve(entry))
        if entry["more_labels"]:
            parts.append(_more(entry))
    parts.extend(rows_left_out(document))
    return parts


def _curve(entry: Mapping[str, Any]) -> Table:
    curve = entry["curve"]
    step = max(1, len(curve) // _SHOWN)
    picked = curve[step - 1 :: step]
    rows = [
        (
            number_cell(point["threshold"]),
            share_cell(point["share"]),
            percent_cell(point["error"]),
        )
        for point in picked
    ]
    return Table(
        ("threshold", "answered", "wrong among answered"),
        tuple(rows),
        f"{entry['model']} / {entry['method']}: error by threshold",
    )


def _more(entry: Mapping[str, Any]) -> Table:
    rows = [
        (
            "no limit" if point["labels"] is None else f"{point['labels']:,}",
            share_cell(point["share"]),
        )
        for point in entry["more_labels"]
    ]
    return Table(("labels", "answered"), tuple(rows), "What more labels would likely allow")
