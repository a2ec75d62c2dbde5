"""From a chart to SVG and files; charts on two axes of numbers are drawn here."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import groupby
from pathlib import Path

from calibrant.core.errors import InputError
from calibrant.core.names import optional_import
from calibrant.findings.claims import count
from calibrant.report.charts import chart, svg
from calibrant.report.charts.chart import Chart
from calibrant.report.charts.rows import draw_rows
from calibrant.report.charts.svg import AxisScale, span, standalone, ticks_of

_NEAR, _FAR = 12, 48
_CROWDED = 3
_STRIP = 62
# Points of a few rows are this small, and those of most rows this large.
_LEAST, _MOST = 3.0, 7.5


@dataclass(frozen=True, slots=True)
class Size:
    """Width and height of a drawing; a wide one has the names of curves at their ends."""

    width: float
    height: float

    @property
    def wide(self) -> bool:
        """Return whether there is room beside the plane."""
        return self.width > 600


WIDE, MEDIUM, NARROW = Size(760, 430), Size(480, 400), Size(350, 380)


def draw_plane(picture: Chart, size: Size) -> svg.Drawing:
    """Return the chart as a drawing: the frame first, then the marks."""
    drawing, x, y = _frame(picture, size)
    for kind in (chart.Area, chart.Band, chart.ReferenceLine, chart.Line, chart.Label):
        of_kind = [mark for mark in picture.marks if isinstance(mark, kind)]
        for place, mark in enumerate(of_kind):
            if isinstance(mark, chart.Area):
                (left, bottom), (right, top) = mark.start, mark.end
                with drawing.group(mark.tone):
                    drawing.rect(x(left), y(top), x(right) - x(left), y(bottom) - y(top), "area")
            elif isinstance(mark, chart.Band):
                _band(drawing, mark, x, y)
            elif isinstance(mark, chart.ReferenceLine):
                _rule(drawing, mark, x, y, y.end + 12 + 15 * place)
            elif isinstance(mark, chart.Line):
                _line(drawing, mark, x, y)
            elif isinstance(mark, chart.Label):
                drawing.text(x(mark.x), y(mark.y), mark.words, "small", anchor=mark.anchor)
    dots = (mark for mark in picture.marks if isinstance(mark, chart.Dot))
    for tone, several in groupby(dots, key=lambda dot: dot.tone):
        with drawing.group(tone):
            for dot in several:
                _dot(drawing, dot, x, y)
    _names(drawing, picture, (x, y), size)
    for counts in (mark for mark in picture.marks if isinstance(mark, chart.CountMarks)):
        _counts(drawing, counts, x, y.start + 8)
    return drawing


def marks_alone(picture: Chart, size: Size) -> str:
    """Return the marks without their frame: charts of equal axes share one."""
    frame, _, _ = _frame(picture, size)
    return draw_plane(picture, size).marks[len(frame.marks) :]


def _frame(picture: Chart, size: Size) -> tuple[svg.Drawing, AxisScale, AxisScale]:
    assert isinstance(picture.x, chart.Axis)
    assert isinstance(picture.y, chart.Axis)
    room = _room_for_names(picture) if size.wide else 14.0
    counts = any(isinstance(mark, chart.CountMarks) for mark in picture.marks)
    names = [mark for mark in picture.marks if isinstance(mark, chart.Line) and mark.name]
    lines = [] if size.wide else [(mark.tone, "line", mark.name) for mark in names]
    keys = svg.legend_rows([*lines, *picture.legend], size.width)
    top = 26.0 + 18 * len(keys)
    height = size.height + (40 if counts else 0) + 18 * len(keys)
    foot = height - 48
    kind = "lines" if any(isinstance(mark, chart.Line) for mark in picture.marks) else "points"
    drawing = svg.Drawing(size.width, height, picture.title, kind=kind)
    x = _scale(picture.x, picture.marks, 0, 58, size.width - room - 8)
    y = _scale(picture.y, picture.marks, 1, foot - (_STRIP if counts else 0), top)
    drawing.plot = (x.start, x.end, y.start, y.end)
    drawing.domain = (x.low, x.high, y.low, y.high)
    place = [(value, picture.y.words(value)) for value in picture.y.at] or ticks_of(
        y, picture.y.words, 5
    )
    for value, words in place:
        drawing.line(x.start, y(value), x.end, y(value), "grid")
        drawing.text(x.start - 8, y(value) + 4, words, "tick", anchor="end")
    _upright_lines(drawing, picture.x, x, (top, foot), most=5 if size.wide else 3)
    words = picture.x.title
    drawing.text((x.start + x.end) / 2, height - 8, words, "axis", anchor="middle")
    drawing.text(0, top - 11, picture.y.title, "axis")
    if counts:
        drawing.text(x.start + 4, y.start + 17, "rows", "small")
    svg.draw_legend(drawing, keys)
    return drawing, x, y


def _room_for_names(picture: Chart) -> float:
    names = [mark.name for mark in picture.marks if isinstance(mark, chart.Line) and mark.name]
    return min(max((svg.text_width(name, 13.5) for name in names), default=2.0) + 14, 210.0)


def _scale(
    axis: chart.Axis, marks: Sequence[chart.Mark], along: int, start: float, end: float
) -> AxisScale:
    if axis.names:
        return AxisScale(-0.5, len(axis.names) - 0.5, start, end)
    values = [value for mark in marks for value in _values(mark, along)]
    return AxisScale(*span(values, axis.low, axis.high, axis.scale), start, end, axis.scale)


def _values(mark: chart.Mark, along: int) -> Iterator[float]:
    """Yield what has to fit on an axis: along x (0) or y (1)."""
    if isinstance(mark, chart.Dot):
        yield (mark.x, mark.y)[along]
        if along:
            yield from (end for end in (mark.low, mark.high) if end is not None)
    elif isinstance(mark, chart.Line):
        yield from (place[along] for place in mark.places)
    elif isinstance(mark, chart.Band):
        for x, low, high in mark.places:
            yield from (low, high) if along else (x,)
    elif isinstance(mark, chart.ReferenceLine) and (mark.axis == "y") == bool(along):
        yield mark.at
    elif isinstance(mark, chart.Area):
        yield from (mark.start[along], mark.end[along])


def _upright_lines(
    drawing: svg.Drawing, axis: chart.Axis, x: AxisScale, reach: tuple[float, float], *, most: int
) -> None:
    if axis.names:
        _named_ticks(drawing, axis.names, x, reach[1] + 17)
        return
    place = [(value, axis.words(value)) for value in axis.at] or ticks_of(x, axis.words, most)
    for value, words in place:
        drawing.line(x(value), *(reach[0], x(value), reach[1]), "grid")
        drawing.text(x(value), reach[1] + 17, words, "tick", anchor="middle")


def _named_ticks(drawing: svg.Drawing, names: Sequence[str], x: AxisScale, y: float) -> None:
    """Write as many names as keep clear of each other and of the edge."""
    widest = max(svg.text_width(name, 12) for name in names)
    step = max(1, -(-int((widest + 12) * len(names)) // int(x.end - x.start)))
    for place in range(0, len(names), step):
        if place == 0 or x(place) + svg.text_width(names[place], 12) / 2 <= x.end + 14:
            drawing.text(x(place), y, names[place], "tick", anchor="middle")


def _band(drawing: svg.Drawing, mark: chart.Band, x: AxisScale, y: AxisScale) -> None:
    if len(mark.places) < 2:
        return
    # Whole pixels: hundreds of bands may be on one page.
    upper = [(round(x(place)), round(y(high))) for place, _, high in mark.places]
    lower = [(round(x(place)), round(y(low))) for place, low, _ in reversed(mark.places)]
    with drawing.group(mark.tone or "plain"):
        drawing.polyline([*upper, *lower], "area" if mark.tone else "band", form="polygon")


def _rule(
    drawing: svg.Drawing, mark: chart.ReferenceLine, x: AxisScale, y: AxisScale, height: float
) -> None:
    """Draw the line; words of several stand below each other, since they may lie close."""
    with drawing.group(mark.tone, mark.words):
        look = "dashed" if mark.dashed else "zero"
        if mark.axis == "x":
            drawing.line(x(mark.at), y.end, x(mark.at), y.start, look)
            late = x(mark.at) > (x.start + x.end) / 2
            side, anchor = (-8, "end") if late else (8, "start")
            drawing.text(x(mark.at) + side, height, mark.words, "label", anchor=anchor)
        else:
            drawing.line(x.start, y(mark.at), x.end, y(mark.at), look)
            drawing.text(x.end, y(mark.at) - 5, mark.words, "small", anchor="end")


def _line(drawing: svg.Drawing, mark: chart.Line, x: AxisScale, y: AxisScale) -> None:
    places = [(x(px), y(py)) for px, py in mark.places]
    with drawing.group(mark.tone, mark.name, key=mark.key):
        drawing.polyline(places, f"series {mark.look}".strip())
        for (px, py), tip in zip(places, mark.tips, strict=False):
            if tip:
                with drawing.group("tip", tip):
                    drawing.circle(px, py, 6, "hit")


def _dot(drawing: svg.Drawing, mark: chart.Dot, x: AxisScale, y: AxisScale) -> None:
    px, py = x(mark.x), y(mark.y)
    with drawing.group("", mark.tip or mark.label, key=mark.key):
        if mark.low is not None and mark.high is not None:
            faint = " pale-stick" if mark.size < 0.1 else ""
            drawing.line(px, y(mark.low), px, y(mark.high), f"stick{faint}")
        radius = 7.0 if mark.shape == "ring" else _LEAST + (_MOST - _LEAST) * mark.size**0.5
        svg.draw_shape(drawing, mark.shape, px, py, radius)
        if mark.label:
            _label(drawing, mark, (px, py), x)


def _label(drawing: svg.Drawing, mark: chart.Dot, place: tuple[float, float], x: AxisScale) -> None:
    """Put the name where it stays inside of the picture: left of its point in the right half."""
    px, py = place
    late = px > (x.start + x.end) / 2
    # At the right edge begin the names of the curves.
    fits = px + 13 + svg.text_width(mark.label, 13.5) <= x.end
    below = 22 if mark.shape == "ring" else -12
    shift_x, shift_y, anchor = {
        "above": (8, -13, "end"),
        "beside": (13, 4, "start") if fits else (-13, 4, "end"),
        "left": (-13, 14, "end"),
        "right": (13, -8, "start"),
        "": (4, below, "end") if late else (-4, below, "start"),
    }[mark.side]
    drawing.text(px + shift_x, py + shift_y, mark.label, "label", anchor=anchor)


def _names(
    drawing: svg.Drawing, picture: Chart, axes: tuple[AxisScale, AxisScale], size: Size
) -> None:
    """Write the names of curves where they end, apart from each other."""
    names = [mark for mark in picture.marks if isinstance(mark, chart.Line) and mark.name]
    if not size.wide or not names:
        return
    x, y = axes
    ends = sorted((y(line.places[-1][1]), number) for number, line in enumerate(names))
    short = svg.cut_names([line.name for line in names], _room_for_names(picture) - 4)
    places = _apart([place for place, _ in ends], 17.0, y.end, y.start - 8)
    for place, (end_y, number) in zip(places, ends, strict=True):
        line = names[number]
        end = x(line.places[-1][0])
        with drawing.group(line.tone, line.name, key=line.key):
            if x.end - end >= _FAR and len(names) < _CROWDED:
                # Two curves leave room for a name where each of them ends.
                drawing.text(end + 8, end_y + 4, line.name, "label")
                continue
            if _NEAR < x.end - end < _FAR:
                # A thin line leads from a curve that ends early to its name; a long one would
                # cross the others, and the colour tells enough.
                drawing.line(end + 8, end_y, x.end + 4, place, "leader")
            drawing.text(x.end + 8, place + 4, short[line.name], "label")


def _apart(places: list[float], least: float, top: float, bottom: float) -> list[float]:
    """Move places so that neighbours are `least` apart and all stay inside.

    Examples
    --------
    >>> _apart([10.0, 12.0, 90.0], 15.0, 0.0, 95.0)
    [10.0, 25.0, 90.0]
    """
    moved = list(places)
    for number in range(1, len(moved)):
        moved[number] = max(moved[number], moved[number - 1] + least)
    over = moved[-1] - bottom if moved else 0.0
    if over > 0:
        moved[-1] -= over
        for number in range(len(moved) - 2, -1, -1):
            moved[number] = min(moved[number], moved[number + 1] - least)
    return [max(place, top) for place in moved]


def _counts(drawing: svg.Drawing, mark: chart.CountMarks, x: AxisScale, top: float) -> None:
    if not any(mark.counts):
        return
    most, foot = max(mark.counts), top + _STRIP - 8
    step = (x.end - x.start) / len(mark.counts)
    bars = [
        (x.start + step * place + 0.5, step - 1, (foot - top) * count / most)
        for place, count in enumerate(mark.counts)
        if count
    ]
    with drawing.group("first", count(int(sum(mark.counts)), "row")):
        drawing.columns(bars, foot, "fill")


FORMATS = ("svg", "png", "pdf")


def draw(picture: Chart, *, wide: bool = True) -> str:
    """Return the chart for a desktop or a phone; colours follow the page around it."""
    if not wide and picture.narrow is not None:
        picture = picture.narrow
    if isinstance(picture.y, chart.Names):
        return draw_rows(picture, wide=wide).svg()
    return draw_plane(picture, WIDE if wide else NARROW).svg()


def chart_file(picture: Chart) -> str:
    """Return the chart as a file of its own: its style, title and caption are inside."""
    head, mark, tail = standalone(draw(picture), plain=True).partition(">")
    words = f"<title>{escape(picture.title)}</title><desc>{escape(picture.caption)}</desc>"
    return f"{head}{mark}{words}{tail}"


@dataclass(frozen=True, slots=True)
class Plot:
    """A chart that shows itself in a notebook; `names`: the charts that a result has."""

    chart: Chart
    names: tuple[str, ...] = ()

    def __repr__(self) -> str:
        peers = ", ".join(name for name in self.names if name != self.chart.name)
        more = f"; others: {peers}" if peers else ""
        return f"<{self.chart.name}: {self.chart.title}{more}>"

    @property
    def svg(self) -> str:
        """Return the chart as SVG that stands alone."""
        return chart_file(self.chart)

    def save(self, path: str | Path) -> None:
        """Write the chart as svg, png or pdf, by the ending of the path."""
        place = Path(path)
        save_chart(replace(self.chart, name=place.stem), place.parent, formats=[place.suffix[1:]])

    def _repr_html_(self) -> str:
        words = f"<figcaption>{escape(f'{self.chart.title}. {self.chart.caption}')}</figcaption>"
        return f"<figure>{standalone(draw(self.chart))}{words}</figure>"


def save_chart(picture: Chart, folder: Path, *, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write the chart in every format and return the paths."""
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise InputError(f"a figure is written as {', '.join(FORMATS)}, got {unknown[0]!r}")
    folder.mkdir(parents=True, exist_ok=True)
    svg, paths = chart_file(picture), []
    for name in formats:
        path = folder / f"{picture.name}.{name}"
        if name == "svg":
            path.write_text(svg, "utf-8")
        else:
            convert = optional_import("vl_convert", extra="figures", purpose="png and pdf files")
            draws = convert.svg_to_png(svg, scale=2) if name == "png" else convert.svg_to_pdf(svg)
            path.write_bytes(draws)
        paths.append(path)
    return paths
