"""Tables of people's labels: labelling, a watch over time, and a judge beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from calibrant.findings.claims import count, judge, percent, subject_name
from calibrant.findings.documents import labels
from calibrant.findings.documents.entries import EstimateEntry
from calibrant.findings.documents.fields import JudgeFields, LabelFields, MonitorFields
from calibrant.metrics.stats.multiplicity import holm
from calibrant.report import cells
from calibrant.report.captions import rows_left_out
from calibrant.report.cells import Block, Columns, Paragraph, Table, cut_text, entry_name, table_of

_LAST = 12
_MONTH = 30


# -- monitoring -------------------------------------------------------------------------------


def monitor_blocks(document: MonitorFields) -> Iterator[Block]:
    """Yield the blocks of a ``calibrant.monitor/1`` document: the latest times."""
    entries = document.results
    # A short view has room for one table: that of an alarm, where there is one.
    first = next((entry for entry in entries if entry.alarm), entries[0])
    for entry in entries:
        yield _history(entry, named=len(entries) > 1, main=entry is first)
        if slope := entry.drift_per_day:
            ends = (_MONTH * end for end in slope.ends)
            change = cells.points_cell(dict(zip(("value", "low", "high"), ends, strict=True)))
            yield Paragraph(f"The gap changes by {change} points in 30 days.")
        yield from _ordinary_days(entry.ordinary_days)
        if expiry := entry.expiry:
            date = f", on {expiry.date}" if expiry.date else ""
            yield Paragraph(
                f"A verification to +/- {expiry.precision:g} holds for {expiry.days:,.0f} days"
                f"{date}, at a drift of {expiry.drift_per_day:.2g} per day ({expiry.drift_source})."
            )


def _ordinary_days(usual: labels.OrdinaryDaysEntry | None) -> Iterator[Block]:
    """Yield how far days stray by themselves, and their weekly rhythm where there is one."""
    if usual is None or usual.spread is None:
        return
    yield Paragraph(
        f"Ordinary days stray {usual.spread:.1f} times as far as their labels explain "
        f"({usual.days:,} days)."
    )
    if usual.week:
        yield table_of(
            usual.week.items(),
            {
                "weekday": lambda row: row[0],
                "gap beyond the mean of all days": lambda row: cells.points_cell(
                    {"value": row[1], "low": None, "high": None}
                ),
            },
            "Weekly rhythm, taken off before a change is looked for",
        )


def _history(entry: labels.MonitorEntry, *, named: bool, main: bool) -> Table:
    note = (
        "Gap: says minus right, in points. Evidence of a change: what a bet against "
        f"'no change' has won; the alarm is at {entry.limit:.3g}."
    )
    if entry.batches > _LAST:
        note += f" The last {_LAST} of {entry.batches:,}; the JSON document holds more."
    return table_of(
        entry.history[-_LAST:],
        {
            "when": lambda e: e.when + (" ALARM" if e.alarm else ""),
            "labels": "n",
            "right": lambda e: cells.percent_cell(e.accuracy),
            "says": lambda e: cells.percent_cell(e.mean_confidence),
            "gap": lambda e: cells.points_cell(e.gap),
            "evidence": lambda e: cells.said_cell(e.capital, _won(e.capital)),
        },
        entry_name(entry) if named else "",
        note=f"{entry_name(entry)}. {note}" if named else note,
        main=main,
    )


def _won(capital: float) -> str:
    if capital >= 1e6:
        return "> 1,000,000"
    return f"{capital:,.0f}" if capital >= 100 else f"{capital:.3g}"


# -- labelling --------------------------------------------------------------------------------


def label_blocks(document: LabelFields) -> Iterator[Block]:
    """Yield the blocks of a ``calibrant.label/1`` document."""
    if document.grader:
        yield from _grader(document.grader)
        return
    batch, labelled = document.batch, [entry for entry in document.results if entry.labelled]
    if batch:
        side = f", steered by {batch.side}" if batch.side else ""
        yield Paragraph(
            f"Batch {batch.number} with {batch.items:,} items ({batch.design}{side}) is in "
            f"{batch.path}: fill the column `correct` with 1 or 0, then run `calibrant label add`.",
            strong=True,
        )
    if added := document.added:
        text = f"{count(added.labels, 'label')} taken, {added.left_empty:,} left empty; table "
        yield Paragraph(f"{text}written to {added.written}")
    yield from rows_left_out(document)
    if not batch:
        for entry in labelled:
            yield Paragraph(_stop(entry, named=len(labelled) > 1), strong=True)
        if not labelled:
            yield Paragraph("There is no label yet, so nothing can be said.", strong=True)
    if labelled:
        yield _state(labelled, document.target)
    for entry in labelled:
        if entry.judge:
            yield _judge(entry_name(entry), entry.judge)


def _grader(grader: labels.GraderEntry) -> Iterator[Block]:
    """Yield how good the grades are that people checked, and where they fail."""
    checked = [entry for entry in grader.models if entry.checked]
    if not checked:
        yield Paragraph("No grade is checked yet, so nothing can be said.", strong=True)
        return
    columns: Columns = {
        "model": "model",
        "checked": lambda e: _part(e.checked, e.answers),
        "doubtful": lambda e: cells.share_cell(e.doubtful),
        "found wrong": "wrong",
        "wrong of all": lambda e: cells.percent_cell(e.error),
        "kappa": lambda e: cells.number_cell(e.kappa, digits=2),
    }
    note = (
        "'Wrong of all': share of all grades that people would not share, with its 95 % interval. "
        "Kappa: agreement with people beyond chance."
    )
    yield table_of(checked, columns, "The grader on this data", note=note)
    columns = {name: name for name in ("rule", "graded", "checked", "wrong")}
    yield table_of(grader.rules, columns, "Where it fails")


def _part(number: int, whole: int) -> cells.Number:
    return cells.said_cell(number, f"{number:,} of {whole:,}")


def _stop(entry: labels.LabelEntry, *, named: bool) -> str:
    assert entry.stop is not None
    text = f"{'you may stop' if entry.stop.stop else 'label more'}: {entry.stop.reason}."
    if not entry.stop.stop and entry.stop.reason.startswith("no goal"):
        value, low, high = map(percent, entry.claimed_accuracy.ends)
        text = (
            f"right in {value} of all answers ({low} to {high}), by "
            f"{count(entry.labelled, 'label')}. Name a precision or a threshold to learn when to "
            "stop."
        )
    name = subject_name({"model": entry.model, "method": entry.method})
    return f"{name}: {text}" if named else text[0].upper() + text[1:]


def _state(entries: list[labels.LabelEntry], target: str | None) -> Table:
    several = len({entry.method for entry in entries}) > 1
    return table_of(
        entries,
        {
            "model": entry_name if several else "model",
            "labelled": lambda e: _part(e.labelled, e.n),
            "right": lambda e: cells.percent_cell(_exact_or_interval(e.accuracy)),
            "says": lambda e: cells.share_cell(e.mean_confidence),
            "ECE": lambda e: cells.points_cell(_exact_or_interval(e.ece), sign=False),
            "ECE for all looks": lambda e: _range(e.stop.interval),
        },
        "Running estimate",
        note=f"ECE in points. Target: {target}. 'For all looks': holds over all looks together, so "
        "look after every batch and stop when you like.",
    )


def _exact_or_interval(estimate: EstimateEntry) -> EstimateEntry:
    """Return an estimate without the interval that is none: every row has a label."""
    return EstimateEntry(value=estimate.value) if estimate.low == estimate.high else estimate


def _range(estimate: EstimateEntry) -> cells.Number:
    _, low, high = estimate.ends
    words = "all labelled" if low == high else f"{100 * low:.1f} to {100 * high:.1f}"
    return cells.said_cell(high, words)


def _judge(name: str, verdicts: labels.Judged) -> Table:
    rows = [("accuracy", verdicts.accuracy), ("Brier", verdicts.brier), ("gap", verdicts.gap)]
    rows += [(f"gap at {part.low:.2f} to {part.high:.2f}", part.gap) for part in verdicts.bins]
    return table_of(
        rows,
        {
            "quantity": lambda row: row[0],
            "gold and judge": lambda row: cells.estimate_cell(row[1].combined),
            "gold alone": lambda row: cells.estimate_cell(row[1].gold_only),
            "judge alone": lambda row: cells.Number(row[1].judge_only),
            "gold labels saved": lambda row: cells.number_cell(row[1].gold_saved),
        },
        f"{name}: {verdicts.gold_labels:,} gold labels and {verdicts.judge_labels:,} of the judge",
        note="The judge's own number has no valid interval; stretches of the confidence hold all "
        "at once. Gap: says minus right, above 0 is over-confident.",
    )


_LETTERS = 60
_STRENGTH: dict[str, Any] = {"signed": True, "missing": "open"}


def judge_blocks(document: JudgeFields) -> Iterator[Block]:
    """Yield the judges where there are several, and the tables of each."""
    several, settings = len(document.results) > 1, document.settings or {}
    if several:
        yield _judges(document.results)
    for place, entry in enumerate(document.results):
        name, pairs = f"{entry.judge}: " if several else "", entry.scale.kind == "pairs"
        leans = [lean for lean in entry.bias if lean.value is not None]
        tables = {
            "models by people's standard": entry.models and _models(entry, main=not several),
            "people's mean by group": entry.groups and _models(entry, groups=True),
            "what a score means": not pairs and _map(entry),
            "what the judge leans to": leans and _leans(entry, leans),
            "models against each other": entry.pairs and _pairs(entry),
            "most surprising disagreements": entry.disagreements and _surprises(entry),
        }
        for words, table in tables.items():
            if table:
                title = name + words if several else words.capitalize()
                behind: dict[str, Any] = {"requested": False, "name": ""} if place else {}
                yield replace(table, title=title, **behind)
        if entry.bias and not leans:
            yield Paragraph(f"{name}Leans: in all {len(entry.bias):,} groups too few ratings by 2.")
        if entry.cost and not several:
            text = f"A dollar of its verdicts saves {_a_dollar(entry):.2g} ratings."
            yield Paragraph(text, requested=True)
        if labels_needed := entry.labels_needed:
            yield Paragraph(
                f"{name}{labels_needed.labels:,} rated rows in all would give people's mean to "
                f"within {judge.size_words(entry, labels_needed.precision)}.",
                requested=bool(settings.get("precision")) and not place,
            )


def rating(
    entry: labels.JudgeEntry, value: float | EstimateEntry | None, *, sign: bool = False
) -> cells.Number:
    """Return a rating by people as a cell: of yes/no and pairs a share."""
    estimate = value if isinstance(value, EstimateEntry) else EstimateEntry(value=value)
    shares, (low, high) = entry.scale.kind != "ratings", entry.scale.people
    unit = ("points" if sign else "share") if shares else "probability"
    digits = 1 if shares or high - low > 10 else 2
    estimate = _exact_or_interval(estimate)
    return _plain(estimate, unit=unit, digits=digits, signed=sign, missing="too few")


def judge_mean(entry: labels.JudgeEntry, value: float | None) -> cells.Number:
    """Return a mean of the judge's scores as a cell, with its scale where people have another."""
    if entry.scale.kind == "pairs" or entry.scale.same:
        return replace(rating(entry, value), missing="other scale")
    low, high = entry.scale.judge
    words = "other scale" if value is None else f"{value:.3g} of {low:g}-{high:g}"
    return cells.said_cell(value, words)


def _plain(estimate: EstimateEntry | labels.JudgeBias | None, **form: Any) -> cells.Number:
    """Return an estimate with two digits, unless the form says so."""
    ends = estimate or EstimateEntry()
    return cells.Number(ends.value, ends.low, ends.high, **{"digits": 2, **form})


def _a_dollar(entry: labels.JudgeEntry) -> float | None:
    return entry.people_mean.labels_saved / (entry.cost * entry.n) if entry.cost else None


def _judges(entries: list[labels.JudgeEntry]) -> Table:
    """Return one row per judge, the one that saves most ratings first."""
    costs, pairs = any(e.cost is not None for e in entries), entries[0].scale.kind == "pairs"
    mean, says = ("A wins, people", "A wins, judge") if pairs else ("people's mean", "judge says")
    columns: Columns = {
        "judge": "judge",
        "ratings saved": "people_mean.labels_saved",
        **({"ratings per dollar": lambda e: cells.number_cell(
            _a_dollar(e), digits=2, missing="no cost given")} if costs else {}),
        "right order": lambda e: cells.percent_cell(e.order),
        "kappa": lambda e: _plain(e.kappa, missing="other scale"),
        mean: lambda e: rating(e, e.people_mean.combined),
        says: lambda e: judge_mean(e, e.people_mean.judge_only),
    }  # fmt: skip
    ranking = sorted(entries, key=lambda e: -e.people_mean.labels_saved)
    note = "Ratings saved: those by people that the same precision would take without the judge."
    return table_of(ranking, columns, "Judges", note=note, main=True, whole_names=True)


def _models(entry: labels.JudgeEntry, *, groups: bool = False, main: bool = False) -> Table:
    pairs = entry.scale.kind == "pairs"
    columns: Columns = {
        "group" if groups else "model": "name",
        "people (wins)" if pairs else "people": lambda e: rating(entry, e.combined),
        "judge says": lambda e: judge_mean(entry, e.judge_only),
        **({"strength": lambda e: _plain(e.strength, **_STRENGTH)} if pairs else {}),
        "rated": "labels",
        "rows": "n",
    }
    rows = entry.groups if groups else entry.models
    ranking = sorted(rows, key=lambda model: -(model.combined.value or 0.0))
    note = "People: the mean that people would give all rows, with its 95 % interval."
    return table_of(ranking, columns, note=note, main=main, requested=groups)


def _map(entry: labels.JudgeEntry) -> Table:
    columns: Columns = {
        "score": lambda e: judge.judge_score(entry, e.score),
        "means": lambda e: rating(entry, EstimateEntry(value=e.value, low=e.low, high=e.high)),
        "people said": lambda e: rating(entry, e.people),
        "rated": "labels",
    }
    note = "Means: people's mean behind a score. People said: mean of the ratings nearest to it."
    return table_of(reversed(entry.map), columns, note=note)


def _leans(entry: labels.JudgeEntry, leans: list[labels.JudgeBias]) -> Table:
    """Return the leans that were measured, with the p-values that sentences go by."""
    kind, several = entry.scale.kind, [lean for lean in leans if lean.method == "two people"]
    tested = zip(several, holm([e.p or 0.0 for e in several]).tolist(), strict=True)
    factor = judge.LEVEL / judge.FAVOUR_LEVEL
    p: dict[str | None, float | None] = {e.name: min(factor * x, 1.0) for e, x in tested}
    if kind == "pairs":
        # Noise alone makes a judge pick less often what people prefer: that is no lean.
        beyond = {e.name: ((e.judge_share or 0.0) - 0.5) * (e.value or 0.0) for e in leans}
        p = {e.name: e.p for e in leans if e.kind == "position" or beyond[e.name] > 0}
    form = {} if kind == "ratings" else {"unit": "points", "digits": 1}
    title = "p" if kind == "pairs" else "p corrected"
    columns: Columns = {
        "lean to": lambda e: f"{e.kind}: {e.name}",
        "leans by": lambda e: _plain(e, signed=True, **form),
        title: lambda e: cells.Number(p.get(e.name), unit="p", missing=""),
        "how": "method",
        "rated": "labels",
    }
    unit, few = "100" if kind == "yes/no" else "the judge's scale", len(entry.bias) - len(leans)
    note = (
        "In points of 100: beyond one half where both orders are known, else beyond people. p is "
        "only for a judge that picks long (or short) answers in more than half of the pairs."
        if kind == "pairs"
        else "Above 0 the judge scores them higher than what two people see in them explains, "
        f"below 0 lower, in points of {unit}. p: Holm's, times {factor:.3g}; at most 0.05 is shown."
    ) + f" Too few ratings by two people: {few:,} more." * bool(few)
    ranking = sorted(leans, key=lambda lean: (p.get(lean.name) or 1.0, -abs(lean.value or 0.0)))
    return table_of(ranking, columns, note=note)


def _pairs(entry: labels.JudgeEntry) -> Table:
    lead: Columns = {"ahead by": lambda e: rating(entry, e.difference, sign=True)}
    if entry.scale.kind == "pairs":
        lead = {"ahead by, log odds": lambda e: _plain(e.difference, **_STRENGTH)}
    factor = judge.LEVEL / judge.MODEL_LEVEL
    p: Columns = {"p corrected": lambda e: cells.p_cell(min(factor * (e.p_adjusted or 0.0), 1.0))}
    columns = {"ahead": "a", "behind": "b", **lead, **p}
    leads = [pair if pair.difference.number >= 0 else pair.turned() for pair in entry.pairs]
    leads.sort(key=lambda pair: pair.p_adjusted or 0.0)
    note = f"p: Holm's for all pairs, times {factor:.3g}; at most 0.05 is shown."
    return table_of(leads, columns, labels=2, folded=True, note=note)


def _surprises(entry: labels.JudgeEntry) -> Table:
    first = entry.disagreements[0]
    models: Columns = {} if first.model is None else {"model": lambda e: e.model or ""}
    columns: Columns = {
        "row": lambda e: str(e.row),
        "question" if first.text is None else "answer": _text,
        **models,
        "judge said": lambda e: judge.judge_score(entry, e.judge),
        "people": lambda e: words.get(e.people) or rating(entry, e.people),
        "expected": lambda e: rating(entry, e.expected),
    }
    # What people said is a word where there is one, or a number between words.
    ends = dict(zip((0.0, 1.0), entry.scale.people_words or ["no", "yes"], strict=False))
    by_kind: dict[str, Mapping[float, str]] = {"pairs": judge.SIDES, "yes/no": ends}
    words = by_kind.get(entry.scale.kind, {})
    share = ", as the share of A" if entry.scale.kind == "pairs" else ""
    note = f"Expected: our prediction of people's rating{share}, from the judge's score."
    form: dict[str, Any] = {"labels": 2 + len(models), "note": note, "name": "disagreements"}
    return table_of(entry.disagreements, columns, **form)


def _text(item: labels.Disagreement) -> cells.Cell:
    """Return the answer, cut; the question and the whole of it where one looks closer."""
    whole = "\n\n".join(filter(None, (item.question, item.text)))
    words = cut_text(item.text or item.question or "", _LETTERS)
    return words if words == whole else cells.Text(words, whole)
