"""Labels as they come in, as text: the state of labelling, and monitoring over time."""

from collections.abc import Iterator

from calibrant.findings.claims.claim import count, percent, subject_name
from calibrant.findings.documents import labels
from calibrant.findings.documents.entries import EstimateEntry
from calibrant.findings.documents.fields import LabelFields, MonitorFields
from calibrant.report import cells
from calibrant.report.blocks import Block, Columns, Paragraph, Table, entry_name, table_of
from calibrant.report.captions import rows_left_out

_LAST = 12
_MONTH = 30


# -- monitoring -------------------------------------------------------------------------------


def blocks(document: MonitorFields) -> Iterator[Block]:
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
            "right": lambda e: cells.percent_cell(e.accuracy),
            "says": lambda e: cells.share_cell(e.mean_confidence),
            "ECE": lambda e: cells.points_cell(e.ece, sign=False),
            "ECE for all looks": lambda e: _range(e.stop.interval),
        },
        "Running estimate",
        note=f"ECE in points. Target: {target}. 'For all looks': holds over all looks together, so "
        "look after every batch and stop when you like.",
    )


def _range(estimate: EstimateEntry) -> cells.Number:
    _, low, high = estimate.ends
    return cells.said_cell(high, f"{100 * low:.1f} to {100 * high:.1f}")


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
