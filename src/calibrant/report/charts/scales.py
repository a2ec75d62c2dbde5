"""From numbers to places: linear and logarithmic scales with ticks that people read."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Place = tuple[float, float]
# Below this share percents carry a digit of their own.
_WHOLE = 0.1
_NEAR_ZERO = 0.01


@dataclass(frozen=True, slots=True)
class AxisScale:
    """Places of numbers between `start` and `end` (pixels)."""

    low: float
    high: float
    start: float
    end: float
    kind: str = "linear"

    def __call__(self, value: float) -> float:
        """Return the place of a value, kept inside of the axis."""
        value = min(max(value, self.low), self.high)
        value, low, high = (self._turned(number) for number in (value, self.low, self.high))
        share = 0.5 if high == low else (value - low) / (high - low)
        return self.start + share * (self.end - self.start)

    def _turned(self, value: float) -> float:
        if self.kind == "log":
            return math.log10(value)
        # One part in a thousand and ten draws on one axis: near 0 in proportion, then by size.
        if self.kind == "symlog":
            return math.copysign(math.log1p(abs(value) / _NEAR_ZERO), value)
        return value


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
    if not value:
        return "0"
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
    number = 100 * value
    return f"{number:.2g}" if abs(number) < 1 else f"{number:.1f}".removesuffix(".0")


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


def ticks_of(
    scale: AxisScale, words: Callable[[float], str], count: int
) -> list[tuple[float, str]]:
    """Return about `count` round numbers of a scale, with their words."""
    if scale.kind == "linear":
        values = nice_ticks(scale.low, scale.high, count)
        if words is count_words:
            values = [value for value in values if value == int(value)]
        return list(zip(values, tick_words(values, words), strict=True))
    ticks = [
        step * 10.0**power
        for power in range(-6, 10)
        for step in (1, 2, 5)
        if scale.low <= step * 10.0**power <= scale.high
    ]
    while len(ticks) > count + 2:
        tens = [value for value in ticks if f"{value:e}"[0] == "1"]
        ticks = tens if 2 <= len(tens) < len(ticks) else ticks[::2]
    zero = [0.0] if scale.kind == "symlog" and scale.low <= 0 else []
    return [(value, words(value)) for value in [*zero, *ticks]]


def span(values: Sequence[float], low: float | None, high: float | None, kind: str) -> Place:
    """Return where an axis begins and ends: as told, or with some room around its values."""
    least, most = min(values, default=0.0), max(values, default=1.0)
    if kind == "log":
        return low or least / 1.15, high or most * 1.15
    if kind == "symlog" and low is None:
        low = 0.0 if least >= 0 else least
    spare = (most - least) * 0.06 or 0.05
    start = least - spare if low is None else min(low, least)
    return start, most + spare if high is None else max(high, most)


def count_words(value: float) -> str:
    """Return a count: whole below 10,000, then short.

    Examples
    --------
    >>> count_words(1234.0), count_words(12345.0)
    ('1,234', '12.3k')
    """
    return f"{value:,.0f}" if abs(value) < 10_000 else short_number(value)


def three_digits(value: float) -> str:
    """Return a number between 0 and 1 as tables show it.

    Examples
    --------
    >>> three_digits(0.12345), three_digits(0.5)
    ('0.123', '0.5')
    """
    return f"{value:.3f}".rstrip("0").rstrip(".") or "0"
