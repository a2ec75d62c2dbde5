"""Tables of decisions: `decide`, `mend` and `cascade`."""

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.report.blocks import (
    Block,
    Columns,
    Paragraph,
    Table,
    claims_first,
    entry_name,
    table_of,
)
from calibrant.report.cells import Cell, Number, number_cell, percent_cell, points_cell, share_cell
from calibrant.report.tables.remarks import rows_left_out

Entry = Mapping[str, Any]

_SHOWN = 10


# -- decide -----------------------------------------------------------------------------------


def blocks(document: Mapping[str, Any]) -> list[Block]:
    """Return the promise and the curve of each model and method."""
    parts = claims_first(document)
    if len(document["results"]) > 1:
        parts.append(_overview(document["results"]))
    for entry in document["results"]:
        step = max(1, len(entry["curve"]) // _SHOWN)
        parts.append(
            table_of(
                entry["curve"][step - 1 :: step],
                {
                    "threshold": "threshold",
                    "answered": lambda e: share_cell(e["share"]),
                    "wrong among answered": lambda e: percent_cell(e["error"]),
                },
                f"{entry_name(entry)}: error by threshold",
            )
        )
        if entry["more_labels"]:
            columns: Columns = {
                "labels": lambda e: number_cell(e["labels"], missing="no limit"),
                "answered": lambda e: share_cell(e["share"]),
            }
            title = "What more labels would likely allow"
            parts.append(table_of(entry["more_labels"], columns, title))
    return [*parts, *rows_left_out(document)]


def _overview(entries: Sequence[Entry]) -> Table:
    """Return one row per model and method: what each may answer alone, most first."""
    keys = [key for key in ("model", "method") if len({entry[key] for entry in entries}) > 1]
    keys = keys or ["model"]
    return table_of(
        sorted(entries, key=lambda entry: -_share(entry)),
        {
            " / ".join(keys): lambda e: " / ".join(str(e[key]) for key in keys),
            "answers from": lambda e: number_cell(e["threshold"], missing="never"),
            "answered": lambda e: share_cell(_share(e)),
            "wrong among answered": lambda e: percent_cell(e["error"]) if _share(e) else "",
        },
        "Who may answer alone",
        main=True,
    )


def _share(entry: Entry) -> float:
    answered = entry["answered"] or {}
    return float(answered.get("value") or 0.0) if entry["threshold"] is not None else 0.0


# -- mend -------------------------------------------------------------------------------------


def mend_blocks(document: Mapping[str, Any]) -> list[Block]:
    """Return the promise, and what stated values mean, of each model and method."""
    parts, entries = claims_first(document), document["results"]
    if len(entries) > 1:
        columns: Columns = {
            "model / method": entry_name,
            "verdict": "verdict",
            "off by at most, points": lambda e: Number(
                e["promise"]["off_by"], unit="points", digits=1
            ),
            "gain in Brier score": lambda e: Number(e["promise"]["gain"]),
            "labels": "n",
        }
        parts.append(table_of(entries, columns, "What mending does", labels=2, main=True))
    for entry in entries:
        name = f"{entry_name(entry)}: " if entry["model"] else ""
        parts.append(
            table_of(
                entry["table"],
                {
                    "says": lambda e: share_cell(e["says"], digits=int(0.99 < e["says"] < 1)),
                    "means": lambda e: Number(e["means"], e["low"], e["high"], "share", 0),
                    "right": lambda e: share_cell(e["right"]),
                    "labels": "n",
                },
                f"{name}what it says, and what that means",
                note="Right: the share among the labels nearest to that value.",
            )
        )
    return [*parts, *rows_left_out(document)]


# -- cascade ----------------------------------------------------------------------------------

_NOTE = (
    "Expected gain: asks the next model while the right answers that it should add are worth their "
    "price. Risk: asks on while the answer is too likely to be wrong. Chosen per question: one "
    "model is picked before any is asked. Differences in points."
)
_POINTS = {
    "best": "most accurate setting",
    "match": "as accurate as the largest",
    "budget_0.5": "half its cost",
}


def cascade_blocks(document: Mapping[str, Any]) -> list[Block]:
    """Return the claims, the models, the strategies and their chosen points."""
    parts = claims_first(document)
    for entry in document["results"]:
        parts += [_models(entry), _areas(entry), _points(entry), *_policy(entry)]
    parts += [Paragraph(note) for note in document.get("notes", [])]
    return [*parts, *rows_left_out(document)]


def _models(entry: Entry) -> Table:
    return table_of(
        entry["models"],
        {
            "model alone": "model",
            "right": lambda e: percent_cell(e["accuracy"]),
            "cost, largest = 100 %": lambda e: share_cell(e["relative_cost"]["value"]),
        },
        "Models",
        note=f"{entry['n']:,} questions, {entry['n_test']:,} held out in each of "
        f"{entry['splits']} splits; intervals correct for the overlap of the splits",
    )


def _areas(entry: Entry) -> Table:
    against = {pair["b"]: points_cell(pair["area"]) for pair in entry["comparisons"]}

    def ahead(strategy: Entry) -> Cell:
        return against.get(strategy["name"], "")

    return table_of(
        entry["strategies"],
        {
            "rule": "words",
            "right on average": lambda e: percent_cell(e["area"]),
            **({"first is ahead by": ahead} if against else {}),
        },
        "When to ask the next model, by budgets from the cheapest to the largest model",
        note=_NOTE,
        main=True,
    )


def _points(entry: Entry) -> Table:
    found = [
        (point, strategy["words"], strategy["points"][point])
        for point in _POINTS
        for strategy in entry["strategies"]
        if (strategy["points"].get(point) or {}).get("gain", {}).get("value") is not None
    ]
    return table_of(
        found,
        {
            "setting": lambda e: _POINTS[e[0]],
            "rule": lambda e: e[1],
            f"points against {entry['largest']}": lambda e: points_cell(e[2]["gain"]),
            "cost, largest = 100 %": lambda e: _cost(e[2]["relative_cost"], e[0]),
        },
        "Settings, picked on one part of the questions and measured on another",
        labels=2,
    )


def _cost(cost: Entry, point: str) -> Number:
    return share_cell(cost["value"]) if point.startswith("budget") else percent_cell(cost)


def _policy(entry: Entry) -> list[Paragraph]:
    """Return the rule that is ready to be used, where its strategy was measured."""
    policy = entry["policy"]
    words = {item["name"]: item["words"] for item in entry["strategies"]}
    if policy["rule"] not in words:
        return []
    text, promise = f"Policy: {words[policy['rule']]}", policy.get("promise")
    if promise is None:
        where = "" if policy["path"] is None else f", saved to {policy['path']}"
        text += f", tolerance {policy['tolerance']:.4g} ({policy['chosen']}){where}."
        return [Paragraph(text)]
    where = "" if policy["path"] is None else f" Saved to {policy['path']}."
    return [
        Paragraph(
            f"{text} ({policy['chosen']}): right in {percent_cell(promise['accuracy'])} at "
            f"{percent_cell(promise['relative_cost'])} of the largest model's cost, on "
            f"questions it had not seen.{where}"
        )
    ]
