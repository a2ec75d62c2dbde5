"""Tables of a run: what it would send, what it got, what came out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.claims.words import count as counted
from calibrant.core.hints import Hint
from calibrant.report.blocks import Paragraph, Table
from calibrant.report.cells import estimate_cell, money_cell, number_cell

_FAILURES_SHOWN = 5


def blocks(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Return what a person wants to know before or after a run."""
    if document.get("probe"):
        return _probed(document)
    if document["dry_run"]:
        return [*_repaired(document), *_plan(document), *_unavailable(document)]
    place = Paragraph(f"Tables, results and report.html are in {document['study']}.")
    return [
        *_stopped(document),
        *_repaired(document),
        *_got(document),
        *_remarks(document),
        *_scores(document),
        *_not_scored(document),
        place,
    ]


def _stopped(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Say first that a cap was reached: everything below rests on what was asked until then."""
    if not document.get("stopped"):
        return []
    text = f"Stopped at a cap: {document['stopped']}. Everything paid for is kept and used."
    return [Paragraph(text, strong=True)]


def _repaired(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    repair = document.get("repair")
    if repair is None:
        return []
    if repair["backup"] is None:
        text = f"The ledger is sound: all {repair['draws']:,} answers can be read."
        return [Paragraph(text, strong=True)]
    return [
        Paragraph(
            f"The ledger was damaged: {repair['draws']:,} answers are saved, {repair['lost']:,} "
            f"are lost and asked for again. The old file is {repair['backup']}.",
            strong=True,
        )
    ]


def _probed(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    """Say what each endpoint takes, and what it refuses in its own words."""
    said: list[Paragraph | Table] = []
    for one in document["probe"]:
        if one["problem"]:
            said.append(Paragraph(f"{one['model']} does not answer: {one['problem']}", strong=True))
            continue
        text = f"{one['model']} answers '{one['answer'].strip()}' in {one['seconds']:.1f} s"
        text += f" as {one['answered_by']}." if one["answered_by"] else "."
        said.append(Paragraph(text, strong=True))
        said.append(Paragraph(f"It takes {', '.join(one['takes']) or 'no setting'}."))
        for name, words in one["refuses"].items():
            said.append(Paragraph(f"It refuses {name}: {words}"))
        if one["thinking_tokens"]:
            said.append(Paragraph(f"It spent {one['thinking_tokens']:,} tokens on thinking."))
        if one["cut_off"]:
            said.append(Paragraph("The answer was cut off: raise thinking_tokens of the model."))
    return said


# -- before a run ----------------------------------------------------------------------------


def _plan(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    total = document["plan"]["total"]
    wanted, held = total["draws_wanted"], total["draws_held"]
    if total["calls"] == 0:
        text = f"Nothing to send: all {wanted:,} draws are in the ledger."
    else:
        text = (
            f"{document['questions']:,} questions, {wanted:,} draws, {held:,} of them in the "
            f"ledger: {total['calls']:,} calls to send, {_cost(total['cost'])}. "
            "Nothing was sent."
        )
    rows = [
        (
            row["model"],
            row["probe"],
            number_cell(row["draws_wanted"]),
            number_cell(row["draws_held"]),
            number_cell(row["calls"]),
            number_cell(row["prompt_tokens"]),
            number_cell(row["completion_tokens"]),
            money_cell(row["cost"]),
        )
        for row in document["plan"]["rows"]
    ]
    columns = (
        "model",
        "probe",
        "draws",
        "in ledger",
        "calls",
        "prompt tokens",
        "reply tokens",
        "cost",
    )
    note = (
        "Prompt tokens are estimated from the length of the texts. Reply tokens and cost are the "
        "most they can be."
    )
    notes = dict.fromkeys(row["note"] for row in document["plan"]["rows"] if row.get("note"))
    return [
        Paragraph(text, strong=True),
        Table(columns, tuple(rows), note=" ".join([note, *notes]), labels=2),
    ]


def _unavailable(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    rows = [
        (model["model"], method, reason)
        for model in document["models"]
        for method, reason in model["unavailable"].items()
    ]
    if not rows:
        return []
    title = "Methods that cannot be served"
    return [Table(("model", "method", "because"), tuple(rows), title=title, labels=3, folded=True)]


# -- after a run -----------------------------------------------------------------------------


def _got(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    parts: list[Paragraph | Table] = []
    for entry in document["counts"]:
        draws = entry["draws_new"] + entry["draws_cached"]
        tokens = entry["prompt_tokens"] + entry["completion_tokens"]
        priced = next(m["priced"] for m in document["models"] if m["model"] == entry["model"])
        price = money_cell(entry["cost"]) if priced else "unknown cost"
        parts.append(
            Paragraph(
                f"{entry['model']}: {draws:,} draws, {entry['draws_cached']:,} from the ledger; "
                f"{entry['calls']:,} calls, {tokens:,} tokens, {price}, "
                f"{entry['elapsed_s']:.1f} s.",
                strong=True,
            )
        )
    return parts


def _remarks(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    parts: list[Paragraph | Table] = []
    for finding in document["findings"]:
        parts.append(Paragraph(f"Note on {finding['model']}: {finding['message']}"))
    for model, count in document["skipped_second_turns"].items():
        if count:
            parts.append(
                Paragraph(
                    f"{model}: {count:,} of {document['questions']:,} greedy replies hold no "
                    "answer, so nothing was asked about them."
                )
            )
    unread = document["unread"]
    if unread:
        worst = max(unread, key=lambda entry: entry["unread"])
        parts.append(
            Paragraph(
                f"In some replies no confidence or vote could be read, most in "
                f"{worst['model']} / {worst['method']}: {worst['unread']:,}. They are left out, "
                "not imputed."
            )
        )
    return parts + _failures(document["failures"])


def _failures(failures: Mapping[str, Any]) -> list[Paragraph | Table]:
    if not failures["count"]:
        return []
    reasons = Counter(entry["reason"] for entry in failures["shown"])
    rows = tuple(
        (reason, number_cell(count)) for reason, count in reasons.most_common(_FAILURES_SHOWN)
    )
    title = f"{failures['count']:,} requests were set aside"
    return [Table(("reason", "times"), rows, title=title)]


def _scores(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    results: Sequence[Mapping[str, Any]] = document["results"]
    if not results:
        return [Paragraph("No question could be scored.")]
    rows = tuple(
        (
            entry["model"],
            entry["method"],
            number_cell(entry["n"]),
            estimate_cell(entry.get("accuracy"), digits=2),
            estimate_cell(entry.get("mean_confidence"), digits=2) if entry["probability"] else "-",
            estimate_cell(entry.get("ece"), digits=2) if entry["probability"] else "-",
            estimate_cell(entry.get("auroc"), digits=2),
        )
        for entry in results
    )
    columns = ("model", "method", "n", "accuracy", "confidence", "ECE", "AUROC")
    note = "n counts scored and graded questions. '-': the score is no probability."
    lacking = {entry["method"] for entry in document["methods"] if not entry["available"]}
    if lacking:
        note += Hint(
            " {0} without inputs: {full} says why.", counted(len(lacking), "method")
        ).shell()
    return [Table(columns, rows, title="What came of it", note=note, labels=2)]


def _not_scored(document: Mapping[str, Any]) -> list[Paragraph | Table]:
    rows = tuple(
        (entry["model"], entry["method"], entry["reason"])
        for entry in document["methods"]
        if not entry["available"]
    )
    if not rows:
        return []
    title = "Methods without their inputs"
    return [Table(("model", "method", "because"), rows, title=title, labels=3, folded=True)]


def _cost(cost: float | None) -> str:
    return "at a cost that is unknown" if cost is None else f"for at most {money_cell(cost)}"
