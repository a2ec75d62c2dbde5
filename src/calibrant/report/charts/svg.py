"""From numbers to places, and what is drawn there, as SVG."""

import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from importlib import resources

from calibrant.report.names import short_names

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


# Room is measured before a file is opened elsewhere: these fonts are of one width.
_CARD = " .picture { background: var(--p-paper); border-radius: 4px; padding: 8px; }\n"
_PLAIN_FONT = " .picture text { font-family: Liberation Sans, Arial, Helvetica, sans-serif; }\n"
_WIDE, _NARROW = frozenset("mwMW@%"), frozenset("ijlftr.,:;'|!()[]- ")


class Drawing:
    """Collects marks; `svg` returns them as one picture with a name for screen readers.

    Examples
    --------
    >>> drawing = Drawing(40, 20, "one dot")
    >>> drawing.circle(10, 10, 4, "right")
    >>> drawing.svg()
    '<svg ... viewBox="0 0 40 20" role="img" aria-label="one dot"><circle cx="10" cy="10" ...'
    """

    def __init__(self, width: float, height: float, label: str, *, kind: str = "") -> None:
        self.width, self.height, self.label, self.kind = width, height, label, kind
        self.plot: tuple[float, float, float, float] | None = None
        self.domain: tuple[float, float, float, float] | None = None
        self._marks: list[str] = []

    def svg(self) -> str:
        """Return the picture; it tells a page where its axes begin and end, and at which values."""
        kind = f"picture {self.kind}".strip()
        plot = "" if self.plot is None else f' data-plot="{" ".join(map(_n, self.plot))}"'
        if self.domain is not None:
            plot += f' data-domain="{" ".join(f"{end:.6g}" for end in self.domain)}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="{kind}" '
            f'viewBox="0 0 {_n(self.width)} {_n(self.height)}"{plot} role="img" '
            f'aria-label="{_safe(self.label)}">{"".join(self._marks)}</svg>'
        )

    @property
    def marks(self) -> str:
        """Return the marks without the picture around them."""
        return "".join(self._marks)

    def line(self, x1: float, y1: float, x2: float, y2: float, kind: str) -> None:
        """Add a line."""
        end = f"V{_n(y2)}" if x1 == x2 else f"H{_n(x2)}" if y1 == y2 else f"L{_n(x2)} {_n(y2)}"
        self._marks.append(f'<path d="M{_n(x1)} {_n(y1)}{end}" class="{kind}"/>')

    def columns(self, places: Sequence[tuple[float, float, float]], foot: float, kind: str) -> None:
        """Add bars that stand on one line, as one mark: left, width, height of each."""
        bars = (f"M{_n(x)} {_n(foot)}v-{_n(y)}h{_n(wide)}v{_n(y)}z" for x, wide, y in places)
        self._marks.append(f'<path d="{"".join(bars)}" class="{kind}"/>')

    def circle(self, x: float, y: float, radius: float, kind: str) -> None:
        """Add a dot."""
        self._marks.append(f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}" class="{kind}"/>')

    def rect(self, x: float, y: float, width: float, height: float, kind: str) -> None:
        """Add a rectangle."""
        self._marks.append(
            f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(max(width, 0))}" '
            f'height="{_n(max(height, 0))}" class="{kind}"/>'
        )

    def polyline(self, places: Sequence[Place], kind: str, *, form: str = "polyline") -> None:
        """Add a line through points, or a filled outline (``polygon``)."""
        text = " ".join(f"{_n(x)},{_n(y)}" for x, y in places)
        self._marks.append(f'<{form} points="{text}" class="{kind}"/>')

    def text(self, x: float, y: float, words: str, kind: str = "", *, anchor: str = "") -> None:
        """Add words; they are escaped, since names come from data."""
        place = f' text-anchor="{anchor}"' if anchor else ""
        look = f' class="{kind}"' if kind else ""
        self._marks.append(f'<text x="{_n(x)}" y="{_n(y)}"{look}{place}>{_safe(words)}</text>')

    @contextmanager
    def group(self, kind: str, title: str = "", *, key: str = "") -> Iterator[None]:
        """Group marks, with words to show on hover; `key` names what a click opens."""
        data = f' data-key="{_safe(key)}"' if key else ""
        words = f"<title>{_safe(title)}</title>" if title else ""
        look = f' class="{kind}"' if kind else ""
        self._marks.append(f"<g{look}{data}>{words}")
        yield
        self._marks.append("</g>")


def standalone(svg: str, *, plain: bool = False) -> str:
    """Return the picture with its style inside, for a file or a notebook.

    `plain`: colours are written out, for programs that know no variables.
    """
    style = resources.files("calibrant.report").joinpath("assets", "picture.css").read_text("utf-8")
    # The scheme of a notebook need not be that of the system: light, on paper of its own. The dark
    # colours end with two braces.
    light, _, tail = style.partition("@media screen")
    style = light + tail.partition("} }")[2]
    head, mark, tail = svg.partition(">")
    if not plain:
        return f"{head}{mark}<style>{style}{_CARD}</style>{tail}"
    colours = dict(re.findall(r"(--p-[\w-]+): (#[0-9a-f]+)", style))
    style = re.sub(r"var\((--p-[\w-]+)\)", lambda found: colours[found[1]], style)
    style = re.sub(r"font-family: [^;]+;", "", style).replace("overflow: visible;", "")
    # Programs that paint the outline last would cover the words with it.
    style = re.sub(r"paint-order: stroke;[^}]*", "", style).replace("650", "700") + _PLAIN_FONT
    tones = dict(re.findall(r"\.picture \.(\w+) \{ color: (#[0-9a-f]+); \}", style))
    more = [
        f".picture .{tone} .{kind} {{ {name}: {colour}; }}"
        for tone, colour in tones.items()
        for kind, name in re.findall(
            r"\.picture \.(\w+) \{[^}]*?(fill|stroke): currentColor", style
        )
    ]
    style += "\n".join(more)
    # Paper below it: converters blend what is half transparent with nothing otherwise.
    paper = '<rect width="100%" height="100%" fill="#ffffff"/>'
    return f"{head}{mark}<style>{style}</style>{paper}{tail}"


def cut_name(text: str, most: float, *, size: float = 13) -> str:
    """Return a text in at most `most` pixels."""
    return next(iter(cut_names([text], most, size=size).values()))


def cut_names(names: Sequence[str], most: float, *, size: float = 13) -> dict[str, str]:
    """Return names in at most `most` pixels each that are still told apart.

    Examples
    --------
    >>> names = ["Meta-Llama-3.1-405B-Instruct-Turbo", "Meta-Llama-3.1-70B-Instruct-Turbo"]
    >>> list(cut_names(names, 150).values())
    ['…405B-Instruct-Turbo', '…70B-Instruct-Turbo']
    """
    plain = {name: " ".join(name.split()) for name in names}
    short = short_names(plain.values(), most, measure=lambda text: text_width(text, size))
    return {name: short[text] for name, text in plain.items()}


def text_width(text: str, size: float = 13) -> float:
    """Return about how wide a text is drawn, on the generous side."""
    units = 0.0
    for mark in text:
        if unicodedata.east_asian_width(mark) in "WF":
            units += 1.0
        elif mark in _WIDE or mark.isupper():
            units += 0.74
        else:
            units += 0.37 if mark in _NARROW else 0.62
    return units * size


def _n(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".")


def _safe(text: str) -> str:
    """Escape for XML; control characters have no place in it at all."""
    clean = "".join(m if m >= " " and not 0x7F <= ord(m) < 0xA0 else "�" for m in text)
    return escape(clean[:400])


# -- legends ----------------------------------------------------------------------------------

Key = tuple[str, str, str]
"""Tone, shape (or ``line``) and words."""

ROW = 18


def legend_rows(keys: Sequence[Key], width: float) -> list[list[Key]]:
    """Return the keys in rows that fit."""
    short = cut_names([words for _, _, words in keys], width - 40) if keys else {}
    rows: list[list[Key]] = []
    used = width
    for tone, shape, words in keys:
        need = text_width(short[words], 13) + 38
        if used + need > width:
            rows.append([])
            used = 0.0
        rows[-1].append((tone, shape, short[words]))
        used += need
    return rows


def draw_legend(drawing: Drawing, rows: Sequence[Sequence[Key]]) -> None:
    """Draw the rows from the top on."""
    for number, keys in enumerate(rows):
        x, y = 2.0, 12.0 + ROW * number
        for tone, shape, words in keys:
            with drawing.group(tone):
                if shape in ("line", "dashed"):
                    drawing.line(x, y - 4, x + 16, y - 4, {"line": "series"}.get(shape, shape))
                else:
                    draw_shape(drawing, shape, x + 8, y - 4, 5)
                drawing.text(x + 22, y, words, "key")
            x += text_width(words, 13) + 38


def draw_shape(drawing: Drawing, shape: str, x: float, y: float, radius: float) -> None:
    """Draw a point of some shape."""
    if shape == "diamond":
        high = radius + 1
        corners = [(x, y - high), (x + high, y), (x, y + high), (x - high, y)]
        drawing.polyline(corners, "mark", form="polygon")
    elif shape == "triangle":
        corners = [(x - radius, y), (x + radius, y - radius), (x + radius, y + radius)]
        drawing.polyline(corners, "mark", form="polygon")
    elif shape == "square":
        drawing.rect(x - radius, y - radius, 2 * radius, 2 * radius, "fill")
    elif shape != "none":
        drawing.circle(x, y, radius, "ring" if shape == "ring" else "mark")
