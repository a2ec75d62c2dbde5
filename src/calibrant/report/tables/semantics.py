"""How answers were joined into meanings and graded, in words and tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
