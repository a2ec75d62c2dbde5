"""Tables of `decide`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.report.blocks import Paragraph, Table
from calibrant.report.cells import number_cell, percent_cell, share_cell
from calibrant.report.tables.remarks import rows_left_out

_SHOWN = 10


def blocks(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Return the promise and the curve of each model and method."""
    parts: list[Paragraph | Table] = [
        Paragraph(claim["text"], strong=True) for claim in document["claims"]
    ]
    if len(document["results"]) > 1:
        parts.append(_overview(document["results"]))
    for entry in document["results"]:
        parts.append(_curve(entry))
        if entry["more_labels"]:
            parts.append(_more(entry))
    parts.extend(rows_left_out(document))
    return parts


def _overview(entries: Sequence[Mapping[str, Any]]) -> Table:
    """Return one row per model and method: what each may answer alone, most first."""
    keys = [key for key in ("model", "method") if len({entry[key] for entry in entries}) > 1]
    keys = keys or ["model"]
    ordered = sorted(entries, key=lambda entry: -_share(entry))
    rows = [
        (
            " / ".join(str(entry[key]) for key in keys),
            number_cell(entry["threshold"], missing="never"),
            share_cell(_share(entry)),
            percent_cell(entry["error"]) if _share(entry) else "",
        )
        for entry in ordered
    ]
    return Table(
        (" / ".join(keys), "answers from", "answered", "wrong among answered"),
        tuple(rows),
        "Who may answer alone",
        main=True,
    )


def _share(entry: Mapping[str, Any]) -> float:
    answered = entry["answered"] or {}
    return float(answered.get("value") or 0.0) if entry["threshold"] is not None else 0.0


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
        (number_cell(point["labels"], missing="no limit"), share_cell(point["share"]))
        for point in entry["more_labels"]
    ]
    return Table(("labels", "answered"), tuple(rows), "What more labels would likely allow")
