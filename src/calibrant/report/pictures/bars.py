"""Bars: gaps of groups around zero with their intervals, plain counts, values with intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from calibrant.report.pictures.scales import Axis, across, nice_ticks, points, short_number
from calibrant.report.pictures.svg import Drawing, cut_names, text_width

_MOST = 16


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: its name, its value, the ends of its interval and its tone."""

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    tone: str = "first"
    note: str = ""


def bar_chart(
    bars: Sequence[Bar],
    label: str,
    *,
    wide: bool,
    title: str = "",
    sides: tuple[str, str] | None = None,
    words: Callable[[float], str] = points,
    dots: bool = False,
) -> str:
    """Return the bars in the order given.

    `sides` says what lies left and right of zero; `dots` is for values whose zero means nothing.
    """
    shown = list(bars[:_MOST])
    width = 760.0 if wide else 350.0
    names = min(max(text_width(bar.name) for bar in shown) + 6, 330.0) if wide else 0.0
    step = 30.0 if wide else 42.0
    top = 26.0
    bottom = top + step * len(shown)
    drawing = Drawing(width, bottom + 26 + (18 if len(bars) > _MOST else 0), label, kind="bars")
    axis = Axis(*_reach(shown, dots=dots), names + 14, width - 58)
    ticks = [(v, words(v) if v else "0") for v in nice_ticks(axis.low, axis.high, 4)]
    across(drawing, axis, ticks, top - 4, bottom)
    if title:
        drawing.text(axis.start, 12, title, "axis")
    if sides:
        _sides(drawing, axis, sides)
    short = cut_names([bar.name for bar in shown], names if wide else width - 60)
    for place, bar in enumerate(shown):
        _bar(
            drawing,
            replace(bar, name=short[bar.name]),
            axis,
            (names, top + step * place, step, width),
            words,
            wide=wide,
            dots=dots,
        )
    if len(bars) > _MOST:
        drawing.text(axis.start, bottom + 38, f"{len(bars) - _MOST:,} more below", "tick")
    return drawing.svg()


def _sides(drawing: Drawing, axis: Axis, sides: tuple[str, str]) -> None:
    """Say on both sides of zero what lies there, where there is room for it."""
    left, right = f"← {sides[0]}", f"{sides[1]} →"
    zero = axis(0.0)
    if zero - axis.start >= text_width(left, 12) + 6:
        drawing.text(zero - 6, 12, left, "axis", anchor="end")
    if drawing.width - zero >= text_width(right, 12) + 6:
        drawing.text(zero + 6, 12, right, "axis")


def _reach(bars: Sequence[Bar], *, dots: bool) -> tuple[float, float]:
    values = [v for bar in bars for v in (bar.value, bar.low, bar.high) if v is not None]
    low, high = min(values), max(values)
    if not dots:
        low, high = min(low, 0.0), max(high, 0.0)
    spare = (high - low) * 0.04 or 0.01
    return (low - spare if low < 0 or dots else 0.0), high + spare


def _bar(
    drawing: Drawing,
    bar: Bar,
    axis: Axis,
    place: tuple[float, float, float, float],
    words: Callable[[float], str],
    *,
    wide: bool,
    dots: bool,
) -> None:
    names, top, step, width = place
    middle = top + (step / 2 if wide else step - 13)
    told = f"{bar.name}: {words(bar.value)}"
    if bar.low is not None and bar.high is not None:
        told += f" ({words(bar.low)} to {words(bar.high)})"
    drawing.open_group(f"row {bar.tone}", f"{told}. {bar.note}".strip())
    if wide:
        drawing.text(names, middle + 4, bar.name, "name", anchor="end")
    else:
        drawing.text(axis.start - 12, top + 13, bar.name, "name halo")
    start, end = sorted((axis(0.0), axis(bar.value)))
    if dots:
        drawing.circle(axis(bar.value), middle, 5.5, "mark")
    else:
        drawing.rect(start, middle - 7, max(end - start, 1.5), 14, "fill")
        drawing.line(axis(0.0), middle - 9, axis(0.0), middle + 9, "zero")
    if bar.low is not None and bar.high is not None:
        drawing.line(axis(bar.low), middle, axis(bar.high), middle, "stick" if dots else "whisker")
    drawing.text(width, middle + 4, words(bar.value), "gap", anchor="end")
    drawing.close_group()


def counted(counts: Mapping[str, Any], tone: str = "first") -> list[Bar]:
    """Return counts as bars, largest first."""
    ranked = sorted(counts.items(), key=lambda item: -float(item[1]))
    return [Bar(str(name), float(value), tone=tone) for name, value in ranked]


def count_words(value: float) -> str:
    """Return a count: whole below 10,000, then short.

    Examples
    --------
    >>> count_words(1234.0), count_words(12345.0)
    ('1,234', '12.3k')
    """
    return f"{value:,.0f}" if abs(value) < 10_000 else short_number(value)
