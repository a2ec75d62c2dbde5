"""What commands say that list things: logs, methods, models, files, analyses, demos, servers."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from calibrant.core.hints import Hint
from calibrant.findings.documents import fields
from calibrant.findings.documents.entries import ImportedLog
from calibrant.report import cells
from calibrant.report.cells import Block, Columns, Paragraph, Table, table_of
from calibrant.report.glossary import kind_words

# -- files and parts --------------------------------------------------------------------------


def part_name(part: str) -> str:
    """Return a part with its question.

    Examples
    --------
    >>> part_name("groups")
    'groups (for whom is the confidence wrong?)'
    """
    question = kind_words(part, "asks")
    return part if question is None else f"{part} ({question}?)"


def reason_text(entry: Mapping[str, str]) -> str:
    r"""Return why a part was left out, with what to do about it, on one line.

    Examples
    --------
    >>> reason_text({"part": "groups", "reason": "too few rows\n  -> label more"})
    'too few rows; to have it: label more'
    """
    rule, mark, hint = entry["reason"].partition("->")
    words = " ".join(rule.split())
    return f"{words}; to have it: {' '.join(hint.split())}" if mark else words


def analysis_blocks(document: fields.AnalysisFields) -> Iterator[Block]:
    """Yield the parts that were done and the reasons for those that were not."""
    yield Paragraph(f"Done: {', '.join(document.done)}.")
    if document.left_out:
        name: Columns = {"part": lambda e: part_name(e["part"])}
        columns = {**name, "why it was left out": reason_text}
        yield table_of(document.left_out, columns, "Left out", labels=2)


def accuracy_blocks(document: fields.AccuracyFields) -> Iterator[Block]:
    """Yield how often each model is right, and the differences of pairs."""
    columns: dict[str, Any] = {
        "model": lambda e: " ".join([e.model, *(f"{k}={v}" for k, v in (e.group or {}).items())]),
        "answers": "n",
        "right": lambda e: cells.percent_cell(e.accuracy),
    }
    if any(entry.disagree for entry in document.results):
        columns["right and wrong on one question"] = lambda e: cells.percent_cell(e.disagree)
    rows = sorted(document.results, key=lambda e: -e.accuracy.numbers[0])
    yield table_of(rows, columns, "How often each is right", main=True)
    if document.pairs:
        yield table_of(
            document.pairs,
            {
                "pair": lambda e: f"{e.a} - {e.b}",
                "questions": "questions",
                "difference, points": lambda e: cells.points_cell(e.difference),
                "p, corrected": lambda e: cells.Number(e.p_adjusted, digits=3),
            },
            "Differences on the same questions",
        )


def demo_blocks(document: fields.DemoFields) -> Iterator[Block]:
    """Yield where the report is and what to try next."""
    for text in document.findings or []:
        yield Paragraph(text, strong=True)
    for name, part in document.parts.items():
        what = "recorded answers" if name == "recorded" else "answers of the model on this machine"
        yield Paragraph(f"Page of {what}: {part['report']} ({part['seconds']:.0f} s)")
    if document["counts"]:
        new, cached = (
            sum(entry[name] for entry in document["counts"])
            for name in ("draws_new", "draws_cached")
        )
        text = f"{new:,} draws were asked for; {cached:,} came from the ledger, asked once already."
        yield Paragraph(text)
    yield Paragraph(f"Contents: {', '.join(document.done)}.")
    for entry in document.left_out:
        yield Paragraph(f"Left out: {part_name(entry['part'])}: {reason_text(entry)}.")
    yield Paragraph("Try next:")
    for command in document.next:
        yield Paragraph(f"  {command}")


def init_blocks(document: fields.InitFields) -> Iterator[Block]:
    """Yield the files and the next step."""
    for name in document.files:
        yield Paragraph(f"Written: {name}")
    for command in document.next:
        yield Paragraph(f"Next: {command}", strong=True)


def models_blocks(document: fields.ModelsFields) -> Iterator[Block]:
    """Yield the table of models."""
    columns: Columns = {
        "model": "name",
        "fetched": lambda e: "yes" if e["fetched"] else "no",
        "size": lambda e: cells.said_cell(e["bytes"], f"{e['bytes'] / 1e6:.0f} MB"),
        "licence": "licence",
        "about": "about",
    }
    note = f"Kept in {document.folder}; any other GGUF file can be named by its path."
    yield table_of(document.results, columns, "Embedded models", note=note, labels=len(columns))
    for entry in document.results:
        if not entry["fetched"]:
            text = f"To fetch the weights: calibrant models fetch {entry['name']}"
            yield Paragraph(text)


_PLACES = Hint("A page, Markdown or figures: {html}, {markdown} or {figures}.").shell()


def report_blocks(document: fields.ReportFields) -> Iterator[Block]:
    """Yield the paths that were written, or the tables of every document."""
    # Loaded here: most lists draw nothing, and the package finds this module by name.
    from calibrant.report.charts.draw import FORMATS
    from calibrant.report.tables import document_blocks

    if document.get("viewed"):
        yield Paragraph(f"viewed: {document['viewed']}")
        return
    if not document.written:
        for part in document.get("documents", ()):
            yield from document_blocks(part)
        yield Paragraph(_PLACES)
    pages = [path for path in document.written if Path(path).suffix[1:] not in FORMATS]
    folders = Counter(str(Path(path).parent) for path in document.written if path not in pages)
    for path in pages:
        yield Paragraph(f"written: {path}")
    for folder, count in folders.items():
        yield Paragraph(f"written: {folder}: {count} files ({', '.join(FORMATS)})")


def serve_blocks(document: fields.ServeFields) -> Iterator[Block]:
    """Yield questions, cost, and who answered."""
    for totals in document.results:
        count, cost = totals["questions"], totals["cost"]
        yield Paragraph(f"Served {count:,} questions for {cost:.4g} in all.", strong=True)
        if answers := totals["answered_by"]:
            rows = tuple((name, cells.number_cell(n)) for name, n in answers.items())
            yield Table(("answered by", "questions"), rows)


# -- imported logs ----------------------------------------------------------------------------

_PROBLEMS_SHOWN = 20


def import_blocks(document: fields.ImportFields) -> Iterator[Block]:
    """Yield the logs, their confidences, and the parts that could not be read."""
    results, scores = document.results, document.scores
    unreadable = sum(entry.unreadable for entry in results)
    yield Paragraph(_what_was_read(results, unreadable), strong=True)
    sources = [entry.source for entry in results]
    names = [Path(source).name for source in sources]
    # File names alone where they tell the logs apart.
    logs = list(zip(names if len(set(names)) == len(names) else sources, results, strict=True))
    columns: Columns = {
        "log": lambda e: e[0],
        "kind": lambda e: e[1].kind,
        "model": lambda e: ", ".join(str(name or "not named") for name in e[1].models),
        "task": lambda e: ", ".join(map(str, e[1].tasks)),
        "questions": lambda e: cells.number_cell(e[1].questions),
        "draws": lambda e: cells.number_cell(e[1].draws),
        "expected": lambda e: _expected(e[1]),
        "ungraded": lambda e: cells.number_cell(sum(e[1].ungraded.values())),
        "unreadable": lambda e: cells.number_cell(e[1].unreadable),
    }
    yield table_of(logs, columns, "Logs", labels=4)
    columns = {
        "model": lambda e: str(e["model"] or "not named"),
        "method": "method",
        "score": lambda e: "a probability" if e["probability"] else "ranks only",
        "rows": "n",
        "with grade": "graded",
    }
    no_scores = Paragraph("The logs hold no confidence.")
    yield table_of(scores, columns, "Confidences", labels=3) if scores else no_scores
    if unreadable:
        yield _problems(logs, unreadable)
    for note in document.notes:
        yield Paragraph(f"Note: {note}.")
    for path in document.written:
        yield Paragraph(f"written: {path}")


def _what_was_read(results: Sequence[ImportedLog], unreadable: int) -> str:
    draws = sum(entry.draws for entry in results)
    # A table of confidences has rows, and no replies.
    read = f"{draws:,} draws" if draws else f"{sum(e.scores for e in results):,} rows"
    if steps := sum(entry.steps for entry in results):
        read += f" and {steps:,} turns of agents"
    if not unreadable:
        return f"All of it was read: {read}."
    parts, are = ("part", "is") if unreadable == 1 else ("parts", "are")
    return f"{read} were read; {unreadable:,} {parts} could not be read and {are} listed."


def _expected(entry: ImportedLog) -> cells.Number:
    """Return how much the log says it holds, with its unit: a question may have many draws."""
    unit = "" if entry.expected is None else entry.expected_unit
    return replace(cells.number_cell(entry.expected, missing="not stated"), mark=unit)


def _problems(logs: Sequence[tuple[str, ImportedLog]], total: int) -> Table:
    rows = [(name, part["place"], part["reason"]) for name, log in logs for part in log.problems]
    visible = tuple(rows[:_PROBLEMS_SHOWN])
    hint = Hint("{0}; {out} writes all of them to unreadable.csv", f"{len(visible)} of {total:,}")
    note = hint.shell() if total > len(visible) else ""
    return Table(("log", "part", "why"), visible, "Could not be read", note, labels=3)


# -- confidence methods -----------------------------------------------------------------------

_ABOUT = {
    "modal": "most frequent answer",
    "selected": "answer chosen by a part of the draws",
    "greedy": "greedy answer",
    "own": "its own answer",
    "first": "first sample",
    "option": "an option",
}


def methods_blocks(document: fields.MethodsFields) -> Iterator[Block]:
    """Yield the table of methods, or what a study can use of them."""
    if document.results:
        yield from _for_study(document)
        return
    ranking = sum(not entry["probability"] for entry in document.methods)
    columns: Columns = {
        "method": "name",
        "what it is": "summary",
        "needs": "needs",
        "about": lambda e: "question, with the " * e["question_level"] + _ABOUT[e["about"]],
        "probability": lambda e: "yes" if e["probability"] else _ranks(e["low"], e["high"]),
    }
    title = f"{len(document.methods)} confidence methods (higher is surer)"
    note = (
        f"{ranking} are ranking scores: calibration metrics refuse them until they are "
        "recalibrated."
    )
    yield table_of(document.methods, columns, title, note=note, labels=5)


def _ranks(low: float | None, high: float | None) -> str:
    start, end = -math.inf if low is None else low, math.inf if high is None else high
    return f"no, {start:g} to {end:g}"


def _for_study(document: fields.MethodsFields) -> Iterator[Block]:
    results = document.results
    models = list(dict.fromkeys(entry["model"] for entry in results))
    for model in models:
        available = [entry["available"] for entry in results if entry["model"] == model]
        text = f"{model}: {sum(available)} of {len(available)} methods available."
        yield Paragraph(text, strong=True)
    ready: dict[str, dict[str, cells.Cell]] = {}
    # Grouped by what is missing: the reader acts on reasons.
    lacking: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for entry in results:
        method, model = entry["method"], entry["model"]
        if entry["available"]:
            count, part = entry["questions"] - entry["missing"], entry["questions"]
            ready.setdefault(method, {})[model] = cells.said_cell(count, f"{count:,} of {part:,}")
        else:
            methods, where = lacking.setdefault(entry["reason"], ({}, {}))
            methods[method] = where[model] = None
    if ready:
        usable = tuple(
            (method, *(counts.get(model, "not available") for model in models))
            for method, counts in ready.items()
        )
        title = "Questions that have the inputs"
        yield Table(("method", *models), usable, title, folded=True)
    if lacking:
        rows = tuple(
            (", ".join(methods), "all" if len(where) == len(models) else ", ".join(where), reason)
            for reason, (methods, where) in lacking.items()
        )
        columns = ("not available", "models", "because")
        yield Table(columns, rows, "Methods without their inputs", labels=3, folded=True)
