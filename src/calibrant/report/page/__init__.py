"""A self-contained HTML page from result documents, and the view of one result in a notebook."""

import base64
import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from html import escape
from importlib import resources
from itertools import accumulate
from typing import Any

import orjson
from jinja2 import Environment, FunctionLoader
from markupsafe import Markup
from msgspec.structs import asdict

from calibrant.core.document import kind_of, plain
from calibrant.core.hints import in_python
from calibrant.core.version import __version__
from calibrant.findings.claims import Claim
from calibrant.findings.claims.next_step import Advice, next_step
from calibrant.findings.documents.fields import Fields, typed
from calibrant.report import answers
from calibrant.report.captions import title_line, without_folders
from calibrant.report.cells import written
from calibrant.report.charts import Chart, answer_of
from calibrant.report.charts.draw import draw
from calibrant.report.charts.svg import standalone
from calibrant.report.glossary import glossary
from calibrant.report.page import parts
from calibrant.report.tables import document_blocks, said_first
from calibrant.report.terminal import short_table

# Kind of document, what its sentence answers, and the claims that answer it, best first.
_QUESTIONS = (
    ("compare", "Who is better calibrated", ("compare.leads", "compare.better_calibrated")),
    ("multi_answer", "Which method ranks answers best", ("bench.best_method",)),
    ("groups", "Where it is wrong", ("groups.stands_out",)),
    ("decide", "Where it may answer alone", ("decide.error_limit", "decide.cheaper")),
    ("cascade", "When to ask the larger model", ("cascade.beats_largest", "cascade.")),
)


@dataclass(frozen=True, slots=True)
class Headline:
    """A shown claim of one document, and the question that it answers."""

    kind: str
    question: str
    text: str


def findings(documents: Sequence[Mapping[str, Any]]) -> list[Headline]:
    """Return the largest shown claim for each question; what is undecided is not found.

    Examples
    --------
    >>> claim = {"id": "decide.error_limit", "subject": {"model": "a"}, "outcome": "shown",
    ...          "text": "May answer 60 % of the questions alone."}
    >>> found = findings([{"schema": "calibrant.decide/1", "results": [], "claims": [claim]}])
    >>> found[0].question, found[0].text
    ('Where it may answer alone', 'May answer 60 % of the questions alone.')
    """
    headlines = []
    for kind, question, target in _QUESTIONS:
        of_kind = [document for document in documents if kind_of(document) == kind]
        claim = _largest(
            [claim for document in of_kind for claim in answers.claims_of(document)], target
        )
        if claim is not None:
            model = claim.subject.get("model")
            owner = f" ({model})" if model and str(model) not in claim.text else ""
            headlines.append(Headline(kind, question + owner, claim.text))
    return headlines


def _largest(claims: Sequence[Claim], target: Sequence[str]) -> Claim | None:
    visible = [claim for claim in claims if claim.outcome == "shown"]
    kinds = ([claim for claim in visible if claim.id.startswith(name)] for name in target)
    of_kind = next(filter(None, kinds), [])
    first = answers.headline(of_kind, 1)
    return next((claim for claim in of_kind if [claim.text] == first), None)


# The first of these that a page holds answers the reader's question.
_LEADING = (
    "audit", "decide", "compare", "groups", "cascade", "monitor", "label", "plan", "multi_answer",
    "leaderboard",
)  # fmt: skip
_SENTENCES = 3
# Words of warnings and of the sentence above the picture: a first screen has sixty at most.
_WARNING_WORDS = 22
_WORDS_ABOVE = 26
_ASIDE = re.compile(r" \(((?:[\d.]+ % interval )?[\d.]+(?: %)? to [^()]*)\)")


@dataclass(frozen=True, slots=True)
class Screen:
    """What a reader sees first."""

    title: str
    warnings: Sequence[str]
    more_warnings: Sequence[str]
    notes: Sequence[str]
    badge: answers.Badge | None
    sentence: str
    more: Sequence[str]
    findings: Sequence[Headline]
    step: Advice | None
    chart: Chart | None


def leading_document(documents: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the document whose answer stands at the top."""
    answering = [part for part in documents if part.get("results") or part.get("sem_ece")]
    leading = (part for kind in _LEADING for part in answering if kind_of(part) == kind)
    return next(leading, documents[0] if documents else None)


def first_screen(
    document: Mapping[str, Any],
    *,
    title: str | None = None,
    most: int = _SENTENCES,
    beside: Sequence[Mapping[str, Any]] = (),
) -> Screen:
    """Return the first screen of a document.

    Parameters
    ----------
    document
        The document whose answer stands at the top.
    title
        What the page is about.
    most
        Sentences at most.
    beside
        Other documents of the page: what they found follows the first sentence.
    """
    further = findings(beside)
    most = 1 if further else most
    claims, warnings = answers.rows_apart(said_first(document))
    chart = answer_of(document)
    sentences = _short_first(answers.headline(claims, most), chart)
    warnings += answers.warnings_of(typed(document))
    words = accumulate(len(text.split()) for text in warnings)
    # As many as fit above the picture; the first always stands there.
    display = max(sum(number <= _WARNING_WORDS for number in words), 1)
    step = next_step(document, beside)
    return Screen(
        title=title_line(document, title=title),
        warnings=warnings[:display],
        more_warnings=warnings[display:],
        notes=answers.notes_of(typed(document)),
        badge=answers.badge_of(document, claims),
        sentence=sentences[0] if sentences else (chart.title if chart else ""),
        more=sentences[1:],
        findings=further,
        step=(
            None
            if step is None
            else Advice(step.why, reduce(without_folders, (document, *beside), step.command))
        ),
        chart=chart,
    )


def _short_first(sentences: Sequence[str], chart: Chart | None) -> list[str]:
    """Keep what stands above the picture short and plain: how sure one is stands below it."""
    aside = _ASIDE.search(sentences[0]) if sentences else None
    interval = ""
    if aside is not None:
        bare = sentences[0][: aside.start()] + sentences[0][aside.end() :]
        number = re.search(r"\d[\d.,]*(?: %)?$", sentences[0][: aside.start()])
        # Among several numbers it has to be said which one is meant.
        owner = f" of {number[0]}:" if number and len(re.findall(r"\d[\d.,]*", bare)) > 1 else ""
        interval = aside[1] if "interval" in aside[1] else f"Interval{owner} {aside[1]}"
        sentences = [bare, *sentences[1:]]
        interval += "."
    first, tail_sentences = sentences[:1], [interval, *sentences[1:]]
    if first and len(first[0].split()) > _WORDS_ABOVE and chart is not None:
        head, mark, tail = first[0].partition(". ")
        if not mark or len(head.split()) > _WORDS_ABOVE:
            return [chart.title, *first, *filter(None, tail_sentences)]
        # What was one sentence stays together: its interval first, which is about the number above.
        first, tail_sentences = [f"{head}."], [f"{interval} {tail}".strip(), *tail_sentences[1:]]
    return [*first, *filter(None, tail_sentences)]


__all__ = ["notebook_html", "page_asset", "page_templates", "render_html"]

_SCRIPTS = ("parts.js", "explore.js", "threshold.js", "questions.js")
_BROWSER_BYTES = 6_000_000
# What is no part of its own where the page holds something better.
_SILENT = {"report", "demo"}


def render_html(
    documents: Sequence[Mapping[str, Any]],
    *,
    title: str | None = None,
    questions: Sequence[Mapping[str, Any]] = (),
    questions_note: str = "",
) -> str:
    """Return one page for all documents; model output is shown as text, never run.

    Parameters
    ----------
    documents
        Result documents, in the order in which they are shown.
    title
        What the page is about; by default the name of the input.
    questions, questions_note
        Rows of the browser of questions and answers, and what they are (all, or a sample).
    """
    visible = [typed(plain(document)) for document in documents]
    leading = leading_document(visible)
    companion = [document for document in visible if document is not leading]
    screen = None if leading is None else first_screen(leading, title=title, beside=companion)
    if screen and screen.step and ".to_html(" in in_python(screen.step.command):
        # Whoever reads this has the page that it would write.
        screen = replace(screen, step=None)
    script = "\n".join(page_asset(name) for name in _SCRIPTS)
    sections = [
        parts.document_part(document, number, leads=document is leading)
        for number, document in enumerate(visible)
        if document.kind not in _SILENT or len(visible) == 1
    ]
    (entries, diagrams), saved = parts.confidences(visible), parts.policies(visible)
    return (
        page_templates()
        .get_template("page.html")
        .render(
            screen=screen,
            title=screen.title if screen else (title or "calibrant"),
            version=__version__,
            picture=None if screen is None or screen.chart is None else parts.drawn(screen.chart),
            policy=_policy(script),
            css=Markup(page_asset("page.css") + page_asset("picture.css")),
            script=Markup(script),
            diagrams=diagrams,
            frames=parts.frames() if entries or saved else {},
            entries=entries,
            entries_json=parts.safe_json(entries),
            metrics_json=parts.safe_json(parts.metric_columns()),
            policies=saved,
            policies_json=parts.safe_json(saved),
            parts=sections,
            places={part["kind"]: part["id"] for part in reversed(sections)},
            questions=_browser(questions, questions_note),
            provenance={
                "table": parts.block_of(parts.provenance_table(visible), "provenance-table"),
                "documents": [parts.settings_of(document) for document in visible],
            },
            terms=[
                {"id": parts.term_id(name), "name": name, **asdict(term)}
                for name, term in glossary().items()
                # Words about judges stand in tables of judges alone.
                if term.page != "judge" or any(d.kind == "judge" for d in visible)
            ],
        )
    )


@lru_cache(maxsize=16)
def page_asset(name: str) -> str:
    """Return a file of the page: template, style or script."""
    return resources.files("calibrant.report").joinpath("assets", name).read_text("utf-8")


@lru_cache(maxsize=4)
def page_templates(find: Callable[[str], str] = page_asset) -> Environment:
    """Return the templates by name, compiled once; `find` returns the text of one."""
    loader = FunctionLoader(find)
    environment = Environment(loader=loader, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment.filters["soft"] = parts.soft_breaks
    environment.filters["words"] = parts.soft_words
    environment.filters["command"] = parts.soft_command
    return environment


def _policy(script: str) -> str:
    """Allow the page's own script by its hash, and nothing else: no request, no frame."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        f"img-src data:; base-uri 'none'; form-action 'none'"
    )


def _browser(questions: Sequence[Mapping[str, Any]], note: str) -> dict[str, Any] | None:
    """Return the rows of the browser, as many as keep the page small, and what they are."""
    if not questions:
        return None
    names: dict[str, int] = {}
    rows, size = [], 0
    for question in questions:
        row = _packed_question(question, names)
        size += len(orjson.dumps(row))
        if size > _BROWSER_BYTES:
            break
        rows.append(row)
    if len(rows) < len(questions):
        note += (
            f" Only the first {len(rows):,} of these {len(questions):,} are on this page, which "
            "must stay small; the study's tables hold them all."
        )
    packed = {"names": list(names), "rows": rows}
    return {"note": note.strip(), "json": parts.safe_json(packed), "number": len(rows)}


def _packed_question(question: Mapping[str, Any], names: dict[str, int]) -> dict[str, Any]:
    """Return a question whose models and methods stand as places in the list of names."""

    def place(name: Any) -> int:
        return names.setdefault(str(name or ""), len(names))

    scores = question.get("scores") or []
    return {
        **question,
        "answers": [
            [place(a["model"]), a["answer"], a["draws"], a["correct"]]
            for a in question.get("answers") or ()
        ],
        "scores": scores
        if isinstance(scores, str)
        else [
            [place(c["model"]), place(c["method"]), c["confidence"], c["correct"]] for c in scores
        ],
    }


_NOTEBOOK_ROWS = 12


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
    pieces = [
        f"<style>\n{page_asset('notebook.css')}</style>",
        f'<div class="cal-soft">{escape(screen.title)}</div>',
    ]
    pieces += [f'<div class="cal-warning">{escape(text)}</div>' for text in screen.warnings]
    if screen.badge is not None:
        words = escape(f"{screen.badge.symbol} {screen.badge.words}")
        pieces.append(f'<span class="cal-badge {screen.badge.tone}">{words}</span>')
    if screen.sentence:
        pieces.append(f'<div class="cal-sentence">{escape(screen.sentence)}</div>')
    pieces += [f"<div>{escape(text)}</div>" for text in screen.more]
    if screen.chart is not None:
        pieces.append(standalone(draw(screen.chart)))
    pieces.append(_notebook_table(result))
    if screen.step is not None:
        why, command = screen.step
        mark = "" if why.endswith("?") else ":"
        code = f"<code>{escape(in_python(command))}</code>"
        pieces.append(f'<div class="cal-soft">{escape(why)}{mark} {code}</div>')
    return f'<div class="calibrant-out">{"".join(pieces)}</div>'


def _notebook_table(document: Fields) -> str:
    if document.kind == "report":
        return ""
    table = short_table(document, document_blocks(document))
    if table is None:
        return ""
    head = "".join(f"<th>{escape(name)}</th>" for name in table.columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(written(cell, 'half'))}</td>" for cell in row) + "</tr>"
        for row in table.rows[:_NOTEBOOK_ROWS]
    )
    cut = len(table.rows) - _NOTEBOOK_ROWS
    more = f'<div class="cal-soft">{cut:,} more rows</div>' if cut > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"
