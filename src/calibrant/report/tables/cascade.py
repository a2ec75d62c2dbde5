"""Tables of `cascade`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.blocks import Paragraph, Table
from calibrant.report.cells import Number, percent_cell, points_cell, share_cell
from calibrant.report.tables.remarks import rows_left_out

_NOTE = (
    "Expected gain: asks the next model while the right answers that it should add are worth their "
    "price. Risk: asks on while the answer is too likely to be wrong. Chosen per question: one "
    "model is picked before any is asked. Differences in points."
)
_POINTS = (
    ("best", "most accurate setting"),
    ("match", "as accurate as the largest"),
    ("budget_0.5", "half its cost"),
)


def blocks(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Return the claims, the models, the strategies and their chosen points."""
    parts: list[Paragraph | Table] = [
        Paragraph(claim["text"], strong=True) for claim in document.get("claims", [])
    ]
    for entry in document["results"]:
        parts += [_models(entry), _areas(entry), _points(entry), *_policy(entry)]
    parts += [Paragraph(note) for note in document.get("notes", [])]
    parts.extend(rows_left_out(document))
    return parts


def _models(entry: Mapping[str, Any]) -> Table:
    return Table(
        ("model alone", "right", "cost, largest = 100 %"),
        tuple(
            (
                item["model"],
                percent_cell(item["accuracy"]),
                share_cell(item["relative_cost"]["value"]),
            )
            for item in entry["models"]
        ),
        title="Models",
        note=f"{entry['n']:,} questions, {entry['n_test']:,} held out in each of "
        f"{entry['splits']} splits; intervals correct for the overlap of the splits",
    )


def _areas(entry: Mapping[str, Any]) -> Table:
    against = {pair["b"]: points_cell(pair["area"]) for pair in entry["comparisons"]}
    columns = ["rule", "right on average"]
    rows = [[item["words"], percent_cell(item["area"])] for item in entry["strategies"]]
    if against:
        columns.append("first is ahead by")
        for row, item in zip(rows, entry["strategies"], strict=True):
            row.append(against.get(item["name"], ""))
    return Table(
        tuple(columns),
        tuple(map(tuple, rows)),
        title="When to ask the next model, by budgets from the cheapest to the largest model",
        note=_NOTE,
        main=True,
    )


def _points(entry: Mapping[str, Any]) -> Table:
    rows = []
    for point, words in _POINTS:
        for item in entry["strategies"]:
            found = item["points"].get(point)
            if found is not None and found["gain"]["value"] is not None:
                rows.append(
                    (
                        words,
                        item["words"],
                        points_cell(found["gain"]),
                        _cost(found, point),
                    )
                )
    return Table(
        ("setting", "rule", f"points against {entry['largest']}", "cost, largest = 100 %"),
        tuple(rows),
        title="Settings, picked on one part of the questions and measured on another",
        labels=2,
    )


def _cost(found: Mapping[str, Any], point: str) -> Number:
    if point.startswith("budget"):
        return share_cell(found["relative_cost"]["value"])
    return percent_cell(found["relative_cost"])


def _policy(entry: Mapping[str, Any]) -> list[Paragraph]:
    """Return the rule that is ready to be used, where its strategy was measured."""
    policy = entry["policy"]
    words = {item["name"]: item["words"] for item in entry["strategies"]}
    if policy["rule"] not in words:
        return []
    promise = policy.get("promise")
    if promise is not None:
        where = "" if policy["path"] is None else f" Saved to {policy['path']}."
        return [
            Paragraph(
                f"Policy: {words[policy['rule']]} ({policy['chosen']}): right in "
                f"{percent_cell(promise['accuracy'])} at "
                f"{percent_cell(promise['relative_cost'])} of the largest model's cost, on "
                f"questions it had not seen.{where}"
            )
        ]
    where = "" if policy["path"] is None else f", saved to {policy['path']}"
    return [
        Paragraph(
            f"Policy: {words[policy['rule']]}, tolerance {policy['tolerance']:.4g} "
            f"({policy['chosen']}){where}."
        )
    ]
