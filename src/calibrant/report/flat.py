"""The entries of a document as flat rows, for tables of other programs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def flat_rows(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return one row per entry of ``results``: names and numbers, estimates with their ends.

    Examples
    --------
    >>> entry = {"model": "a", "metrics": {"ece": {"value": 0.1, "low": 0.0, "high": 0.2}}}
    >>> flat_rows({"results": [entry]})
    [{'model': 'a', 'ece': 0.1, 'ece_low': 0.0, 'ece_high': 0.2}]
    """
    rows = [_flat(entry) for entry in document.get("results") or ()]
    names = dict.fromkeys(name for row in rows for name in row)
    return [{name: row.get(name) for name in names} for row in rows]


def _flat(entry: Mapping[str, Any]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for name, value in entry.items():
        if name == "metrics":
            row.update(_flat(value))
        elif isinstance(value, Mapping) and {"value", "low", "high"} <= set(value):
            row[name] = value["value"]
            row[f"{name}_low"], row[f"{name}_high"] = value["low"], value["high"]
        elif name == "group" and isinstance(value, Mapping):
            row.update({f"group.{key}": part for key, part in value.items()})
        elif not isinstance(value, Mapping | list | tuple):
            row[name] = value
    return row
