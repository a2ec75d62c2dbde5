"""Charts of labels as they come in: the running estimate, the gap over time, the evidence."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from calibrant.findings.claims.claim import count
from calibrant.findings.documents.fields import LabelFields, MonitorFields
from calibrant.findings.documents.labels import GapCell, LabelEntry, MonitorEntry, WatchedBatch
from calibrant.report.answers import claims_of, headline
from calibrant.report.blocks import entry_name
from calibrant.report.charts.chart import (
    Axis,
    Band,
    Chart,
    Dot,
    Line,
    Mark,
    ReferenceLine,
    Shape,
    between,
)
from calibrant.report.charts.scales import in_points, percent, points, short_number

_STANDARD_ERRORS = 1.96
"""On either side of a gap, for 95 %."""
_MOST_EVIDENCE = 12.0
"""Powers of ten shown at most: beyond that the alarm is long since certain."""


def charts(document: MonitorFields) -> Iterator[Chart]:
    """Yield the gap over time of each entry, one with an alarm first, and the evidence."""
    entries = [entry for entry in document.results if entry.history]
    # The first sentence is about this one.
    claims = claims_of(document)
    sentences = next(iter(headline(claims, 1)), None)
    about = next((c.subject for c in claims if c.text == sentences), {})
    ranking = sorted(entries, key=lambda e: (not _is_about(e, about), not e.alarm))
    first = ranking[0] if ranking else None
    if first is not None:
        yield _over_time(first, "answer", named=len(entries) > 1)
    for n, entry in enumerate(entries, 1):
        if entry is not first:
            yield _over_time(entry, f"over-time-{n}", named=True)
    for n, entry in enumerate(entries, 1):
        yield _evidence(entry, n)


def _is_about(entry: MonitorEntry, subject: Mapping[str, Any]) -> bool:
    return all(subject.get(name) in (None, getattr(entry, name)) for name in ("model", "method"))


def _over_time(entry: MonitorEntry, name: str, *, named: bool) -> Chart:
    history = entry.history
    most = max(row.n for row in history)
    # A batch of a few labels jumps about: it is small, and the line passes over it.
    steady = [(i, row.gap.ends[0]) for i, row in enumerate(history) if row.n >= most / 10]
    marks: list[Mark] = [
        ReferenceLine(0),
        *_ordinary_band(entry),
        *_alarm(entry),
        Line(steady, "plain", look="faint"),
    ]
    owner = f"{entry.model}␟{entry.method}"
    marks += [_stretch(row, place, row.n / most, owner) for place, row in enumerate(history)]
    several = f", {entry_name(entry)}" if named else ""
    return Chart(
        name,
        f"Confidence minus share right over time, in points{several}",
        f"{entry.model + '. ' if named else ''}"
        "Above 0 it says more than it knows. Lines: intervals. Diamonds: alarm."
        f"{' Shaded: where ordinary days lie.' if _days_differ(entry) else ''}",
        Axis(names=_dates(history)),
        Axis("confidence − share right, points", words=points),
        marks,
    )


def _days_differ(entry: MonitorEntry) -> bool:
    return entry.ordinary_days is not None and entry.ordinary_days.differ


def _ordinary_band(entry: MonitorEntry) -> list[Mark]:
    """Return where days lie that stray as far as ordinary ones, which is beyond their labels."""
    if not _days_differ(entry) or entry.ordinary_days is None:
        return []
    history, spread = entry.history, entry.ordinary_days.spread or 1.0
    usual = [row for row in history if entry.alarm is None or row.when < (entry.alarm.since or "")]
    usual = usual or list(history)
    middle = sum(row.n * row.gap.number for row in usual) / sum(row.n for row in usual)
    ends = [(row.gap.ends[1], row.gap.ends[2]) for row in history]
    reach = [spread * (high - low) / 2 for low, high in ends]
    return [Band([(i, middle - half, middle + half) for i, half in enumerate(reach)], "first")]


def _stretch(row: WatchedBatch, place: int, share: float, owner: str) -> Dot:
    value, low, high = row.gap.ends
    tip = (
        f"{row.when}: {points(value)}{between(row.gap, points)} points, right "
        f"{percent(row.accuracy.ends[0])}, says {percent(row.mean_confidence.ends[0])}, "
        f"{count(row.n, 'label')}{', alarm' if row.alarm else ''}"
    )
    look: tuple[str, Shape, float] = ("first", "dot", 0.5 * share)
    if row.alarm:
        look = ("second", "diamond", 0.6)
    return Dot(place, value, low, high, *look, tip, f"{owner}␟watched = {row.when}")


def _alarm(entry: MonitorEntry) -> list[ReferenceLine]:
    """Return a line at the last alarm, and one at the last change of the mix of groups."""
    marks = []
    for word, alarm in (("alarm", entry.alarm), ("new mix", entry.mix and entry.mix.alarm)):
        if alarm:
            places = [i for i, row in enumerate(entry.history) if row.when == alarm.when]
            line = f"{word} {alarm.when}"
            marks += [ReferenceLine(i, "x", line, "second", dashed=True) for i in places[:1]]
    return marks


def _dates(history: Sequence[WatchedBatch]) -> list[str]:
    names = [row.when[:16] for row in history]
    if all(len(name) == 10 and name.endswith("-01") for name in names):
        # Months, by their first day.
        return [name[:7] for name in names]
    return names


def _evidence(entry: MonitorEntry, number: int) -> Chart:
    rows = entry.history
    # A logarithm of 0 has no place on the chart; capital that is lost is shown at 1e-6.
    places = [
        (i, min(math.log10(max(row.capital, 1e-6)), _MOST_EVIDENCE)) for i, row in enumerate(rows)
    ]
    alarm, limit = entry.alarm, math.log10(entry.limit)
    state = "no alarm" if alarm is None else f"alarm at {alarm.when}, since {alarm.since}"
    base = min(0.0, *(value for _, value in places))
    tips = [f"{row.when}: a bet has grown to {row.capital:.3g} times" for row in rows]
    return Chart(
        f"evidence-{number}",
        f"{entry_name(entry)}: evidence of a change",
        f"Evidence against '{entry.reference}', as powers of ten of a fair bet's capital; the "
        f"dashed line is the alarm. Here: {state}.",
        Axis(names=_dates(rows)),
        Axis("evidence, powers of ten", words=short_number),
        [
            Band([(place, base, value) for place, value in places], "first"),
            Line(places, tips=tips),
            ReferenceLine(limit, words=f"alarm at {entry.limit:.3g}", tone="second", dashed=True),
        ],
    )


def label_charts(document: LabelFields) -> Iterator[Chart]:
    """Yield the error with its interval as labels came in, and where the gap of each block is."""
    entry = next((entry for entry in document.results if len(entry.history) > 1), None)
    if entry is not None:
        yield _running(entry, "answer")
    for number, block in enumerate(document.results, 1):
        if block.gaps:
            yield _gaps(block, number)


def _running(entry: LabelEntry, name: str) -> Chart:
    # The first looks know nothing yet, and their intervals would hide what the last ones know.
    least = entry.history[-1].labels / 10
    looks = [row for row in entry.history if row.labels >= least and row.ece.value is not None]
    errors = [(row.labels, row.ece.ends) for row in looks]
    tips = [
        f"{n:,} labels: {in_points(round(value, 3))} ({in_points(low)} to {in_points(high)}) points"
        for n, (value, low, high) in errors
    ]
    labels, (value, *_) = errors[-1]
    now = f"{points(value)[1:]} points now"
    return Chart(
        name,
        "Calibration error and its interval, as labels came in",
        "Shaded: interval that holds at every look.",
        Axis("labels so far", words=short_number, low=0),
        Axis("calibration error, points", words=in_points, low=0),
        [
            Band([(n, low, high) for n, (_, low, high) in errors], "first"),
            Line([(n, value) for n, (value, *_) in errors], tips=tips),
            Dot(labels, value, shape="ring", label=now, side="above"),
        ],
    )


def _gaps(entry: LabelEntry, number: int) -> Chart:
    labelled = [part for part in entry.gaps if part.labels]
    most = max((part.share for part in labelled), default=1) or 1
    unseen = len(entry.gaps) - len(labelled)
    cells, are = ("1 cell has", "is") if unseen == 1 else (f"{unseen} cells have", "are")
    missing = f" {cells} no label yet and {are} not shown." if unseen else ""
    return Chart(
        f"gaps-{number}",
        f"{entry_name(entry)}: where the gap is",
        "Confidence minus share right in each cell, plus or minus two standard errors (within what "
        "is possible); above 0 is over-confident. Large dots are cells that hold many items."
        f"{missing}",
        Axis("confidence", low=0, high=1),
        Axis("confidence − share right, points", words=points),
        [ReferenceLine(0), *(_gap(part, part.share / most) for part in labelled)],
    )


def _gap(part: GapCell, size: float) -> Dot:
    start, end = part.bin
    spread = _STANDARD_ERRORS * (part.standard_error or 0.0)
    # No share is below 0 or above 1, so no gap leaves the range that the cell allows.
    gap = part.gap or 0.0
    low, high = max(gap - spread, start - 1), min(gap + spread, end)
    where = percent(start) if start == end else f"{percent(start)} to {percent(end)}"
    tip = (
        f"{where}: {points(gap)} ({points(low)} to "
        f"{points(high)}), {count(part.labels, 'label')}, {percent(part.share)} of the items"
    )
    key = f"bin:{start:g}:{end:g}"
    return Dot((start + end) / 2, gap, low, high, "second", size=size, tip=tip, key=key)
