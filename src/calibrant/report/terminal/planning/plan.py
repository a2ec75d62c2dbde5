"""The plan as text: what it costs, step by step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.claims.words import count, points
from calibrant.report.blocks import Paragraph, Table, estimate_cell, number_cell
from calibrant.report.terminal.evidence.leaderboard import blocks as leaderboard_blocks

__all__ = ["blocks"]

_ALPHA = 0.05


def blocks(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Return the blocks of a ``calibrant.plan/1`` document."""
    entry = document["results"][0]
    parts: list[Paragraph | Table] = [Paragraph(_headline(entry), strong=True)]
    steep = entry["lipschitz"]
    steepness = "infinite" if steep is None else f"{steep:.3g}"
    if document["assumed_lipschitz"]:
        steepness += " (assumed, not measured)"
    parts.append(Paragraph(f"error rate {entry['error_rate']:.3g}, Lipschitz constant {steepness}"))
    if entry["precision"] is not None:
        title = f"Labels for a precision of {entry['precision']:g}"
        parts.append(_steps(document["rows"], title, _LABELS))
    if entry["labels"] is not None:
        title = f"Precision of {entry['labels']:,} labels"
        parts.append(_steps(document["rows"], title, _PRECISION))
    if entry.get("preset"):
        parts.append(Paragraph(_preset(entry["preset"])))
    if entry["expiry"]:
        parts.append(Paragraph(_expiry(entry["expiry"])))
    if document["measured"]:
        parts.append(_measured(document["measured"]))
    if document["leaderboard"]:
        parts.extend(leaderboard_blocks(document["leaderboard"]))
    parts.extend(Paragraph(note) for note in entry["notes"])
    parts.append(Paragraph(document["caveat"]))
    return parts


def _headline(entry: Mapping[str, Any]) -> str:
    sentences = []
    if entry["precision"] is not None:
        passive = entry["passive_labels"]
        asked = "no number of" if passive is None else f"{passive:,}"
        sentences.append(
            f"Knowing the calibration error within {points(entry['precision'])} takes {asked} "
            f"random labels in the worst case, or {entry['active_labels']:,} chosen ones."
        )
    if entry["labels"] is not None:
        passive = entry["passive_precision"]
        reached = "not at all" if passive is None else f"within {points(passive)}"
        sentences.append(
            f"{count(entry['labels'], 'random label')} show the calibration error {reached} in the "
            f"worst case; chosen ones within {points(entry['active_precision'])}."
        )
    return " ".join(sentences)


_LABELS = {
    "random labels": "passive_labels",
    "chosen labels": "active_labels",
    "to detect any error": "detection_labels",
}
_PRECISION = {
    "ECE, random labels": "passive_precision",
    "ECE, chosen labels": "active_precision",
    "accuracy": "accuracy_floor",
}


def _steps(rows: list[dict[str, Any]], title: str, fields: Mapping[str, str]) -> Table:
    cells = tuple((row["step"], *(_cell(row[name]) for name in fields.values())) for row in rows)
    return Table(("what is checked", *fields), cells, title=title)


def _cell(value: float | int | None) -> str:
    return "impossible" if value is None else number_cell(value, digits=4)


def _preset(preset: Mapping[str, Any]) -> str:
    text = f"{preset['title']}: about {preset['available']:,} labels are thought to exist"
    if preset["gap"] is not None:
        text += f", {preset['gap']:.1f} times fewer than needed passively"
        if preset["gap"] <= 1:
            text = f"{preset['title']}: the {preset['available']:,} labels that exist are enough"
    return text + "."


def _expiry(expiry: Mapping[str, Any]) -> str:
    until = f", on {expiry['date']}" if expiry["date"] else ""
    text = (
        f"With a drift of {expiry['drift']:g} per {expiry['per']} the verification expires after "
        f"{expiry['half_life']:.3g} {expiry['per']}s ({expiry['days']:,.1f} days){until}"
    )
    if expiry["labels_per_unit"] is not None:
        text += (
            f"; to stay verified takes {expiry['labels_per_unit']:,.0f} labels per {expiry['per']}"
        )
    return text + "."


def _measured(blocks: list[dict[str, Any]]) -> Table:
    several = len({block["method"] for block in blocks}) > 1
    rows = []
    for block in blocks:
        found = block["verification"]
        name = f"{block['model']} / {block['method']}" if several else str(block["model"])
        rows.append(
            (
                name,
                estimate_cell(found["error_rate"], digits=2),
                estimate_cell(found["lipschitz"], digits=1),
                estimate_cell(found["passive_floor"], digits=2),
                f"{found['resolution']['half_width']:.3f}",
                _shown(block),
            )
        )
    tests = max(block["significance"]["tests"] for block in blocks)
    labels = {block["verification"]["labels"] for block in blocks}
    size = f"{min(labels):,}" if len(labels) == 1 else f"{min(labels):,} to {max(labels):,}"
    return Table(
        (
            "model",
            "error rate",
            "Lipschitz",
            "passive floor",
            "ECE +/-",
            "shown to be miscalibrated",
        ),
        tuple(rows),
        title=f"Measured on the table, {size} labels per model",
        note=(
            "'ECE +/-': half the 95 % interval of the ECE on this very data, 15 bins. 'yes': as in "
            "an audit of this table, by two tests of each model (perfect calibration, mean gap), "
            f"corrected by Holm's rule for {tests:,} tests. 'below the floor': shown here, but "
            "a claim of this size cannot be verified with as many labels in the worst case."
        ),
    )


def _shown(block: Mapping[str, Any]) -> str:
    """Answer as the audit of the same table does; the worst-case floor is a remark."""
    tests = [block["significance"][name] for name in ("calibration", "gap")]
    if not any(test is not None and test["p_adjusted"] <= _ALPHA for test in tests):
        return "no"
    below = block["verification"].get("verdict", "verified") != "verified"
    return "yes, below the floor" if below else "yes"
