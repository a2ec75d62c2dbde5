"""From numbers to places: linear and logarithmic axes with ticks that people read."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from calibrant.report.pictures.svg import Drawing

# Below this share percents carry a digit of their own.
_WHOLE = 0.1


@dataclass(frozen=True, slots=True)
class Axis:
    """Places of numbers between `start` and `end` (pixels)."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Return the place of a value, kept inside of the axis."""
        value = min(max(value, self.low), self.high)
        low, high = self.low, self.high
        if self.log:
            value, low, high = math.log10(value), math.log10(low), math.log10(high)
        share = 0.5 if high == low else (value - low) / (high - low)
        return self.start + share * (self.end - self.start)


def nice_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return round numbers from `low` to `high`.

    Examples
    --------
    >>> nice_ticks(0, 0.93)
    [0.0, 0.2, 0.4, 0.6, 0.8]
    >>> nice_ticks(-0.11, 0.34, 4)
    [0.0, 0.2]
    """
    if high <= low:
        return [low]
    rough = (high - low) / count
    size = 10 ** math.floor(math.log10(rough))
    step = next(size * k for k in (1, 2, 2.5, 5, 10) if size * k >= rough * 0.999)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(place * step, 12) + 0.0 for place in range(first, last + 1)]


def percent(value: float) -> str:
    """Return a share as percent.

    Examples
    --------
    >>> percent(0.7651), percent(0.025)
    ('77 %', '2.5 %')
    """
    number = value * 100
    near = abs(number - round(number)) < 0.05 or abs(number) >= 10
    return f"{number:.0f} %" if near else f"{number:.1f} %"


def tick_words(values: Sequence[float], words: Callable[[float], str]) -> list[str]:
    """Return the words of ticks; shares get a digit more where whole percents would not be even.

    Examples
    --------
    >>> tick_words([0.55, 0.575, 0.6], percent), tick_words([0.5, 0.6], percent)
    (['55.0 %', '57.5 %', '60.0 %'], ['50 %', '60 %'])
    """
    uneven = words is percent and any(abs(100 * v - round(100 * v)) > 1e-6 for v in values)
    if uneven and max(values, default=0.0) >= _WHOLE:
        return [f"{100 * value:.1f} %" for value in values]
    return [words(value) for value in values]


def points(value: float) -> str:
    """Return a difference of shares in percentage points, with its sign.

    Examples
    --------
    >>> points(0.123), points(-0.05), points(0.004)
    ('+12', '−5', '+0.4')
    """
    number = abs(value) * 100
    sign = "−" if value < 0 else "+"
    return f"{sign}{number:.1f}" if 0.05 <= number < 1 else f"{sign}{number:.0f}"


def in_points(value: float) -> str:
    """Return a share as bare points, for an axis that says so.

    Examples
    --------
    >>> in_points(0.2), in_points(0.025), in_points(0.0)
    ('20', '2.5', '0')
    """
    return f"{100 * value:.3g}"


def short_number(value: float) -> str:
    """Return a number with few letters.

    Examples
    --------
    >>> [short_number(x) for x in (8607, 12_000, 2_500_000, 0.25, 40)]
    ['8.61k', '12k', '2.5M', '0.25', '40']
    """
    for size, mark in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{mark}"
    return f"{value:.3g}"


def across(
    drawing: Drawing, axis: Axis, ticks: Sequence[tuple[float, str]], top: float, bottom: float
) -> None:
    """Draw upright grid lines with their words below."""
    for value, words in ticks:
        x = axis(value)
        drawing.line(x, top, x, bottom, "grid")
        drawing.text(x, bottom + 17, words, "tick", anchor="middle")


def upright(
    drawing: Drawing, axis: Axis, ticks: Sequence[tuple[float, str]], left: float, right: float
) -> None:
    """Draw level grid lines with their words on the left."""
    for value, words in ticks:
        y = axis(value)
        drawing.line(left, y, right, y, "grid")
        drawing.text(left - 8, y + 4, words, "tick", anchor="end")
