"""Tables of the confidence methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.report.blocks import Paragraph, Table

__all__ = ["blocks"]

_ABOUT = {
    "modal": "most frequent answer",
    "greedy": "greedy answer",
    "own": "its own answer",
    "first": "first sample",
    "option": "an option",
}


def blocks(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Return the table of methods, or what a study can use of them."""
    if document["results"]:
        return _for_study(document)
    methods: Sequence[Mapping[str, Any]] = document["methods"]
    rows = tuple(
        (
            entry["name"],
            entry["summary"],
            ", ".join(entry["needs"]),
            _about(entry),
            "yes" if entry["probability"] else f"no, {_range(entry)}",
        )
        for entry in methods
    )
    ranking = sum(not entry["probability"] for entry in methods)
    return [
        Table(
            columns=("method", "what it is", "needs", "about", "probability"),
            rows=rows,
            title=f"{len(methods)} confidence methods (higher is surer)",
            note=(
                f"{ranking} are ranking scores: calibration metrics refuse them until they are "
                "recalibrated."
            ),
            labels=5,
        )
    ]


def _about(entry: Mapping[str, Any]) -> str:
    name = _ABOUT[entry["about"]]
    return f"question, with the {name}" if entry["question_level"] else name


def _range(entry: Mapping[str, Any]) -> str:
    low = "-inf" if entry["low"] is None else f"{entry['low']:g}"
    high = "inf" if entry["high"] is None else f"{entry['high']:g}"
    return f"{low} to {high}"


def _for_study(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    results: Sequence[Mapping[str, Any]] = document["results"]
    parts: list[Paragraph | Table] = []
    for model in dict.fromkeys(entry["model"] for entry in results):
        ours = [entry for entry in results if entry["model"] == model]
        usable = [entry for entry in ours if entry["available"]]
        parts.append(
            Paragraph(f"{model}: {len(usable)} of {len(ours)} methods available.", strong=True)
        )
        if usable:
            parts.append(_usable(usable))
        if len(usable) < len(ours):
            parts.append(_unavailable(ours))
    return parts


def _usable(entries: Sequence[Mapping[str, Any]]) -> Table:
    rows = tuple(
        (
            entry["method"],
            f"{entry['questions'] - entry['missing']:,}",
            f"{entry['questions']:,}",
        )
        for entry in entries
    )
    return Table(("available", "questions with its inputs", "of"), rows)


def _unavailable(entries: Sequence[Mapping[str, Any]]) -> Table:
    """Group the methods by what is missing: the reader acts on reasons."""
    reasons: dict[str, list[str]] = {}
    for entry in entries:
        if not entry["available"]:
            reasons.setdefault(entry["reason"], []).append(entry["method"])
    rows = tuple((", ".join(names), reason) for reason, names in reasons.items())
    return Table(("not available", "because"), rows, labels=2)
