"""What a report run wrote, or the tables where it was given no place to write to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from calibrant.core.hints import Hint
from calibrant.report.blocks import Paragraph, Table
from calibrant.report.charts.draw import FORMATS

_PLACES = Hint("A page, Markdown or figures: {html}, {markdown} or {figures}.").shell()


def blocks(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Return the paths that were written, or the tables of every document."""
    if document.get("viewed"):
        return [Paragraph(f"viewed: {document['viewed']}")]
    if not document["written"]:
        return [*_tables(document), Paragraph(_PLACES)]
    pages = [path for path in document["written"] if Path(path).suffix[1:] not in FORMATS]
    folders = Counter(str(Path(path).parent) for path in document["written"] if path not in pages)
    return [
        *(Paragraph(f"written: {path}") for path in pages),
        *(
            Paragraph(f"written: {folder}: {count} files ({', '.join(FORMATS)})")
            for folder, count in folders.items()
        ),
    ]


def _tables(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    # Loaded here: the package finds this module by name.
    from calibrant.report.terminal import document_blocks

    return [block for part in document.get("documents", ()) for block in document_blocks(part)]
