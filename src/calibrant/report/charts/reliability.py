"""The reliability diagram, and the charts of calibration by meaning."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from calibrant.findings.claims import count
from calibrant.findings.documents import audits
from calibrant.findings.documents.audits import ReliabilityBand, ReliabilityBin, ReliabilityDiagram
from calibrant.findings.documents.entries import EstimateEntry
from calibrant.metrics.semantic.theory import JENSEN_BOUNDARY
from calibrant.report.charts import chart
from calibrant.report.charts.svg import in_points, percent, points, short_number

_LEAST_STEADY = 5
_BAND_PLACES = 24
_SHARES = (0, 0.25, 0.5, 0.75, 1)
_CAPTION = (
    "Dots: share right at each stated value, or in each slice of the scale, with its interval. "
    "Grey: where a perfectly calibrated model would lie. Bars: number of rows."
)
_DIAGONAL = chart.Line([(0, 0), (1, 1)], "plain", look="dashed")
# Room that the words of a side take, as shares of the axes, and where they may stand.
_WIDE, _TALL = 0.4, 0.08
_HEIGHTS = (0.04, 0.13, 0.22)

Series = tuple[str, str, Sequence[ReliabilityBin]]
"""Name (empty for a single one), tone and bins."""


def reliability_chart(
    block: ReliabilityDiagram, tone: str, title: str, *, name: str = "answer"
) -> chart.Chart:
    """Return the diagram of one confidence from its `reliability` block."""
    marks: list[chart.Mark] = [*_band(block.curve), *_series(block.bins, tone)]
    if block.histogram:
        marks.append(chart.CountMarks(block.histogram))
    return _diagram(name, title, _CAPTION, [*_sides(block.bins), *marks])


def _sides(bins: Sequence[ReliabilityBin]) -> Iterator[chart.Label]:
    """Say what lies on either side of the diagonal, where no dot or interval stands."""
    for below in (False, True):
        words = "says more than it knows" if below else "says less than it knows"
        remaining = 0.985 - _WIDE if below else 0.03
        near = [
            b.ends for b in bins if remaining - 0.03 <= b.confidence <= remaining + _WIDE + 0.03
        ]
        for height in _HEIGHTS:
            foot = height if below else 1 - height - _TALL / 2
            if not any(low < foot + _TALL and high > foot - 0.03 for low, high in near):
                yield chart.Label(
                    remaining + below * _WIDE, foot, words, "end" if below else "start"
                )
                break


def diagram_frame() -> chart.Chart:
    """Return the diagram without marks of a confidence: what all of them on a page share."""
    return _diagram(
        "frame", "Share of right answers against confidence", "", [chart.CountMarks([0])]
    )


def diagram_marks(block: ReliabilityDiagram, tone: str) -> chart.Chart:
    """Return the marks of one confidence alone, for the frame that all of them share."""
    whole = reliability_chart(block, tone, "")
    without_diagonal = [mark for mark in whole.marks if mark != _DIAGONAL]
    return replace(
        whole, marks=[*without_diagonal, *([] if block.histogram else [chart.CountMarks([0])])]
    )


def diagram_of_series(name: str, title: str, caption: str, series: Sequence[Series]) -> chart.Chart:
    """Return several series of bins in one diagram, told apart by their tones."""
    marks = [mark for words, tone, bins in series for mark in _series(bins, tone, words)]
    return _diagram(name, title, caption, marks, [(tone, words) for words, tone, _ in series])


def _diagram(
    name: str,
    title: str,
    caption: str,
    marks: Sequence[chart.Mark],
    series: Sequence[tuple[str, str]] = (),
) -> chart.Chart:
    x, y = (chart.Axis(words, low=0, high=1, at=_SHARES) for words in ("confidence", "share right"))
    legend: chart.Legend = [(tone, "dot", words) for tone, words in series]
    return chart.Chart(name, title, caption, x, y, [_DIAGONAL, *marks], legend=legend)


def _band(curve: ReliabilityBand | None) -> Iterator[chart.Band]:
    if not curve or not curve.band_low:
        return
    places = zip(curve.confidence, curve.band_low, curve.band_high, strict=True)
    bounded = [(x, low, high) for x, low, high in places if low is not None and high is not None]
    # As many places as a picture shows.
    step = max(1, len(bounded) // _BAND_PLACES)
    yield chart.Band([*bounded[:-1:step], *bounded[-1:]])


def _series(bins: Sequence[ReliabilityBin], tone: str, name: str = "") -> Iterator[chart.Mark]:
    # Bins of a few rows jump about: they are shown small, and the line passes over them.
    most = max((bin_.n for bin_ in bins), default=1) or 1
    steady = [bin_ for bin_ in bins if bin_.n >= max(_LEAST_STEADY, most / 50)]
    yield chart.Line([(bin_.confidence, bin_.rate) for bin_ in steady], tone, look="faint")
    for bin_ in bins:
        yield chart.Dot(
            bin_.confidence, bin_.rate, bin_.low, bin_.high, tone, size=bin_.n / most,
            tip=_words(bin_, name), key=_key(bin_),
        )  # fmt: skip


def _key(bin_: ReliabilityBin) -> str:
    """Return the name of the rows of a cell: its ends, and values inside that are not in it."""
    if bin_.lower is None:
        return ""
    without = ",".join(f"{value!r}" for value in bin_.without)
    return f"bin:{bin_.lower!r}:{bin_.upper!r}{without and ':' + without}"


def _words(bin_: ReliabilityBin, name: str) -> str:
    place = percent(bin_.confidence)
    if bin_.lower is not None and bin_.upper is not None and bin_.lower < bin_.upper:
        place = f"{percent(bin_.lower)} to {percent(bin_.upper)}"
    if bin_.without:
        place += f" without {', '.join(map(percent, bin_.without))}"
    low, high = map(percent, bin_.ends)
    return (
        f"{name + ', ' if name else ''}{place}: right {percent(bin_.rate)} "
        f"({low} to {high}), {bin_.n:,.0f} rows"
    )


_ESTIMATORS = (("all draws (Sem1)", "second", "sem1"), ("held-out draws (Sem2)", "first", "sem2"))
Bins = dict[str, list[audits.ReliabilityBin]]
_ERROR = chart.Axis("calibration error, points", words=in_points, low=0)


def meaning_charts(
    blocks: Sequence[audits.SemanticEntry], pooled: audits.PooledMeanings | None = None
) -> Iterator[chart.Chart]:
    """Yield the charts of every model's block, after the diagram over all of them."""
    if pooled and pooled.models > 1 and pooled.reliability:
        yield _reliability(pooled.reliability, f"All {pooled.models} models", len(blocks) + 1)
    for number, block in enumerate(blocks, 1):
        if block.reliability:
            yield _reliability(block.reliability, block.name, number)
        if block.convergence:
            yield _convergence(block.convergence.points, block.name, number)
        yield _strata(block, number)
        if block.regime_plane:
            yield _plane(block.regime_plane, block.name, number)


def meaning_reliability(block: audits.SemanticEntry) -> chart.Chart:
    """Return the diagram of the first block as the answer of an audit without other scores."""
    bins = block.reliability or {}
    series = [(name, tone, bins[key]) for name, tone, key in _ESTIMATORS]
    title = f"Share of right answers against confidence by meaning, {block.model}"
    caption = (
        "Confidence of the most frequent meaning, read off all draws and off draws that did not "
        "choose it."
    )
    return diagram_of_series("answer", title, caption, series)


def _reliability(bins: Bins, name: str, number: int) -> chart.Chart:
    return diagram_of_series(
        f"meaning-reliability-{number}",
        f"{name}: share right against the share of the leading meaning",
        "On the dashed line the share of draws is the share of right answers; below it the model "
        "is over-confident. Larger points have more questions; lines are 95 % intervals. Sem1 "
        "counts all draws, Sem2 only those that did not choose the leading meaning.",
        [(words, tone, bins[key]) for words, tone, key in _ESTIMATORS],
    )


def _convergence(steps: Sequence[audits.DrawsPoint], model: str, number: int) -> chart.Chart:
    marks: list[chart.Mark] = []
    for name, tone, key in _ESTIMATORS:
        errors: list[tuple[int, EstimateEntry]] = [(p.n, getattr(p, key)) for p in steps]
        marks.append(chart.Band(_band_edges(errors), tone))
        tips = [f"{n} draws: {in_points(e.number)} points" for n, e in errors]
        marks.append(chart.Line([(n, e.number) for n, e in errors], tone, name, tips=tips))
    return chart.Chart(
        f"convergence-{number}",
        f"{model}: both estimates as draws are added",
        "Sem1's confidence is too high, Sem2's too low, both less so with more draws. The error "
        "with unlimited draws may lie outside both curves.",
        chart.Axis("draws per question", words=short_number),
        _ERROR,
        marks,
    )


def _band_edges(
    errors: Iterable[tuple[float, EstimateEntry | None]],
) -> list[tuple[float, float, float]]:
    ends = [(x, *chart.bounds(e)) for x, e in errors]
    return [(x, low, high) for x, low, high in ends if low is not None and high is not None]


def _strata(block: audits.SemanticEntry, number: int) -> chart.Chart:
    marks: list[chart.Mark] = []
    rows = [((row.low + row.high) / 2, row) for row in block.strata]
    for name, tone, key in _ESTIMATORS:
        marks.append(
            chart.Band(_band_edges((x, getattr(row, f"{key}_band")) for x, row in rows), tone)
        )
        tips = [_stratum(row, name, getattr(row, key)) for _, row in rows]
        marks.append(chart.Line([(x, getattr(row, key)) for x, row in rows], tone, name, tips=tips))
    marks += [chart.Label(x, _top(row), f"{row.n:,}", "middle") for x, row in rows]
    if place := block.boundaries:
        marks.append(chart.ReferenceLine(place["jensen"], "x", "low margin from here", dashed=True))
        marks.append(
            chart.ReferenceLine(place["large_margin"], "x", "large margin from here", dashed=True)
        )
    return chart.Chart(
        f"margins-{number}",
        f"{block.name}: calibration error by margin",
        "The estimators agree where one meaning clearly leads (right of the second dashed line) "
        "and part where the race is close (left of the first, where chance in the choice of the "
        "mode dominates). Bands are intervals, with the number of questions above.",
        chart.Axis("margin of the two most frequent meanings", low=0, high=1),
        _ERROR,
        marks,
    )


def _plane(cells: Sequence[audits.PlaneCell], model: str, number: int) -> chart.Chart:
    """Return Figure 1a of the Sem-ECE paper with the questions of this model in it."""
    most = max(cell.n for cell in cells)
    top = max(2, *(cell.classes for cell in cells))
    marks: list[chart.Mark] = [
        chart.Dot(
            cell.margin,
            cell.classes,
            size=0.4 + 2 * math.sqrt(cell.n / most),
            tip=f"{count(cell.n, 'question')} with {cell.classes} meanings",
        )
        for cell in cells
    ]
    edge = [(math.sqrt(math.log(k)), float(k)) for k in range(1, top + 1)]
    marks.append(chart.Line(edge, "second", "large margin", look="dashed"))
    marks.append(chart.ReferenceLine(2 * JENSEN_BOUNDARY, "x", "low margin from here", dashed=True))
    return chart.Chart(
        f"regimes-{number}",
        f"{model}: how close the race between meanings is",
        "Each dot is questions, larger where there are more. Left of the first line both ways to "
        "read confidence are furthest apart; right of the dashed curve they agree.",
        chart.Axis(
            "margin of the two leading meanings, in standard errors", words=short_number, low=0
        ),
        chart.Axis("meanings among the draws", words=short_number, low=0),
        marks,
    )


def _top(row: audits.Stratum) -> float:
    ends = (chart.bounds(band)[1] for band in (row.sem1_band, row.sem2_band))
    return max([row.sem1, row.sem2, *(end for end in ends if end is not None)])


def _stratum(row: audits.Stratum, name: str, error: float) -> str:
    words = f"{name}: {in_points(round(error, 4))} points, {count(row.n, 'question')}"
    gap = row.ece_gap
    if gap is None or gap.value is None:
        return words
    # A difference of equal errors is 0 but for rounding.
    ends = [
        points(round(end, 9) + 0.0) for end in (gap.value, gap.low, gap.high) if end is not None
    ]
    return f"{words}; Sem1 - Sem2 {ends[0]}" + (
        f" ({ends[1]} to {ends[2]})" if len(ends) == 3 else ""
    )
