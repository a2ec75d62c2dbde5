"""The parts of a page below the first screen: one per document, folded, with its tables."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from markupsafe import Markup

from calibrant.core.document import kind_of
from calibrant.findings.claims import Claim
from calibrant.report.answers import claim_tone, headline
from calibrant.report.blocks import Block, Paragraph, Table
from calibrant.report.cells import Cell, Name, Number, Text
from calibrant.report.charts import Chart, answer_of, further_of
from calibrant.report.charts.draw import draw
from calibrant.report.glossary import explain, kind_words, term_of
from calibrant.report.tables import document_blocks, said_first
from calibrant.report.tables.audit import OF_ENTRIES

_LONG = ("reliability", "results", "pairs", "sem_ece", "groups", "curve", "prompts", "claims")
_ROWS_SHOWN = 12
_CLAIMS_LISTED = 40
_LETTERS = 96


def document_part(document: Mapping[str, Any], number: int, *, leads: bool) -> dict[str, Any]:
    """Return one document: what it claims, its picture, tables and charts.

    `leads`: its first sentences and its picture stand at the top of the page already.
    """
    claims = said_first(document)
    kind = kind_of(document)
    answer = None if leads else answer_of(document)
    return {
        "id": f"{kind}-{number}",
        "kind": kind,
        "title": _title(document, kind),
        "hint": "" if leads else _hint(claims),
        "claims": [
            {"tone": claim_tone(claim) or "not_tested", "text": claim.text}
            for claim in claims[:_CLAIMS_LISTED]
            if claim.text
        ],
        "more_claims": max(0, len(claims) - _CLAIMS_LISTED),
        "picture": None if answer is None else drawn(answer),
        "blocks": [
            block_of(block, f"t{number}-{place}")
            for place, block in enumerate(_blocks(document, kind, claims))
        ],
        "figures": [
            {"id": f"f{number}-{place}", "title": chart.title, **drawn(chart)}
            for place, chart in enumerate(further_of(document))
        ],
    }


def _title(document: Mapping[str, Any], kind: str) -> str:
    if kind == "audit" and any(entry.get("group") for entry in document["results"]):
        return "Calibration by group"
    return str(kind_words(kind, "section") or kind.replace("_", " ").capitalize())


def _hint(claims: Sequence[Claim]) -> str:
    """Return the first sentence of a part, short enough for one line."""
    first = next(iter(headline(claims, 1)), "")
    if len(first) <= _LETTERS:
        return first
    return first[:_LETTERS].rsplit(" ", 1)[0] + " …"


def _blocks(document: Mapping[str, Any], kind: str, claims: Sequence[Claim]) -> list[Block]:
    """Return what the claims do not say; numbers of an audit are in the page's own table."""
    sentences = " ".join(claim.text for claim in claims)
    return [
        block
        for block in document_blocks(document)
        if not (isinstance(block, Paragraph) and block.text in sentences)
        and not (isinstance(block, Table) and kind == "audit" and block.name in OF_ENTRIES)
    ]


def drawn(chart: Chart) -> dict[str, str]:
    """Return a chart for a desktop and for a phone, with what is said below it."""
    wide, narrow = (Markup(draw(chart, wide=wide)) for wide in (True, False))
    return {"wide": wide, "narrow": narrow, "caption": chart.caption}


def block_of(block: Block, name: str) -> dict[str, Any]:
    """Return a neutral block in the form that the template takes."""
    if isinstance(block, Paragraph):
        return {"kind": "paragraph", "text": block.text, "strong": block.strong}
    return {
        "kind": "table",
        "id": name,
        "title": block.title,
        "note": block.note,
        "labels": block.labels,
        "folded": block.folded,
        "shown": _ROWS_SHOWN if len(block.rows) > _ROWS_SHOWN + 3 else len(block.rows),
        "rows": [[_cell(cell) for cell in row] for row in _filled(block)],
        "columns": [
            {
                "name": column,
                "term": (term := term_of(column)) and term_id(term),
                "words": explain(column) or "",
            }
            for column in block.columns
        ],
    }


def _cell(cell: Cell) -> dict[str, Any]:
    """Return a cell as the template takes it: an interval is shown smaller beside its number."""
    if isinstance(cell, Number):
        value = None if cell.value is None else f"{cell.value:.6g}"
        return {"head": cell.head, "ends": cell.ends, "tail": cell.tail, "value": value}
    if isinstance(cell, Text):
        return {"head": cell.words, "whole": cell.whole}
    return {"head": str(cell), "key": cell.id if isinstance(cell, Name) else None}


def soft_breaks(text: str) -> Markup:
    """Let a long name break after a slash, a hyphen or an underscore, and not inside a word."""
    return Markup("<wbr>").join(re.split(r"(?<=[/_\-])(?=[^/_\-\s])", text))


def soft_words(text: str) -> Markup:
    """Let a sentence break inside of a name after a slash or underscore, and never before a %."""
    selection = text.replace(" %", "\u00a0%")
    return Markup("<wbr>").join(re.split(r"(?<=[/_])(?=[^/_\s])", selection))


def soft_command(text: str) -> Markup:
    """Let a word of a command break after a comma or inside of a long name, nowhere else."""
    return Markup("<wbr>").join(re.split(r"(?<=[,_/])(?=[^,_/\s])", text))


def _filled(block: Table) -> list[list[Cell]]:
    """Repeat a name that a terminal leaves out below itself: here rows are sorted and filtered."""
    rows: list[list[Cell]] = []
    for row in block.rows:
        cells = list(row)
        if rows and not cells[0] and block.labels > 1:
            cells[0] = rows[-1][0]
        rows.append(cells)
    return rows


def safe_json(value: Any) -> Markup:
    """Return JSON that cannot leave its script element."""
    text = orjson.dumps(value).decode()
    for mark, safe in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
        text = text.replace(mark, safe)
    return Markup(text)


def settings_of(document: Mapping[str, Any]) -> dict[str, str]:
    """Return what was done, without the results themselves."""
    facts = {name: value for name, value in document.items() if name not in _LONG}
    text = orjson.dumps(facts, option=orjson.OPT_INDENT_2).decode()
    limit = 6_000
    if len(text) > limit:
        text = text[:limit] + "\n... (the JSON result has the rest)"
    return {"title": str(document["schema"]), "text": text}


def term_id(name: str) -> str:
    """Return the id of a term's explanation on the page."""
    return "term-" + "".join(mark if mark.isalnum() else "-" for mark in name.lower())
