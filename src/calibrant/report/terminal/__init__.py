"""A document in a terminal, short or whole, as text and as Markdown."""

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

from msgspec.structs import replace
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.text import Text

from calibrant.core.errors import InputError, did_you_mean
from calibrant.core.hints import Hint, in_python
from calibrant.findings.claims import Claim, count
from calibrant.findings.claims.next_step import next_step
from calibrant.findings.documents.fields import AuditFields, Fields, typed
from calibrant.report import answers
from calibrant.report.captions import TITLE, broken_command, row_in_words, title_line
from calibrant.report.cells import Cell, Form, Number, Paragraph, Table, cut_text, written
from calibrant.report.names import cut_cells, short_names
from calibrant.report.tables import document_blocks
from calibrant.report.terminal._fit import FOR_PYTHON, fitted, more_rows, safe_text, spelled
from calibrant.report.terminal.strip import STYLES, audit_lines, audit_table

__all__ = ["print_block", "render_markdown", "render_text", "terminal_blocks"]

Blocks = Callable[[], Sequence[Paragraph | Table]]
"""Makes the neutral blocks of a document when they are asked for."""

LISTS = frozenset({"analysis", "demo", "init", "methods", "models", "report", "serve"})
"""Kinds that are a list themselves: they are shown whole."""

MORE = Hint("{full}   {html}   {json}", html="page.html", json="out.json").shell()
_MORE_IN_PYTHON = 'result.to_html("page.html")   .to_json("out.json")   .to_polars()   .plot()'

LEAST_WIDTH = 20
"""A terminal may say that it has no columns at all (COLUMNS=0); nothing is laid out in fewer."""

_NEXT = "Next:  "
_SENTENCES, _WARNINGS, _ROWS = 5, 2, 16
_EVERY = 10_000
_SENTENCES_OF_MANY = 3
_NOTE = 3
_NAME_LEAST, _NAME_MOST = 12, 44


def compact_lines(
    document: Fields,
    blocks: Blocks,
    *,
    width: int,
    top: int | None = None,
    sort: str | None = None,
    more: str = "",
    python: bool = False,
) -> list[Text]:
    """Return the short view, line by line.

    Parameters
    ----------
    document, blocks
        The document, and what makes its neutral blocks: the table of kinds that have none of
        their own.
    width
        Letters of a line.
    top
        Rows of the table.
    sort
        Metric or column by which the table is sorted.
    more
        How to see more, where not every way is open.
    python
        Whether the reader writes Python, instead of commands.
    """
    reader = FOR_PYTHON.set(python)
    try:
        lines = _above(document, blocks, width, most=_WARNINGS)
        table = _table(document, blocks, width=width, top=top or _ROWS, sort=sort)
        lines += [Text(), *table] if table else []
        more = more or (_MORE_IN_PYTHON if FOR_PYTHON.get() else MORE)
        last = Text(f"More:  {more}", style="dim")
        return [*lines, *_wrong(document, width), *_below(document, width), last]
    finally:
        FOR_PYTHON.reset(reader)


def _whole_view(document: Fields, blocks: Blocks, width: int) -> list[RenderableType]:
    """Return the short view with every table, and what it leaves unsaid, in place of its own."""
    above = _above(document, blocks, width, most=_EVERY)
    while not above[-1].plain:
        above.pop()
    # Lines are broken, and a verdict is in capitals.
    printed = " ".join(" ".join(line.plain for line in above).split()).lower()
    tables: list[RenderableType] = []
    for block in blocks():
        words = "" if isinstance(block, Table) else " ".join(safe_text(block.text).split())
        if not words or words.lower() not in printed:
            tables += _rich(block, width)
    return [*above, *tables, *_below(document, width)]


def _above(document: Fields, blocks: Blocks, width: int, *, most: int) -> list[Text]:
    """Return the title, what is to be known of the rows, and the sentences."""
    lines = [Text(title_line(document, dated=False), style="dim"), Text()]
    claims, of_rows = answers.rows_apart(answers.claims_of(document))
    warnings = [safe_text(text) for text in (*of_rows, *answers.warnings_of(document))]
    hidden = len(warnings) - most
    more_warnings = count(hidden, "more warning")
    for text in [
        *warnings[:most],
        *([spelled(Hint("{0} ({full})", more_warnings, full=True))] if hidden > 0 else []),
    ]:
        hung = textwrap.wrap(text, width, initial_indent="  !  ", subsequent_indent="     ")
        lines += [Text(line, style="yellow") for line in hung]
    if warnings:
        lines.append(Text())
    return lines + _sentences(document, claims, blocks)


def _below(document: Fields, width: int) -> list[Text]:
    """Return what comes next, and how the data were read."""
    lines: list[Text] = []
    step = next_step(document)
    if step is not None:
        command = in_python(step[1]) if FOR_PYTHON.get() else step[1]
        first, *tail = broken_command(command, width - len(_NEXT))
        lines += [Text(), Text.assemble((_NEXT, "bold"), first, no_wrap=True, overflow="ignore")]
        lines += [Text(" " * len(_NEXT) + line, no_wrap=True, overflow="ignore") for line in tail]
    notes = answers.notes_of(document)
    return lines + [Text(f"Data:  {safe_text(note)}", style="dim") for note in notes]


def _wrong(document: Mapping[str, Any], width: int) -> list[Text]:
    """Return the rows that were asked for, two lines each: the question, and what was answered."""
    rows = document.get("wrong") or ()
    lines = [Text(), Text(TITLE, style="bold")] if rows else []
    for row in rows:
        request, response = (cut_text(safe_text(part), width - 9) for part in row_in_words(row))
        lines += [Text(f" {row['confidence']:>5.0%}  {request}".replace("%", " %", 1))]
        lines += [Text(f"         {response}", style="dim")] if response else []
    return lines


def _sentences(document: Mapping[str, Any], claims: list[Claim], blocks: Blocks) -> list[Text]:
    number = len(document.get("results") or ()) > _SENTENCES
    sentences = answers.headline(claims, _SENTENCES_OF_MANY if number else _SENTENCES)
    if not sentences:
        paragraphs = [b for b in blocks() if isinstance(b, Paragraph)]
        sentences = [b.text for b in paragraphs if b.strong] or [b.text for b in paragraphs]
        sentences = sentences[:_SENTENCES_OF_MANY]
    elif document.get("batch"):
        # What was just written, and what to do with it.
        sentences.append(next(b.text for b in blocks() if isinstance(b, Paragraph) and b.strong))
    badge = answers.badge_of(document, claims)
    lines = [Text(safe_text(text)) for text in sentences]
    if badge is not None and lines:
        # The verdict of most claims need not be that of the sentence beside it: say how many.
        first = next((claim for claim in claims if claim.text == sentences[0]), None)
        differs = first is not None and answers.claim_tone(first) not in ("", badge.tone)
        word = badge.words if differs else badge.words.partition(",")[0]
        style = STYLES.get(badge.tone, "bold")
        sentence = lines[0]
        start = sentence.plain[: len(word)]
        lines[0] = (
            Text.assemble((word.upper(), style), sentence.plain[len(word) :])
            if start.lower() == word.lower()
            else Text.assemble((f"{word.upper()}  ", style), sentence)
        )
    if claims and document.get("trend"):
        # What was asked for by name is answered before what is said of every table.
        notes = {claim.text for claim in claims}
        strong = [b.text for b in blocks() if isinstance(b, Paragraph) and b.strong]
        lines[:0] = [Text(text) for text in strong if text not in notes]
    return lines


def _table(
    document: Fields, blocks: Blocks, *, width: int, top: int, sort: str | None
) -> list[Text]:
    if isinstance(document, AuditFields) and document.blocks:
        # Of many models no other table is made than the one that was asked for.
        requests = blocks() if any(entry.named_metrics for entry in document.blocks) else ()
        return [*audit_lines(document, width, top=top, sort=sort), *_asked(requests, width)]
    table = short_table(document, blocks())
    if table is None:
        return []
    requests = [block for block in blocks() if block is not table]
    if sort is not None:
        table = _sorted(table, sort)
    cut = len(table.rows) - top
    draws = _fitted(replace(table, rows=table.rows[:top]), width)
    if cut > 0:
        draws.append(Text(more_rows(cut, len(table.rows)), style="dim"))
    note = textwrap.wrap(safe_text(table.note), width - 2, max_lines=_NOTE, placeholder=" …")
    return [*draws, *(Text(f" {line}", style="dim") for line in note), *_asked(requests, width)]


def _asked(blocks: Sequence[Paragraph | Table], width: int) -> list[Text]:
    """Return what an option asked for by name: who asks wants to see it."""
    lines: list[Text] = []
    for block in (block for block in blocks if block.requested):
        lines.append(Text())
        if isinstance(block, Table):
            lines += _fitted(replace(block, rows=block.rows[:_ROWS]), width)
        else:
            lines.append(Text(safe_text(block.text)))
    return lines


def short_table(document: Fields, blocks: Sequence[Paragraph | Table]) -> Table | None:
    """Return the one table of the short view; that of an audit has a column per number."""
    if isinstance(document, AuditFields) and document.blocks:
        return audit_table(document)
    tables = [block for block in blocks if isinstance(block, Table)]
    return next((block for block in tables if block.main), tables[0] if tables else None)


def _sorted(table: Table, sort: str) -> Table:
    names = [name.lower() for name in table.columns]
    if sort.lower() not in names:
        hint = did_you_mean(sort, list(table.columns))
        raise InputError(f"the table has no column {sort!r} to sort by", hint=hint)
    place = names.index(sort.lower())

    def value(row: tuple[Cell, ...]) -> tuple[bool, float, str]:
        cell = row[place]
        if isinstance(cell, Number) and cell.value is not None:
            return (False, cell.value, "")
        return (True, 0.0, written(cell))

    return replace(table, rows=tuple(sorted(table.rows, key=value)))


def _fitted(table: Table, width: int) -> list[Text]:
    """Draw the table in the richest form that fits: intervals, half-widths, or numbers alone."""
    forms: tuple[Form, ...] = ("whole", "half", "bare")
    for form in forms:
        rows = [[safe_text(written(cell, form)) for cell in row] for row in table.rows]
        widths = [max(map(cell_len, cells)) for cells in zip(table.columns, *rows, strict=True)]
        widths[: table.labels] = [min(width, _NAME_MOST) for width in widths[: table.labels]]
        if sum(widths) + 2 * len(widths) <= width:
            break
    return _drawn(table, rows, widths, width)


def _drawn(
    table: Table, rows: Sequence[Sequence[str]], widths: list[int], width: int
) -> list[Text]:
    """Draw as many columns as fit, names first; names give way before a column does."""
    columns, labels, selection = table.columns, table.labels, len(widths)
    least = _NAME_MOST if table.whole_names else _NAME_LEAST
    while selection > 1 and _least(widths[:selection], labels, least) > width - 1:
        selection -= 1
    over = sum(widths[:selection]) + 2 * selection - (width - 1)
    for place in range(min(labels, selection)):
        spare = min(max(over, 0), max(widths[place] - least, 0))
        widths[place] -= spare
        over -= spare
    rows = _named_apart(rows, widths[: min(labels, selection)])
    lines = [Text(_line(columns, widths[:selection], labels), style="dim")]
    lines += [Text(_line(row, widths[:selection], labels)) for row in rows]
    if selection < len(columns):
        more = count(len(columns) - selection, "more column")
        hint = Hint(" {0} with {full}: {1}", more, ", ".join(columns[selection:]), full=True)
        words = spelled(hint)
        lines.append(Text(words[:width], style="dim"))
    return lines


def _named_apart(rows: Sequence[Sequence[str]], widths: Sequence[int]) -> list[list[str]]:
    """Shorten the names of the rows, column by column: different ones stay different."""
    cells = [[" ".join(cell.split()) for cell in row] for row in rows]
    for place, width in enumerate(widths):
        short = short_names([row[place] for row in cells], width)
        for row in cells:
            row[place] = short[row[place]]
    return cells


def _least(widths: Sequence[int], labels: int, least: int) -> int:
    names = sum(min(width, least) for width in widths[:labels])
    return names + sum(widths[labels:]) + 2 * len(widths)


def _line(cells: Sequence[str], widths: Sequence[int], labels: int) -> str:
    parts = []
    for place, width in enumerate(widths):
        cell = " ".join(cells[place].split())
        filled = cut_cells(cell, width)
        parts.append(filled if place < labels else " " * (width - cell_len(cell)) + cell)
    return (" " + "  ".join(parts)).rstrip()


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
    if result.kind in LISTS:
        return [_safe(part) for block in blocks() for part in _rich(block, width)]
    if full:
        return [_safe(part) for part in _whole_view(result, blocks, width)]
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
