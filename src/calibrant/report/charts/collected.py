"""Charts of where data comes from: questions, answers, grades, methods, logs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from calibrant.core.document import kind_of
from calibrant.report.charts.chart import Axis, Chart, Item, Names
from calibrant.report.charts.scales import count_words

_MOST = 24

Bars = Sequence[tuple[str, float, str]]
"""Name, count and tone of each bar."""


def charts(document: Mapping[str, Any]) -> Iterator[Chart]:
    """Yield how many there are of what the document is about."""
    found = _KINDS[kind_of(document)](document)
    if found is not None:
        yield found


def _bars(bars: Bars, title: str, what: str, caption: str = "") -> Chart | None:
    if not bars:
        return None
    shown = list(dict((bar[0], bar) for bar in bars).values())[:_MOST]
    items = [
        Item(row, tone, (0, n), words=count_words(n), tip=f"{row}: {n:,.0f} {what}")
        for row, n, tone in shown
    ]
    more = f" {len(bars) - _MOST:,} more are in the table." if len(bars) > _MOST else ""
    rows = Names([row for row, _, _ in shown])
    words = f"{caption}{more}".strip() or f"{title}."
    return Chart("answer", title, words, Axis(what, words=count_words), rows, items)


def _counted(counts: Mapping[str, Any], tone: str = "first") -> list[tuple[str, float, str]]:
    ranked = sorted(counts.items(), key=lambda item: -float(item[1]))
    return [(str(name), float(value), tone) for name, value in ranked]


def _bench(document: Mapping[str, Any]) -> Chart | None:
    bars = [
        (f"{entry['domain']}, k = {row['k']}", row["questions"], "first")
        for entry in document["results"]
        for row in entry["by_k"]
    ]
    return _bars(
        bars,
        "Questions by domain and number of right answers",
        "questions",
        "k: how many answers are right. Bars of one length mean that results by k rest on equally "
        "many questions.",
    )


def _bench_check(document: Mapping[str, Any]) -> Chart | None:
    bars = [
        (str(entry["domain"]), entry["questions"], "second" if entry["problems"] else "first")
        for entry in document["results"]
    ]
    return _bars(bars, "Questions by domain", "questions", "Orange: a domain with findings.")


def _semantics(document: Mapping[str, Any]) -> Chart | None:
    inner = document.get("semantics") or document
    bars = _counted(inner.get("graders") or {})
    return _bars(bars, "Answers by what graded them", "answers", "Each bar: one grader.")


def _methods(document: Mapping[str, Any]) -> Chart | None:
    needs: Counter[str] = Counter()
    for entry in document["methods"]:
        found = entry.get("needs") or ["answers"]
        needs[", ".join(found) if isinstance(found, list) else str(found)] += 1
    title = "Confidence methods by what they need"
    return _bars(_counted(needs), title, "methods", "Each bar: one need.")


def _study(document: Mapping[str, Any]) -> Chart | None:
    asked = document.get("asked") or ()
    several = len({row["model"] for row in asked}) > 1
    draws: Counter[str] = Counter()
    for row in asked:
        name = f"{row['model']}: {row['purpose']}" if several else str(row["purpose"])
        draws[name] += row["draws"]
    return _bars(_counted(draws), "Answers drawn, by purpose", "draws")


def _import(document: Mapping[str, Any]) -> Chart | None:
    kept = document.get("rows")
    bars = [("kept", float(kept), "first")] if isinstance(kept, int | float) else []
    left_out = {name: n for name, n in (document.get("dropped") or {}).items() if n}
    return _bars([*bars, *_counted(left_out, "second")], "Rows read", "rows")


def _run(document: Mapping[str, Any]) -> Chart | None:
    draws: Counter[str] = Counter()
    for row in document.get("counts") or ():
        if "model" in row:
            draws[str(row["model"])] += (row.get("draws_new") or 0) + (row.get("draws_cached") or 0)
    return _bars(_counted(draws), "Answers of each model", "answers")


_KINDS: dict[str, Callable[[Mapping[str, Any]], Chart | None]] = {
    "bench": _bench,
    "bench_check": _bench_check,
    "semantics": _semantics,
    "grade": _semantics,
    "methods": _methods,
    "study": _study,
    "import_logs": _import,
    "run": _run,
    "demo": _run,
}
