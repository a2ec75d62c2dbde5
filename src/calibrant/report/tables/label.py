"""The state of labelling as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.claims.words import count, percent, subject_name
from calibrant.report.blocks import Paragraph, Table
from calibrant.report.cells import (
    Cell,
    Number,
    estimate_cell,
    number_cell,
    percent_cell,
    points_cell,
    said_cell,
    share_cell,
)
from calibrant.report.tables.remarks import rows_left_out


def blocks(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Return the blocks of a ``calibrant.label/1`` document."""
    if document.get("grader"):
        return _grader(document["grader"])
    parts: list[Paragraph | Table] = []
    if document["batch"]:
        parts.append(Paragraph(_batch(document["batch"]), strong=True))
    if document["added"]:
        added = document["added"]
        parts.append(
            Paragraph(
                f"{added['labels']:,} labels taken, {added['left_empty']:,} left empty; table "
                f"written to {added['written']}"
            )
        )
    parts.extend(rows_left_out(document))
    labelled = [entry for entry in document["results"] if entry["labelled"]]
    if not document["batch"]:
        several = len(labelled) > 1
        parts.extend(Paragraph(_stop(entry, named=several), strong=True) for entry in labelled)
    if labelled:
        parts.append(_state(labelled, document["target"]))
    parts.extend(_judge(entry) for entry in labelled if "judge" in entry)
    if not labelled and not document["batch"]:
        parts.append(Paragraph("There is no label yet, so nothing can be said.", strong=True))
    return parts


def _grader(grader: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Return how good the grades are that people checked, and where they fail."""
    checked = [entry for entry in grader["models"] if entry["checked"]]
    if not checked:
        return [Paragraph("No grade is checked yet, so nothing can be said.", strong=True)]
    rows = tuple(
        (
            entry["model"],
            said_cell(entry["checked"], f"{entry['checked']:,} of {entry['answers']:,}"),
            share_cell(entry["doubtful"]),
            number_cell(entry["wrong"]),
            percent_cell(entry["error"]),
            number_cell(entry["kappa"], digits=2),
        )
        for entry in checked
    )
    by_rule = tuple(
        (rule["rule"], rule["graded"], number_cell(rule["checked"]), number_cell(rule["wrong"]))
        for rule in grader["rules"]
    )
    return [
        Table(
            ("model", "checked", "doubtful", "found wrong", "wrong of all", "kappa"),
            rows,
            title="The grader on this data",
            note="'Wrong of all': share of all grades that people would not share, with its 95 % "
            "interval. Kappa: agreement with people beyond chance.",
        ),
        Table(("rule", "graded", "checked", "wrong"), by_rule, title="Where it fails"),
    ]


def _batch(batch: Mapping[str, Any]) -> str:
    side = f", steered by {batch['side']}" if batch["side"] else ""
    return (
        f"Batch {batch['number']} with {batch['items']:,} items ({batch['design']}{side}) is in "
        f"{batch['path']}: fill the column `correct` with 1 or 0, then run `calibrant label add`."
    )


def _stop(entry: Mapping[str, Any], *, named: bool) -> str:
    text = _stop_text(entry)
    return f"{subject_name(entry)}: {text}" if named else text[0].upper() + text[1:]


def _stop_text(entry: Mapping[str, Any]) -> str:
    stop = entry["stop"]
    if not stop["stop"] and stop["reason"].startswith("no goal"):
        found = entry["claimed_accuracy"]
        return (
            f"right in {percent(found['value'])} of all answers ({percent(found['low'])} "
            f"to {percent(found['high'])}), by {count(entry['labelled'], 'label')}. Name a "
            "precision or a threshold to learn when to stop."
        )
    word = "you may stop" if stop["stop"] else "label more"
    return f"{word}: {stop['reason']}."


def _state(entries: list[dict[str, Any]], target: str) -> Table:
    several = len({entry["method"] for entry in entries}) > 1
    rows = tuple(
        (
            f"{entry['model']} / {entry['method']}" if several else entry["model"],
            said_cell(entry["labelled"], f"{entry['labelled']:,} of {entry['n']:,}"),
            percent_cell(entry["accuracy"]),
            share_cell(entry["mean_confidence"]),
            points_cell(entry["ece"], sign=False),
            _range(entry["stop"]["interval"]),
        )
        for entry in entries
    )
    return Table(
        ("model", "labelled", "right", "says", "ECE", "ECE for all looks"),
        rows,
        title="Running estimate",
        note=f"ECE in points. Target: {target}. 'For all looks': holds over all looks together, so "
        "look after every batch and stop when you like.",
    )


def _range(estimate: Mapping[str, Any]) -> Number:
    low, high = estimate["low"], estimate["high"]
    return said_cell(high, f"{100 * low:.1f} to {100 * high:.1f}")


def _judge(entry: Mapping[str, Any]) -> Table:
    judged = entry["judge"]
    names = {"accuracy": "accuracy", "brier": "Brier", "gap": "right - said"}
    rows = [_judged_row(text, judged[name]) for name, text in names.items()]
    rows += [
        _judged_row(f"right - said at {part['low']:.2f} to {part['high']:.2f}", part["gap"])
        for part in judged["bins"]
    ]
    return Table(
        ("quantity", "gold and judge", "gold alone", "judge alone", "gold labels saved"),
        tuple(rows),
        title=f"{entry['model']} / {entry['method']}: {judged['gold_labels']:,} gold labels and "
        f"{judged['judge_labels']:,} of the judge",
        note="The judge's own number has no valid interval; stretches of the confidence hold all "
        "at once. 'Right - said': accuracy minus confidence, below 0 is over-confident.",
    )


def _judged_row(name: str, value: Mapping[str, Any]) -> tuple[Cell, ...]:
    return (
        name,
        estimate_cell(value["combined"]),
        estimate_cell(value["gold_only"]),
        Number(value["judge_only"]),
        number_cell(value["gold_saved"]),
    )
