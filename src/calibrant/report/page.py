"""One self-contained HTML page from result documents."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.report.terminal import render_text

__all__ = ["render_html"]


def render_html(documents: Sequence[Mapping[str, Any]]) -> str:
    """Return one page for all documents; model output is shown as text, never run."""
    parts = "".join(f"<pre>{html.escape(render_text(document))}</pre>" for document in documents)
    return (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>calibrant</title>{parts}</html>"
    )
