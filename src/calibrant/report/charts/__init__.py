"""Charts of result documents: a module per kind describes them, one renderer draws them."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from calibrant.core.document import kind_of
from calibrant.report.charts.chart import Chart

__all__ = ["Chart", "answer_of", "charts_note", "charts_of", "further_of"]

# Kinds whose charts stand in a module of another name.
_MODULES = dict.fromkeys(
    (
        "bench",
        "bench_check",
        "demo",
        "grade",
        "import_logs",
        "methods",
        "run",
        "semantics",
        "study",
    ),
    "collected",
) | {"multi_answer": "calibrant.bench.charts"}
_OWN = frozenset(
    {"audit", "cascade", "compare", "decide", "groups", "label", "leaderboard", "mend", "monitor",
     "plan"}
)  # fmt: skip


def answer_of(document: Mapping[str, Any]) -> Chart | None:
    """Return the chart that answers a document's question, or None where there is none.

    Examples
    --------
    >>> answer_of({"schema": "calibrant.analysis/1", "done": []}) is None
    True
    """
    module = _module(document)
    found: Chart | None = None if module is None else module.answer(document)
    return found


def further_of(document: Mapping[str, Any]) -> list[Chart]:
    """Return the charts below the first; reliability diagrams have a place of their own."""
    return _called(document, "further")


def charts_of(document: Mapping[str, Any]) -> list[Chart]:
    """Return all charts: the answer, the further ones, and every reliability diagram."""
    first = answer_of(document)
    found = [*further_of(document), *_called(document, "diagrams")]
    return found if first is None else [first, *found]


def charts_note(document: Mapping[str, Any]) -> str:
    """Return a sentence on charts that are not shown, or nothing where all are."""
    note = getattr(_module(document), "note", None)
    return "" if note is None else str(note(document))


def _called(document: Mapping[str, Any], name: str) -> list[Chart]:
    build = getattr(_module(document), name, None)
    found: list[Chart] = [] if build is None else build(document)
    return found


def _module(document: Mapping[str, Any]) -> ModuleType | None:
    kind = kind_of(document)
    name = kind if kind in _OWN else _MODULES.get(kind)
    if name is None:
        return None
    return importlib.import_module(name if "." in name else f"{__name__}.{name}")
