"""Shapes of points, and the rows above a chart that say what tones and shapes mean."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.report.charts.svg import Drawing, cut_names, text_width

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
        drawing.diamond(x, y, radius + 1, "mark")
    elif shape == "triangle":
        drawing.triangle(x, y, radius, "mark")
    elif shape == "square":
        drawing.rect(x - radius, y - radius, 2 * radius, 2 * radius, "fill")
    elif shape != "none":
        drawing.circle(x, y, radius, "ring" if shape == "ring" else "mark")
