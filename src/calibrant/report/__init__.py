"""Renderers of result documents: terminal, Markdown, HTML, figures."""

from calibrant.report.page import render_html
from calibrant.report.terminal import render_markdown, render_text, terminal_blocks

__all__ = ["render_html", "render_markdown", "render_text", "terminal_blocks"]
