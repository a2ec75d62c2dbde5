"""The plan as text: what it costs, step by step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.claims.words import count, percent, points
from calibrant.core.hints import Hint
from calibrant.report.blocks import Paragraph, Table
from calibrant.report.cells import Number, estimate_cell, number_cell, said_cell
from calibrant.report.tables._theory import is_asked, theory_tables
from calibrant.report.tables.leaderboard import blocks as leaderboard_blocks

_ALPHA = 0.05


def blocks(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Return the blocks of a ``calibrant.plan/1`` document."""
    entry = document["results"][0]
    known = (document.get("data") or {}).get("warnings") or ()
    parts: list[Paragraph | Table] = [Paragraph(str(warning["text"])) for warning in known]
    plans = document["plans"] or []
    if any(plan.get("needed") for plan in plans):
        parts.append(_labels_for_claim([plan for plan in plans if plan.get("needed")], entry))
    elif any(plan.get("shows") for plan in plans):
        parts.append(_shown_by_labels([plan for plan in plans if plan.get("shows")]))
    theory = document.get("theory")
    if theory and is_asked(theory):
        # Whoever asks for more than labels and precision is answered first.
        parts.extend(theory_tables(theory))
    parts.append(Paragraph(_headline(entry), strong=not plans))
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
    if theory and not is_asked(theory):
        parts.extend(theory_tables(theory))
    if document["measured"]:
        parts.append(_measured(document["measured"]))
    if document["leaderboard"]:
        parts.extend(leaderboard_blocks(document["leaderboard"]))
    parts.extend(Paragraph(note) for note in entry["notes"])
    parts.append(Paragraph(document["caveat"]))
    return parts


def _labels_for_claim(plans: list[dict[str, Any]], entry: Mapping[str, Any]) -> Table:
    """Return the labels that show the claim; what the worst case asks for is a remark."""
    rows = []
    for plan in plans:
        for truth in ("calibrated", "half"):
            labels = plan["needed"][truth]
            error = labels["true_error"]
            rows.append(
                (
                    _named(plan, plans),
                    said_cell(error, points(error) if error else "calibrated"),
                    _labels(labels["one_look"]),
                    _labels(labels["all_looks"]),
                    _labels(labels["mean_used"]),
                )
            )
    needed, worst = plans[0]["needed"], entry["passive_labels"]
    note = "By the test that label and audit use."
    if worst is not None and entry["precision"] is not None:
        note += (
            f" In the worst case {worst:,} random labels tell the error within "
            f"{points(entry['precision'])}."
        )
    return Table(
        ("model", "if its error is", "one look", "looking all the time", "then used, on average"),
        tuple(rows),
        title=(
            f"Labels that show an error below {points(needed['threshold'])} with a chance of "
            f"{percent(needed['power'])}"
        ),
        note=note,
    )


def _shown_by_labels(plans: list[dict[str, Any]]) -> Table:
    """Return the smallest errors that a number of labels can show."""
    rows = tuple(
        (_named(plan, plans), _below(plan["shows"]["calibrated"]), _below(plan["shows"]["half"]))
        for plan in plans
    )
    shows = plans[0]["shows"]
    return Table(
        ("model", "if it is calibrated", "if its error is half of that"),
        rows,
        title=f"What {count(shows['labels'], 'label')} can show",
        note=(
            f"The smallest limit that the error can be shown to be below, with a chance of "
            f"{percent(shows['power'])}, by the test that label and audit use."
        ),
    )


def _below(value: float | None) -> Number:
    return said_cell(value, "nothing" if value is None else f"below {points(value)}")


def _named(plan: Mapping[str, Any], plans: list[dict[str, Any]]) -> str:
    several = len({other["method"] for other in plans}) > 1
    keys = ("model", "method", "group") if several else ("model", "group")
    return " / ".join(str(plan[key]) for key in keys if plan.get(key) is not None)


def _labels(value: int | None) -> Number:
    return number_cell(value, missing="more than there are")


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
    note = Hint(
        "Rates of the worst case. What these answers need: {claim}.", claim="'ece<0.05'"
    ).shell()
    return Table(("what is checked", *fields), cells, title=title, note=note)


def _cell(value: float | None) -> Number:
    return number_cell(value, digits=4, missing="impossible")


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
                Number(found["resolution"]["half_width"]),
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
