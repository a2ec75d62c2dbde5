"""What became of sampled answers: classes, grades, methods, and which columns were used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any

from calibrant.claims.sem_ece import judge_limit_warning, sample_warnings
from calibrant.report.blocks import Paragraph, Table
from calibrant.report.cells import number_cell

_ROLES = {
    "samples": "sampled answers",
    "reference": "right answers",
    "question": "question ids",
    "text": "question texts",
    "model": "models",
    "draw": "draw numbers",
    "correct": "grades",
}


def blocks(document: Mapping[str, Any]) -> list[Paragraph | Table]:
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
