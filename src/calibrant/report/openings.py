"""The first sentences of audits and comparisons that were written before there were claims."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.core.document import kind_of

SENTENCES = 3
"""How many sentences open a document without claims."""
# What the verdicts of audits written before there were claims are called now.
_VERDICTS = {
    "no-evidence": ("audit.calibrated", "undecided"),
    "over-confident": ("audit.over_confident", "shown"),
    "under-confident": ("audit.under_confident", "shown"),
    "miscalibrated": ("audit.miscalibrated", "shown"),
}


def opening_claims(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what a document of before says first, in the form of claims.

    Examples
    --------
    >>> opening_claims({"schema": "calibrant.report/1", "written": []})
    []
    """
    kind = kind_of(document)
    if kind == "audit":
        return _audited(document)
    if kind == "compare":
        return [opening(kind, pair["verdict"]) for pair in document["pairs"][:SENTENCES]]
    return []


def opening(kind: str, text: str) -> dict[str, Any]:
    """Return a sentence in the form of a claim that decides nothing."""
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
