"""The first screen: title line, warnings, badge, one sentence, one picture, one next step."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibrant.core.document import kind_of
from calibrant.report.answers import (
    Badge,
    badge_of,
    claims_of,
    headline,
    source_name,
    warnings_of,
    whole_entries,
)
from calibrant.report.next_step import Step, next_step
from calibrant.report.pictures import Picture, picture_of

__all__ = ["KIND_TITLES", "Screen", "first_screen", "leading_document", "page_date"]

KIND_TITLES = {
    "audit": "Audit",
    "compare": "Comparison",
    "groups": "Groups",
    "cascade": "Cascade",
    "decide": "Threshold",
    "plan": "Plan",
    "multi_answer": "Several right answers",
    "methods": "Confidence methods",
    "monitor": "Monitoring",
    "label": "Labelling",
    "leaderboard": "Leaderboard",
    "run": "Collection",
    "analysis": "Analysis",
    "bench": "Benchmark",
    "bench_check": "Check of questions",
    "semantics": "Meanings and grades",
    "grade": "Meanings and grades",
    "study": "Study",
    "import_logs": "Imported logs",
}
# The first of these that a page holds answers the reader's question.
_LEADING = (
    "audit", "decide", "compare", "groups", "cascade", "monitor", "label", "plan", "multi_answer",
    "leaderboard",
)  # fmt: skip
_SENTENCES = 3
_WARNINGS_SHOWN = 2
_WORDS_ABOVE = 34


@dataclass(frozen=True, slots=True)
class Screen:
    """What a reader sees first."""

    title: str
    warnings: Sequence[str]
    more_warnings: Sequence[str]
    badge: Badge | None
    sentence: str
    more: Sequence[str]
    step: Step | None
    picture: Picture | None


def leading_document(documents: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the document whose answer stands at the top."""
    for kind in _LEADING:
        for document in documents:
            if kind_of(document) == kind and (document.get("results") or document.get("sem_ece")):
                return document
    return documents[0] if documents else None


def first_screen(
    document: Mapping[str, Any], *, title: str | None = None, most: int = _SENTENCES
) -> Screen:
    """Return the first screen of a document; `title` names what it is about."""
    claims = claims_of(document)
    picture = picture_of(document)
    sentences = _short_first(headline(claims, most), picture)
    warnings = [str(warning["text"]) for warning in warnings_of(document)]
    return Screen(
        title=title_line(document, title),
        warnings=warnings[:_WARNINGS_SHOWN],
        more_warnings=warnings[_WARNINGS_SHOWN:],
        badge=badge_of(document, claims),
        sentence=sentences[0] if sentences else (picture.title if picture else ""),
        more=sentences[1:],
        step=next_step(document),
        picture=picture,
    )


def _short_first(sentences: Sequence[str], picture: Picture | None) -> list[str]:
    """Keep what stands above the picture short: a long text moves below its title."""
    if not sentences or len(sentences[0].split()) <= _WORDS_ABOVE or picture is None:
        return list(sentences)
    head, mark, rest = sentences[0].partition(". ")
    if mark and len(head.split()) <= _WORDS_ABOVE:
        return [f"{head}.", rest, *sentences[1:]]
    return [picture.title, *sentences]


def title_line(document: Mapping[str, Any], title: str | None = None) -> str:
    """Return what was looked at, how much of it, and when; no place of a machine.

    Examples
    --------
    >>> document = {"schema": "calibrant.plan/1", "source": "/tmp/scores.csv"}
    >>> title_line(document).startswith("Plan of scores · ")
    True
    """
    kind = KIND_TITLES.get(kind_of(document), kind_of(document).replace("_", " ").capitalize())
    name = title or source_name(document)
    parts = [f"{kind} of {name}" if name else kind, *_amounts(document), page_date()]
    return " · ".join(parts)


def _amounts(document: Mapping[str, Any]) -> list[str]:
    found = []
    results = document.get("results") or []
    if kind_of(document) == "audit" and results:
        whole = whole_entries(document)
        methods = {str(entry["method"]) for entry in whole}
        if len(methods) == 1:
            name = methods.pop().replace("_", " ")
            found.append(name if name.endswith("confidence") else f"{name} confidence")
        else:
            found.append(f"{len(methods)} confidences")
        found.append(f"{max(entry['questions'] for entry in whole):,} questions")
    elif kind_of(document) == "compare" and results:
        found.append(f"{len({entry['model'] for entry in results})} models")
        found.append(f"{max(entry['accuracy']['n'] for entry in results):,} questions")
    elif results and isinstance(results[0], Mapping) and isinstance(results[0].get("n"), int):
        found.append(f"{results[0]['n']:,} rows")
    return found


def page_date() -> str:
    """Return today's date in words; SOURCE_DATE_EPOCH fixes it for builds that must repeat."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH")
    day = dt.datetime.fromtimestamp(int(fixed), dt.UTC).date() if fixed else dt.date.today()
    months = "January February March April May June July August September October November December"
    return f"{day.day} {months.split()[day.month - 1]} {day.year}"
