"""The first sentences of documents that make no claims: collections, lists, audits of before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["opening_claims"]

_SENTENCES = 3
# What the verdicts of audits written before there were claims are called now.
_VERDICTS = {
    "no-evidence": ("audit.calibrated", "undecided"),
    "over-confident": ("audit.over_confident", "shown"),
    "under-confident": ("audit.under_confident", "shown"),
    "miscalibrated": ("audit.miscalibrated", "shown"),
}


def opening_claims(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what a document says first, in the form of claims.

    Examples
    --------
    >>> opening_claims({"schema": "calibrant.report/1", "written": []})
    []
    """
    # Loaded here: the tables that sentences are taken from know nothing of claims.
    from calibrant.core.document import kind_of
    from calibrant.report.blocks import Paragraph
    from calibrant.report.terminal import document_blocks

    kind = kind_of(document)
    if kind == "audit":
        return _audited(document)
    if kind == "compare":
        return [_opening(kind, pair["verdict"]) for pair in document["pairs"][:_SENTENCES]]
    strong = [b.text for b in document_blocks(document) if isinstance(b, Paragraph) and b.strong]
    return [_opening(kind, text) for text in strong[:_SENTENCES]]


def _opening(kind: str, text: str) -> dict[str, Any]:
    return {"id": f"{kind}.opening", "subject": {}, "outcome": "", "text": text}


def _audited(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = []
    for entry in document["results"]:
        verdict = entry.get("verdict") or {}
        if verdict.get("calibration") not in _VERDICTS:
            continue
        name, outcome = _VERDICTS[verdict["calibration"]]
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
