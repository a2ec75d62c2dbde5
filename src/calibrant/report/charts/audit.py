"""Charts of an audit: one confidence or all of them in their rank, and what labels can show."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from calibrant.core.names import method_legend, method_name, method_words
from calibrant.findings.claims import Claim, count
from calibrant.findings.documents.audits import AuditBlock
from calibrant.findings.documents.entries import EstimateEntry
from calibrant.findings.documents.fields import AuditFields
from calibrant.report import answers
from calibrant.report.charts import chart, reliability
from calibrant.report.charts.ranking import ErrorFloors, floor_chart
from calibrant.report.charts.svg import percent, points

_PANELS = 3
_ROWS = 26
_NOTED = 24
_DIAGRAMS = 12
_SHADES = (0.02, 0.05, 0.1, 0.2, 0.35)
_TITLE = "Share of right answers (dot) and mean confidence (diamond) of each, best first"
_OF_ALL = " The dot counts answers without a confidence too, the gap does not."
_GAPS = "How far confidence is from the share of right answers, in points"


@dataclass(frozen=True, slots=True)
class _Entry:
    """One confidence: its row and panel, what is right, what is said, and its verdict."""

    row: str
    panel: str
    right: EstimateEntry
    says: EstimateEntry
    gap: EstimateEntry
    tone: str
    key: str
    note: str

    @property
    def size(self) -> float:
        return abs(self.gap.number)

    @property
    def tip(self) -> str:
        place = " / ".join(part for part in (self.row, self.panel) if part)
        return (
            f"{place}: right {percent(self.right.number)}, says {percent(self.says.number)}, "
            f"gap {points(self.gap.number)} points{chart.between(self.gap, points)}"
        )


def charts(document: AuditFields) -> Iterator[chart.Chart]:
    """Yield the answer, charts of meanings, and what the labels can show."""
    first = _answer(document)
    if first is not None:
        yield first
    several = len({entry.method for entry in document.blocks}) > 1
    floors = [
        ErrorFloors(
            _place(entry, several=several),
            entry.metrics["ece"],
            entry.verification,
            entry.calibration_test["expected_ece"] if entry.calibration_test else None,
        )
        for entry in document.blocks
        if entry.verification and "ece" in entry.metrics
    ]
    yield from reliability.meaning_charts(document.sem_ece or [], document.sem_ece_pooled)
    yield from floor_chart(floors)


def _answer(document: AuditFields) -> chart.Chart | None:
    """Return the reliability diagram of one confidence, or all confidences in their rank."""
    claims = answers.claims_by_entry(document.claims or [])
    able = [entry for entry in document.blocks if entry.group] or document.blocks
    display = [e for e in able if e.probability and e.metric("confidence_gap").value is not None]
    if not display:
        return reliability.meaning_reliability(document.sem_ece[0]) if document.sem_ece else None
    if len(display) == 1 and display[0].reliability:
        title = f"Share of right answers against confidence, {count(display[0].n, 'row')}"
        return reliability.reliability_chart(
            display[0].reliability, answers.entry_tone(display[0], claims), title
        )
    entries = _entries(display, claims)
    panels = list(dict.fromkeys(entry.panel for entry in entries))
    # Rows and panels of methods say themselves what they are.
    statement = any(entry.note for entry in entries) and len(entries) <= _NOTED
    methods = [] if statement else method_legend(entry.method for entry in display)
    legend = f"{'; '.join(methods)}." if methods else ""
    if len(panels) > _PANELS:
        return _gap_map(entries, _GAPS, legend or f"{_GAPS}.")
    without = _OF_ALL if any(map(answers.graded_without, display)) else ""
    caption = f"Gap: mean confidence minus share right, in percentage points.{without} {legend}"
    return _dumbbells(entries, panels, caption.strip())


def diagrams(document: AuditFields) -> list[chart.Chart]:
    """Return a reliability diagram of each confidence: the first few."""
    claims = answers.claims_by_entry(document.claims or [])
    several = len({entry.method for entry in document.blocks}) > 1
    curves = [(entry, entry.reliability) for entry in document.blocks if entry.reliability]
    return [
        reliability.reliability_chart(
            curve,
            answers.entry_tone(entry, claims),
            _place(entry, several=several),
            name=f"reliability-{number}",
        )
        for number, (entry, curve) in enumerate(curves[:_DIAGRAMS], 1)
    ]


def _place(entry: AuditBlock, *, several: bool) -> str:
    """Name what a chart is about; the method is left out where there is only one."""
    labels = _labels(entry)
    names = ("model", "method", "group") if several else ("model", "group")
    return " / ".join(labels[name] for name in names if labels[name])


def _labels(entry: AuditBlock) -> dict[str, str]:
    group = answers.group_words(entry.group)
    return {"model": entry.model, "method": entry.method, "group": group}


def _entries(entries: Sequence[AuditBlock], claims: Mapping[str, Sequence[Claim]]) -> list[_Entry]:
    """Return the entries in rows and panels: what varies least makes the panels."""
    labels = [_labels(entry) for entry in entries]
    varied = {name: {label[name] for label in labels} for name in ("model", "method", "group")}
    varied = {name: values for name, values in varied.items() if len(values) > 1}
    panel = min(varied, key=lambda name: len(varied[name])) if len(varied) > 1 else None
    rows = [name for name in varied if name != panel] or ["model"]
    return [
        _Entry(
            row=" / ".join(label[name] for name in rows if label[name]) or label["model"],
            panel="" if panel is None else label[panel] or "all",
            right=entry.metric("accuracy"),
            says=entry.metric("mean_confidence"),
            gap=entry.metric("confidence_gap"),
            tone=answers.entry_tone(entry, claims),
            key=answers.key_of(entry),
            note=method_words(label["method"]) if rows == ["method"] else "",
        )
        for label, entry in zip(labels, entries, strict=True)
    ]


def _ordered(entries: Sequence[_Entry], name: str) -> list[str]:
    """Return rows or panels by their mean miscalibration, best first."""
    sizes: dict[str, list[float]] = {}
    for entry in entries:
        sizes.setdefault(getattr(entry, name), []).append(entry.size)
    return sorted(sizes, key=lambda key: (sum(sizes[key]) / len(sizes[key]), key))


def _names(entries: Sequence[_Entry]) -> chart.Names:
    """Return the rows; many are cut in their middle, and the cut is said."""
    ranking = _ordered(entries, "row")
    cut = max(len(ranking) - _ROWS, 0)
    half = _ROWS // 2
    rows = [*ranking[:half], "", *ranking[-half:]] if cut else ranking
    notes = {entry.row: entry.note for entry in entries if entry.note}
    return chart.Names(rows, notes, left_out=cut)


def _dumbbells(entries: Sequence[_Entry], panels: Sequence[str], caption: str) -> chart.Chart:
    axis = chart.Axis(low=0, high=1, at=(0, 0.25, 0.5, 0.75, 1))
    parts = [
        chart.Panel(
            axis,
            [_dumbbell(entry) for entry in entries if entry.panel == panel],
            method_name(panel) if len(panels) == 2 else _words(panel),
            "gap",
        )
        for panel in panels
    ]
    first, *more = parts
    return chart.Chart(
        "answer", _TITLE, caption, axis, _names(entries), first.marks, more,
        heading=first.heading, end_title="gap",
        # On a phone two or three panels are read better as numbers in a grid.
        narrow=_gap_map(entries, _TITLE, caption) if more else None,
    )  # fmt: skip


def _dumbbell(entry: _Entry) -> chart.Item:
    right, says = entry.right.number, entry.says.number
    return chart.Item(
        entry.row,
        entry.tone,
        (right, says),
        thin=True,
        dots=[
            chart.Dot(right, 0, *chart.bounds(entry.right), "ink", label="right"),
            chart.Dot(says, 0, *chart.bounds(entry.says), entry.tone, "diamond", label="says"),
        ],
        words=points(entry.gap.number),
        tip=entry.tip,
        key=entry.key,
    )


def _words(panel: str) -> str:
    """Return the name of a panel in words: that it is a confidence is said by the picture.

    Examples
    --------
    >>> _words("verbal_numerical_confidence")
    'verbal numerical'
    """
    return panel.removesuffix("_confidence").replace("_", " ")


def _gap_map(entries: Sequence[_Entry], title: str, caption: str) -> chart.Chart:
    """Return gaps in points by row and panel: darker is further off, the hue says which way."""
    columns = [_words(panel) for panel in _ordered(entries, "panel")]
    cells = [
        chart.Cell(
            entry.row,
            _words(entry.panel),
            points(entry.gap.number),
            entry.tone,
            shade=sum(entry.size >= least for least in _SHADES),
            tip=entry.tip,
            key=entry.key,
        )
        for entry in entries
    ]
    return chart.Chart("answer", title, caption, chart.Names(columns), _names(entries), cells)
