"""Tables of `groups`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.report.blocks import Paragraph, Table, estimate_cell, number_cell
from calibrant.report.left_out import rows_left_out

__all__ = ["blocks"]

_ROWS = 15
_LOSSES = (
    ("calibration_loss", "calibration (at least)"),
    ("grouping_loss", "grouping (at least)"),
    ("rest", "rest: chance, and what was not caught"),
    ("brier", "Brier score"),
)


def blocks(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Return the verdict, the decomposition and the groups of each model and method."""
    parts: list[Paragraph | Table] = []
    for entry in document["results"]:
        parts += [_verdict(entry), _losses(entry), _groups(entry), _decision(entry)]
    parts.extend(rows_left_out(document))
    return parts


def _verdict(entry: Mapping[str, Any]) -> Paragraph:
    flagged = [group for group in entry["groups"] if group["flagged"]]
    tested = entry["multiplicity"]["tested"]
    over = sum(group["gap"] > 0 for group in flagged)
    words = (
        f"{len(flagged)} of {tested} groups are off: {over} over-confident, "
        f"{len(flagged) - over} under-confident."
        if flagged
        else f"None of {tested} groups is shown to be off."
    )
    loss = entry["grouping_loss"]
    size = f"{estimate_cell(loss, digits=4)} Brier points, n = {entry['n_evaluated']:,}"
    seen = (
        f"Recalibration cannot mend all of it: the grouping loss is at least {size}."
        if loss["low"] is not None and loss["low"] > 0
        else f"No grouping loss is shown with these rows and features ({size})."
    )
    return Paragraph(f"{entry['model']} / {entry['method']}: {words} {seen}", strong=True)


def _percent(share: float) -> str:
    """Return whole percents; what rounds to nothing has no sign."""
    return f"{share:.0%}".replace("-0%", "0%") if abs(share) < 0.005 else f"{share:.0%}"


def _losses(entry: Mapping[str, Any]) -> Table:
    total = entry["brier"]["value"]
    rows = []
    for name, words in _LOSSES:
        value = entry[name]["value"]
        share = "undefined" if not total or value is None else _percent(value / total)
        rows.append((words, estimate_cell(entry[name], digits=4), share))
    splits = entry["splits"]
    spread = "" if splits["spread"] is None else f", spread of grouping {splits['spread']:.4f}"
    regions, caution = entry.get("regions", {}), ""
    if regions.get("too_few"):
        caution = (
            "; too few rows to tell what the regions miss: the upper end of grouping is all "
            "that recalibration leaves"
        )
    elif regions.get("still_rising"):
        caution = "; the tree still gained from more rows, so grouping may lie above its interval"
    return Table(
        ("part", "Brier points", "share"),
        tuple(rows),
        title="What the Brier score is made of",
        note=f"{entry['n_evaluated']:,} held-out rows, mean of {splits['repeats']} splits{spread}"
        f"{caution}",
    )


def _groups(entry: Mapping[str, Any]) -> Table:
    rows = [
        (
            group["rule"],
            f"{group['n']:,}",
            f"{number_cell(group['mean_confidence'])} / {number_cell(group['rate'])}",
            estimate_cell({"value": group["gap"], **group["gap_interval"]}),
            f"{group['gap_recalibrated']:+.3f}",
            group["direction"].removesuffix("-confident") if group["flagged"] else "",
        )
        for group in entry["groups"][:_ROWS]
    ]
    more = len(entry["groups"]) - len(rows) + entry["groups_not_shown"]
    control = entry["multiplicity"]
    name = {"holm": "Holm", "bh": "Benjamini-Hochberg"}[control["control"]]
    note = (
        "Found on one part of the rows, measured on another. Says: mean confidence, is: observed "
        "rate, left: gap after recalibration. Flagged at "
        f"{control['alpha']:g}, adjusted by {name} for {control['tested']} groups. A group is a "
        "place to look, not a cause."
    )
    if more > 0:
        note += f" {more} more in the JSON."
    return Table(
        ("group", "n", "says / is", "gap", "left", "flag"),
        tuple(rows),
        title="Groups, costliest first",
        note=note,
        main=True,
    )


def _decision(entry: Mapping[str, Any]) -> Table:
    decision = entry["decision"]
    names = (
        ("total", "risk of deciding by this confidence"),
        ("calibration", "as far as recalibration shows it"),
        ("grouping", "left after recalibration"),
        ("saved", "saved by the corrected confidence, measured"),
    )
    return Table(
        ("excess cost per decision", "cost"),
        tuple((words, estimate_cell(decision[name], digits=4)) for name, words in names),
        title=f"Decisions at {decision['threshold']:.3g} "
        f"(optimal for these costs: {decision['optimal_threshold']:.3g})",
    )
