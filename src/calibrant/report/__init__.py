"""Renderers of result documents: terminal, Markdown, HTML, figures."""

from typing import TYPE_CHECKING

# Every kind of document has its class as soon as a result can be made.
import calibrant.report.typed  # noqa: F401
from calibrant.core.lazy import lazy_exports

if TYPE_CHECKING:
    from calibrant.report.page import render_html
    from calibrant.report.terminal import (
        print_block,
        render_markdown,
        render_text,
        terminal_blocks,
    )
else:
    # What draws and fills a page is not loaded for a table in a terminal.
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            ".page": ("render_html",),
            ".terminal": ("print_block", "render_markdown", "render_text", "terminal_blocks"),
        },
    )

__all__ = ["print_block", "render_html", "render_markdown", "render_text", "terminal_blocks"]
