"""Tables of `groups`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.blocks import Paragraph, Table
from calibrant.report.cells import (
    Number,
    estimate_cell,
    number_cell,
    points_cell,
    said_cell,
    share_cell,
)
from calibrant.report.tables.remarks import rows_left_out

_ROWS = 15
_LOSSES = (
    ("calibration_loss", "calibration: one recalibration mends it"),
    ("grouping_loss", "grouping: no recalibration mends it"),
    ("published_loss", "the same as published: counts a misfit of Platt scaling too"),
    ("rest", "rest: chance, and what was not caught"),
    ("brier", "Brier score"),
)


def blocks(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Return the claims, the groups, the parts of the error and the decisions of each model."""
    parts: list[Paragraph | Table] = [
        Paragraph(claim["text"], strong=True) for claim in document.get("claims", [])
    ]
    if document.get("across"):
        parts.append(_across(document["across"]))
    several = len(document["results"]) > 1
    for entry in document["results"]:
        parts += [_groups(entry, named=several)] if entry["groups"] else []
        parts += [_losses(entry), _decision(entry)]
        if entry.get("differences"):
            parts.append(_differences(entry))
    parts.extend(rows_left_out(document))
    return parts


def _across(rows: list[Mapping[str, Any]]) -> Table:
    return Table(
        ("group", "models", "over-confident", "gap, points"),
        tuple(
            (
                row["rule"],
                said_cell(len(row["models"]), f"{len(row['models'])} of {row['of']}"),
                number_cell(row["over_confident"]),
                _points(row["mean_gap"]),
            )
            for row in rows[:_ROWS]
        ),
        title="Groups that stand out, over all models",
        note="Models for which the group stands out, and for how many of them as over-confident. "
        "Gap: says minus right, against other answers of equal confidence.",
        main=True,
    )


def _losses(entry: Mapping[str, Any]) -> Table:
    total = entry["brier"]["value"]
    rows = []
    for name, words in _LOSSES:
        if name not in entry:
            continue
        value = entry[name]["value"]
        share = share_cell(max(value, 0) / total if total and value is not None else None)
        rows.append((words, estimate_cell(entry[name], digits=4), share))
    check = entry.get("copy_check")
    note = f"{entry['n']:,} rows. Grouping: from its 95 % lower bound to all that is left."
    if check is not None:
        word = "passed" if check["passed"] else "failed: read the grouping loss with care"
        note += f" Copy check (the confidence as only column must show nothing): {word}."
    return Table(
        ("part", "Brier score", "share"),
        tuple(rows),
        title="What the Brier score is made of",
        note=note,
    )


def _groups(entry: Mapping[str, Any], *, named: bool) -> Table:
    shown = entry["groups"][:_ROWS]
    echoes = any(group.get("echo_of") for group in shown)
    rows = [
        (
            group["rule"],
            number_cell(group["n"]),
            share_cell(group["mean_confidence"]),
            share_cell(group["rate"]),
            _points(group["gap"]),
            points_cell(group["beyond"]),
            _mark(group),
            *([group.get("echo_of") or ""] if echoes else []),
        )
        for group in shown
    ]
    more = len(entry["groups"]) - len(rows) + entry["groups_not_shown"]
    note = f"{entry['model']} / {entry['method']}. " if named else ""
    note += (
        "Gaps in points: says minus right; then at equal confidence, for flagged groups beyond "
        "those flagged above. Intervals hold for all "
        f"{entry['multiplicity']['tested']:,} groups at once. A group is a place to look, not a "
        "cause."
    )
    if more > 0:
        note += f" {more} more in the JSON."
    return Table(
        (
            *("group", "rows", "says", "right", "gap", "gap at equal confidence", "flag"),
            *(["echo of"] if echoes else []),
        ),
        tuple(rows),
        title=f"{entry['model']} / {entry['method']}: groups",
        note=note,
        main=True,
    )


def _points(gap: float) -> Number:
    return Number(gap, unit="points", digits=1, signed=True)


def _mark(group: Mapping[str, Any]) -> str:
    if group["flagged"]:
        return str(group["direction"]).removesuffix("-confident")
    return "echo" if group.get("echo_of") else ""


def _differences(entry: Mapping[str, Any]) -> Table:
    return Table(
        ("groups", "difference at equal confidence, points", "adjusted p"),
        tuple(
            (f"{pair['a']} minus {pair['b']}", points_cell(pair["gap"]),
             number_cell(pair["p_adjusted"]))
            for pair in entry["differences"]
        ),
        title="Named groups against each other",
    )  # fmt: skip


def _decision(entry: Mapping[str, Any]) -> Table:
    decision = entry["decision"]
    names = (
        ("saved", "saved by a corrected confidence"),
        ("calibration", "of which by one recalibration"),
        ("grouping", "of which by the columns"),
        ("today", "cost of today's decisions"),
    )
    return Table(
        ("per decision", "cost"),
        tuple((words, estimate_cell(decision[name], digits=4)) for name, words in names),
        title=f"Decisions at {decision['threshold']:.3g} "
        f"(optimal for these costs: {decision['optimal_threshold']:.3g})",
        note="Savings: from a one-sided 95 % bound to the most that could be saved.",
    )
