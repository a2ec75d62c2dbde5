"""Pictures of where data comes from: questions, answers, grades, methods, logs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.report.pictures.bars import Bar, bar_chart, count_words, counted
from calibrant.report.pictures.picture import Picture


def _counts(bars: Sequence[Bar], title: str, what: str, caption: str = "") -> Picture | None:
    if not bars:
        return None
    return Picture(
        title,
        caption,
        lambda wide: bar_chart(bars, title, wide=wide, words=count_words, title=what),
    )


def bench_picture(document: Mapping[str, Any]) -> Picture | None:
    """Return how many questions there are of each domain and number of right answers."""
    bars = [
        Bar(f"{entry['domain']}, k = {row['k']}", row["questions"])
        for entry in document["results"]
        for row in entry["by_k"]
    ]
    return _counts(
        bars,
        "Questions by domain and number of right answers",
        "questions",
        "k: how many answers are right.",
    )


def bench_check_picture(document: Mapping[str, Any]) -> Picture | None:
    """Return how many questions of each domain are sound."""
    bars = [
        Bar(
            str(entry["domain"]),
            entry["questions"],
            tone="second" if entry["problems"] else "first",
        )
        for entry in document["results"]
    ]
    return _counts(bars, "Questions by domain", "questions", "Orange: a domain with findings.")


def semantics_picture(document: Mapping[str, Any]) -> Picture | None:
    """Return what graded how many answers."""
    inner = document.get("semantics") or document
    bars = counted(inner.get("graders") or {})
    return _counts(bars, "Answers by what graded them", "answers", "Each bar: one grader.")


def methods_picture(document: Mapping[str, Any]) -> Picture | None:
    """Return how many methods there are by what they need."""
    needs: Counter[str] = Counter()
    for entry in document["methods"]:
        found = entry.get("needs") or ["answers"]
        needs[", ".join(found) if isinstance(found, list) else str(found)] += 1
    return _counts(
        counted(needs), "Confidence methods by what they need", "methods", "Each bar: one need."
    )


def study_picture(document: Mapping[str, Any]) -> Picture | None:
    """Return how many answers were drawn from each model for each purpose."""
    several = len({row["model"] for row in document.get("asked") or ()}) > 1
    bars = [
        Bar(f"{row['model']}: {row['purpose']}" if several else str(row["purpose"]), row["draws"])
        for row in document.get("asked") or ()
    ]
    bars.sort(key=lambda bar: -bar.value)
    return _counts(bars, "Answers drawn, by purpose", "draws")


def import_picture(document: Mapping[str, Any]) -> Picture | None:
    """Return how many rows were kept and left out."""
    kept = document.get("rows")
    bars = [Bar("kept", kept)] if isinstance(kept, int | float) else []
    left_out = {name: n for name, n in (document.get("dropped") or {}).items() if n}
    bars += counted(left_out, tone="second")
    return _counts(bars, "Rows read", "rows")


def run_picture(document: Mapping[str, Any]) -> Picture | None:
    """Return how many answers are there of each model."""
    bars = [
        Bar(
            str(row["model"]),
            float(row.get("draws_new") or 0) + float(row.get("draws_cached") or 0),
        )
        for row in document.get("counts") or ()
        if "model" in row
    ]
    return _counts(bars, "Answers of each model", "answers")
