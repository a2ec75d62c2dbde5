"""What a chart is: titles, two axes and a few kinds of marks; how it looks is the renderer's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from calibrant.findings.documents.entries import EstimateEntry
from calibrant.report.cells import Estimated
from calibrant.report.charts.svg import percent

_NOTED_ROWS = 12
TONES = ("first", "second", "third", "fourth", "fifth")
"""Colours of series, by the class that the style gives them."""

Place = tuple[float, float]
Shape = Literal["dot", "diamond", "ring", "triangle", "square", "dashed", "none"]
Legend = Sequence[tuple[str, Shape, str]]
"""Tone, shape and words of marks that carry no name themselves."""


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis of numbers: its title, its words, and where it begins and ends if not by the marks.

    `at`: ticks stand here and nowhere else. `names`: the words of the places 0, 1, 2 and so on.
    `sides` say what lies left and right of 0.
    """

    title: str = ""
    words: Callable[[float], str] = percent
    low: float | None = None
    high: float | None = None
    scale: Literal["linear", "log", "symlog"] = "linear"
    at: Sequence[float] = ()
    names: Sequence[str] = ()
    sides: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Names:
    """An axis of names, in their order; an empty name stands for rows that were left out.

    `notes` stand below names, `ends` are the names after which a line is drawn (tiers).
    """

    names: Sequence[str]
    notes: Mapping[str, str] = field(default_factory=dict)
    ends: frozenset[str] = frozenset()
    left_out: int = 0
    numbered: bool = False

    @property
    def noted(self) -> bool:
        """Return whether there is room for notes below the names."""
        return bool(self.notes) and len(self.names) <= _NOTED_ROWS


@dataclass(frozen=True, slots=True)
class Dot:
    """A point, with the ends of its interval along the axis of values, and words beside it.

    `tip` is shown on hover and read to those who cannot see; `key` names what a click opens.
    """

    x: float
    y: float = 0.0
    low: float | None = None
    high: float | None = None
    tone: str = "first"
    shape: Shape = "dot"
    size: float = 1.0
    tip: str = ""
    key: str = ""
    label: str = ""
    side: Literal["", "above", "beside", "left", "right"] = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A curve through places, in their order; one with a name has it at its end."""

    places: Sequence[Place]
    tone: str = "first"
    name: str = ""
    look: Literal["", "faint", "dashed"] = ""
    tips: Sequence[str] = ()
    key: str = ""


@dataclass(frozen=True, slots=True)
class Band:
    """The room between two curves: x, low, high. One without a tone is grey."""

    places: Sequence[tuple[float, float, float]]
    tone: str = ""


@dataclass(frozen=True, slots=True)
class ReferenceLine:
    """A straight line across the whole plane at one value of x or y, with a word on it."""

    at: float
    axis: Literal["x", "y"] = "y"
    words: str = ""
    tone: str = "plain"
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Label:
    """Words at a place."""

    x: float
    y: float
    words: str
    anchor: Literal["start", "middle", "end"] = "start"


@dataclass(frozen=True, slots=True)
class Area:
    """A shaded rectangle: from x and y to x and y."""

    start: Place
    end: Place
    tone: str = "second"


@dataclass(frozen=True, slots=True)
class CountMarks:
    """How many rows lie in equal stretches of the x axis: bars in a strip below the plane."""

    counts: Sequence[float]


@dataclass(frozen=True, slots=True)
class Item:
    """What stands in one row of names: a bar, points on it, and a number at the end of the row.

    Several items of one row stand below each other. `bar`: from, to; `thin` joins two points.
    """

    row: str
    tone: str = "first"
    bar: Place | None = None
    thin: bool = False
    dots: Sequence[Dot] = ()
    words: str = ""
    tip: str = ""
    key: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell of a row and a column: a sign or number on a shade from 0 to 5."""

    row: str
    column: str
    words: str
    tone: str = "plain"
    shade: int = 0
    tip: str = ""
    key: str = ""


Mark = Dot | Line | Band | ReferenceLine | Label | Area | CountMarks | Item | Cell


@dataclass(frozen=True, slots=True)
class Panel:
    """A part of a chart of rows: its own x axis and marks, beside the others."""

    x: Axis | Names
    marks: Sequence[Mark]
    heading: str = ""
    end_title: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart.

    Parameters
    ----------
    name
        Short, for file names.
    title, caption
        Words beside it; both serve readers who cannot see it.
    x, y, marks
        Axes of numbers and what is drawn on them; with names as `y` every mark has a row.
    more
        Further panels beside the first, with the same rows.
    legend
        Tone, shape and words of marks that carry no name themselves.
    narrow
        What a phone shows instead, where the same chart would not do.
    """

    name: str
    title: str
    caption: str
    x: Axis | Names
    y: Axis | Names
    marks: Sequence[Mark]
    more: Sequence[Panel] = ()
    legend: Legend = ()
    heading: str = ""
    end_title: str = ""
    narrow: Chart | None = None

    @property
    def panels(self) -> list[Panel]:
        """Return all panels, the first one too."""
        return [Panel(self.x, self.marks, self.heading, self.end_title), *self.more]


def bounds(estimate: Estimated | None) -> tuple[float | None, float | None]:
    """Return the ends of an estimate's interval."""
    if isinstance(estimate, EstimateEntry):
        return estimate.low, estimate.high
    plain = estimate or {}
    return plain.get("low"), plain.get("high")


def between(estimate: Estimated | None, words: Callable[[float], str]) -> str:
    """Return the interval of an estimate in brackets, for a tip.

    Examples
    --------
    >>> between({"low": 0.1, "high": 0.25}, percent)
    ' (10 % to 25 %)'
    """
    low, high = bounds(estimate)
    return "" if low is None or high is None else f" ({words(low)} to {words(high)})"
