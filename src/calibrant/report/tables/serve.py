"""Table of `serve`: what was asked while it ran."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.blocks import Paragraph, Table
from calibrant.report.cells import number_cell


def blocks(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Return questions, cost, and who answered."""
    parts: list[Paragraph | Table] = []
    for totals in document["results"]:
        count, cost = totals["questions"], totals["cost"]
        parts.append(Paragraph(f"Served {count:,} questions for {cost:.4g} in all.", strong=True))
        rows = tuple((name, number_cell(n)) for name, n in totals["answered_by"].items())
        if rows:
            parts.append(Table(("answered by", "questions"), rows))
    return parts
