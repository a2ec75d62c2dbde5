"""What `init` says: the files it wrote, and the command that comes next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.blocks import Paragraph


def blocks(document: Mapping[str, Any]) -> list[Paragraph]:
    """Return the files and the next step."""
    return [
        *(Paragraph(f"Written: {name}") for name in document["files"]),
        *(Paragraph(f"Next: {command}", strong=True) for command in document["next"]),
    ]
