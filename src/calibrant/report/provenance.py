"""Where the numbers of a report come from: one row of facts per result document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.core.document import kind_of
from calibrant.report.blocks import Table

__all__ = ["provenance_table"]

_NOT_SAID = "not stated"


def provenance_table(documents: Sequence[Mapping[str, Any]]) -> Table:
    """Return version, source, seed, settings and rows left out of each document.

    Examples
    --------
    >>> provenance_table([{"schema": "calibrant.audit/1", "seed": 3, "dropped": {"nan": 2}}]).rows
    (('audit', 'not stated', 'not stated', '3', 'not stated', 'nan 2'),)
    """
    rows = tuple(
        (
            kind_of(document),
            str(document.get("version") or _NOT_SAID),
            str(document.get("source") or document.get("study") or _NOT_SAID),
            str(document.get("seed", _NOT_SAID)),
            _settings(document),
            _dropped(document),
        )
        for document in documents
    )
    return Table(
        ("part", "calibrant", "source", "seed", "settings", "rows left out"),
        rows,
        title="Where the numbers come from",
        note="The same inputs, settings and seed give the same bytes.",
        labels=6,
    )


def _settings(document: Mapping[str, Any]) -> str:
    names = ("level", "bins", "resamples", "recalibrated", "target", "decision")
    found = [
        f"{name} {document[name]}"
        for name in names
        if document.get(name) is not None and not isinstance(document[name], Mapping | list)
    ]
    return ", ".join(found) or _NOT_SAID


def _dropped(document: Mapping[str, Any]) -> str:
    if "dropped" not in document:
        return _NOT_SAID
    found = [f"{rule} {count:,}" for rule, count in document["dropped"].items() if count]
    return ", ".join(found) or "none"
