"""What a report run wrote."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.blocks import Paragraph, Table

__all__ = ["blocks"]


def blocks(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Return the paths that were written."""
    if not document["written"]:
        return [Paragraph("Nothing was written: use --html, --markdown or --figures.")]
    return [Paragraph(f"written: {path}") for path in document["written"]]
