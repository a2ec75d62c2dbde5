"""How many rows were left out, and by which rule, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.blocks import Paragraph


def rows_left_out(document: Mapping[str, Any]) -> list[Paragraph]:
    """Return sentences on the rows that broke a rule, and on models that lost all of theirs.

    Examples
    --------
    >>> print(rows_left_out({"dropped": {"correct_missing": 1200}})[0].text)
    Rows left out: 1,200 correct_missing (the outcome is missing).
    """
    found = {rule: count for rule, count in (document.get("dropped") or {}).items() if count}
    if not found:
        return []
    counts = [f"{count:,} {rule}{_meaning(rule)}" for rule, count in found.items()]
    told = [Paragraph(f"Rows left out: {', '.join(counts)}.")]
    if document.get("emptied_models"):
        names = ", ".join(document["emptied_models"])
        told.append(Paragraph(f"Left out altogether, since no row is left: {names}."))
    return told


def _meaning(rule: str) -> str:
    # Loaded here: the rules bring polars, and most documents name none of them.
    from calibrant.records.rules import RULES

    known = RULES.get(rule)
    return "" if known is None else f" ({known.sentence})"
