"""A document in a terminal, as text and as Markdown."""

import re
from collections.abc import Mapping
from functools import cache, partial
from typing import Any

from rich.console import Console, RenderableType
from rich.text import Text

from calibrant.findings.documents.fields import typed
from calibrant.report.blocks import Paragraph, Table
from calibrant.report.cells import written
from calibrant.report.tables import document_blocks
from calibrant.report.terminal._fit import fitted, safe_text
from calibrant.report.terminal.compact import LISTS, compact_lines

__all__ = ["print_block", "render_markdown", "render_text", "terminal_blocks"]


LEAST_WIDTH = 20
"""A terminal may say that it has no columns at all (COLUMNS=0); nothing is laid out in fewer."""


def terminal_blocks(
    document: Mapping[str, Any], *, width: int = 120, full: bool = False, **view: Any
) -> list[RenderableType]:
    """Return what a terminal of this width shows of the document.

    Parameters
    ----------
    document
        What a verb returned.
    width
        Letters of a line.
    full
        Every table, instead of the answer with one table.
    **view
        What the short view shows, see `compact_lines`.
    """
    result, width = typed(document), max(width, LEAST_WIDTH)
    # The short view of many models needs none of their tables, or one.
    blocks = cache(partial(document_blocks, result))
    if full or result.kind in LISTS:
        return [_safe(part) for block in blocks() for part in _rich(block, width)]
    return [_safe(line) for line in compact_lines(result, blocks, width=width, **view)]


def _safe(block: RenderableType) -> RenderableType:
    """Return a block without what a terminal would obey, whichever name it came from."""
    if isinstance(block, Text):
        block.plain = safe_text(block.plain)
    return block


def render_text(document: Mapping[str, Any], *, width: int = 120, **view: Any) -> str:
    """Return the terminal view as plain text; `view` as in `terminal_blocks`."""
    width = max(width, LEAST_WIDTH)
    # In a notebook, a console would show an empty output of its own beside the text.
    console = Console(width=width, color_system=None, force_terminal=False, force_jupyter=False)
    with console.capture() as capture:
        for block in terminal_blocks(document, width=width, **view):
            print_block(console, block)
    return capture.get().rstrip("\n")


def print_block(console: Console, block: RenderableType) -> None:
    """Print a block; a command to copy is never broken inside a word, however long it is."""
    console.print(block, soft_wrap=isinstance(block, Text) and bool(block.no_wrap))


def render_markdown(document: Mapping[str, Any]) -> str:
    """Return the same blocks as Markdown."""
    return "\n\n".join(_markdown(block) for block in document_blocks(document)) + "\n"


def _rich(block: Paragraph | Table, width: int) -> list[RenderableType]:
    if isinstance(block, Paragraph):
        return [Text(safe_text(block.text), style="bold" if block.strong else "")]
    return fitted(block, width)


def _markdown(block: Paragraph | Table) -> str:
    if isinstance(block, Paragraph):
        return f"**{_escape(block.text)}**" if block.strong else _escape(block.text)
    lines = [f"### {_escape(block.title)}", ""] if block.title else []
    lines.append("| " + " | ".join(_escape(name) for name in block.columns) + " |")
    rule = ["---"] * block.labels + ["---:"] * (len(block.columns) - block.labels)
    lines.append("| " + " | ".join(rule) + " |")
    lines.extend(
        "| " + " | ".join(_escape(written(cell)) for cell in row) + " |" for row in block.rows
    )
    if block.note:
        lines.extend(["", _escape(block.note)])
    return "\n".join(lines)


_MARKS = (
    *(("\\", "\\\\"), ("|", "\\|"), ("<", "&lt;"), (">", "&gt;"), ("`", "\\`")),
    # Links and images, in all their forms.
    *(("](", "]\\("), ("![", "!\\["), ("][", "]\\["), ("]:", "]\\:")),
)
_ADDRESS = re.compile(r"\b(https?|ftp|mailto|xmpp|javascript|data)(?::)(\S)", re.IGNORECASE)
# Addresses of pages without http, and of people.
_BARE = re.compile(r"\b(www)\.|(?<=[\w.+-])@(?=\w)", re.IGNORECASE)


def _escape(text: str) -> str:
    """Neutralise what Markdown or HTML would interpret: model output is hostile."""
    for mark, safe in _MARKS:
        text = text.replace(mark, safe)
    # Addresses that stand alone become links too.
    text = _ADDRESS.sub(r"\1&#58;\2", text)
    text = _BARE.sub(lambda found: f"{found[1]}&#46;" if found[1] else "&#64;", text)
    return " ".join(safe_text(text).split())
