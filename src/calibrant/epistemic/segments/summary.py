"""Groups over several models: what stands out for many of them, in one short table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def across_models(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return, per flagged rule, how many models it stands out for and by how much.

    Parameters
    ----------
    entries
        Entries of a groups document, one per model and method, each with ``groups``.

    Examples
    --------
    >>> flagged = {"rule": "topic = law", "flagged": True, "gap_recalibrated": 0.2}
    >>> rows = across_models([{"model": "a", "groups": [flagged]}, {"model": "b", "groups": []}])
    >>> rows[0]["models"], rows[0]["of"], rows[0]["over_confident"]
    (['a'], 2, 1)
    """
    found: dict[str, list[tuple[str, float]]] = {}
    for entry in entries:
        for group in entry["groups"]:
            if group["flagged"]:
                name = str(entry.get("model", ""))
                found.setdefault(group["rule"], []).append((name, group["gap_recalibrated"]))
    rows = [
        {
            "rule": rule,
            "models": [name for name, _ in hits],
            "of": len(entries),
            "over_confident": sum(gap > 0 for _, gap in hits),
            "mean_gap": float(np.mean([gap for _, gap in hits])),
        }
        for rule, hits in found.items()
    ]
    return sorted(rows, key=lambda row: (-len(row["models"]), -abs(row["mean_gap"]), row["rule"]))
