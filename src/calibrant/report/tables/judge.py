"""Tables of a judge beside people: judges, models, what scores mean, leans, surprises."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from calibrant.core.arrays import EstimateEntry
from calibrant.findings.claims.judge import judge_score, size_words
from calibrant.findings.documents import labels
from calibrant.findings.documents.fields import JudgeFields
from calibrant.report import cells
from calibrant.report.blocks import Block, Columns, Paragraph, Table, cut_text, table_of

_LETTERS = 60


def blocks(document: JudgeFields) -> Iterator[Block]:
    """Yield the judges where there are several, and the tables of each."""
    several = len(document.results) > 1
    if several:
        yield _judges(document.results)
    for entry in document.results:
        yield from _tables(entry, several=several)


def _tables(entry: labels.JudgeEntry, *, several: bool) -> Iterator[Block]:
    main, name = not several, f"{entry.judge}: " if several else ""
    tables = {
        "models by people's standard": entry.models and _models(entry, entry.models, main=main),
        "people's mean by group": entry.groups and _models(entry, entry.groups),
        "what a score means": entry.scale.kind != "pairs" and entry.map and _map(entry),
        "what the judge leans to": entry.bias and _leans(entry),
        "models against each other": entry.pairs and _pairs(entry),
        "most surprising disagreements": entry.disagreements and _surprises(entry),
    }
    for words, table in tables.items():
        if table:
            yield replace(table, title=name + words if name else words[0].upper() + words[1:])
    if entry.labels_needed is not None:
        labels_needed = entry.labels_needed
        yield Paragraph(
            f"{name}{labels_needed.labels:,} rated rows in all would give people's mean to within "
            f"{size_words(entry, labels_needed.precision)}."
        )


def rating(
    entry: labels.JudgeEntry, value: float | EstimateEntry | None, *, sign: bool = False
) -> cells.Number:
    """Return a rating by people as a cell: of yes/no and pairs a share."""
    estimate = value if isinstance(value, EstimateEntry) else EstimateEntry(value=value)
    if estimate.low == estimate.high:
        estimate = EstimateEntry(value=estimate.value)
    if entry.scale.kind != "ratings":
        return cells.points_cell(estimate) if sign else cells.percent_cell(estimate)
    span = entry.scale.people[1] - entry.scale.people[0]
    return _plain(estimate, digits=2 if span <= 10 else 1, signed=sign)


def _plain(estimate: EstimateEntry | labels.JudgeBias | None, **form: Any) -> cells.Number:
    """Return an estimate with two digits, unless the form says so."""
    ends = estimate or EstimateEntry()
    return cells.Number(ends.value, ends.low, ends.high, **{"digits": 2, **form})


def _judges(entries: list[labels.JudgeEntry]) -> Table:
    """Return one row per judge, the one worth most labels first."""
    costs = any(entry.cost is not None for entry in entries)
    columns: Columns = {
        "judge": "judge",
        "worth, labels": "people_mean.labels_saved",
        **({"labels per dollar": _per_dollar} if costs else {}),
        "right order": lambda e: cells.percent_cell(e.order),
        "kappa": lambda e: _plain(e.kappa, missing="other scale"),
        "people's mean": lambda e: rating(e, e.people_mean.combined),
        "judge says": lambda e: rating(e, e.people_mean.judge_only),
    }
    ranking = sorted(entries, key=lambda entry: -entry.people_mean.labels_saved)
    note = "Worth: labels by people that would have to be added for the same precision without it."
    return table_of(ranking, columns, "Judges", note=note, main=True)


def _per_dollar(entry: labels.JudgeEntry) -> cells.Number:
    """Return labels saved per dollar that all verdicts cost."""
    if not entry.cost:
        return cells.number_cell(None, missing="no cost given")
    return cells.number_cell(entry.people_mean.labels_saved / (entry.cost * entry.n), digits=2)


def _models(
    entry: labels.JudgeEntry, models: list[labels.JudgedModel], *, main: bool = False
) -> Table:
    pairs = entry.scale.kind == "pairs"
    columns: Columns = {
        "model": "name",
        "people (wins)" if pairs else "people": lambda e: rating(entry, e.combined),
        "judge says": lambda e: _judge_says(entry, e.judge_only),
        **({"strength": lambda e: _strength(e.strength)} if pairs else {}),
        "rated": "labels",
        "rows": "n",
    }
    ranking = sorted(models, key=lambda model: -(model.combined.value or 0.0))
    note = "People: the mean that people would give all rows, with its 95 % interval."
    return table_of(ranking, columns, note=note, main=main)


def _judge_says(entry: labels.JudgeEntry, value: float) -> cells.Number:
    if entry.scale.kind == "ratings":
        return cells.number_cell(value, digits=2)
    return cells.share_cell(value, digits=int(entry.scale.kind == "pairs"))


def _strength(estimate: EstimateEntry | None) -> cells.Number:
    return _plain(estimate, signed=True, missing="open")


def _map(entry: labels.JudgeEntry) -> Table:
    columns: Columns = {
        "score": lambda e: judge_score(entry, e.score),
        "means": lambda e: rating(entry, EstimateEntry(value=e.value, low=e.low, high=e.high)),
        "people said": lambda e: rating(entry, e.people),
        "rated": "labels",
    }
    note = (
        "Means: people's mean behind a score. People said: the mean of the ratings nearest to it."
    )
    return table_of(entry.map, columns, note=note)


def _leans(entry: labels.JudgeEntry) -> Table:
    kind = entry.scale.kind
    form = {"missing": "too few", "signed": True}
    form |= {} if kind == "ratings" else {"unit": "points", "digits": 1}
    columns: Columns = {
        "lean to": lambda e: f"{e.kind}: {e.name}",
        "leans by": lambda e: _plain(e, **form),
        "p": lambda e: cells.p_cell(e.p),
        "how": "method",
        "rated": "labels",
    }
    unit = "points of 100" if kind == "yes/no" else "points of the judge's scale"
    note = (
        f"Beyond the quality that people see (two are needed), in {unit}; p of each by itself."
        if kind != "pairs"
        else "In points of 100: beyond one half where both orders are known, else beyond people."
    )
    tested = sorted(entry.bias, key=lambda lean: -abs(lean.value or 0.0))
    return table_of(tested, columns, note=note)


def _pairs(entry: labels.JudgeEntry) -> Table:
    pairs = entry.scale.kind == "pairs"

    def lead(pair: labels.JudgedPair) -> cells.Number:
        estimate = pair.difference
        return _strength(estimate) if pairs else rating(entry, estimate, sign=True)

    columns: Columns = {
        "ahead": "a",
        "behind": "b",
        "ahead by, log odds" if pairs else "ahead by": lead,
        "p, Holm": lambda e: cells.p_cell(e.p_adjusted),
    }
    leads = [
        pair if pair.difference.number >= 0
        else replace(pair, a=pair.b, b=pair.a, difference=pair.difference.turned())
        for pair in sorted(entry.pairs, key=lambda pair: pair.p_adjusted or 0.0)
    ]  # fmt: skip
    return table_of(leads, columns, labels=2, folded=True)


def _surprises(entry: labels.JudgeEntry) -> Table:
    models = {"model": lambda e: e.model or ""} if entry.models else {}
    columns: Columns = {
        "row": lambda e: str(e.row),
        "answer": _text,
        **models,
        "judge said": lambda e: judge_score(entry, e.judge),
        "people": lambda e: _verdict(entry, e.people),
        "expected": lambda e: rating(entry, e.expected),
    }
    note = "Expected: what people usually say where the judge says this" + (
        ", as the share of A." if entry.scale.kind == "pairs" else "."
    )
    return table_of(entry.disagreements, columns, labels=2 + len(models), note=note)


def _verdict(entry: labels.JudgeEntry, value: float) -> cells.Cell:
    """Return what people said: a word where there is one, or a number between words."""
    words = {"pairs": {1.0: "A", 0.0: "B", 0.5: "tie"}, "yes/no": {1.0: "yes", 0.0: "no"}}
    return words.get(entry.scale.kind, {}).get(value) or rating(entry, value)


def _text(item: labels.Disagreement) -> cells.Text:
    """Return the answer, cut; the question and the whole of it where one looks closer."""
    words = item.text or item.question or ""
    whole = "\n\n".join(filter(None, (item.question, item.text)))
    return cells.Text(cut_text(words, _LETTERS), whole)
