"""The one picture that answers a document's question, by kind of document."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from calibrant.core.document import kind_of
from calibrant.report.pictures import audits, collected, decisions, labelling
from calibrant.report.pictures.picture import Picture, save_picture

__all__ = ["Picture", "picture_of", "save_picture"]


def _plan_picture(document: Mapping[str, Any]) -> Picture | None:
    """Return what labels can show, or else the ranks."""
    found = labelling.plan_picture(document)
    if found is None and document.get("leaderboard"):
        return audits.leaderboard_picture(document["leaderboard"])
    return found


_KINDS: dict[str, Callable[[Mapping[str, Any]], Picture | None]] = {
    "audit": audits.audit_picture,
    "compare": audits.compare_picture,
    "groups": audits.groups_picture,
    "leaderboard": audits.leaderboard_picture,
    "multi_answer": audits.multi_answer_picture,
    "cascade": decisions.cascade_picture,
    "decide": decisions.decide_picture,
    "plan": _plan_picture,
    "label": labelling.label_picture,
    "monitor": labelling.monitor_picture,
    "bench": collected.bench_picture,
    "bench_check": collected.bench_check_picture,
    "semantics": collected.semantics_picture,
    "grade": collected.semantics_picture,
    "methods": collected.methods_picture,
    "study": collected.study_picture,
    "import_logs": collected.import_picture,
    "run": collected.run_picture,
    "demo": collected.run_picture,
}


def picture_of(document: Mapping[str, Any]) -> Picture | None:
    """Return the picture of a document, or None where there is nothing to see.

    Examples
    --------
    >>> picture_of({"schema": "calibrant.analysis/1", "done": []}) is None
    True
    """
    build = _KINDS.get(kind_of(document))
    return None if build is None else build(document)
