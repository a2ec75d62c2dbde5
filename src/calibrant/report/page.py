"""One self-contained HTML page from result documents."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib import resources
from typing import Any

import orjson
import vl_convert
from jinja2 import Environment
from markupsafe import Markup

import calibrant
from calibrant.core.document import kind_of, plain
from calibrant.report.blocks import Paragraph, Table
from calibrant.report.figures import Figure, figures_note, figures_of
from calibrant.report.glossary import GLOSSARY, explain, term_of
from calibrant.report.provenance import provenance_table
from calibrant.report.terminal import document_blocks
from calibrant.report.verdict import opening_sentences

__all__ = ["render_html"]

_TITLES = {
    "audit": "Calibration",
    "compare": "Comparison at equal accuracy",
    "groups": "Where the confidence is wrong",
    "cascade": "When to defer",
    "plan": "What labels can show",
    "multi_answer": "Several right answers",
    "methods": "Confidence methods",
    "monitor": "Calibration over time",
    "label": "Labelling",
    "leaderboard": "Ranks and ties",
    "run": "How the answers were collected",
    "analysis": "What was done and what was not",
    "bench": "The questions",
    "bench_check": "The questions, checked",
    "semantics": "Meanings and grades",
    "study": "How it was asked",
    "import_logs": "What was read",
}
_LONG = ("reliability", "results", "pairs", "sem_ece", "groups", "curve", "prompts")
_ROWS_SHOWN = 12
_FIGURES_SHOWN = 6
_BROWSER_BYTES = 6_000_000


def render_html(
    documents: Sequence[Mapping[str, Any]],
    *,
    title: str = "calibrant report",
    questions: Sequence[Mapping[str, Any]] = (),
    questions_note: str = "",
) -> str:
    """Return one page for all documents; model output is shown as text, never run.

    Parameters
    ----------
    documents
        Result documents, in the order in which they are shown.
    title
        Title of the page.
    questions, questions_note
        Rows of the browser of questions and answers, and what they are (all, or a sample).
    """
    shown = [plain(document) for document in documents]
    script, vega = _asset("page.js"), _vega()
    verdict = opening_sentences(shown)
    environment = Environment(autoescape=True, trim_blocks=True)
    environment.filters["soft"] = _soft
    template = environment.from_string(_asset("page.html"))
    return template.render(
        title=title,
        version=calibrant.__version__,
        policy=_policy(script, vega),
        css=Markup(_asset("page.css")),
        script=Markup(script),
        vega=Markup(vega),
        verdict=verdict,
        sections=[
            _section(document, number, verdict, {kind_of(other) for other in shown})
            for number, document in enumerate(shown)
        ],
        questions=_browser(questions, questions_note),
        provenance={
            "table": _block(provenance_table(shown), "provenance-table"),
            "documents": [_settings(document) for document in shown],
        },
        terms=[
            {
                "id": _term_id(name),
                "name": name,
                "words": term.words,
                "formula": term.formula,
                "page": term.page,
            }
            for name, term in GLOSSARY.items()
        ],
    )


@lru_cache(maxsize=8)
def _asset(name: str) -> str:
    return resources.files("calibrant.report").joinpath("assets", name).read_text("utf-8")


@lru_cache(maxsize=1)
def _vega() -> str:
    """Return Vega as one inline script; a closing tag inside it would end the script early."""
    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return bundle.replace("</script", "<\\/script")


def _policy(*scripts: str) -> str:
    """Allow the page's own scripts by their hash, and nothing else: no request, no frame."""
    hashes = " ".join(
        "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"
        for text in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _json(value: Any) -> Markup:
    """Return JSON that cannot leave its script element."""
    text = orjson.dumps(value).decode()
    for mark, safe in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
        text = text.replace(mark, safe)
    return Markup(text)


def _section(
    document: Mapping[str, Any], number: int, verdict: Sequence[str], kinds: Collection[str]
) -> dict[str, Any]:
    kind = kind_of(document)
    # The first look of a run is the audit's, which stands above it in full.
    repeated = kind == "run" and "audit" in kinds
    blocks = [
        _block(
            replace(block, folded=True) if repeated and isinstance(block, Table) else block, name
        )
        for name, block in _named(document, number)
        if not _said(block, verdict)
    ]
    figures = [
        _figure(figure, f"f{number}-{place}") for place, figure in enumerate(figures_of(document))
    ]
    return {
        "id": f"{kind}-{number}",
        "title": _title(document, kind),
        "blocks": blocks,
        "figures": figures[:_FIGURES_SHOWN],
        "further": figures[_FIGURES_SHOWN:],
        "figures_note": figures_note(document),
    }


def _named(document: Mapping[str, Any], number: int) -> list[tuple[str, Paragraph | Table]]:
    return [(f"t{number}-{place}", block) for place, block in enumerate(document_blocks(document))]


def _said(block: Paragraph | Table, verdict: Sequence[str]) -> bool:
    """Return whether the opening of the page says it already."""
    if isinstance(block, Table) or not verdict:
        return False
    return block.text in verdict or all(sentence in block.text for sentence in verdict)


def _title(document: Mapping[str, Any], kind: str) -> str:
    if kind == "audit" and any(entry.get("group") for entry in document["results"]):
        return "Calibration by group"
    return _TITLES.get(kind, kind.replace("_", " ").capitalize())


def _block(block: Paragraph | Table, name: str) -> dict[str, Any]:
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
        "whole": block.whole,
        "columns": [
            {
                "name": column,
                "term": None if term_of(column) is None else _term_id(str(term_of(column))),
                "words": explain(column) or "",
            }
            for column in block.columns
        ],
    }


def _cell(text: str) -> dict[str, str]:
    """Part a number from its interval, which is shown smaller beside it."""
    head, mark, rest = text.partition(" [")
    interval, end, tail = rest.partition("]")
    if not (mark and end):
        return {"text": text, "head": text, "interval": "", "tail": ""}
    return {"text": text, "head": head, "interval": f" [{interval}]", "tail": tail}


def _soft(text: str) -> Markup:
    """Let a long name break after a slash, a hyphen or an underscore, and not inside a word."""
    return Markup("<wbr>").join(re.split(r"(?<=[/_\-])(?=[^/_\-\s])", text))


def _filled(block: Table) -> list[list[str]]:
    """Repeat a name that a terminal leaves out below itself: here rows are sorted and filtered."""
    rows: list[list[str]] = []
    for row in block.rows:
        cells = list(row)
        if rows and not cells[0] and block.labels > 1:
            cells[0] = rows[-1][0]
        rows.append(cells)
    return rows


def _figure(figure: Figure, name: str) -> dict[str, Any]:
    return {
        "id": name,
        "title": figure.title,
        "caption": figure.caption,
        "json": _json(figure.spec),
    }


def _browser(questions: Sequence[Mapping[str, Any]], note: str) -> dict[str, Any] | None:
    """Return the rows of the browser, as many as keep the page small, and what they are."""
    if not questions:
        return None
    rows, size = [], 0
    for question in questions:
        # The page builds the text to search in itself, which halves its size.
        row = {name: value for name, value in question.items() if name != "search"}
        size += len(orjson.dumps(row))
        if size > _BROWSER_BYTES:
            break
        rows.append(row)
    if len(rows) < len(questions):
        note += (
            f" Only the first {len(rows):,} of these {len(questions):,} are on this page, which "
            "must stay small; the study's tables hold them all."
        )
    return {"note": note.strip(), "json": _json(rows)}


def _settings(document: Mapping[str, Any]) -> dict[str, str]:
    """Return what was done, without the results themselves."""
    facts = {name: value for name, value in document.items() if name not in _LONG}
    text = orjson.dumps(facts, option=orjson.OPT_INDENT_2).decode()
    limit = 20_000
    if len(text) > limit:
        text = text[:limit] + "\n... (the JSON result has the rest)"
    return {"title": str(document["schema"]), "text": text}


def _term_id(name: str) -> str:
    return "term-" + "".join(mark if mark.isalnum() else "-" for mark in name.lower())
