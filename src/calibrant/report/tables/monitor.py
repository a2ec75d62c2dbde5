"""Labels as they come in, as text: the state of labelling, and monitoring over time."""

from collections.abc import Mapping
from typing import Any

from calibrant.claims.words import count, percent, subject_name
from calibrant.report import cells
from calibrant.report.blocks import Block, Paragraph, Table, claims_first, entry_name, table_of
from calibrant.report.tables.remarks import rows_left_out

Entry = Mapping[str, Any]

_LAST = 12
_MONTH = 30


# -- monitoring -------------------------------------------------------------------------------


def blocks(document: Mapping[str, Any]) -> list[Block]:
    """Return the blocks of a ``calibrant.monitor/1`` document: alarms, then the latest times."""
    parts, entries = claims_first(document), document["results"]
    # A short view has room for one table: that of an alarm, where there is one.
    first = next((entry for entry in entries if entry["alarm"]), entries[0])
    for entry in entries:
        parts.append(_history(entry, named=len(entries) > 1, main=entry is first))
        slope = entry["drift_per_day"]
        if slope:
            ends = {name: _MONTH * slope[name] for name in ("value", "low", "high")}
            change = cells.points_cell(cells.turned(ends))
            parts.append(Paragraph(f"The gap changes by {change} points in 30 days."))
        if entry["expiry"]:
            parts.append(Paragraph(_expiry(entry["expiry"])))
    return [*parts, *rows_left_out(document)]


def _history(entry: Entry, *, named: bool, main: bool) -> Table:
    note = (
        "Gap: says minus right, in points. Evidence of a change: what a bet against "
        f"'no change' has won; the alarm is at {entry['limit']:.3g}."
    )
    if entry["batches"] > _LAST:
        note += f" The last {_LAST} of {entry['batches']:,}; the JSON document holds more."
    return table_of(
        entry["history"][-_LAST:],
        {
            "when": lambda e: e["when"] + (" ALARM" if e["alarm"] else ""),
            "labels": "n",
            "right": lambda e: cells.percent_cell(e["accuracy"]),
            "says": lambda e: cells.percent_cell(e["mean_confidence"]),
            "gap": lambda e: cells.points_cell(cells.turned(e["gap"])),
            "evidence": lambda e: _evidence(e["capital"]),
        },
        entry_name(entry) if named else "",
        note=f"{entry_name(entry)}. {note}" if named else note,
        main=main,
    )


def _evidence(capital: float) -> cells.Number:
    return cells.said_cell(capital, f"{capital:.3g}" if capital < 1e6 else "> 1e6")


def _expiry(expiry: Mapping[str, Any]) -> str:
    date = f", on {expiry['date']}" if expiry["date"] else ""
    return (
        f"A verification to +/- {expiry['precision']:g} holds for {expiry['days']:,.0f} days"
        f"{date}, at a drift of {expiry['drift_per_day']:.2g} per day ({expiry['drift_source']})."
    )


# -- labelling --------------------------------------------------------------------------------


def label_blocks(document: Mapping[str, Any]) -> list[Block]:
    """Return the blocks of a ``calibrant.label/1`` document."""
    if document.get("grader"):
        return _grader(document["grader"])
    batch, added = document["batch"], document["added"]
    parts: list[Block] = [Paragraph(_batch(batch), strong=True)] if batch else []
    if added:
        parts.append(
            Paragraph(
                f"{added['labels']:,} labels taken, {added['left_empty']:,} left empty; table "
                f"written to {added['written']}"
            )
        )
    parts.extend(rows_left_out(document))
    labelled = [entry for entry in document["results"] if entry["labelled"]]
    if not batch:
        several = len(labelled) > 1
        parts.extend(Paragraph(_stop(entry, named=several), strong=True) for entry in labelled)
    if labelled:
        parts.append(_state(labelled, document["target"]))
    parts.extend(_judge(entry) for entry in labelled if "judge" in entry)
    if not labelled and not batch:
        parts.append(Paragraph("There is no label yet, so nothing can be said.", strong=True))
    return parts


def _grader(grader: Mapping[str, Any]) -> list[Block]:
    """Return how good the grades are that people checked, and where they fail."""
    checked = [entry for entry in grader["models"] if entry["checked"]]
    if not checked:
        return [Paragraph("No grade is checked yet, so nothing can be said.", strong=True)]
    return [
        table_of(
            checked,
            {
                "model": "model",
                "checked": lambda e: _part(e["checked"], e["answers"]),
                "doubtful": lambda e: cells.share_cell(e["doubtful"]),
                "found wrong": "wrong",
                "wrong of all": lambda e: cells.percent_cell(e["error"]),
                "kappa": lambda e: cells.number_cell(e["kappa"], digits=2),
            },
            "The grader on this data",
            note="'Wrong of all': share of all grades that people would not share, with its 95 % "
            "interval. Kappa: agreement with people beyond chance.",
        ),
        table_of(
            grader["rules"],
            {"rule": "rule", "graded": "graded", "checked": "checked", "wrong": "wrong"},
            "Where it fails",
        ),
    ]


def _part(number: int, whole: int) -> cells.Number:
    return cells.said_cell(number, f"{number:,} of {whole:,}")


def _batch(batch: Mapping[str, Any]) -> str:
    side = f", steered by {batch['side']}" if batch["side"] else ""
    return (
        f"Batch {batch['number']} with {batch['items']:,} items ({batch['design']}{side}) is in "
        f"{batch['path']}: fill the column `correct` with 1 or 0, then run `calibrant label add`."
    )


def _stop(entry: Entry, *, named: bool) -> str:
    text = _stop_text(entry)
    return f"{subject_name(entry)}: {text}" if named else text[0].upper() + text[1:]


def _stop_text(entry: Entry) -> str:
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
    return table_of(
        entries,
        {
            "model": entry_name if several else "model",
            "labelled": lambda e: _part(e["labelled"], e["n"]),
            "right": lambda e: cells.percent_cell(e["accuracy"]),
            "says": lambda e: cells.share_cell(e["mean_confidence"]),
            "ECE": lambda e: cells.points_cell(e["ece"], sign=False),
            "ECE for all looks": lambda e: _range(e["stop"]["interval"]),
        },
        "Running estimate",
        note=f"ECE in points. Target: {target}. 'For all looks': holds over all looks together, so "
        "look after every batch and stop when you like.",
    )


def _range(estimate: Mapping[str, Any]) -> cells.Number:
    low, high = estimate["low"], estimate["high"]
    return cells.said_cell(high, f"{100 * low:.1f} to {100 * high:.1f}")


def _judge(entry: Entry) -> Table:
    judged = entry["judge"]
    rows = [
        {"name": "accuracy", **judged["accuracy"]},
        {"name": "Brier", **judged["brier"]},
        {"name": "gap", **_turned(judged["gap"])},
    ]
    rows += [
        {"name": f"gap at {part['low']:.2f} to {part['high']:.2f}", **_turned(part["gap"])}
        for part in judged["bins"]
    ]
    return table_of(
        rows,
        {
            "quantity": "name",
            "gold and judge": "combined",
            "gold alone": "gold_only",
            "judge alone": lambda e: cells.Number(e["judge_only"]),
            "gold labels saved": "gold_saved",
        },
        f"{entry_name(entry)}: {judged['gold_labels']:,} gold labels and "
        f"{judged['judge_labels']:,} of the judge",
        note="The judge's own number has no valid interval; stretches of the confidence hold all "
        "at once. Gap: says minus right, above 0 is over-confident.",
    )


def _turned(gap: Mapping[str, Any]) -> dict[str, Any]:
    both = {name: cells.turned(gap[name]) for name in ("combined", "gold_only")}
    return {**gap, **both, "judge_only": 0.0 - gap["judge_only"]}
