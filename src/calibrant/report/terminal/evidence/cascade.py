"""Tables of `cascade`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.blocks import Paragraph, Table, estimate_cell
from calibrant.report.left_out import rows_left_out

__all__ = ["blocks"]

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
        ("model alone", "accuracy", "cost / largest"),
        tuple(
            (
                item["model"],
                estimate_cell(item["accuracy"]),
                f"{item['relative_cost']['value']:.3f}",
            )
            for item in entry["models"]
        ),
        title="Models",
        note=f"{entry['n']:,} questions, {entry['n_test']:,} held out in each of "
        f"{entry['splits']} splits; intervals correct for the overlap of the splits",
    )


def _areas(entry: Mapping[str, Any]) -> Table:
    against = {pair["b"]: estimate_cell(pair["area"], digits=4) for pair in entry["comparisons"]}
    columns = ["strategy", "mean accuracy over budgets"]
    rows = [[item["words"], estimate_cell(item["area"], digits=4)] for item in entry["strategies"]]
    if against:
        columns.append("first minus this")
        for row, item in zip(rows, entry["strategies"], strict=True):
            row.append(against.get(item["name"], ""))
    return Table(
        tuple(columns),
        tuple(map(tuple, rows)),
        title="Strategies, budgets from the cheapest to the largest model",
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
                        item["name"],
                        estimate_cell(found["gain"]),
                        _cost(found, point),
                    )
                )
    return Table(
        ("setting", "strategy", f"accuracy against {entry['largest']}", "cost / largest"),
        tuple(rows),
        title="Settings, picked on one part of the questions and measured on another",
        labels=2,
    )


def _cost(found: Mapping[str, Any], point: str) -> str:
    if point.startswith("budget"):
        return f"{found['relative_cost']['value']:.2f}"
    return estimate_cell(found["relative_cost"], digits=2)


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
                f"Policy: {words[policy['rule']]} ({policy['chosen']}): accuracy "
                f"{estimate_cell(promise['accuracy'])} at "
                f"{estimate_cell(promise['relative_cost'], digits=2)} of the largest model's cost, "
                f"on questions it had not seen.{where}"
            )
        ]
    where = "" if policy["path"] is None else f", saved to {policy['path']}"
    return [
        Paragraph(
            f"Policy: {words[policy['rule']]}, tolerance {policy['tolerance']:.4g} "
            f"({policy['chosen']}){where}."
        )
    ]
