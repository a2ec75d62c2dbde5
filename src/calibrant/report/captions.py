"""What stands around tables: the title line, remarks below, and the command as shown."""

import datetime as dt
import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePath
from typing import Any

from msgspec.structs import replace

from calibrant.core.document import given_places
from calibrant.core.names import method_name, method_words
from calibrant.findings.claims import count
from calibrant.findings.documents import fields
from calibrant.findings.documents.audits import AuditBlock
from calibrant.findings.documents.entries import Multiplicity
from calibrant.findings.documents.fields import Fields, typed
from calibrant.report import cells
from calibrant.report.answers import source_name, whole_entries
from calibrant.report.cells import Columns, Paragraph, Table, cut_text, table_of
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
        return [count(max(entry["n"] for entry in results), "answer")]
    if all(isinstance(entry.get("n"), int) for entry in results):
        return [count(sum(entry["n"] for entry in results), "row")]
    return []


def _decided(document: fields.DecideFields) -> str:
    rows = sum(entry.n for entry in document.results)
    if any(entry.unit for entry in document.results):
        return count(rows, "unit")
    # The numbers rest on these rows; the others chose where to start.
    used = sum(min(entry.answered.n or entry.n, entry.n) for entry in document.results)
    whole = used == rows or any(entry.together for entry in document.results)
    return count(rows, "row") if whole else f"{used:,} of {rows:,} rows"


def _judged(document: fields.JudgeFields) -> list[str]:
    entry = document.results[0]
    models = f", {count(len(entry.models), 'model')}" if entry.models else ""
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
        f"{models} of {values} models" if values > models else count(models, "model"),
        words,
    ]


def _audited(
    whole: list[AuditBlock], pool: int | None, request: int | None, cluster: str | None
) -> list[str]:
    models, methods = ({getattr(e, name) for e in whole} for name in ("model", "method"))
    parts = [_confidence(*methods) if len(methods) == 1 else f"{len(methods)} confidences"]
    if len(models) > 1:
        parts.append(count(len(models), "model"))
    if pool is not None:
        return [*parts, _labelled((entry.n for entry in whole), pool)]
    units = max(entry.questions for entry in whole)
    if request is not None and cluster is not None and units < request:
        return [*parts, f"{count(request, 'row')} in {count(units, 'unit')} ({cluster})"]
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


def rows_left_out(document: Mapping[str, Any]) -> list[Paragraph]:
    """Return sentences on the rows that broke a rule, and on models that lost all of theirs.

    Examples
    --------
    >>> print(rows_left_out({"dropped": {"correct_missing": 1200}})[0].text)
    Rows left out: 1,200 correct_missing (the outcome is missing).
    """
    dropped = {rule: count for rule, count in (document.get("dropped") or {}).items() if count}
    if not dropped:
        return []
    counts = [f"{count:,} {rule}{_meaning(rule)}" for rule, count in dropped.items()]
    sentences = [Paragraph(f"Rows left out: {', '.join(counts)}.")]
    if document.get("emptied_models"):
        names = ", ".join(document["emptied_models"])
        sentences.append(Paragraph(f"Left out altogether, since no row is left: {names}."))
    return sentences


def _meaning(rule: str) -> str:
    # Loaded here: the rules bring polars, and most documents name none of them.
    from calibrant.data.rules import RULES

    entry = RULES.get(rule)
    return "" if entry is None else f" ({entry.sentence})"


_OWN_TESTS = 3


def correction_sentence(rule: Multiplicity) -> str:
    """Return what the verdicts of a table rest on, or nothing where one confidence stands alone.

    Examples
    --------
    >>> from calibrant.findings.documents.entries import Family
    >>> print(correction_sentence(Multiplicity(control="holm", alpha=0.05, whole=Family(tests=4))))
    Verdicts rest on three tests of each confidence (calibration, mean gap, separation). All 4 \
tests share one level: the chance of any false verdict is at most 5 %.
    """
    whole, groups = rule.whole.tests, rule.groups.tests
    if whole + groups <= _OWN_TESTS:
        return ""
    number = f"{whole:,} tests"
    if groups:
        number += f" of whole models and {groups:,} of groups"
    return (
        "Verdicts rest on three tests of each confidence (calibration, mean gap, separation). "
        f"All {number} share one level: the chance of any false verdict is at most "
        f"{cells.share_cell(rule.alpha)}."
    )


def pairs_rule(rule: Multiplicity) -> str:
    """Return what the verdicts of a comparison rest on, or nothing where one pair stands alone.

    Examples
    --------
    >>> from calibrant.findings.documents.entries import Family
    >>> print(pairs_rule(Multiplicity(control="holm", alpha=0.02, whole=Family(pairs=26))))
    Which model is better is corrected by Holm's rule for 26 pairs: the chance of any false claim \
is at most 2 %. Other verdicts are of each pair by itself.
    """
    whole, groups = rule.whole.pairs, rule.groups.pairs
    if whole + groups <= 1:
        return ""
    number = count(whole, "pair")
    if groups:
        number += f" of whole methods and, apart from these, {count(groups, 'pair')} of groups"
    return (
        f"Which model is better is corrected by {rule.control.capitalize()}'s rule for {number}: "
        f"the chance of any false claim is at most {cells.share_cell(rule.alpha)}"
        f"{' in each of the two' if groups else ''}. Other verdicts are of each pair by itself."
    )


TITLE = "Wrong with the highest confidence"
_LETTERS = 60
_TEXTS = ("question", "answer", "reference")


def wrong_table(document: Mapping[str, Any]) -> list[Table]:
    """Return the table of the most confidently wrong answers, where a document lists them."""
    rows = document.get("wrong")
    if not rows:
        return []
    texts = [name for name in _TEXTS if any(row.get(name) for row in rows)]
    varied = [name for name in ("model", "method") if len({row[name] for row in rows}) > 1]
    ids = [] if "question" in texts else ["question_id"]
    columns: Columns = {name.replace("_id", ""): _column(name) for name in [*ids, *texts, *varied]}
    says: Columns = {"says": lambda row: cells.share_cell(row["confidence"])}
    return [table_of(rows, {**says, **columns}, TITLE, labels=1 + len(columns))]


def _column(name: str) -> Callable[[Mapping[str, Any]], cells.Cell]:
    return lambda row: _cell(row.get(name))


def row_in_words(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return a row in two lines: what was asked, and what was answered by whom.

    Examples
    --------
    >>> row_in_words({"question": "2+2?", "answer": "5", "reference": "4", "model": "m"})
    ('2+2?', 'answers 5; right: 4 (m)')
    """
    request = row.get("question") or f"question {row['question_id']}"
    texts = {"answers ": row.get("answer"), "right: ": row.get("reference")}
    sentences = "; ".join(f"{words}{text}" for words, text in texts.items() if text)
    return str(request), f"{sentences} ({row['model']})".strip() if sentences else str(row["model"])


def _cell(value: Any) -> cells.Cell:
    whole = "" if value is None else str(value)
    words = cut_text(whole, _LETTERS)
    return words if words == whole else cells.Text(words, whole)


def without_folders(command: str, document: Mapping[str, Any]) -> str:
    """Return the command with the bare names of its files: a page shows no place of a machine.

    Examples
    --------
    >>> without_folders("calibrant audit '/me/my s.csv' --by a/b", {"source": "/me/my s.csv"})
    "calibrant audit 'my s.csv' --by a/b"
    """
    entries = [e for e in document.get("results") or () if isinstance(e, Mapping)]
    text = [document.get("batch") or {}, *(entry.get("policy") or entry for entry in entries)]
    companion = (document.get("samples") or {}).get("references_file")
    places = [*given_places(document), *(part.get("path") for part in text), companion]
    for place in filter(None, map(str, filter(None, places))):
        bare = PurePath(place.replace("\\", "/")).name
        command = command.replace(shlex.quote(place), shlex.quote(bare))
    return command


def broken_command(command: str, width: int) -> list[str]:
    r"""Return a command on lines that fit and that can be copied as they stand.

    Examples
    --------
    >>> print(*broken_command("calibrant audit a.csv --confidence p --correct y", 34), sep="\n")
    calibrant audit a.csv \
      --confidence p --correct y
    >>> print(*broken_command('calibrant.audit(table, confidence="p", correct="y")', 40), sep="\n")
    calibrant.audit(table, confidence="p",
      correct="y")
    """
    python = command.startswith("calibrant.")
    parts = re.split(r"(?<=,) " if python else r" (?=--)", command)
    end = "" if python else " \\"
    lines = [parts[0]]
    for part in parts[1:]:
        if len(f"{lines[-1]} {part}{end}") <= width:
            lines[-1] += f" {part}"
        else:
            lines[-1] += end
            lines.append(f"  {part}")
    return lines
