"""A drawing as SVG text: marks carry classes, so that one style serves page, print and dark."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from html import escape
from importlib import resources

from calibrant.report.names import short_names

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
        parts = [
            f"M{_n(x)} {_n(foot)}v-{_n(high)}h{_n(wide)}v{_n(high)}z" for x, wide, high in places
        ]
        self._marks.append(f'<path d="{"".join(parts)}" class="{kind}"/>')

    def circle(self, x: float, y: float, radius: float, kind: str) -> None:
        """Add a dot."""
        self._marks.append(f'<circle cx="{_n(x)}" cy="{_n(y)}" r="{_n(radius)}" class="{kind}"/>')

    def rect(self, x: float, y: float, width: float, height: float, kind: str) -> None:
        """Add a rectangle."""
        self._marks.append(
            f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(max(width, 0))}" '
            f'height="{_n(max(height, 0))}" class="{kind}"/>'
        )

    def polyline(self, points: Sequence[tuple[float, float]], kind: str) -> None:
        """Add a line through points."""
        self._marks.append(f'<polyline points="{_points(points)}" class="{kind}"/>')

    def polygon(self, points: Sequence[tuple[float, float]], kind: str) -> None:
        """Add a filled outline."""
        self._marks.append(f'<polygon points="{_points(points)}" class="{kind}"/>')

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
    style = _written_out(style) if plain else style + _CARD
    head, mark, tail = svg.partition(">")
    # Paper below it: converters blend what is half transparent with nothing otherwise.
    paper = '<rect width="100%" height="100%" fill="#ffffff"/>' if plain else ""
    return f"{head}{mark}<style>{style}</style>{paper}{tail}"


def _written_out(style: str) -> str:
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
    return style + "\n".join(more)


def cut_name(text: str, most: float, *, size: float = 13) -> str:
    """Return a text in at most `most` pixels.

    Examples
    --------
    >>> cut_name("Meta-Llama-3.1-405B-Instruct-Turbo", 150)
    'Meta-Llama-3.1-405B…'
    """
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


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{_n(x)},{_n(y)}" for x, y in points)


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
                if shape == "line":
                    drawing.line(x, y - 4, x + 16, y - 4, "series")
                else:
                    draw_shape(drawing, shape, x + 8, y - 4, 5)
                drawing.text(x + 22, y, words, "key")
            x += text_width(words, 13) + 38


def draw_shape(drawing: Drawing, shape: str, x: float, y: float, radius: float) -> None:
    """Draw a point of some shape."""
    if shape == "diamond":
        high = radius + 1
        drawing.polygon([(x, y - high), (x + high, y), (x, y + high), (x - high, y)], "mark")
    elif shape == "triangle":
        corners = [(x - radius, y), (x + radius, y - radius), (x + radius, y + radius)]
        drawing.polygon(corners, "mark")
    elif shape == "square":
        drawing.rect(x - radius, y - radius, 2 * radius, 2 * radius, "fill")
    elif shape != "none":
        drawing.circle(x, y, radius, "ring" if shape == "ring" else "mark")
