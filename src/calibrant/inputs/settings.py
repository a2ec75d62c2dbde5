"""How a table was read, as every document tells it. Loads no library: streaming starts with it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_RULES = ("on_invalid", "labels", "graded", "scale", "right", "repeats", "whole_record")


def table_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a table in the words that all documents share.

    Parameters
    ----------
    given
        Column names by role, and rules for the rows. Names that are None are left out: they are
        those of the scores schema.

    Examples
    --------
    >>> table_settings({"confidence": "p", "model": None, "on_invalid": "drop"})
    {'on_invalid': 'drop', 'columns': {'confidence': 'p'}}
    """
    rules = {name: value for name, value in given.items() if name in _RULES}
    if "on_invalid" in rules:
        rules["on_invalid"] = rules["on_invalid"] or "missing"
    rules = {name: value for name, value in rules.items() if value is not None}
    columns = {
        name: value for name, value in given.items() if name not in _RULES and value is not None
    }
    return {**rules, "columns": columns}
