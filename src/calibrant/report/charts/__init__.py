"""Charts of result documents: a function per kind describes them, one renderer draws them."""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from calibrant.core.names import function_at, registered
from calibrant.findings.documents.fields import Fields, typed
from calibrant.report.charts.chart import Chart

__all__ = ["Chart", "answer_of", "charts_of", "further_of"]

# Where the charts of a kind are described, loaded when they are asked for: the answer first.
_PLACES = {
    "audit": "audit.charts",
    "cascade": "decide.cascade_charts",
    "compare": "ranking.compare_charts",
    "decide": "decide.charts",
    "groups": "decide.groups_charts",
    "judge": "labels.judge_charts",
    "label": "labels.label_charts",
    "leaderboard": "ranking.leaderboard_charts",
    "mend": "decide.mend_charts",
    "monitor": "labels.monitor_charts",
    "plan": "ranking.plan_charts",
}
_KINDS = {kind: f"{__name__}.{place}" for kind, place in _PLACES.items()} | registered("charts")


def answer_of(document: Mapping[str, Any]) -> Chart | None:
    """Return the chart that answers a document's question, or None where there is none.

    Examples
    --------
    >>> answer_of({"schema": "calibrant.analysis/1", "done": []}) is None
    True
    """
    first = next(_charts(typed(document)), None)
    return first if first is not None and first.name == "answer" else None


def further_of(document: Mapping[str, Any]) -> list[Chart]:
    """Return the charts below the first; reliability diagrams have a place of their own."""
    return [chart for chart in _charts(typed(document)) if chart.name != "answer"]


def charts_of(document: Mapping[str, Any]) -> list[Chart]:
    """Return all charts: the answer, the further ones, and every reliability diagram."""
    result = typed(document)
    charts = _charts(result)
    if result.kind == "audit":
        from calibrant.report.charts.audit import diagrams

        charts = chain(charts, diagrams(result))
    return list(charts)


def _charts(document: Fields) -> Iterator[Chart]:
    """Yield the charts of a document, each described when it is asked for."""
    if document.kind in _KINDS:
        yield from function_at(_KINDS[document.kind])(document)
