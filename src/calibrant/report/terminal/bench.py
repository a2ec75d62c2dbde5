"""What a generated benchmark is made of, in words and tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.blocks import Paragraph, Table, number_cell

__all__ = ["blocks"]


def blocks(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Return the statistics of a benchmark as neutral blocks."""
    found: list[Paragraph | Table] = [
        Paragraph(f"{document['questions']:,} questions with exactly k right answers", strong=True),
        _statistics(document),
    ]
    short = [
        f"{entry['domain']} k={part['k']}: {part['questions']} ({part['short_by']} fewer)"
        for entry in document["results"]
        for part in entry["by_k"]
        if part["short_by"]
    ]
    if short:
        found.append(
            Paragraph("The facts give fewer questions than asked for: " + "; ".join(short))
        )
    found.extend(
        Paragraph(f"Source of {entry['domain']}: {entry['source']}")
        for entry in document["results"]
    )
    return found


def _statistics(document: Mapping[str, Any]) -> Table:
    ks = [str(part["k"]) for part in document["results"][0]["by_k"]]
    return Table(
        ("domain", "subjects", "answers", "sets", "candidates", "questions", f"k={'/'.join(ks)}"),
        tuple(
            (
                entry["domain"],
                number_cell(entry["subjects"]),
                number_cell(entry["objects"]),
                number_cell(entry["answer_sets"]),
                number_cell(entry["candidates"]),
                number_cell(entry["questions"]),
                "/".join(str(part["questions"]) for part in entry["by_k"]),
            )
            for entry in document["results"]
        ),
        title="Statistics",
        note="subjects, answers, sets of answers: different ones in the questions written",
    )
