"""Charts of what people's labels show: labelling, a watch over time, and a judge beside them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import compress
from typing import Any

from calibrant.findings.claims import count
from calibrant.findings.claims.judge import in_units, mean_words
from calibrant.findings.documents import labels
from calibrant.findings.documents.entries import EstimateEntry
from calibrant.findings.documents.fields import JudgeFields, LabelFields, MonitorFields
from calibrant.report.answers import claims_of, headline
from calibrant.report.cells import entry_name
from calibrant.report.charts import chart
from calibrant.report.charts.svg import in_points, percent, points, short_number
from calibrant.report.tables.labels import judge_mean

_STANDARD_ERRORS = 1.96
"""On either side of a gap, for 95 %."""
_MOST_EVIDENCE = 12.0
"""Powers of ten shown at most: beyond that the alarm is long since certain."""


def monitor_charts(document: MonitorFields) -> Iterator[chart.Chart]:
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


def _is_about(entry: labels.MonitorEntry, subject: Mapping[str, Any]) -> bool:
    return all(subject.get(name) in (None, getattr(entry, name)) for name in ("model", "method"))


def _over_time(entry: labels.MonitorEntry, name: str, *, named: bool) -> chart.Chart:
    history = entry.history
    most = max(row.n for row in history)
    # A batch of a few labels jumps about: it is small, and the line passes over it.
    steady = [(i, row.gap.ends[0]) for i, row in enumerate(history) if row.n >= most / 10]
    marks: list[chart.Mark] = [
        chart.ReferenceLine(0),
        *_ordinary_band(entry),
        *_alarm(entry),
        chart.Line(steady, "plain", look="faint"),
    ]
    owner = f"{entry.model}␟{entry.method}"
    marks += [_stretch(row, place, row.n / most, owner) for place, row in enumerate(history)]
    several = f", {entry_name(entry)}" if named else ""
    return chart.Chart(
        name,
        f"Confidence minus share right over time, in points{several}",
        f"{entry.model + '. ' if named else ''}"
        "Above 0 it says more than it knows. Lines: intervals. Diamonds: alarm."
        f"{' Shaded: where ordinary days lie.' if _days_differ(entry) else ''}",
        chart.Axis(names=_dates(history)),
        chart.Axis("confidence − share right, points", words=points),
        marks,
    )


def _days_differ(entry: labels.MonitorEntry) -> bool:
    return entry.ordinary_days is not None and entry.ordinary_days.differ


def _ordinary_band(entry: labels.MonitorEntry) -> list[chart.Mark]:
    """Return where days lie that stray as far as ordinary ones, which is beyond their labels."""
    if not _days_differ(entry) or entry.ordinary_days is None:
        return []
    history, spread = entry.history, entry.ordinary_days.spread or 1.0
    usual = [row for row in history if entry.alarm is None or row.when < (entry.alarm.since or "")]
    usual = usual or list(history)
    middle = sum(row.n * row.gap.number for row in usual) / sum(row.n for row in usual)
    ends = [(row.gap.ends[1], row.gap.ends[2]) for row in history]
    reach = [spread * (high - low) / 2 for low, high in ends]
    return [
        chart.Band([(i, middle - half, middle + half) for i, half in enumerate(reach)], "first")
    ]


def _stretch(row: labels.WatchedBatch, place: int, share: float, owner: str) -> chart.Dot:
    value, low, high = row.gap.ends
    tip = (
        f"{row.when}: {points(value)}{chart.between(row.gap, points)} points, right "
        f"{percent(row.accuracy.ends[0])}, says {percent(row.mean_confidence.ends[0])}, "
        f"{count(row.n, 'label')}{', alarm' if row.alarm else ''}"
    )
    look: tuple[str, chart.Shape, float] = ("first", "dot", 0.5 * share)
    if row.alarm:
        look = ("second", "diamond", 0.6)
    return chart.Dot(place, value, low, high, *look, tip, f"{owner}␟watched = {row.when}")


def _alarm(entry: labels.MonitorEntry) -> list[chart.ReferenceLine]:
    """Return a line at the last alarm, and one at the last change of the mix of groups."""
    marks = []
    for word, alarm in (("alarm", entry.alarm), ("new mix", entry.mix and entry.mix.alarm)):
        if alarm:
            places = [i for i, row in enumerate(entry.history) if row.when == alarm.when]
            line = f"{word} {alarm.when}"
            marks += [chart.ReferenceLine(i, "x", line, "second", dashed=True) for i in places[:1]]
    return marks


def _dates(history: Sequence[labels.WatchedBatch]) -> list[str]:
    names = [row.when[:16] for row in history]
    if all(len(name) == 10 and name.endswith("-01") for name in names):
        # Months, by their first day.
        return [name[:7] for name in names]
    return names


def _evidence(entry: labels.MonitorEntry, number: int) -> chart.Chart:
    rows = entry.history
    # A logarithm of 0 has no place on the chart; capital that is lost is shown at 1e-6.
    places = [
        (i, min(math.log10(max(row.capital, 1e-6)), _MOST_EVIDENCE)) for i, row in enumerate(rows)
    ]
    alarm, limit = entry.alarm, math.log10(entry.limit)
    state = "no alarm" if alarm is None else f"alarm at {alarm.when}, since {alarm.since}"
    base = min(0.0, *(value for _, value in places))
    tips = [f"{row.when}: a bet has grown to {row.capital:.3g} times" for row in rows]
    return chart.Chart(
        f"evidence-{number}",
        f"{entry_name(entry)}: evidence of a change",
        f"Evidence against '{entry.reference}', as powers of ten of a fair bet's capital; the "
        f"dashed line is the alarm. Here: {state}.",
        chart.Axis(names=_dates(rows)),
        chart.Axis("evidence, powers of ten", words=short_number),
        [
            chart.Band([(place, base, value) for place, value in places], "first"),
            chart.Line(places, tips=tips),
            chart.ReferenceLine(
                limit, words=f"alarm at {entry.limit:.3g}", tone="second", dashed=True
            ),
        ],
    )


def label_charts(document: LabelFields) -> Iterator[chart.Chart]:
    """Yield the error with its interval as labels came in, and where the gap of each block is."""
    entry = next((entry for entry in document.results if len(entry.history) > 1), None)
    if entry is not None:
        yield _running(entry, "answer")
    for number, block in enumerate(document.results, 1):
        if block.gaps:
            yield _gaps(block, number)


def _running(entry: labels.LabelEntry, name: str) -> chart.Chart:
    # The first looks know nothing yet, and their intervals would hide what the last ones know.
    least = entry.history[-1].labels / 10
    looks = [row for row in entry.history if row.labels >= least and row.ece.value is not None]
    errors = [(row.labels, row.ece.ends) for row in looks]
    tips = [
        f"{n:,} labels: {in_points(round(value, 3))} ({in_points(low)} to {in_points(high)}) points"
        for n, (value, low, high) in errors
    ]
    most, (value, *_) = errors[-1]
    now = f"{points(value)[1:]} points now"
    return chart.Chart(
        name,
        "Calibration error and its interval, as labels came in",
        "Shaded: interval that holds at every look.",
        chart.Axis("labels so far", words=short_number, low=0),
        chart.Axis("calibration error, points", words=in_points, low=0),
        [
            chart.Band([(n, low, high) for n, (_, low, high) in errors], "first"),
            chart.Line([(n, value) for n, (value, *_) in errors], tips=tips),
            chart.Dot(most, value, shape="ring", label=now, side="above"),
        ],
    )


def _gaps(entry: labels.LabelEntry, number: int) -> chart.Chart:
    labelled = [part for part in entry.gaps if part.labels]
    most = max((part.share for part in labelled), default=1) or 1
    unseen = len(entry.gaps) - len(labelled)
    cells, are = ("1 cell has", "is") if unseen == 1 else (f"{unseen} cells have", "are")
    missing = f" {cells} no label yet and {are} not shown." if unseen else ""
    return chart.Chart(
        f"gaps-{number}",
        f"{entry_name(entry)}: where the gap is",
        "Confidence minus share right in each cell, plus or minus two standard errors (within what "
        "is possible); above 0 is over-confident. Large dots are cells that hold many items."
        f"{missing}",
        chart.Axis("confidence", low=0, high=1),
        chart.Axis("confidence − share right, points", words=points),
        [chart.ReferenceLine(0), *(_gap(part, part.share / most) for part in labelled)],
    )


def _gap(part: labels.GapCell, size: float) -> chart.Dot:
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
    return chart.Dot((start + end) / 2, gap, low, high, "second", size=size, tip=tip, key=key)


_MOST_ROWS, _ALL = 30, "all rows"
_LEGEND: chart.Legend = [("first", "dot", "people, corrected by the judge"),
                         ("third", "ring", "people alone"), ("second", "diamond", "judge"),
                         ("plain", "dashed", "people, all rows")]  # fmt: skip
_FLIPS: chart.Legend = [("second", "square", "follows a place"),
                        ("first", "square", "follows the answer")]  # fmt: skip


def judge_charts(document: JudgeFields) -> Iterator[chart.Chart]:
    """Yield the models of the first judge, then the map and the flips of each."""
    first = True
    for n, entry in enumerate(document.results, 1):
        owner = f", {entry.judge}" if len(document.results) > 1 else ""
        for what, describe in (("models", _models), ("map", _map), ("flips", _flips)):
            if picture := describe(entry, "answer" if first else f"judge-{what}-{n}", owner):
                yield picture
                first = False


def _people_axis(entry: labels.JudgeEntry, title: str = "people's mean") -> chart.Axis:
    low, high = entry.scale.people
    words = "{:g}".format if entry.scale.kind == "ratings" else partial(in_units, entry)
    return chart.Axis(title, words, low=low, high=high)


def _models(entry: labels.JudgeEntry, name: str, owner: str) -> chart.Chart | None:
    """Return people's means of models, corrected and alone, beside the judge's on one scale."""
    rated = [model for model in entry.models if model.combined.value is not None]
    if not rated:
        return None
    visible = sorted(rated, key=lambda model: -model.combined.number)[:_MOST_ROWS]
    ratings, mean = entry.scale.kind != "pairs", entry.people_mean
    # Of pairs no mean of all rows is told: it is that of the first side.
    rows = [(_ALL, mean)] * ratings + [(model.name, model) for model in visible]
    marks = [mark for row, means in rows for mark in _means(entry, row, means)]
    if ratings:
        marks.append(chart.ReferenceLine(mean.combined.number, "x", dashed=True))
    return chart.Chart(
        name,
        f"Models by people's standard{owner}",
        "Dot: the mean that people would give all rows, with its 95 % interval."
        + " Ring: the same from their ratings alone." * ratings
        + " Diamond: what the judge says." * entry.scale.same,
        _people_axis(entry, "people's mean" if ratings else "share of pairs won"),
        chart.Names([row for row, _ in rows], left_out=len(rated) - len(visible)),
        marks,
        legend=list(compress(_LEGEND, (True, ratings, entry.scale.same, ratings))),
    )


def _means(
    entry: labels.JudgeEntry, name: str, means: labels.JudgedModel | labels.PeopleMean
) -> Iterator[chart.Mark]:
    """Yield a row of people's mean beside the judge's, and below it that of people alone."""
    alone, says = getattr(means, "people_only", None), means.judge_only
    value, low, high = means.combined.ends
    tip, key = f"{name}: people {mean_words(entry, means.combined)}", ""
    if isinstance(means, labels.JudgedModel):
        key = f"model:{name}"
        tip += f", judge {judge_mean(entry, says)}, {means.labels:,} rated"
    dots = [chart.Dot(value, low=low, high=high, tip=tip)]
    if entry.scale.same and says is not None:
        dots.append(chart.Dot(says, tone="second", shape="diamond", tip=tip))
    if isinstance(alone, float) and alone != value and entry.scale.kind != "pairs":
        dots.append(chart.Dot(alone, tone="third", shape="ring", tip=tip))
    yield chart.Item(name, dots=dots, words=in_units(entry, value), tip=tip, key=key)
    if isinstance(alone, EstimateEntry):
        value, low, high = alone.ends
        tip = f"{name}: people alone {mean_words(entry, alone)}"
        ring = chart.Dot(value, low=low, high=high, tone="third", shape="ring", tip=tip)
        yield chart.Item(name, dots=[ring], words=in_units(entry, value), tip=tip, key=key)


def _map(entry: labels.JudgeEntry, name: str, owner: str) -> chart.Chart | None:
    """Return people's mean at each score, with the means of the ratings there."""
    if len(entry.map) < 2 or entry.scale.kind == "pairs":
        return None
    rows, most = entry.map, max(row.labels for row in entry.map) or 1
    (start, end), (low, high) = entry.scale.judge, entry.scale.people
    tips = [f"{row.score:.3g} means {mean_words(entry, row)}, {row.labels:,} rated" for row in rows]
    dots = [
        chart.Dot(row.score, row.people, tone="second", size=row.labels / most, tip=tip,
                  key=f"score:{row.score:g}")
        for row, tip in zip(rows, tips, strict=True) if row.people is not None
    ]  # fmt: skip
    diagonal = [chart.Line([(start, low), (end, high)], "plain", look="dashed")] * entry.scale.same
    return chart.Chart(
        name,
        f"What a score means{owner}",
        "Line: people's mean behind a score, with its 95 % interval. Dots: the ratings nearest to "
        "that score, larger where there are more."
        + " Dashed: it rates as people do."
        * len(diagonal),
        chart.Axis("the judge says", lambda value: f"{value:.3g}", low=start, high=end),
        _people_axis(entry),
        [
            *diagonal,
            chart.Band([(row.score, row.low, row.high) for row in rows], "first"),
            chart.Line([(row.score, row.value) for row in rows], tips=tips),
            *dots,
        ],
    )


def _flips(entry: labels.JudgeEntry, name: str, owner: str) -> chart.Chart | None:
    """Return to which place the verdicts go that flip with the order."""
    lean = next((lean for lean in entry.bias if lean.flips), None)
    if lean is None or lean.flips is None or lean.judge_share is None:
        return None
    first = round(lean.judge_share * lean.flips)
    bars = [("always the answer shown first", "second", first),
            ("always the answer shown second", "second", lean.flips - first),
            ("the same answer in both orders", "first", lean.labels - lean.flips)]  # fmt: skip
    return chart.Chart(
        name,
        f"The same pairs shown in both orders: which answer the judge picks{owner}",
        "A judge without a lean to a place picks the same answer in both orders.",
        chart.Axis("pairs", lambda value: f"{value:,.0f}", low=0),
        chart.Names([words for words, _, _ in bars]),
        [chart.Item(words, tone, bar=(0.0, n), words=f"{n:,}") for words, tone, n in bars],
        legend=_FLIPS,
    )
