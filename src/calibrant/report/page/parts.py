"""The parts of a page below the first screen: tables, provenance, data for its script."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson
from markupsafe import Markup
from msgspec.structs import astuple

from calibrant.core.document import kind_of
from calibrant.core.names import method_words
from calibrant.findings.claims import Claim
from calibrant.findings.documents.audits import AuditBlock
from calibrant.findings.documents.decisions import ThresholdPoint
from calibrant.findings.documents.entries import UNDEFINED, EstimateEntry
from calibrant.findings.documents.fields import AuditFields, DecideFields, Fields
from calibrant.metrics.registry import METRICS, audited
from calibrant.report import answers
from calibrant.report.cells import Block, Cell, Name, Number, Paragraph, Table, Text
from calibrant.report.charts import answer_of, further_of
from calibrant.report.charts.chart import Axis, Chart, Dot, Line
from calibrant.report.charts.draw import MEDIUM, draw, draw_plane, marks_alone
from calibrant.report.charts.reliability import diagram_frame, diagram_marks
from calibrant.report.glossary import explain, kind_words, term_of
from calibrant.report.tables import document_blocks, said_first
from calibrant.report.tables.audit import OF_ENTRIES

_NOT_SAID = "not stated"
_FILES_NAMED = 3
_DIGITS_SHOWN = 12
_SETTINGS = ("level", "bins", "resamples", "recalibrated", "target", "decision")


def provenance_table(documents: Sequence[Mapping[str, Any]]) -> Table:
    """Return version, source, input files, seed, settings and rows left out of each document.

    Examples
    --------
    >>> table = {"path": "runs/a.csv", "bytes": 9, "sha256": "5f" * 32}
    >>> document = {"schema": "calibrant.audit/1", "seed": 3, "input": [table], "dropped": {"x": 2}}
    >>> provenance_table([document]).rows
    (('audit', 'not stated', 'not stated', 'a.csv 5f5f5f5f5f5f', '3', 'not stated', 'x 2'),)
    """
    rows = tuple(
        (
            kind_of(document),
            str(document.get("version") or _NOT_SAID),
            str(document.get("source") or document.get("study") or _NOT_SAID),
            _files(document.get("input")),
            _NOT_SAID if document.get("seed") is None else str(document["seed"]),
            _settings(document),
            _dropped(document),
        )
        for document in documents
    )
    return Table(
        ("part", "calibrant", "source", "input (SHA-256)", "seed", "settings", "rows left out"),
        rows,
        title="Where the numbers come from",
        note="The same inputs, settings and seed give the same file. A digest is shown by its "
        f"first {_DIGITS_SHOWN} digits; the documents below have all of it.",
        labels=7,
    )


def _files(files: Sequence[Mapping[str, Any]] | None) -> str:
    if files is None:
        return _NOT_SAID
    names = [f"{Path(entry['path']).name} {_digest(entry)}" for entry in files[:_FILES_NAMED]]
    more = len(files) - _FILES_NAMED
    return ", ".join([*names, *([f"{more:,} more"] if more > 0 else [])]) or "no file"


def _digest(entry: Mapping[str, Any]) -> str:
    """Return the first digits of what a file was known by: of a streamed one, its footer."""
    whole = entry.get("sha256")
    return whole[:_DIGITS_SHOWN] if whole else f"footer {entry['footer_sha256'][:_DIGITS_SHOWN]}"


def _settings(document: Mapping[str, Any]) -> str:
    setting = {name: document.get(name) for name in _SETTINGS} | document.get("settings", {})
    settings = [
        f"{name.replace('_', ' ')} {value}"
        for name, value in setting.items()
        if value is not None and not isinstance(value, Mapping | list | tuple)
    ]
    return ", ".join(settings) or _NOT_SAID


def _dropped(document: Mapping[str, Any]) -> str:
    if "dropped" not in document:
        return _NOT_SAID
    counts = [f"{rule} {count:,}" for rule, count in document["dropped"].items() if count]
    return ", ".join(counts) or "none"


_DIGITS = 4
_LEVEL = 0.95


def confidences(documents: Sequence[Fields]) -> tuple[list[dict[str, Any]], Markup]:
    """Return every audited confidence of the documents once, with all that a panel shows.

    The marks of their reliability diagrams, for one frame, are text beside them, a line each: the
    page turns them into marks when they come near the screen, since hundreds of diagrams would
    take long to read otherwise.
    """
    by_key: dict[str, dict[str, Any]] = {}
    marks: dict[str, str] = {}
    for document in documents:
        if not isinstance(document, AuditFields):
            continue
        about = answers.claims_by_entry(document.claims or [])
        for entry in document.blocks:
            key, block = answers.key_of(entry), entry.reliability
            by_key.setdefault(key, _confidence(entry, key, about, document.level))
            if block and block.bins and key not in marks:
                marks[key] = marks_alone(
                    diagram_marks(block, answers.entry_tone(entry, about)), MEDIUM
                )
    return list(by_key.values()), Markup("\n".join(marks.get(key, "") for key in by_key))


def _confidence(
    entry: AuditBlock, key: str, about: Mapping[str, Sequence[Claim]], level: float
) -> dict[str, Any]:
    return {
        "key": key,
        "model": entry.model,
        "method": entry.method,
        "words": method_words(entry.method),
        "group": answers.group_words(entry.group),
        "tone": answers.entry_tone(entry, about),
        "n": entry.n,
        "probability": entry.probability,
        "metrics": {name: _estimate(value) for name, value in entry.metrics.items()},
        "cuts": _cuts(entry),
        "level": level,
        "evidence": _evidence(entry),
        "claims": [[answers.claim_tone(claim), claim.text] for claim in about.get(key, ())],
        "notes": entry.notes,
    }


def _short(value: float | None) -> float | None:
    return round(value, _DIGITS) if isinstance(value, float) else value


def _estimate(of: EstimateEntry) -> list[float | None]:
    return [_short(end) for end in (of.value, of.low, of.high)]


def frames() -> dict[str, Markup]:
    """Return empty charts that the page's script fills: a diagram, and a curve with its dot."""
    shares = (0, 0.25, 0.5, 0.75, 1)
    x, y = (Axis(title, low=0, high=1, at=shares) for title in ("share answered", " "))
    curve = Chart("curve", "", "", x, y, [Line([(0, 0)]), Dot(0, 0, shape="ring")])
    charts = {"diagram": diagram_frame(), "curve": curve}
    return {name: Markup(draw_plane(chart, MEDIUM).svg()) for name, chart in charts.items()}


def _cuts(entry: AuditBlock) -> list[list[Any]]:
    """Return threshold, rows at or above it, wrong ones among them and the ends of their share."""
    if entry.thresholds is None:
        return []
    columns = astuple(entry.thresholds)
    return [
        # A digit more than a reader is shown: hundreds of lists may be on one page.
        [float(f"{threshold:.6g}"), n, wrong, *(e if e is None else round(e, 3) for e in ends)]
        for threshold, n, wrong, *ends in zip(*columns, strict=True)
    ]


def _evidence(entry: AuditBlock) -> dict[str, list[float | None]]:
    test, block = entry.calibration_test, entry.verification
    corrected = entry.significance["calibration"] if entry.significance else None
    numbers = {
        "ECE if calibrated": _short(test["expected_ece"]) if test else None,
        "p": test["p_value"] if test else None,
        "p corrected": corrected["p_adjusted"] if corrected else None,
    }
    floors = {
        "error rate": block.error_rate if block else UNDEFINED,
        "L": block.lipschitz if block else UNDEFINED,
        "passive floor": block.passive_floor if block else UNDEFINED,
        "active floor": block.active_floor if block else UNDEFINED,
    }
    return {
        **{title: [value, None, None] for title, value in numbers.items()},
        **{title: _estimate(value) for title, value in floors.items()},
    }


def policies(documents: Sequence[Fields]) -> list[dict[str, Any]]:
    """Return the saved thresholds of the documents, with what the slider moves along."""
    return [
        {
            "key": f"policy-{number}-{entry.model} / {entry.method}",
            "name": " / ".join(filter(None, ("saved policy", entry.model, entry.method))),
            "cuts": [_policy_cut(p) for p in entry.curve if p.error.value is not None],
            "level": _LEVEL,
            "total": max(((p.error.n or 0) / p.share for p in entry.curve if p.share), default=0),
            "threshold": entry.threshold,
            "costs": (document.settings or {}).get("costs"),
        }
        for number, document in enumerate(documents)
        if isinstance(document, DecideFields)
        for entry in document.results
    ]


def _policy_cut(point: ThresholdPoint) -> list[Any]:
    wrong, n = point.error.number, point.error.n or 0
    return [_short(point.threshold), n, round(n * wrong, 1), *_estimate(point.error)[1:]]


def metric_columns() -> list[dict[str, str]]:
    """Return what the table of numbers needs to know of every metric."""
    parts = ("name", "title", "group", "unit")
    return [{part: getattr(METRICS[name], part) for part in parts} for name in audited()]


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
    blocks = [
        block_of(block, f"t{number}-{place}")
        for place, block in enumerate(_blocks(document, kind, claims))
    ]
    figures = [
        {"id": f"f{number}-{place}", "name": chart.name, "title": chart.title, **drawn(chart)}
        for place, chart in enumerate(further_of(document))
    ]
    # Of a judge that is looked at: what its scores mean, and rows to look at, are why one came.
    is_judge = leads and kind == "judge"
    near = [figure for figure in figures if is_judge and figure["name"].endswith("-1")]
    rows = [block for block in blocks if is_judge and block.get("name") == "disagreements"]
    return {
        "id": f"{kind}-{number}",
        "kind": kind,
        "title": _title(document, kind),
        "hint": "" if leads else _hint(claims),
        "claims": [
            {"tone": answers.claim_tone(claim) or "not_tested", "text": claim.text}
            for claim in claims[:_CLAIMS_LISTED]
            if claim.text
        ],
        "more_claims": max(0, len(claims) - _CLAIMS_LISTED),
        "picture": None if answer is None else drawn(answer),
        "beneath": {"figures": near, "blocks": rows},
        "blocks": [block for block in blocks if block not in rows],
        "figures": [figure for figure in figures if figure not in near],
    }


def _title(document: Mapping[str, Any], kind: str) -> str:
    if kind == "audit" and any(entry.get("group") for entry in document["results"]):
        return "Calibration by group"
    return str(kind_words(kind, "section") or kind.replace("_", " ").capitalize())


def _hint(claims: Sequence[Claim]) -> str:
    """Return the first sentence of a part, short enough for one line."""
    first = next(iter(answers.headline(claims, 1)), "")
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
        "name": block.name,
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
    """Let a sentence break after a slash or underscore, never before a % or inside of a scale."""
    selection = re.sub(r"(?<=of \d)-(?=\d)", "\u2011", text.replace(" %", "\u00a0%"))
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
