"""Tables of the confidence methods."""

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.documents.fields import MethodsFields
from calibrant.report.blocks import Block, Paragraph, Table, table_of
from calibrant.report.cells import Cell, said_cell

_ABOUT = {
    "modal": "most frequent answer",
    "selected": "answer chosen by a part of the draws",
    "greedy": "greedy answer",
    "own": "its own answer",
    "first": "first sample",
    "option": "an option",
}


def blocks(document: MethodsFields) -> list[Block]:
    """Return the table of methods, or what a study can use of them."""
    if document.results:
        return _for_study(document)
    methods = document.methods
    ranking = sum(not entry["probability"] for entry in methods)
    return [
        table_of(
            methods,
            {
                "method": "name",
                "what it is": "summary",
                "needs": "needs",
                "about": _about,
                "probability": lambda e: "yes" if e["probability"] else f"no, {_range(e)}",
            },
            f"{len(methods)} confidence methods (higher is surer)",
            note=f"{ranking} are ranking scores: calibration metrics refuse them until they are "
            "recalibrated.",
            labels=5,
        )
    ]


def _about(entry: Mapping[str, Any]) -> str:
    name = _ABOUT[entry["about"]]
    return f"question, with the {name}" if entry["question_level"] else name


def _range(entry: Mapping[str, Any]) -> str:
    low = "-inf" if entry["low"] is None else f"{entry['low']:g}"
    high = "inf" if entry["high"] is None else f"{entry['high']:g}"
    return f"{low} to {high}"


def _for_study(document: MethodsFields) -> list[Block]:
    results = document.results
    models = list(dict.fromkeys(entry["model"] for entry in results))
    parts: list[Block] = []
    for model in models:
        ours = [entry for entry in results if entry["model"] == model]
        usable = sum(entry["available"] for entry in ours)
        parts.append(Paragraph(f"{model}: {usable} of {len(ours)} methods available.", strong=True))
    if any(entry["available"] for entry in results):
        parts.append(_usable(results, models))
    if not all(entry["available"] for entry in results):
        parts.append(_unavailable(results, models))
    return parts


def _usable(results: Sequence[Mapping[str, Any]], models: list[str]) -> Table:
    cells: dict[str, dict[str, Cell]] = {}
    for entry in results:
        if entry["available"]:
            ready = entry["questions"] - entry["missing"]
            cell = said_cell(ready, f"{ready:,} of {entry['questions']:,}")
            cells.setdefault(entry["method"], {})[entry["model"]] = cell
    rows = tuple(
        (method, *(ours.get(model, "not available") for model in models))
        for method, ours in cells.items()
    )
    return Table(
        ("method", *models), rows, title="Questions that have the inputs", labels=1, folded=True
    )


def _unavailable(results: Sequence[Mapping[str, Any]], models: list[str]) -> Table:
    """Group by what is missing: the reader acts on reasons."""
    reasons: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for entry in results:
        if not entry["available"]:
            names, where = reasons.setdefault(entry["reason"], ({}, {}))
            names[entry["method"]] = None
            where[entry["model"]] = None
    rows = tuple(
        (", ".join(names), "all" if len(where) == len(models) else ", ".join(where), reason)
        for reason, (names, where) in reasons.items()
    )
    return Table(
        ("not available", "models", "because"),
        rows,
        title="Methods without their inputs",
        labels=3,
        folded=True,
    )
