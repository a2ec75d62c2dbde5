"""Sentences of documents that were written before claims: delete this folder with the last one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["claims_of_old_document"]

_NAMES = {
    "no-evidence": ("audit.calibrated", "undecided"),
    "over-confident": ("audit.over_confident", "shown"),
    "under-confident": ("audit.under_confident", "shown"),
    "miscalibrated": ("audit.miscalibrated", "shown"),
}


def claims_of_old_document(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the verdicts of a document without claims in the form of claims."""
    # Loaded here: the tables that old verdicts are taken from know nothing of this adapter.
    from calibrant.core.document import kind_of
    from calibrant.report.legacy.verdict import opening_sentences

    kind = kind_of(document)
    own = _audited(document) if kind == "audit" else []
    if len(own) == 1:
        return own
    opening = opening_sentences([document])[:3]
    empty = {"id": f"{kind}.opening", "subject": {}, "outcome": ""}
    whole = [{**empty, "text": text} for text in opening]
    return [*whole, *own]


def _audited(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = []
    for entry in document["results"]:
        verdict = entry.get("verdict") or {}
        if verdict.get("calibration") not in _NAMES:
            continue
        name, outcome = _NAMES[verdict["calibration"]]
        gap = entry["metrics"].get("confidence_gap") or {}
        found.append(
            {
                "id": name,
                "outcome": outcome,
                "subject": {key: entry.get(key) for key in ("model", "method", "group")},
                "text": verdict["how"],
                **{key: gap.get(key) for key in ("value", "low", "high")},
            }
        )
    return found
