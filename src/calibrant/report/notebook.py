"""The view of a result in a notebook: badge, sentence, picture and a compact table."""

from collections.abc import Mapping
from html import escape
from typing import Any

from calibrant.core.hints import in_python
from calibrant.findings.documents.fields import Fields, typed
from calibrant.report.cells import written
from calibrant.report.charts.draw import draw
from calibrant.report.charts.svg import standalone
from calibrant.report.page import page_asset
from calibrant.report.page.screen import first_screen
from calibrant.report.tables import document_blocks
from calibrant.report.terminal import short_table

_ROWS = 12


def notebook_html(document: Mapping[str, Any]) -> str:
    """Return HTML that stands in a cell: no script, and model output only as text.

    Examples
    --------
    >>> document = {"schema": "calibrant.analysis/1", "done": [], "left_out": []}
    >>> notebook_html(document).startswith('<div class="calibrant-out">')
    True
    """
    result = typed(document)
    screen = first_screen(result)
    parts = [
        f"<style>\n{page_asset('notebook.css')}</style>",
        f'<div class="cal-soft">{escape(screen.title)}</div>',
    ]
    parts += [f'<div class="cal-warning">{escape(text)}</div>' for text in screen.warnings]
    if screen.badge is not None:
        words = escape(f"{screen.badge.symbol} {screen.badge.words}")
        parts.append(f'<span class="cal-badge {screen.badge.tone}">{words}</span>')
    if screen.sentence:
        parts.append(f'<div class="cal-sentence">{escape(screen.sentence)}</div>')
    parts += [f"<div>{escape(text)}</div>" for text in screen.more]
    if screen.chart is not None:
        parts.append(standalone(draw(screen.chart)))
    parts.append(_table(result))
    if screen.step is not None:
        why, command = screen.step
        mark = "" if why.endswith("?") else ":"
        code = f"<code>{escape(in_python(command))}</code>"
        parts.append(f'<div class="cal-soft">{escape(why)}{mark} {code}</div>')
    return f'<div class="calibrant-out">{"".join(parts)}</div>'


def _table(document: Fields) -> str:
    if document.kind == "report":
        return ""
    table = short_table(document, document_blocks(document))
    if table is None:
        return ""
    head = "".join(f"<th>{escape(name)}</th>" for name in table.columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(written(cell, 'half'))}</td>" for cell in row) + "</tr>"
        for row in table.rows[:_ROWS]
    )
    cut = len(table.rows) - _ROWS
    more = f'<div class="cal-soft">{cut:,} more rows</div>' if cut > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"
