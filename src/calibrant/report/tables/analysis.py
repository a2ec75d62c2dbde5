"""What an analysis of a study could and could not do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.blocks import Paragraph, Table
from calibrant.report.tables._parts import part_name, reason_text


def blocks(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Return the parts that were done and the reasons for those that were not."""
    parts: list[Paragraph | Table] = [Paragraph(f"Done: {', '.join(document['done'])}.")]
    if document["left_out"]:
        rows = tuple(
            (part_name(entry["part"]), reason_text(entry)) for entry in document["left_out"]
        )
        parts.append(Table(("part", "why it was left out"), rows, title="Left out", labels=2))
    return parts
