"""What an import read, and what it could not."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from calibrant.core.hints import Hint
from calibrant.documents.entries import ImportedLog
from calibrant.documents.fields import ImportFields
from calibrant.report.blocks import Block, Columns, Paragraph, Table, table_of
from calibrant.report.cells import Number, number_cell

_PROBLEMS_SHOWN = 20


def blocks(document: ImportFields) -> list[Block]:
    """Return the logs, their confidences, and the parts that could not be read."""
    results = document.results
    parts: list[Block] = [_verdict(results), _logs(results)]
    if document.scores:
        parts.append(_scores(document.scores))
    else:
        parts.append(Paragraph("The logs hold no confidence."))
    if any(entry.unreadable for entry in results):
        parts.append(_problems(results))
    parts.extend(Paragraph(f"Note: {note}.") for note in document.notes)
    parts.extend(Paragraph(f"written: {path}") for path in document.written)
    return parts


def _verdict(results: Sequence[ImportedLog]) -> Paragraph:
    draws = sum(entry.draws for entry in results)
    unreadable = sum(entry.unreadable for entry in results)
    # A table of confidences has rows, and no replies.
    read = f"{draws:,} draws" if draws else f"{sum(e.scores for e in results):,} rows"
    if not unreadable:
        return Paragraph(f"All of it was read: {read}.", strong=True)
    return Paragraph(
        f"{read} were read; {unreadable:,} {'part' if unreadable == 1 else 'parts'} could not be "
        f"read and {'is' if unreadable == 1 else 'are'} listed.",
        strong=True,
    )


def _logs(results: Sequence[ImportedLog]) -> Table:
    names = _short_names([entry.source for entry in results])
    columns: Columns = {
        "log": lambda e: e[0],
        "kind": lambda e: e[1].kind,
        "model": lambda e: ", ".join(str(name or "not named") for name in e[1].models),
        "task": lambda e: ", ".join(map(str, e[1].tasks)),
        "questions": lambda e: number_cell(e[1].questions),
        "draws": lambda e: number_cell(e[1].draws),
        "expected": lambda e: _expected(e[1]),
        "ungraded": lambda e: number_cell(sum(e[1].ungraded.values())),
        "unreadable": lambda e: number_cell(e[1].unreadable),
    }
    return table_of(zip(names, results, strict=True), columns, "Logs", labels=4)


def _expected(entry: ImportedLog) -> Number:
    """Return how much the log says it holds, with its unit: a question may have many draws."""
    return replace(
        number_cell(entry.expected, missing="not stated"),
        mark="" if entry.expected is None else entry.expected_unit,
    )


def _short_names(sources: Sequence[str]) -> list[str]:
    """Return the file names alone where they tell the logs apart."""
    names = [Path(source).name for source in sources]
    return names if len(set(names)) == len(names) else list(sources)


def _scores(scores: Sequence[Mapping[str, Any]]) -> Table:
    columns: Columns = {
        "model": lambda e: str(e["model"] or "not named"),
        "method": "method",
        "score": lambda e: "a probability" if e["probability"] else "ranks only",
        "rows": "n",
        "with grade": "graded",
    }
    return table_of(scores, columns, "Confidences", labels=3)


def _problems(results: Sequence[ImportedLog]) -> Table:
    names = _short_names([entry.source for entry in results])
    lines = [
        (name, problem["place"], problem["reason"])
        for name, entry in zip(names, results, strict=True)
        for problem in entry.problems
    ]
    total = sum(entry.unreadable for entry in results)
    shown = min(len(lines), _PROBLEMS_SHOWN)
    note = Hint("{0}; {out} writes all of them to unreadable.csv", f"{shown} of {total:,}").shell()
    return Table(
        ("log", "part", "why"),
        tuple(lines[:_PROBLEMS_SHOWN]),
        title="Could not be read",
        note=note if total > shown else "",
        labels=3,
    )
