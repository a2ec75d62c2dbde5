"""The reliability diagram: share of right answers against confidence, with room for chance."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from calibrant.findings.documents.audits import ReliabilityBand, ReliabilityBin, ReliabilityDiagram
from calibrant.report.charts.chart import (
    Axis,
    Band,
    Chart,
    CountMarks,
    Dot,
    Label,
    Legend,
    Line,
    Mark,
)
from calibrant.report.charts.scales import percent

_LEAST_STEADY = 5
_BAND_PLACES = 24
_SHARES = (0, 0.25, 0.5, 0.75, 1)
_CAPTION = (
    "Dots: share right at each stated value, or in each slice of the scale, with its interval. "
    "Grey: where a perfectly calibrated model would lie. Bars: number of rows."
)
_DIAGONAL = Line([(0, 0), (1, 1)], "plain", look="dashed")
# Room that the words of a side take, as shares of the axes, and where they may stand.
_WIDE, _TALL = 0.4, 0.08
_HEIGHTS = (0.04, 0.13, 0.22)

Series = tuple[str, str, Sequence[ReliabilityBin]]
"""Name (empty for a single one), tone and bins."""


def reliability_chart(
    block: ReliabilityDiagram, tone: str, title: str, *, name: str = "answer"
) -> Chart:
    """Return the diagram of one confidence from its `reliability` block."""
    marks: list[Mark] = [*_band(block.curve), *_series(block.bins, tone)]
    if block.histogram:
        marks.append(CountMarks(block.histogram))
    return _diagram(name, title, _CAPTION, [*_sides(block.bins), *marks])


def _sides(bins: Sequence[ReliabilityBin]) -> Iterator[Label]:
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
                yield Label(remaining + below * _WIDE, foot, words, "end" if below else "start")
                break


def diagram_frame() -> Chart:
    """Return the diagram without marks of a confidence: what all of them on a page share."""
    return _diagram("frame", "Share of right answers against confidence", "", [CountMarks([0])])


def diagram_marks(block: ReliabilityDiagram, tone: str) -> Chart:
    """Return the marks of one confidence alone, for the frame that all of them share."""
    chart = reliability_chart(block, tone, "")
    without_diagonal = [mark for mark in chart.marks if mark != _DIAGONAL]
    return replace(
        chart, marks=[*without_diagonal, *([] if block.histogram else [CountMarks([0])])]
    )


def diagram_of_series(name: str, title: str, caption: str, series: Sequence[Series]) -> Chart:
    """Return several series of bins in one diagram, told apart by their tones."""
    marks = [mark for words, tone, bins in series for mark in _series(bins, tone, words)]
    return _diagram(name, title, caption, marks, [(tone, words) for words, tone, _ in series])


def _diagram(
    name: str,
    title: str,
    caption: str,
    marks: Sequence[Mark],
    series: Sequence[tuple[str, str]] = (),
) -> Chart:
    x, y = (Axis(words, low=0, high=1, at=_SHARES) for words in ("confidence", "share right"))
    legend: Legend = [(tone, "dot", words) for tone, words in series]
    return Chart(name, title, caption, x, y, [_DIAGONAL, *marks], legend=legend)


def _band(curve: ReliabilityBand | None) -> Iterator[Band]:
    if not curve or not curve.band_low:
        return
    places = zip(curve.confidence, curve.band_low, curve.band_high, strict=True)
    bounded = [(x, low, high) for x, low, high in places if low is not None and high is not None]
    # As many places as a picture shows.
    step = max(1, len(bounded) // _BAND_PLACES)
    yield Band([*bounded[:-1:step], *bounded[-1:]])


def _series(bins: Sequence[ReliabilityBin], tone: str, name: str = "") -> Iterator[Mark]:
    # Bins of a few rows jump about: they are shown small, and the line passes over them.
    most = max((bin_.n for bin_ in bins), default=1) or 1
    steady = [bin_ for bin_ in bins if bin_.n >= max(_LEAST_STEADY, most / 50)]
    yield Line([(bin_.confidence, bin_.rate) for bin_ in steady], tone, look="faint")
    for bin_ in bins:
        yield Dot(
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
