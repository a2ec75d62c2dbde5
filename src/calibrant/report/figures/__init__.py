"""Figures of result documents: a module per kind."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from calibrant.core.document import kind_of
from calibrant.report.figures.figure import FORMATS, Figure, figure_svg, save_figure

__all__ = ["FORMATS", "Figure", "figure_svg", "figures_note", "figures_of", "save_figure"]

_KINDS = (
    "audit",
    "bench",
    "cascade",
    "compare",
    "groups",
    "label",
    "leaderboard",
    "monitor",
    "multi_answer",
    "plan",
    "semantics",
)


def figures_of(document: Mapping[str, Any]) -> list[Figure]:
    """Return the figures of a document; kinds without figures have none."""
    kind = kind_of(document)
    if kind not in _KINDS:
        return []
    module = importlib.import_module(f"calibrant.report.figures.{kind}")
    found: list[Figure] = module.figures(document)
    return found


def figures_note(document: Mapping[str, Any]) -> str:
    """Return a sentence on figures that are not shown, or nothing where all are."""
    kind = kind_of(document)
    module = importlib.import_module(f"calibrant.report.figures.{kind}") if kind in _KINDS else None
    note = getattr(module, "note", None)
    return "" if note is None else str(note(document))
