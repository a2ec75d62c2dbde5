"""What the demo says at its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.blocks import Paragraph, Table
from calibrant.report.tables._parts import part_name, reason_text


def blocks(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Return where the report is and what to try next."""
    parts: list[Paragraph | Table] = [
        Paragraph(text, strong=True) for text in document.get("findings") or []
    ]
    pages = document.get("parts") or {"recorded": document}
    for name, part in pages.items():
        what = "recorded answers" if name == "recorded" else "answers of the model on this machine"
        parts.append(Paragraph(f"Page of {what}: {part['report']} ({part['seconds']:.0f} s)"))
    if document["counts"]:
        parts.append(Paragraph(_asked(document)))
    parts.append(Paragraph(f"It holds: {', '.join(document['done'])}."))
    for entry in document["left_out"]:
        parts.append(Paragraph(f"Left out: {part_name(entry['part'])}: {reason_text(entry)}."))
    parts.append(Paragraph("Try next:"))
    parts.extend(Paragraph(f"  {command}") for command in document["next"])
    return parts


def _asked(document: Mapping[str, Any]) -> str:
    new = sum(entry["draws_new"] for entry in document["counts"])
    held = sum(entry["draws_cached"] for entry in document["counts"])
    return f"{new:,} draws were asked for; {held:,} came from the ledger, asked once already."
