"""What the demo says at its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.blocks import Paragraph, Table
from calibrant.report.terminal.collection._parts import part_name, reason_text

__all__ = ["blocks"]


def blocks(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Return where the report is and what to try next."""
    parts: list[Paragraph | Table] = [
        Paragraph(f"The report is here: {document['report']}", strong=True),
        Paragraph(_asked(document)),
        Paragraph(f"It holds: {', '.join(document['done'])}. {document['seconds']:.0f} s."),
    ]
    for entry in document["left_out"]:
        parts.append(Paragraph(f"Left out: {part_name(entry['part'])}: {reason_text(entry)}."))
    parts.append(Paragraph("Try next:"))
    parts.extend(Paragraph(f"  {command}") for command in document["next"])
    return parts


def _asked(document: Mapping[str, Any]) -> str:
    new = sum(entry["draws_new"] for entry in document["counts"])
    held = sum(entry["draws_cached"] for entry in document["counts"])
    return f"{new:,} draws were asked for; {held:,} came from the ledger, asked once already."
