"""What a report run wrote."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from calibrant.report.blocks import Paragraph, Table
from calibrant.report.figures import FORMATS

__all__ = ["blocks"]


def blocks(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Return the paths that were written."""
    if not document["written"]:
        return [Paragraph("Nothing was written: use --html, --markdown or --figures.")]
    pages = [path for path in document["written"] if Path(path).suffix[1:] not in FORMATS]
    folders = Counter(str(Path(path).parent) for path in document["written"] if path not in pages)
    return [
        *(Paragraph(f"written: {path}") for path in pages),
        *(
            Paragraph(f"written: {folder}: {count} files ({', '.join(FORMATS)})")
            for folder, count in folders.items()
        ),
    ]
