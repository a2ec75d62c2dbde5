"""Curves with their names at their ends, and marked points: costs, labels, thresholds, time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from calibrant.report.pictures.scales import (
    Axis,
    across,
    nice_ticks,
    percent,
    tick_words,
    upright,
)
from calibrant.report.pictures.svg import Drawing, cut_names, text_width

_NEAR, _FAR = 12, 48
_CROWDED = 3
TONES = ("first", "second", "third", "fourth", "fifth")


@dataclass(frozen=True, slots=True)
class Series:
    """A named curve: places in the order in which they are joined, with ends of intervals."""

    name: str
    tone: str
    places: Sequence[tuple[float, float]]
    ends: Sequence[tuple[float, float]] = ()
    faint: bool = False


@dataclass(frozen=True, slots=True)
class Mark:
    """A point with a name beside it: a chosen setting, a model alone."""

    name: str
    x: float
    y: float
    tone: str = "plain"
    ring: bool = False
    side: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """What is drawn on two axes."""

    label: str
    x_title: str
    y_title: str
    series: Sequence[Series]
    marks: Sequence[Mark] = ()
    x_ticks: Callable[[float], str] = percent
    y_ticks: Callable[[float], str] = percent
    x_log: bool = False
    y_log: bool = False
    x_from: float | None = 0.0
    y_from: float | None = None
    level: tuple[float, str] | None = None
    x_at: Sequence[float] = field(default_factory=tuple)


def line_chart(chart: Chart, *, wide: bool) -> str:
    """Return the chart; on a phone the names of curves stand above it."""
    width, height = (760.0, 430.0) if wide else (350.0, 380.0)
    named = [series for series in chart.series if series.name]
    room = max((text_width(s.name, 13.5) for s in named), default=0.0) + 14 if wide else 10.0
    room = min(room, 210.0)
    top = 24.0 if wide else 28.0 + 17 * len(named)
    xs, ys = _reach(chart)
    x = Axis(*xs, 58, width - room - 8, log=chart.x_log)
    y = Axis(*ys, height - 48, top, log=chart.y_log)
    drawing = Drawing(width, height, chart.label, kind="lines")
    upright(drawing, y, _ticks(y, chart.y_ticks, 5), x.start, x.end)
    at = [(value, chart.x_ticks(value)) for value in chart.x_at]
    across(drawing, x, at or _ticks(x, chart.x_ticks, 5 if wide else 3), top, y.start)
    drawing.text((x.start + x.end) / 2, height - 8, chart.x_title, "axis", anchor="middle")
    drawing.text(0, top - 11, chart.y_title, "axis")
    if chart.level is not None:
        value, words = chart.level
        drawing.line(x.start, y(value), x.end, y(value), "zero")
        drawing.text(x.end, y(value) - 5, words, "small", anchor="end")
    for series in chart.series:
        _curve(drawing, series, x, y)
    _names(drawing, named, (x, y), room, wide=wide)
    for mark in chart.marks:
        _mark(drawing, mark, x, y)
    return drawing.svg()


def _reach(chart: Chart) -> tuple[tuple[float, float], tuple[float, float]]:
    places = [place for series in chart.series for place in series.places]
    places += [(mark.x, mark.y) for mark in chart.marks]
    xs = [x for x, _ in places]
    ys = [y for _, y in places]
    ys += [end for series in chart.series for ends in series.ends for end in ends]
    if chart.level is not None:
        ys.append(chart.level[0])
    return _span(xs, chart.x_from, log=chart.x_log), _span(ys, chart.y_from, log=chart.y_log)


def _span(values: Sequence[float], start: float | None, *, log: bool) -> tuple[float, float]:
    low, high = min(values), max(values)
    if log:
        return low / 1.15, high * 1.15
    spare = (high - low) * 0.06 or 0.05
    return (low - spare if start is None else min(start, low)), high + spare


def _ticks(axis: Axis, words: Callable[[float], str], count: int) -> list[tuple[float, str]]:
    if not axis.log:
        values = nice_ticks(axis.low, axis.high, count)
        return list(zip(values, tick_words(values, words), strict=True))
    found = [
        step * 10.0**power
        for power in range(-6, 10)
        for step in (1, 2, 5)
        if axis.low <= step * 10.0**power <= axis.high
    ]
    while len(found) > count + 2:
        tens = [value for value in found if f"{value:e}"[0] == "1"]
        found = tens if 2 <= len(tens) < len(found) else found[::2]
    return [(value, words(value)) for value in found]


def _curve(drawing: Drawing, series: Series, x: Axis, y: Axis) -> None:
    drawing.open_group(series.tone, series.name or "curve")
    if series.ends:
        upper = [(x(p[0]), y(e[1])) for p, e in zip(series.places, series.ends, strict=True)]
        lower = [(x(p[0]), y(e[0])) for p, e in zip(series.places, series.ends, strict=True)]
        drawing.polygon([*upper, *reversed(lower)], "area")
    kind = "series faint" if series.faint else "series"
    drawing.polyline([(x(px), y(py)) for px, py in series.places], kind)
    drawing.close_group()


def _names(
    drawing: Drawing, named: Sequence[Series], axes: tuple[Axis, Axis], room: float, *, wide: bool
) -> None:
    x, y = axes
    if not wide:
        short = cut_names([series.name for series in named], 310)
        for number, series in enumerate(named):
            drawing.open_group(series.tone, series.name)
            drawing.line(2, 21 + 17 * number - 13, 18, 21 + 17 * number - 13, "series")
            drawing.text(24, 12 + 17 * number, short[series.name], "label")
            drawing.close_group()
        return
    ends = sorted((y(series.places[-1][1]), number) for number, series in enumerate(named))
    short = cut_names([series.name for series in named], room - 4)
    places = _apart([place for place, _ in ends], 17.0, y.end, y.start - 8)
    for place, (_, number) in zip(places, ends, strict=True):
        series = named[number]
        drawing.open_group(series.tone, series.name)
        end = x(series.places[-1][0])
        if x.end - end >= _FAR and len(named) < _CROWDED:
            # Two curves leave room for a name where each of them ends.
            drawing.text(end + 8, y(series.places[-1][1]) + 4, series.name, "label halo")
            drawing.close_group()
            continue
        if _NEAR < x.end - end < _FAR:
            # A thin line leads from a curve that ends early to its name; a long one would cross
            # the others, and the colour tells enough.
            drawing.line(end + 8, y(series.places[-1][1]), x.end + 4, place, "leader")
        drawing.text(x.end + 8, place + 4, short[series.name], "label")
        drawing.close_group()


def _apart(places: list[float], least: float, top: float, bottom: float) -> list[float]:
    """Move places so that neighbours are `least` apart and all stay inside.

    Examples
    --------
    >>> _apart([10.0, 12.0, 90.0], 15.0, 0.0, 95.0)
    [10.0, 25.0, 90.0]
    """
    found = list(places)
    for number in range(1, len(found)):
        found[number] = max(found[number], found[number - 1] + least)
    over = found[-1] - bottom if found else 0.0
    if over > 0:
        found[-1] -= over
        for number in range(len(found) - 2, -1, -1):
            found[number] = min(found[number], found[number + 1] - least)
    return [max(place, top) for place in found]


def _mark(drawing: Drawing, mark: Mark, x: Axis, y: Axis) -> None:
    px, py = x(mark.x), y(mark.y)
    drawing.open_group(mark.tone, mark.name)
    if mark.ring:
        drawing.circle(px, py, 7, "ring")
    else:
        drawing.diamond(px, py, 6, "mark")
    if mark.name:
        _mark_name(drawing, mark, (px, py), x)
    drawing.close_group()


def _mark_name(drawing: Drawing, mark: Mark, place: tuple[float, float], x: Axis) -> None:
    """Put the name where it stays inside of the picture: left of its point in the right half."""
    px, py = place
    late = px > (x.start + x.end) / 2
    if mark.side == "above":
        drawing.text(px + 8, py - 13, mark.name, "label halo", anchor="end")
        return
    if mark.side == "beside":
        # At the right edge begin the names of the curves.
        fits = px + 13 + text_width(mark.name, 13.5) <= x.end
        shift, anchor = (13, "start") if fits else (-13, "end")
        drawing.text(px + shift, py + 4, mark.name, "label halo", anchor=anchor)
        return
    if mark.side:
        left = mark.side == "left"
        shift, anchor = (-13, "end") if left else (13, "start")
        drawing.text(px + shift, py + (14 if left else -8), mark.name, "label", anchor=anchor)
        return
    below = 22 if mark.ring else -12
    anchor = "end" if late else "start"
    drawing.text(px + (4 if late else -4), py + below, mark.name, "label", anchor=anchor)
