"""Tables of a judge beside people: judges, models, what scores mean, leans, surprises."""

from __future__ import annotations

from collections.abc import Iterator

from calibrant.core.estimate import EstimateEntry
from calibrant.findings.claims.judge import judge_score, size_words
from calibrant.findings.documents.fields import JudgeFields
from calibrant.findings.documents.labels import (
    Disagreement,
    JudgeBias,
    JudgedModel,
    JudgedPair,
    JudgeEntry,
)
from calibrant.report.blocks import (
    Block,
    Columns,
    Paragraph,
    Table,
    claims_first,
    cut_text,
    table_of,
)
from calibrant.report.captions import rows_left_out
from calibrant.report.cells import (
    Cell,
    Number,
    Text,
    number_cell,
    p_cell,
    percent_cell,
    share_cell,
)

_LETTERS = 60


def blocks(document: JudgeFields) -> Iterator[Block]:
    """Yield the claims, the judges where there are several, and the tables of each."""
    yield from claims_first(document)
    several = len(document.results) > 1
    if several:
        yield _judges(document.results)
    for entry in document.results:
        name = f"{entry.judge}: " if several else ""
        yield from _tables(entry, name, main=not several)
    yield from rows_left_out(document)


def _title(name: str, words: str) -> str:
    return f"{name}{words}" if name else words[0].upper() + words[1:]


def _tables(entry: JudgeEntry, name: str, *, main: bool) -> Iterator[Table | Paragraph]:
    if entry.models:
        yield _models(entry, entry.models, _title(name, "models by people's standard"), main=main)
    if entry.groups:
        yield _models(entry, entry.groups, _title(name, "people's mean by group"), main=False)
    if entry.map and entry.scale.kind != "pairs":
        yield _map(entry, name)
    if entry.bias:
        yield _leans(entry, name)
    if entry.pairs:
        yield _pairs(entry, name)
    if entry.disagreements:
        yield _surprises(entry, name)
    if entry.labels_needed is not None:
        labels_needed = entry.labels_needed
        yield Paragraph(
            f"{name}{labels_needed.labels:,} rated rows in all would give people's mean to within "
            f"{size_words(entry, labels_needed.precision)}."
        )


def rating(entry: JudgeEntry, value: float | EstimateEntry | None, *, sign: bool = False) -> Number:
    """Return a rating by people as a cell: of yes/no and pairs a share."""
    is_known = value if isinstance(value, EstimateEntry) else EstimateEntry(value=value)
    if is_known.low == is_known.high:
        is_known = EstimateEntry(value=is_known.value)
    share = entry.scale.kind != "ratings"
    span = entry.scale.people[1] - entry.scale.people[0]
    digits = 1 if share else 2 if span <= 10 else 1
    unit = "points" if share and sign else "share" if share else "probability"
    return Number(is_known.value, is_known.low, is_known.high, unit, digits, signed=sign)  # type: ignore[arg-type]


def _judges(entries: list[JudgeEntry]) -> Table:
    """Return one row per judge, the one worth most labels first."""
    costs = any(entry.cost is not None for entry in entries)
    columns: Columns = {
        "judge": "judge",
        "worth, labels": lambda e: number_cell(e.people_mean.labels_saved),
        **({"labels per dollar": _per_dollar} if costs else {}),
        "right order": lambda e: percent_cell(e.order),
        "kappa": lambda e: _kappa(e.kappa),
        "people's mean": lambda e: rating(e, e.people_mean.combined),
        "judge says": lambda e: rating(e, e.people_mean.judge_only),
    }
    ranking = sorted(entries, key=lambda entry: -entry.people_mean.labels_saved)
    note = "Worth: labels by people that would have to be added for the same precision without it."
    return table_of(ranking, columns, "Judges", note=note, main=True)


def _per_dollar(entry: JudgeEntry) -> Number:
    """Return labels saved per dollar that all verdicts cost."""
    if not entry.cost:
        return number_cell(None, missing="no cost given")
    return number_cell(entry.people_mean.labels_saved / (entry.cost * entry.n), digits=2)


def _kappa(estimate: EstimateEntry | None) -> Number:
    is_known = estimate or EstimateEntry()
    return Number(is_known.value, is_known.low, is_known.high, digits=2, missing="other scale")


def _models(entry: JudgeEntry, models: list[JudgedModel], title: str, *, main: bool) -> Table:
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
    return table_of(ranking, columns, title, note=note, main=main)


def _judge_says(entry: JudgeEntry, value: float) -> Number:
    if entry.scale.kind == "pairs":
        return rating(entry, value)
    return Number(value, digits=2) if entry.scale.kind == "ratings" else share_cell(value)


def _strength(estimate: EstimateEntry | None) -> Number:
    is_known = estimate or EstimateEntry()
    return Number(
        is_known.value, is_known.low, is_known.high, digits=2, signed=True, missing="open"
    )


def _map(entry: JudgeEntry, name: str) -> Table:
    columns: Columns = {
        "score": lambda e: judge_score(entry, e.score),
        "means": lambda e: rating(entry, EstimateEntry(value=e.value, low=e.low, high=e.high)),
        "people said": lambda e: rating(entry, e.people),
        "rated": "labels",
    }
    note = (
        "Means: people's mean behind a score. People said: the mean of the ratings nearest to it."
    )
    return table_of(entry.map, columns, _title(name, "what a score means"), note=note)


def _leans(entry: JudgeEntry, name: str) -> Table:
    tested = sorted(entry.bias, key=lambda lean: -abs(lean.value or 0.0))
    columns: Columns = {
        "lean to": lambda e: f"{e.kind}: {e.name}",
        "leans by": lambda e: _size(entry, e),
        "p": lambda e: p_cell(e.p),
        "how": "method",
        "rated": "labels",
    }
    unit = "points of 100" if entry.scale.kind == "yes/no" else "points of the judge's scale"
    note = (
        f"Beyond the quality that people see (two are needed), in {unit}; p of each by itself."
        if entry.scale.kind != "pairs"
        else "In points of 100: beyond one half where both orders are known, else beyond people."
    )
    return table_of(tested, columns, _title(name, "what the judge leans to"), note=note)


def _size(entry: JudgeEntry, lean: JudgeBias) -> Cell:
    if entry.scale.kind == "ratings":
        return Number(lean.value, lean.low, lean.high, digits=2, signed=True, missing="too few")
    return Number(lean.value, lean.low, lean.high, "points", 1, signed=True, missing="too few")


def _pairs(entry: JudgeEntry, name: str) -> Table:
    pairs = entry.scale.kind == "pairs"
    columns: Columns = {
        "ahead": lambda e: e.a if (e.difference.value or 0.0) >= 0 else e.b,
        "behind": lambda e: e.b if (e.difference.value or 0.0) >= 0 else e.a,
        "ahead by, log odds" if pairs else "ahead by": lambda e: _lead(entry, e, pairs=pairs),
        "p, Holm": lambda e: p_cell(e.p_adjusted),
    }
    ranking = sorted(entry.pairs, key=lambda pair: pair.p_adjusted or 0.0)
    return table_of(
        ranking, columns, _title(name, "models against each other"), labels=2, folded=True
    )


def _lead(entry: JudgeEntry, pair: JudgedPair, *, pairs: bool) -> Number:
    lead = pair.difference if (pair.difference.value or 0.0) >= 0 else pair.difference.turned()
    return _strength(lead) if pairs else rating(entry, lead, sign=True)


def _surprises(entry: JudgeEntry, name: str) -> Table:
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
    title = _title(name, "most surprising disagreements")
    labels = 2 + len(models)
    return table_of(entry.disagreements, columns, title, labels=labels, note=note)


def _verdict(entry: JudgeEntry, value: float) -> Cell:
    """Return what people said: a word where there is one, or a number between words."""
    words = {"pairs": {1.0: "A", 0.0: "B", 0.5: "tie"}, "yes/no": {1.0: "yes", 0.0: "no"}}
    return words.get(entry.scale.kind, {}).get(value) or rating(entry, value)


def _text(item: Disagreement) -> Text:
    """Return the answer, cut; the question and the whole of it where one looks closer."""
    words = item.text or item.question or ""
    whole = "\n\n".join(filter(None, (item.question, item.text)))
    return Text(cut_text(words, _LETTERS), whole)
