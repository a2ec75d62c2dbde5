"""Meanings and grades of answers: who joined and graded them, and what became of samples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from calibrant.claims.sem_ece import judge_limit_warning, sample_warnings
from calibrant.report.blocks import Paragraph, Table
from calibrant.report.cells import number_cell, share_cell

_EXAMPLES = 5
_LETTERS = 60


def blocks(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Return the blocks of a ``calibrant.semantics/1`` document."""
    parts: list[Paragraph | Table] = [Paragraph(_verdict(document), strong=True), _judge(document)]
    parts += [
        _counts(title, first, document[name])
        for name, title, first in (
            ("graders", "Who graded", "grader"),
            ("joined_by", "Who joined answers into meanings", "rule or judge"),
            ("reasons", "Why a grade is what it is", "reason"),
        )
        if document.get(name)
    ]
    parts += _doubts(document)
    if document["normalisation"]:
        steps = ", ".join(document["normalisation"])
        parts.append(Paragraph(f"Texts were compared after: {steps}."))
    return parts


def _verdict(document: Mapping[str, Any]) -> str:
    total = sum(document["graders"].values())
    joined, graded = document["clustering"], document["grading"]
    how = f"by '{joined}'" if joined == graded else f"by '{joined}' and '{graded}'"
    text = f"{total:,} answers were joined into meanings and graded {how}"
    if document["embedder"]:
        text += f", with embeddings by {document['embedder']}"
    return text + "."


def _judge(document: Mapping[str, Any]) -> Paragraph:
    if document["judge"] is None:
        return Paragraph("No judge was asked: rules decided, or left the grade open.")
    return Paragraph(
        f"Judge {document['judge']}: {document['judge_calls']:,} calls, "
        f"{document['judge_calls_refused']:,} refused by the cap, "
        f"{document['judge_replies_unreadable']:,} replies unreadable."
    )


def _counts(title: str, first: str, counts: Mapping[str, int]) -> Table:
    total = sum(counts.values())
    rows = tuple(
        (str(name), number_cell(n), share_cell(n / total, digits=1)) for name, n in counts.items()
    )
    return Table((first, "answers", "share"), rows, title=title)


def _doubts(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Say what a reader should look at: contradictions, mixed meanings, masked instructions."""
    parts: list[Paragraph | Table] = []
    doubts = (
        ("conflicts", "Pairs of answers that different steps both joined and kept apart"),
        ("mixed_classes", "Meanings that hold both right and wrong answers"),
        ("instructions_masked", "Answers that held instructions to a judge, which were masked"),
    )
    for name, words in doubts:
        if document[name]:
            parts.append(Paragraph(f"{words}: {document[name]:,}."))
    if document["judge_asymmetric"]:
        parts.append(Paragraph("The judge's verdict depended on the order for some pairs."))
    if document["texts_mended"]:
        mended = ", ".join(f"{name} {count:,}" for name, count in document["texts_mended"].items())
        parts.append(Paragraph(f"Texts that were mended before reading: {mended}."))
    examples = [
        (kind, _cut(example))
        for name, kind in (
            ("conflict_examples", "joined and kept apart"),
            ("judge_asymmetric", "order matters"),
            ("instruction_examples", "instruction masked"),
        )
        for example in document[name][:_EXAMPLES]
    ]
    if examples:
        parts.append(Table(("what", "example"), tuple(examples), title="Examples", labels=2))
    return parts


def _cut(example: Any) -> str:
    texts = [example] if isinstance(example, str) else [str(text) for text in example]
    return " | ".join(text if len(text) <= _LETTERS else text[:_LETTERS] + " ..." for text in texts)


_ROLES = {
    "samples": "sampled answers",
    "reference": "right answers",
    "question": "question ids",
    "text": "question texts",
    "model": "models",
    "draw": "draw numbers",
    "correct": "grades",
}


def grade_blocks(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Return the grades by model, the columns used, the methods scored and what was written."""
    results = document["results"]
    questions = max((entry["questions"] for entry in results), default=0)
    draws = sum(entry["draws"] for entry in results)
    scored = [entry["method"] for entry in document["methods"] if entry["available"]]
    parts: list[Paragraph | Table] = [
        Paragraph(
            f"Graded {draws:,} answers to {questions:,} questions; "
            f"{len(scored)} confidence methods are scored.",
            strong=True,
        ),
        *_written(document["written"]),
        *(Paragraph(found["text"], strong=True) for found in _minded(document)),
        _grades(document),
        Paragraph(f"Methods: {', '.join(scored)}."),
    ]
    told = _columns(document["samples"])
    parts += [Paragraph(told)] if told else []
    return parts


def _minded(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return what to know before the grades: a judge that was stopped, guessed columns, notes."""
    return [*judge_limit_warning(document["semantics"]), *sample_warnings(document["samples"])]


def _written(paths: Sequence[str]) -> list[Paragraph]:
    if not paths:
        return []
    folder = str(PurePath(paths[0]).parent)
    names = ", ".join(PurePath(path).stem for path in paths)
    return [Paragraph(f"Written to {folder}: {names}.", strong=True)]


def _grades(document: Mapping[str, Any]) -> Table:
    rows = tuple(
        (
            entry["model"],
            number_cell(entry["questions"]),
            number_cell(entry["draws"]),
            number_cell(entry["classes"]),
            number_cell(entry["right"]),
            number_cell(entry["wrong"]),
            number_cell(entry["ungraded"]),
            number_cell(sum(entry["without_answer"].values())),
            number_cell(entry["several_right"]),
        )
        for entry in document["results"]
    )
    head = ("model", "questions", "draws", "classes", "right", "wrong", "no grade", "no answer")
    return Table((*head, "several right"), rows, title="Classes and grades")


def _columns(samples: Mapping[str, Any]) -> str:
    if not samples["columns"]:
        return ""
    used = "; ".join(
        f"{_ROLES[role]}: {name}{' (guessed)' if role in samples['guessed'] else ''}"
        for role, name in samples["columns"].items()
    )
    return f"Columns used ({samples['shape']}): {used}."
