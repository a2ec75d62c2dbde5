"""The title line of a document: what was looked at, how much of it, and when."""

import datetime as dt
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from calibrant.claims.words import count
from calibrant.core.document import kind_of
from calibrant.core.method_words import method_name, method_words
from calibrant.documents.audits import AuditBlock
from calibrant.documents.fields import typed
from calibrant.report.answers import source_name, whole_entries
from calibrant.report.glossary import kind_words

_LACKING = {"correct_missing": "grade", "feature_missing": "feature"}


def title_line(document: Mapping[str, Any], *, title: str | None = None, dated: bool = True) -> str:
    """Return the title line; it shows no place of a machine.

    Examples
    --------
    >>> document = {"schema": "calibrant.plan/1", "source": "/tmp/scores.csv"}
    >>> title_line(document, dated=False)
    'Plan for scores'
    """
    kind = kind_of(document)
    words = kind_words(kind, "title") or kind.replace("_", " ").capitalize()
    name = title or source_name(document)
    link = "for" if kind in ("decide", "plan", "cascade") else "of"
    parts = [f"{words} {link} {name}" if name else words, *_amounts(document, kind)]
    dropped, data = document.get("dropped") or {}, document.get("data") or {}
    # A row may break several rules: rows are counted, not rules.
    others = data.get("rows_read", 0) - data.get("rows", 0)
    for rule, what in _LACKING.items():
        if lacking := dropped.get(rule, 0):
            parts.append(f"{count(lacking, 'row')} without a {what} left out")
            others -= lacking
    if others > 0:
        # Rows without a confidence still count where accuracy is told.
        unstated = set(dropped) <= {*_LACKING, "confidence_missing"}
        why = " without a confidence" if unstated else " left out"
        parts.append(f"{count(others, 'row')}{why}")
    return " · ".join([*parts, page_date()] if dated else parts)


def without_one_method(entries: list[AuditBlock]) -> tuple[list[AuditBlock], str]:
    """Leave the method out where there is only one, and return it: the title has it."""
    methods = {entry.method for entry in entries}
    if len(methods) != 1:
        return entries, ""
    return [replace(entry, method="") for entry in entries], methods.pop()


def named_table(words: str, document: Mapping[str, Any], method: str = "") -> str:
    """Return the title of a table: whose rows, and the confidence where it is named only here.

    Examples
    --------
    >>> named_table("Models", {"source": "/me/runs/s.csv"}, "verbal")
    'Models of s, confidence: verbal'
    """
    name = source_name(document)
    whole = f"{words} of {name}" if name else words
    return f"{whole}, confidence: {method}" if method else whole


def _amounts(document: Mapping[str, Any], kind: str) -> list[str]:
    results = document.get("results") or []
    if kind == "audit" and results:
        pool = (document.get("reading") or {}).get("drawn_from")
        asked = (document.get("data") or {}).get("questions")
        return _audited(whole_entries(typed(document).blocks), pool, asked)
    if kind == "audit" and document.get("sem_ece"):
        block = document["sem_ece"][0]
        return [f"{count(block['questions'], 'question')} x {count(block['draws'], 'draw')}"]
    if kind == "compare" and results:
        names = {entry["model"] for entry in results}
        models, left = len(names), document.get("not_compared") or ()
        given = len(names | {entry["model"] for entry in left if "model" in entry})
        own = max(entry["accuracy"]["n"] for entry in results)
        questions = (document.get("data") or {}).get("questions") or own
        methods = len({entry["method"] for entry in results})
        found = [f"{methods} confidences"] if methods > 1 else []
        shared = (document.get("data") or {}).get("questions_shared_by_all")
        told = count(questions, "question")
        if shared is not None and shared < questions:
            told += f", {shared:,} with a confidence of {'both' if models == 2 else 'all'}"
        counted = f"{models} of {given} models" if given > models else f"{models} models"
        return [*found, counted, told]
    if kind == "decide" and results:
        return [_kept(results)]
    if kind == "label" and results:
        return [_labelled((entry["labelled"] for entry in results), sum(e["n"] for e in results))]
    if kind == "cascade" and results:
        return [count(results[0]["n"], "question")]
    if kind == "multi_answer" and results:
        return [f"{max(entry['n'] for entry in results):,} answers"]
    if results and all(isinstance(entry.get("n"), int) for entry in results):
        return [count(sum(entry["n"] for entry in results), "row")]
    return []


def _audited(whole: list[AuditBlock], pool: int | None, asked: int | None) -> list[str]:
    methods = {entry.method for entry in whole}
    models = {entry.model for entry in whole}
    found = [f"{len(methods)} confidences"]
    if len(methods) == 1:
        found = [_confidence(methods.pop())]
    if len(models) > 1:
        found.append(f"{len(models)} models")
    if pool is not None:
        return [*found, _labelled((entry.n for entry in whole), pool)]
    own = max(entry.questions for entry in whole)
    return [*found, count(own if asked is None else asked, "question")]


def _kept(results: Sequence[Mapping[str, Any]]) -> str:
    """Return how many rows the numbers rest on; the others chose where to start."""
    rows = sum(entry["n"] for entry in results)
    used = sum(
        min((entry.get("answered") or {}).get("n") or entry["n"], entry["n"]) for entry in results
    )
    return f"{rows:,} rows" if used == rows else f"{used:,} of {rows:,} rows"


def _labelled(labels: Iterable[int], rows: int) -> str:
    """Return how many rows are labelled; a label may stand in a row of each method."""
    return f"{sum(labels):,} of {rows:,} rows labelled"


def _confidence(method: str) -> str:
    """Return the one confidence that was audited, in words."""
    if method_words(method):
        return method_name(method)
    name = method.replace("_", " ")
    return name if name.endswith("confidence") else f"{name} confidence"


def page_date() -> str:
    """Return today's date in words; SOURCE_DATE_EPOCH fixes it for builds that must repeat."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH")
    day = dt.datetime.fromtimestamp(int(fixed), dt.UTC).date() if fixed else dt.date.today()
    return f"{day.day} {day:%B} {day.year}"
