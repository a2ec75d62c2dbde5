"""Heatmap: a row and a column per name, a number and a colour per cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from calibrant.report.names import told_apart
from calibrant.report.pictures.dots import Item, panel_words
from calibrant.report.pictures.scales import points
from calibrant.report.pictures.svg import Drawing, cut_name, cut_names, text_width

_MOST_ROWS, _MOST_COLUMNS = 26, 12
_NOTED_ROWS = 12
_STEPS = ((0.02, "s0"), (0.05, "s1"), (0.1, "s2"), (0.2, "s3"), (0.35, "s4"))


def gap_map(items: Sequence[Item], label: str, *, wide: bool) -> str:
    """Return gaps in points by row and panel: darker is further off, the hue says which way."""
    width = 760.0 if wide else 350.0
    cells = {(item.row, item.panel): item for item in items}
    columns = _ordered(items, "panel")[: _MOST_COLUMNS if wide else 4]
    ranked = _ordered(items, "row")
    cut = len(ranked) - _MOST_ROWS
    rows = ranked if cut <= 0 else [*ranked[:13], "", *ranked[-13:]]
    notes = {item.row: item.note for item in items if item.note and len(rows) <= _NOTED_ROWS}
    wanted = [text_width(row) for row in rows] + [text_width(n, 11.5) for n in notes.values()]
    names = min(max(wanted) + 6, 250.0 if wide else 170.0)
    step, top = 38.0 if notes else 23.0, 26.0 if wide else 40.0
    drawing = Drawing(width, top + step * len(rows) + 8, label, kind="heat")
    part = (width - names - 8) / len(columns)
    for number, column in enumerate(columns):
        shown = column if wide else told_apart(columns)[column]
        _column(drawing, shown, names + 8 + part * (number + 0.5), part, top, wide=wide)
    short = cut_names(rows, names)
    for place, row in enumerate(rows):
        y = top + step * place
        if not row:
            drawing.text(names, y + 15, f"⋮ {cut:,} more", "tick", anchor="end")
            continue
        drawing.text(names, y + 15, short[row], "name", anchor="end")
        if row in notes:
            drawing.text(
                names, y + 29, cut_name(notes[row], names, size=11.5), "small", anchor="end"
            )
        for number, column in enumerate(columns):
            _cell(drawing, cells.get((row, column)), (names + 8 + part * number, y, part, step))
    return drawing.svg()


def _ordered(items: Sequence[Item], name: str) -> list[str]:
    sizes: dict[str, list[float]] = {}
    for item in items:
        sizes.setdefault(getattr(item, name), []).append(item.size)
    means: Mapping[str, float] = {key: sum(own) / len(own) for key, own in sizes.items()}
    return sorted(means, key=lambda key: (means[key], key))


def _column(drawing: Drawing, name: str, x: float, part: float, top: float, *, wide: bool) -> None:
    words = panel_words(name)
    if wide or (" " not in words and text_width(words, 13) <= part - 12):
        drawing.text(x, top - 9, cut_name(words, part - 18), "strong", anchor="middle")
        return
    # On a phone a name has two lines, parted where it can be.
    place = words.find(" ") if " " in words else words.rfind("-", 0, len(words) - 1)
    lines = (words[: place + 1].strip(), words[place + 1 :]) if place > 0 else ("", words)
    for number, text in enumerate(lines):
        cut = cut_name(text, part - 16, size=11.5)
        drawing.text(x, top - 23 + 14 * number, cut, "small strong", anchor="middle")


def _cell(drawing: Drawing, item: Item | None, place: tuple[float, float, float, float]) -> None:
    x, y, width, height = place
    if item is None:
        drawing.text(x + width / 2, y + height / 2 + 4, "–", "tick", anchor="middle")
        return
    words = f"{item.row} / {item.panel}: gap {points(item.gap['value'])} points"
    drawing.open_group(f"row {item.tone}", words, key=item.key)
    shade = next((name for most, name in _STEPS if item.size < most), "s5")
    drawing.rect(x + 1, y + 1, width - 2, height - 2, f"shade {shade}")
    kind = "cell-strong" if shade in ("s4", "s5") else "cell-text"
    drawing.text(
        x + width / 2, y + height / 2 + 4, points(item.gap["value"]), kind, anchor="middle"
    )
    drawing.close_group()
