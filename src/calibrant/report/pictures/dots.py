"""Ranked dot plot: what is right and what is said, joined by a bar, one row per confidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibrant.core.method_words import method_name
from calibrant.report.pictures.scales import Axis, across, percent, points
from calibrant.report.pictures.svg import Drawing, cut_name, cut_names, text_width

_ROWS_WIDE, _ROWS_NARROW = 26, 20
_NAME_MOST = 250
_ROWS_WITH_NOTES = 12
_GAP_ROOM = 44
_BETWEEN = 18


@dataclass(frozen=True, slots=True)
class Item:
    """One confidence: its place in the picture, what is right, what is said, and its verdict.

    `note` says in words what the row is; it stands below the name.
    """

    row: str
    panel: str
    right: Mapping[str, Any]
    says: Mapping[str, Any]
    gap: Mapping[str, Any]
    tone: str
    key: str = ""
    note: str = ""

    @property
    def size(self) -> float:
        """Return how far it is off, whichever way."""
        return abs(float(self.gap["value"]))


def dot_plot(items: Sequence[Item], label: str, *, wide: bool) -> str:
    """Return the picture; many rows are cut in their middle, and the cut is said."""
    panels = list(dict.fromkeys(item.panel for item in items))
    rows, cut = _ranked(items, _ROWS_WIDE if wide else _ROWS_NARROW)
    if wide:
        return _wide(items, rows, panels, cut, label)
    return _narrow(items, rows, panels, cut, label)


def _ranked(items: Sequence[Item], most: int) -> tuple[list[str], int]:
    """Return the rows by their mean miscalibration, best first, and how many were cut."""
    sizes: dict[str, list[float]] = {}
    for item in items:
        sizes.setdefault(item.row, []).append(item.size)
    ranked = sorted(sizes, key=lambda row: (sum(sizes[row]) / len(sizes[row]), row))
    cut = len(ranked) - most
    if cut <= 0:
        return ranked, 0
    return [*ranked[: most // 2], "", *ranked[len(ranked) - most // 2 :]], cut


def _wide(
    items: Sequence[Item], rows: Sequence[str], panels: Sequence[str], cut: int, label: str
) -> str:
    width = 760.0
    notes = {item.row: item.note for item in items if item.note}
    step = 27.0 if len(rows) <= 16 else max(19.0, 432 / len(rows))
    step = 44.0 if notes and len(rows) <= _ROWS_WITH_NOTES else step
    most = _NAME_MOST if len(panels) == 1 else 210
    wanted = [text_width(row) for row in rows] + [text_width(n, 11.5) for n in notes.values()]
    names = min(max(wanted) + 4, most)
    top = 44.0 if len(panels) > 1 else 30.0
    bottom = top + step * len(rows)
    drawing = Drawing(width, bottom + 24, label, kind="dots")
    part = (width - names - 14) / len(panels)
    for number, panel in enumerate(panels):
        start = names + 14 + number * part
        axis = Axis(0, 1, start + 6, start + part - _GAP_ROOM - _BETWEEN)
        shares = (0, 0.5, 1) if part < 260 else (0, 0.25, 0.5, 0.75, 1)
        across(drawing, axis, [(value, percent(value)) for value in shares], top - 6, bottom)
        drawing.text(start + part - 8, top - 12, "gap", "tick", anchor="end")
        if len(panels) > 1:
            heading = cut_name(_heading(panel, part - 26), part - 26, size=14.5)
            drawing.text(start + 6, 14, heading, "strong")
    _rows_of_names(drawing, rows, cut, names, (top, step), notes)
    _marks(drawing, items, rows, panels, (names + 14, part), (top, step))
    return drawing.svg()


def panel_words(name: str) -> str:
    """Return the name of a panel in words: that it is a confidence is said by the picture.

    Examples
    --------
    >>> panel_words("verbal_numerical_confidence")
    'verbal numerical'
    """
    return name.removesuffix("_confidence").replace("_", " ")


def _heading(panel: str, room: float) -> str:
    """Return a panel's name with what it is, where there is room for both."""
    both = method_name(panel)
    return both if text_width(both, 14.5) <= room else panel_words(panel)


def _rows_of_names(
    drawing: Drawing,
    rows: Sequence[str],
    cut: int,
    names: float,
    place: tuple[float, float],
    notes: Mapping[str, str],
) -> None:
    top, step = place
    short = cut_names(rows, names)
    noted = len(rows) <= _ROWS_WITH_NOTES
    for number, row in enumerate(rows):
        y = top + step * (number + 0.5) + 4
        if row:
            note = notes.get(row, "") if noted else ""
            drawing.text(names, y - (7 if note else 0), short[row], "name", anchor="end")
            if note:
                drawing.text(names, y + 8, cut_name(note, names, size=11.5), "small", anchor="end")
        else:
            drawing.text(names, y, f"⋮ {cut:,} more between", "tick", anchor="end")


def _marks(
    drawing: Drawing,
    items: Sequence[Item],
    rows: Sequence[str],
    panels: Sequence[str],
    across_place: tuple[float, float],
    place: tuple[float, float],
) -> None:
    left, part = across_place
    top, step = place
    places = {row: number for number, row in enumerate(rows) if row}
    labelled: set[str] = set()
    for item in sorted(items, key=lambda item: places.get(item.row, -1)):
        if item.row not in places:
            continue
        start = left + panels.index(item.panel) * part
        axis = Axis(0, 1, start + 6, start + part - _GAP_ROOM - _BETWEEN)
        y = top + step * (places[item.row] + 0.5)
        drawing.open_group(f"row {item.tone}", _words(item), key=item.key)
        drawing.rect(start, y - step / 2, part, step, "hit")
        _dumbbell(drawing, item, axis, y, 5.0 if step > 20 else 4.2)
        drawing.text(start + part - 8, y + 4, points(item.gap["value"]), "gap", anchor="end")
        drawing.close_group()
        if item.panel not in labelled:
            labelled.add(item.panel)
            _head(drawing, item, axis, top - 12)


def _dumbbell(drawing: Drawing, item: Item, axis: Axis, y: float, radius: float) -> None:
    right, says = axis(item.right["value"]), axis(item.says["value"])
    drawing.line(right, y, says, y, "bar")
    for kind, estimate in (("whisker", item.right), ("says-whisker", item.says)):
        if estimate.get("low") is not None and estimate.get("high") is not None:
            drawing.line(axis(estimate["low"]), y, axis(estimate["high"]), y, kind)
    drawing.circle(right, y, radius, "right")
    drawing.diamond(says, y, radius + 0.8, "says")


def _head(drawing: Drawing, item: Item, axis: Axis, y: float) -> None:
    """Name the two marks above the first row, apart from each other."""
    right, says = axis(item.right["value"]), axis(item.says["value"])
    room = (text_width("right") + text_width("says")) / 2 + 8
    push = max(0.0, room - abs(says - right)) / 2
    sign = 1 if says >= right else -1
    right, says = right - sign * push, says + sign * push
    edge = axis.end + 12 - text_width("says") / 2
    over = max(0.0, max(right, says) - edge)
    drawing.text(right - over, y, "right", "right-text", anchor="middle")
    drawing.open_group(item.tone, "what it says on average")
    drawing.text(says - over, y, "says", "gap", anchor="middle")
    drawing.close_group()


def _narrow(
    items: Sequence[Item], rows: Sequence[str], panels: Sequence[str], cut: int, label: str
) -> str:
    """Return the picture for a phone: names stand above their bars."""
    width, gap_room = 350.0, 40.0
    by_row: dict[str, list[Item]] = {}
    for item in items:
        by_row.setdefault(item.row, []).append(item)
    several = len(panels) > 1
    line, head = 21.0, 19.0
    height = 24.0
    for row in rows:
        height += head + line * len(by_row.get(row, ())) if row else head
    drawing = Drawing(width, height + 22, label, kind="dots")
    start = (
        min(max(text_width(p.replace("_", " "), 11.5) for p in panels) + 8, 116) if several else 6.0
    )
    axis = Axis(0, 1, start, width - gap_room - 8)
    across(drawing, axis, [(v, percent(v)) for v in (0, 0.5, 1)], 20, height)
    drawing.text(width, 12, "gap", "tick", anchor="end")
    first = next(item for row in rows for item in by_row.get(row, ()))
    _head(drawing, first, axis, 12)
    y = 24.0
    for row in rows:
        y += head
        if not row:
            drawing.text(0, y - 4, f"⋮ {cut:,} more between", "tick")
            continue
        both = f"{row} ({by_row[row][0].note})" if by_row[row][0].note else row
        drawing.text(0, y - 4, cut_name(both, width - 10), "name halo")
        for item in by_row[row]:
            drawing.open_group(f"row {item.tone}", _words(item), key=item.key)
            drawing.rect(0, y - head, width, head + line, "hit")
            if several:
                name = cut_name(item.panel.replace("_", " "), start - 6, size=11.5)
                drawing.text(0, y + 12, name, "small")
            _dumbbell(drawing, item, axis, y + 8, 4.6)
            drawing.text(width, y + 12, points(item.gap["value"]), "gap", anchor="end")
            drawing.close_group()
            y += line
    return drawing.svg()


def _words(item: Item) -> str:
    place = " / ".join(part for part in (item.row, item.panel) if part)
    return (
        f"{place}: right {percent(item.right['value'])}, says {percent(item.says['value'])}, "
        f"gap {points(item.gap['value'])} points{_interval(item.gap)}"
    )


def _interval(estimate: Mapping[str, Any]) -> str:
    if estimate.get("low") is None or estimate.get("high") is None:
        return ""
    return f" ({points(estimate['low'])} to {points(estimate['high'])})"
