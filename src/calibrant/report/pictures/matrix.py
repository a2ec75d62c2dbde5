"""Win matrix: which model is shown to be better than which, best first, with its tiers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from calibrant.report.pictures.scales import Axis, across, nice_ticks
from calibrant.report.pictures.svg import Drawing, cut_names, text_width

_MOST = 20


@dataclass(frozen=True, slots=True)
class Standing:
    """A model in its rank: its error with interval, and its tier where the document has one."""

    name: str
    error: Mapping[str, Any]
    tier: int | None = None


def win_matrix(
    rows: Sequence[Standing],
    outcomes: Mapping[tuple[str, str], str],
    label: str,
    *,
    wide: bool,
    value_title: str,
) -> str:
    """Return the matrix; `outcomes` holds ``better``, ``worse``, ``equivalent`` or nothing."""
    shown = rows[:_MOST]
    width = 760.0 if wide else 350.0
    cells = min(46.0 if wide else 30.0, (width * (0.5 if wide else 0.52)) / len(shown))
    left = width - cells * len(shown) - 4
    # Column heads are the numbers of the rows: names would have to stand on their heads.
    top, step = 40.0, max(cells, 22.0 if wide else 19.0)
    drawing = Drawing(width, top + step * len(shown) + 48, label, kind="matrix")
    for number in range(len(shown)):
        x = left + cells * (number + 0.5)
        # Where cells are small, every fifth number keeps clear of its neighbours.
        if cells > 18 or number == 0 or (number + 1) % 5 == 0:
            drawing.text(x, top - 9, str(number + 1), "tick", anchor="middle")
    names = _names(drawing, shown, (top, step), left, wide=wide)
    if wide and left - names > 90:
        _errors(drawing, shown, (names + 14, left - 22), (top, step), value_title)
    for number, row in enumerate(shown):
        y = top + step * number
        for column, other in enumerate(shown):
            place = (left + cells * column, y, cells, step)
            _cell(drawing, row.name, other.name, outcomes.get((row.name, other.name), ""), place)
    _legend(drawing, top + step * len(shown) + 38, width, wide=wide)
    return drawing.svg()


def _names(
    drawing: Drawing,
    rows: Sequence[Standing],
    place: tuple[float, float],
    left: float,
    *,
    wide: bool,
) -> float:
    """Write rank and name of each row, a line where a tier ends; return where the names end."""
    top, step = place
    longest = max(text_width(row.name) for row in rows) + 30
    room = min(longest, left * (0.62 if wide else 1) - 8)
    tier = rows[0].tier
    short = cut_names([row.name for row in rows], room - 26)
    for number, row in enumerate(rows):
        y = top + step * number
        if row.tier != tier:
            drawing.line(0, y, left - 8, y, "tier")
            tier = row.tier
        drawing.text(16, y + step / 2 + 4, str(number + 1), "tick", anchor="end")
        drawing.text(24, y + step / 2 + 4, short[row.name], "name")
    return room


def _errors(
    drawing: Drawing,
    rows: Sequence[Standing],
    reach: tuple[float, float],
    place: tuple[float, float],
    title: str,
) -> None:
    top, step = place
    ends = [row.error[n] for row in rows for n in ("value", "low", "high")]
    known = [end for end in ends if end is not None]
    least, most = min(0.0, *known), max(0.0, *known)
    axis = Axis(least, most + 0.04 * (most - least), *reach)
    bottom = top + step * len(rows)
    ticks = [(value, f"{100 * value:g}") for value in nice_ticks(least, most, 4)]
    across(drawing, axis, ticks, top - 2, bottom)
    drawing.text(reach[0], top - 9, title, "tick")
    for number, row in enumerate(rows):
        y = top + step * (number + 0.5)
        error = row.error
        drawing.open_group("row first", f"{row.name}: {100 * error['value']:.1f} points")
        if error["low"] is not None and error["high"] is not None:
            drawing.line(axis(error["low"]), y, axis(error["high"]), y, "stick")
        drawing.circle(axis(error["value"]), y, 5, "mark")
        drawing.close_group()


def _cell(
    drawing: Drawing, a: str, b: str, outcome: str, place: tuple[float, float, float, float]
) -> None:
    x, y, width, height = place
    if a == b:
        drawing.rect(x + 1, y + 1, width - 2, height - 2, "edge")
        return
    tone = {"better": "first", "worse": "second", "equivalent": "equivalent"}.get(outcome, "plain")
    drawing.open_group(f"row {tone}", f"{a} against {b}: {outcome or 'undecided'}")
    drawing.rect(x + 1, y + 1, width - 2, height - 2, "fill" if outcome == "better" else "pale")
    sign = {"better": "✓", "worse": "−", "equivalent": "≈"}.get(outcome, "?")
    kind = "cell-strong" if outcome == "better" else "small"
    drawing.text(x + width / 2, y + height / 2 + 4, sign, kind, anchor="middle")
    drawing.close_group()


def _legend(drawing: Drawing, y: float, width: float, *, wide: bool) -> None:
    words = "✓ row better than column   − worse   ≈ equivalent   ? undecided"
    if wide:
        drawing.text(width - 4, y, words, "tick", anchor="end")
    else:
        drawing.text(0, y, "✓ better than column  − worse  ≈ equal  ? undecided", "small")
