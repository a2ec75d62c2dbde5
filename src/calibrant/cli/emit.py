"""How a verb hands over its result: terminal, JSON, HTML."""

from __future__ import annotations

import sys
from pathlib import Path

from rich.console import Console

from calibrant.core.document import dump_document
from calibrant.report import terminal_blocks
from calibrant.report.result import Result

__all__ = ["emit"]


def emit(result: Result, *, json: str | None = None, html: str | Path | None = None) -> None:
    """Print the result, or write it as JSON to standard output when `json` is ``-``."""
    if html is not None:
        result.to_html(html)
    if json == "-":
        sys.stdout.buffer.write(dump_document(result.to_dict()))
        sys.stdout.buffer.flush()
        return
    if json is not None:
        result.to_json(json)
    console = Console()
    for block in terminal_blocks(result.to_dict(), width=console.width):
        console.print(block)
    for path in (json, html):
        if path is not None:
            console.print(f"written: {path}", highlight=False)
