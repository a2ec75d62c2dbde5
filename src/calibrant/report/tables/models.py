"""Models that run inside calibrant, as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.blocks import Paragraph, Table
from calibrant.report.cells import said_cell


def blocks(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Return the table of models."""
    rows = tuple(
        (
            entry["name"],
            "yes" if entry["fetched"] else "no",
            said_cell(entry["bytes"], f"{entry['bytes'] / 1e6:.0f} MB"),
            entry["licence"],
            entry["about"],
        )
        for entry in document["results"]
    )
    columns = ("model", "fetched", "size", "licence", "about")
    note = f"Kept in {document['folder']}; any other GGUF file can be named by its path."
    missing = [entry["name"] for entry in document["results"] if not entry["fetched"]]
    return [
        Table(columns, rows, title="Embedded models", note=note, labels=len(columns)),
        *(Paragraph(f"To fetch the weights: calibrant models fetch {name}") for name in missing),
    ]
