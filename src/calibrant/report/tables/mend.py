"""Tables of `mend`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.blocks import Paragraph, Table
from calibrant.report.cells import Number, points_cell, share_cell
from calibrant.report.tables.remarks import rows_left_out


def blocks(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Return the promise, and what stated values mean, of each model and method."""
    parts: list[Paragraph | Table] = [
        Paragraph(claim["text"], strong=True) for claim in document["claims"]
    ]
    entries = document["results"]
    if len(entries) > 1:
        parts.append(_overview(entries))
    parts.extend(_meanings(entry) for entry in entries)
    parts.extend(rows_left_out(document))
    return parts


def _overview(entries: list[Mapping[str, Any]]) -> Table:
    rows = [
        (
            f"{entry['model']} / {entry['method']}",
            entry["verdict"],
            points_cell(
                {"value": entry["promise"]["off_by"], "low": None, "high": None}, sign=False
            ),
            Number(entry["promise"]["gain"]),
            Number(entry["n"], unit="count"),
        )
        for entry in entries
    ]
    return Table(
        ("model / method", "verdict", "off by at most, points", "gain in Brier score", "labels"),
        tuple(rows),
        "What mending does",
        labels=2,
        main=True,
    )


def _meanings(entry: Mapping[str, Any]) -> Table:
    rows = [
        (
            share_cell(row["says"], digits=1 if 0.99 < row["says"] < 1 else 0),
            Number(row["means"], row["low"], row["high"], "share", 0),
            share_cell(row["right"]),
            Number(row["n"], unit="count"),
        )
        for row in entry["table"]
    ]
    name = f"{entry['model']} / {entry['method']}: " if entry["model"] else ""
    return Table(
        ("says", "means", "right", "labels"),
        tuple(rows),
        f"{name}what it says, and what that means",
        note="Right: the share among the labels nearest to that value.",
    )
