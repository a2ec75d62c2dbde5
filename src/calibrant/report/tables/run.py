"""Tables of a run and of a study: what it would send, what it got, what came out, who was asked."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.claims.words import count as counted
from calibrant.core.hints import Hint
from calibrant.documents.fields import RunFields, StudyFields
from calibrant.report.blocks import Block, Columns, Paragraph, Table, table_of
from calibrant.report.cells import Cell, estimate_cell, money_cell, number_cell

_FAILURES_SHOWN = 5


def blocks(document: RunFields) -> list[Block]:
    """Return what a person wants to know before or after a run."""
    if document.get("probe"):
        return _probed(document)
    if document["dry_run"]:
        return [*_repaired(document), *_plan(document), *_unavailable(document)]
    place = Paragraph(f"Tables, results and report.html are in {document.study}.")
    return [
        *_stopped(document),
        *_repaired(document),
        *_got(document),
        *_remarks(document),
        *_scores(document),
        *_not_scored(document),
        place,
    ]


def _stopped(document: RunFields) -> list[Block]:
    """Say first that a cap was reached: everything below rests on what was asked until then."""
    if not document.get("stopped"):
        return []
    text = f"Stopped at a cap: {document['stopped']}. Everything paid for is kept and used."
    return [Paragraph(text, strong=True)]


def _repaired(document: RunFields) -> list[Block]:
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


def _probed(document: RunFields) -> list[Block]:
    """Say what each endpoint takes, and what it refuses in its own words."""
    said: list[Block] = []
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


def _plan(document: RunFields) -> list[Block]:
    total = document["plan"]["total"]
    wanted, held = total["draws_wanted"], total["draws_held"]
    if total["calls"] == 0:
        text = f"Nothing to send: all {wanted:,} draws are in the ledger."
    else:
        text = (
            f"{document.questions:,} questions, {wanted:,} draws, {held:,} of them in the "
            f"ledger: {total['calls']:,} calls to send, {_cost(total['cost'])}. "
            "Nothing was sent."
        )
    note = (
        "Prompt tokens are estimated from the length of the texts. Reply tokens and cost are the "
        "most they can be."
    )
    notes = dict.fromkeys(row["note"] for row in document["plan"]["rows"] if row.get("note"))
    return [
        Paragraph(text, strong=True),
        table_of(
            document["plan"]["rows"],
            {
                "model": "model",
                "probe": "probe",
                "draws": "draws_wanted",
                "in ledger": "draws_held",
                "calls": "calls",
                "prompt tokens": "prompt_tokens",
                "reply tokens": "completion_tokens",
                "cost": lambda e: money_cell(e["cost"]),
            },
            note=" ".join([note, *notes]),
            labels=2,
        ),
    ]


def _unavailable(document: RunFields) -> list[Block]:
    rows = [
        {"model": model["model"], "method": method, "reason": reason}
        for model in document.models
        for method, reason in model["unavailable"].items()
    ]
    return _reasons(rows, "Methods that cannot be served")


def _reasons(rows: Sequence[Mapping[str, Any]], title: str) -> list[Block]:
    columns: Columns = {"model": "model", "method": "method", "because": "reason"}
    return [table_of(rows, columns, title, labels=3, folded=True)] if rows else []


# -- after a run -----------------------------------------------------------------------------


def _got(document: RunFields) -> list[Block]:
    parts: list[Block] = []
    for entry in document["counts"]:
        draws = entry["draws_new"] + entry["draws_cached"]
        tokens = entry["prompt_tokens"] + entry["completion_tokens"]
        priced = next(m["priced"] for m in document.models if m["model"] == entry["model"])
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


def _remarks(document: RunFields) -> list[Block]:
    parts: list[Block] = []
    for finding in document["findings"]:
        parts.append(Paragraph(f"Note on {finding['model']}: {finding['message']}"))
    for model, count in document["skipped_second_turns"].items():
        if count:
            parts.append(
                Paragraph(
                    f"{model}: {count:,} of {document.questions:,} greedy replies hold no "
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


def _failures(failures: Mapping[str, Any]) -> list[Block]:
    if not failures["count"]:
        return []
    reasons = Counter(entry["reason"] for entry in failures["shown"])
    rows = tuple(
        (reason, number_cell(count)) for reason, count in reasons.most_common(_FAILURES_SHOWN)
    )
    title = f"{failures['count']:,} requests were set aside"
    return [Table(("reason", "times"), rows, title=title)]


def _scores(document: RunFields) -> list[Block]:
    results = document.results
    if not results:
        return [Paragraph("No question could be scored.")]
    note = "n counts scored and graded questions. '-': the score is no probability."
    lacking = {entry["method"] for entry in document["methods"] if not entry["available"]}
    if lacking:
        note += Hint(
            " {0} without inputs: {full} says why.", counted(len(lacking), "method")
        ).shell()
    columns: Columns = {
        "model": "model",
        "method": "method",
        "n": "n",
        "accuracy": lambda e: estimate_cell(e.get("accuracy"), digits=2),
        "confidence": lambda e: _of_probability(e, "mean_confidence"),
        "ECE": lambda e: _of_probability(e, "ece"),
        "AUROC": lambda e: estimate_cell(e.get("auroc"), digits=2),
    }
    return [table_of(results, columns, "What came of it", note=note, labels=2)]


def _of_probability(entry: Mapping[str, Any], name: str) -> Cell:
    return estimate_cell(entry.get(name), digits=2) if entry["probability"] else "-"


def _not_scored(document: RunFields) -> list[Block]:
    rows = [entry for entry in document["methods"] if not entry["available"]]
    return _reasons(rows, "Methods without their inputs")


def _cost(cost: float | None) -> str:
    return "at a cost that is unknown" if cost is None else f"for at most {money_cell(cost)}"


# -- a study ----------------------------------------------------------------------------------


def study_blocks(document: StudyFields) -> list[Block]:
    """Return the blocks of a ``calibrant.study/1`` document."""
    parts: list[Block] = [Paragraph(_sentence(document), strong=True)]
    if document.asked:
        parts.append(_asked(document.asked))
    if document.prompts:
        parts.append(_prompts(document.prompts))
    if document.graders:
        rows = tuple((name, number_cell(count)) for name, count in document.graders.items())
        parts.append(Table(("grader", "answers"), rows, title="Who graded"))
    versions = ", ".join(f"{name} {number}" for name, number in document.versions.items())
    parts.append(Paragraph(f"Made with {versions}."))
    return parts


def _sentence(document: StudyFields) -> str:
    models = ", ".join(
        f"{entry['model']} ({entry['name_at_endpoint']} by {entry['client']}, temperature "
        f"{entry['temperature']:g})"
        for entry in document.models
    )
    draws = sum(entry["draws"] for entry in document.asked)
    purposes = len({entry["purpose"] for entry in document.asked})
    costs = [entry.get("cost") for entry in document.asked]
    known = [cost for cost in costs if cost is not None]
    price = f" for ${sum(known):,.2f}" if costs and len(known) == len(costs) else ""
    unknown = "" if price else " What they cost is not known."
    by = f" of {models}" if models else ""
    kinds = f" to {purposes} kinds of prompt" if purposes > 1 else ""
    return f"{document.name}: {draws:,} answers{by}{kinds}{price}.{unknown}"


def _asked(entries: Sequence[Mapping[str, Any]]) -> Table:
    return table_of(
        entries,
        {
            "model": "model",
            "purpose": "purpose",
            "draws": "draws",
            "prompt tokens": lambda e: number_cell(e.get("prompt_tokens")),
            "reply tokens": lambda e: number_cell(e.get("completion_tokens")),
            "cut off": lambda e: number_cell(e.get("cut_off")),
            "cost": lambda e: money_cell(e.get("cost")),
        },
        "What was asked",
        note="'Cut off': replies that reached their longest length, as one-token votes always do.",
        labels=2,
    )


def _prompts(entries: Sequence[Mapping[str, Any]]) -> Table:
    names = ("purpose", "prompt", "models", "system", "user", "examples")
    return table_of(
        entries,
        {**{name: name for name in names}, "most tokens": "max_tokens"},
        "Prompts",
        note="Names in braces are filled in for each question; worked examples go before it.",
        labels=5,
        folded=True,
    )
