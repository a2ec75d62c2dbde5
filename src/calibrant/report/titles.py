"""The title line of a document: what was looked at, how much of it, and when."""

import datetime as dt
import os
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from calibrant.core.method_words import method_name, method_words
from calibrant.findings.claims.words import count
from calibrant.findings.documents import fields
from calibrant.findings.documents.audits import AuditBlock
from calibrant.findings.documents.fields import Fields, typed
from calibrant.report.answers import source_name, whole_entries
from calibrant.report.glossary import kind_words

_LACKING = {"correct_missing": "grade", "feature_missing": "feature"}


def title_line(
    document: Mapping[str, object], *, title: str | None = None, dated: bool = True
) -> str:
    """Return the title line; it shows no place of a machine.

    Examples
    --------
    >>> document = {"schema": "calibrant.plan/1", "source": "/tmp/scores.csv"}
    >>> title_line(document, dated=False)
    'Plan for scores'
    """
    result: Fields = typed(document)
    kind, name = result.kind, title or source_name(document)
    words = kind_words(kind, "title") or kind.replace("_", " ").capitalize()
    link = "for" if kind in ("decide", "plan", "cascade") else "of"
    parts = [f"{words} {link} {name}" if name else words, *_amounts(result)]
    dropped, data = result.get("dropped") or {}, result.get("data") or {}
    # A row may break several rules: rows are counted, not rules.
    peers = dropped.get("confidence_missing", 0)
    if "rows_read" in data:
        peers = data["rows_read"] - data["rows"]
    for rule, what in _LACKING.items():
        if lacking := dropped.get(rule, 0):
            parts.append(f"{count(lacking, 'row')} without a {what} left out")
            peers -= lacking
    if peers > 0:
        # Rows without a confidence still count where accuracy is told.
        unstated = set(dropped) <= {*_LACKING, "confidence_missing"}
        why = " without a confidence" if unstated else " left out"
        parts.append(f"{count(peers, 'row')}{why}")
    return " · ".join([*parts, page_date()] if dated else parts)


def without_one_method(entries: list[AuditBlock]) -> tuple[list[AuditBlock], str]:
    """Leave the method out where there is only one, and return it: the title has it."""
    methods = {entry.method for entry in entries}
    if len(methods) != 1:
        return entries, ""
    return [replace(entry, method="") for entry in entries], methods.pop()


def named_table(words: str, document: Mapping[str, object], method: str = "") -> str:
    """Return the title of a table: whose rows, and the confidence where it is named only here.

    Examples
    --------
    >>> named_table("Models", {"source": "/me/runs/s.csv"}, "verbal")
    'Models of s, confidence: verbal'
    """
    name = source_name(document)
    whole = f"{words} of {name}" if name else words
    return f"{whole}, confidence: {method}" if method else whole


def _amounts(document: Fields) -> list[str]:
    results, data = document.get("results"), document.get("data") or {}
    if not results:
        if document.get("sem_ece"):
            block = document["sem_ece"][0]
            return [f"{count(block['questions'], 'question')} x {count(block['draws'], 'draw')}"]
        return []
    if isinstance(document, fields.AuditFields):
        pool = (document.reading or {}).get("drawn_from")
        cluster = (document.reading or {}).get("cluster")
        return _audited(whole_entries(document.blocks), pool, data.get("questions"), cluster)
    if isinstance(document, fields.AccuracyFields):
        whole = [entry for entry in document.results if not entry.group]
        return [count(sum(entry.n for entry in whole), "answer")]
    if isinstance(document, fields.CompareFields):
        return _compared(document)
    if isinstance(document, fields.DecideFields):
        return [_decided(document)]
    if isinstance(document, fields.LabelFields):
        labels = (entry.labelled for entry in document.results)
        return [_labelled(labels, sum(entry.n for entry in document.results))]
    if isinstance(document, fields.JudgeFields):
        return _judged(document)
    if isinstance(document, fields.CascadeFields):
        return [count(document.results[0].n, "question")]
    if document.kind == "multi_answer":
        return [f"{max(entry['n'] for entry in results):,} answers"]
    if all(isinstance(entry.get("n"), int) for entry in results):
        return [count(sum(entry["n"] for entry in results), "row")]
    return []


def _decided(document: fields.DecideFields) -> str:
    rows = sum(entry.n for entry in document.results)
    if any(entry.unit for entry in document.results):
        return f"{rows:,} units"
    # The numbers rest on these rows; the others chose where to start.
    used = sum(min(entry.answered.n or entry.n, entry.n) for entry in document.results)
    whole = used == rows or any(entry.together for entry in document.results)
    return f"{rows:,} rows" if whole else f"{used:,} of {rows:,} rows"


def _judged(document: fields.JudgeFields) -> list[str]:
    entry = document.results[0]
    models = f", {len(entry.models)} models" if entry.models else ""
    people = 1 if entry.people is None else entry.people.count
    return [
        ", ".join(each.judge for each in document.results),
        f"{entry.n:,} {'pairs' if entry.scale.kind == 'pairs' else 'answers'}{models}",
        f"{entry.labels:,} rated by {count(people, 'person').replace('persons', 'people')}",
    ]


def _compared(document: fields.CompareFields) -> list[str]:
    results, data = document.results, document.data or {}
    names, methods = ({getattr(e, name) for e in results} for name in ("model", "method"))
    models, left_out = len(names), document.not_compared or ()
    values = len(names | {entry.model for entry in left_out if entry.model})
    questions = int(data.get("questions") or max(entry.accuracy.n or 0 for entry in results))
    shared, words = data.get("questions_shared_by_all"), count(questions, "question")
    if shared is not None and shared < questions:
        words += f", {shared:,} with a confidence of {'both' if models == 2 else 'all'}"
    return [
        *([f"{len(methods)} confidences"] if len(methods) > 1 else []),
        f"{models} of {values} models" if values > models else f"{models} models",
        words,
    ]


def _audited(
    whole: list[AuditBlock], pool: int | None, request: int | None, cluster: str | None
) -> list[str]:
    models, methods = ({getattr(e, name) for e in whole} for name in ("model", "method"))
    parts = [_confidence(*methods) if len(methods) == 1 else f"{len(methods)} confidences"]
    if len(models) > 1:
        parts.append(f"{len(models)} models")
    if pool is not None:
        return [*parts, _labelled((entry.n for entry in whole), pool)]
    units = max(entry.questions for entry in whole)
    if request is not None and cluster is not None and units < request:
        return [*parts, f"{count(request, 'row')} in {units:,} units ({cluster})"]
    return [*parts, count(units if request is None else request, "question")]


def _labelled(labels: Iterable[int], rows: int) -> str:
    """Return how many rows are labelled; a label may stand in a row of each method."""
    return f"{sum(labels):,} of {rows:,} rows labelled"


def _confidence(method: str) -> str:
    """Return the one confidence that was audited, in words."""
    if method_words(method):
        return method_name(method)
    name = method.replace("_", " ")
    return name if "confidence" in name else f"{name} confidence"


def page_date() -> str:
    """Return today's date in words; SOURCE_DATE_EPOCH fixes it for builds that must repeat."""
    fixed = os.environ.get("SOURCE_DATE_EPOCH")
    day = dt.datetime.fromtimestamp(int(fixed), dt.UTC).date() if fixed else dt.date.today()
    return f"{day.day} {day:%B} {day.year}"
