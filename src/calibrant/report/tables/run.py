"""Tables of a run and of a study: what it would send, what it got, what came out, who was asked."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from calibrant.core.hints import Hint
from calibrant.findings.claims import count
from calibrant.findings.documents.fields import RunFields, StudyFields
from calibrant.report import cells
from calibrant.report.cells import Block, Columns, Paragraph, Table, table_of

_FAILURES_SHOWN = 5


def blocks(document: RunFields) -> Iterator[Block]:
    """Return what a person wants to know before or after a run."""
    if document.get("probe"):
        return _probed(document)
    after = (_stopped, _repaired, _got, _remarks, _scores, _not_scored, _place)
    parts = (_repaired, _plan, _unavailable) if document["dry_run"] else after
    return chain.from_iterable(part(document) for part in parts)


def _stopped(document: RunFields) -> Iterator[Block]:
    """Say first that a cap was reached: everything below rests on what was asked until then."""
    if cap := document.get("stopped"):
        text = f"Stopped at a cap: {cap}. Everything paid for is kept and used."
        yield Paragraph(text, strong=True)


def _repaired(document: RunFields) -> Iterator[Block]:
    if repair := document.get("repair"):
        text = f"The ledger is sound: all {repair['draws']:,} answers can be read."
        if repair["backup"] is not None:
            text = (
                f"The ledger was damaged: {repair['draws']:,} answers are saved, "
                f"{repair['lost']:,} are lost and asked for again. The old file is "
                f"{repair['backup']}."
            )
            if repair["unread"]:
                since = repair["saved_at"] or "the beginning (there was no backup)"
                text += (
                    f" Not all of it could be read, so answers since {since} may be missing "
                    "beside those."
                )
        yield Paragraph(text, strong=True)


def _probed(document: RunFields) -> Iterator[Block]:
    """Say what each endpoint takes, and what it refuses in its own words."""
    for item in document["probe"]:
        if item["problem"]:
            yield Paragraph(f"{item['model']} does not answer: {item['problem']}", strong=True)
            continue
        text = f"{item['model']} answers '{item['answer'].strip()}' in {item['seconds']:.1f} s"
        text += f" as {item['answered_by']}." if item["answered_by"] else "."
        yield Paragraph(text, strong=True)
        yield Paragraph(f"It takes {', '.join(item['takes']) or 'no setting'}.")
        for name, words in item["refuses"].items():
            yield Paragraph(f"It refuses {name}: {words}")
        if item["thinking_tokens"]:
            yield Paragraph(f"It spent {item['thinking_tokens']:,} tokens on thinking.")
        if item["cut_off"]:
            yield Paragraph("The answer was cut off: raise thinking_tokens of the model.")


# -- before a run ----------------------------------------------------------------------------


def _plan(document: RunFields) -> Iterator[Block]:
    rows, total = document["plan"]["rows"], document["plan"]["total"]
    text = f"Nothing to send: all {total['draws_wanted']:,} draws are in the ledger."
    if total["calls"]:
        cost = total["cost"]
        price = (
            "at a cost that is unknown" if cost is None else f"for at most {cells.money_cell(cost)}"
        )
        text = (
            f"{count(document.questions, 'question')}, {count(total['draws_wanted'], 'draw')}, "
            f"{total['draws_held']:,} of them in the ledger: {total['calls']:,} calls to send, "
            f"{price}. Nothing was sent."
        )
    yield Paragraph(text, strong=True)
    note = (
        "Prompt tokens are estimated from the length of the texts. Reply tokens and cost are the "
        "most they can be."
    )
    columns: Columns = {
        "model": "model",
        "probe": "probe",
        "draws": "draws_wanted",
        "in ledger": "draws_held",
        "calls": "calls",
        "prompt tokens": "prompt_tokens",
        "reply tokens": "completion_tokens",
        "cost": lambda e: cells.money_cell(e["cost"]),
    }
    notes = dict.fromkeys(row["note"] for row in rows if row.get("note"))
    yield table_of(rows, columns, note=" ".join([note, *notes]), labels=2)


def _unavailable(document: RunFields) -> Iterator[Block]:
    rows = [
        {"model": model["model"], "method": method, "reason": reason}
        for model in document.models
        for method, reason in model["unavailable"].items()
    ]
    return _reasons(rows, "Methods that cannot be served")


def _reasons(rows: Sequence[Mapping[str, str]], title: str) -> Iterator[Block]:
    columns: Columns = {"model": "model", "method": "method", "because": "reason"}
    if rows:
        yield table_of(rows, columns, title, labels=3, folded=True)


# -- after a run -----------------------------------------------------------------------------


def _got(document: RunFields) -> Iterator[Block]:
    priced = {model["model"]: model["priced"] for model in document.models}
    for entry in document["counts"]:
        draws = entry["draws_new"] + entry["draws_cached"]
        tokens = entry["prompt_tokens"] + entry["completion_tokens"]
        price = cells.money_cell(entry["cost"]) if priced[entry["model"]] else "unknown cost"
        text = (
            f"{entry['model']}: {count(draws, 'draw')}, {entry['draws_cached']:,} from the ledger; "
            f"{entry['calls']:,} calls, {tokens:,} tokens, {price}, {entry['elapsed_s']:.1f} s."
        )
        yield Paragraph(text, strong=True)


def _remarks(document: RunFields) -> Iterator[Block]:
    for finding in document["findings"]:
        yield Paragraph(f"Note on {finding['model']}: {finding['message']}")
    for model, skipped in document["skipped_second_turns"].items():
        if skipped:
            yield Paragraph(
                f"{model}: {skipped:,} of {document.questions:,} greedy replies hold no answer, so "
                "nothing was asked about them."
            )
    if unread := document["unread"]:
        worst = max(unread, key=lambda entry: entry["unread"])
        yield Paragraph(
            "In some replies no confidence or vote could be read, most in "
            f"{worst['model']} / {worst['method']}: {worst['unread']:,}. They are left out, not "
            "imputed."
        )
    failures = document["failures"]
    if failures["count"]:
        reasons = Counter(entry["reason"] for entry in failures["shown"])
        title = f"{failures['count']:,} requests were set aside"
        yield _numbers(dict(reasons.most_common(_FAILURES_SHOWN)), ("reason", "times"), title)


def _numbers(numbers: Mapping[str, int], columns: tuple[str, str], title: str) -> Table:
    rows = ((name, cells.number_cell(number)) for name, number in numbers.items())
    return Table(columns, tuple(rows), title)


def _scores(document: RunFields) -> Iterator[Block]:
    if not document.results:
        yield Paragraph("No question could be scored.")
        return
    note = "n counts scored and graded questions. '-': the score is no probability."
    if lacking := {entry["method"] for entry in document["methods"] if not entry["available"]}:
        without = count(len(lacking), "method")
        note += Hint(" {0} without inputs: {full} says why.", without).shell()

    def number(name: str, *, always: bool = False) -> Callable[[Any], cells.Cell]:
        return lambda e: (
            cells.estimate_cell(e.get(name), digits=2) if always or e["probability"] else "-"
        )

    columns: Columns = {
        "model": "model",
        "method": "method",
        "n": "n",
        "accuracy": number("accuracy", always=True),
        "confidence": number("mean_confidence"),
        "ECE": number("ece"),
        "AUROC": number("auroc", always=True),
    }
    yield table_of(document.results, columns, "What came of it", note=note, labels=2)


def _not_scored(document: RunFields) -> Iterator[Block]:
    rows = [entry for entry in document["methods"] if not entry["available"]]
    return _reasons(rows, "Methods without their inputs")


def _place(document: RunFields) -> Iterator[Block]:
    yield Paragraph(f"Tables, results and report.html are in {document.study}.")


# -- a study ----------------------------------------------------------------------------------


def study_blocks(document: StudyFields) -> Iterator[Block]:
    """Return the blocks of a ``calibrant.study/1`` document."""
    yield Paragraph(_sentence(document), strong=True)
    if document.asked:
        columns: Columns = {
            "model": "model",
            "purpose": "purpose",
            "draws": "draws",
            "prompt tokens": lambda e: cells.number_cell(e.get("prompt_tokens")),
            "reply tokens": lambda e: cells.number_cell(e.get("completion_tokens")),
            "cut off": lambda e: cells.number_cell(e.get("cut_off")),
            "cost": lambda e: cells.money_cell(e.get("cost")),
        }
        note = "'Cut off': replies that reached their longest length, as one-token votes always do."
        yield table_of(document.asked, columns, "What was asked", note=note, labels=2)
    if document.prompts:
        names = ("purpose", "prompt", "models", "system", "user", "examples")
        columns = {**{name: name for name in names}, "most tokens": "max_tokens"}
        note = "Names in braces are filled in for each question; worked examples go before it."
        yield table_of(document.prompts, columns, "Prompts", note=note, labels=5, folded=True)
    if document.graders:
        yield _numbers(document.graders, ("grader", "answers"), "Who graded")
    versions = ", ".join(f"{name} {number}" for name, number in document.versions.items())
    yield Paragraph(f"Made with {versions}.")


def _sentence(document: StudyFields) -> str:
    models = ", ".join(
        f"{entry['model']} ({entry['name_at_endpoint']} by {entry['client']}, temperature "
        f"{entry['temperature']:g})"
        for entry in document.models
    )
    draws = sum(entry["draws"] for entry in document.asked)
    purposes = len({entry["purpose"] for entry in document.asked})
    costs = [entry.get("cost") for entry in document.asked]
    paid = [cost for cost in costs if cost is not None]
    price = f" for ${sum(paid):,.2f}" if costs and paid == costs else ""
    unknown = "" if price else " What they cost is not known."
    key = f" of {models}" if models else ""
    kinds = f" to {purposes} kinds of prompt" if purposes > 1 else ""
    return f"{document.name}: {count(draws, 'answer')}{key}{kinds}{price}.{unknown}"
