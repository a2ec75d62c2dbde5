"""Charts with a row per name: bars, joined points, intervals, and cells of rows and columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from calibrant.report.charts import svg
from calibrant.report.charts.chart import Axis, Cell, Chart, Item, Names, Panel, ReferenceLine
from calibrant.report.charts.svg import AxisScale, span, ticks_of
from calibrant.report.names import without_shared_start

_WIDTH, _NARROW = 760.0, 350.0
_NAMES_ALONE, _NAMES_BESIDE, _NAMES_NARROW = 330.0, 230.0, 170.0
_BETWEEN = 14.0
_LANE, _HEAD = 21.0, 19.0
_COLUMNS_NARROW = 4
_FEW_COLUMNS = 12


Reach = tuple[float, float]
"""Where something begins and ends."""


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    top: float
    height: float


def draw_rows(chart: Chart, *, wide: bool) -> svg.Drawing:
    """Return the chart; on a phone names stand above their bars, and cells beside few columns."""
    cells = next((panel for panel in chart.panels if isinstance(panel.x, Names)), None)
    if wide or cells is not None:
        return _beside(chart, [cells] if cells and not wide else chart.panels, wide=wide)
    return _above(chart)


def _items(panel: Panel, row: str) -> list[Item]:
    return [mark for mark in panel.marks if isinstance(mark, Item) and mark.row == row]


# -- names on the left ------------------------------------------------------------------------


def _beside(chart: Chart, panels: Sequence[Panel], *, wide: bool) -> svg.Drawing:
    names = chart.y
    assert isinstance(names, Names)
    width = _WIDTH if wide else _NARROW
    keys = svg.legend_rows(chart.legend, width)
    headed = any(panel.heading for panel in panels)
    titled = any(
        (panel.x.title if isinstance(panel.x, Axis) else "") or panel.end_title for panel in panels
    )
    phone = not wide and not names.numbered
    top = svg.ROW * len(keys) + (20.0 if headed else 0.0) + (30.0 if titled or not headed else 24.0)
    top += 14.0 if phone else 0.0
    target_names = [svg.text_width(name) for name in names.names]
    target_names += [svg.text_width(note, 11.5) for note in names.notes.values() if names.noted]
    most = (_NAMES_ALONE if len(panels) == 1 else _NAMES_BESIDE) if wide else _NAMES_NARROW
    number = 26.0 if names.numbered else 4.0
    room = min(max(target_names) + number, most)
    parts = _parts(panels, (room + _BETWEEN, width))
    rows = _placed(names, panels, parts[-1], top, wide=wide)
    bottom = rows[-1].top + rows[-1].height
    drawing = svg.Drawing(width, bottom + 26, chart.title, kind="rows")
    svg.draw_legend(drawing, keys)
    _write_names(drawing, names, rows, room)
    for panel, (start, end) in zip(panels, parts, strict=True):
        if panel.heading:
            heading = svg.cut_name(panel.heading, end - start - 12, size=14.5)
            drawing.text(start, svg.ROW * len(keys) + 14, heading, "strong")
        if isinstance(panel.x, Names):
            _cells(drawing, panel, rows, (start, end), wide=wide)
        else:
            _bars(drawing, panel, rows, (start, end))
    return drawing


def _parts(panels: Sequence[Panel], reach: Reach) -> list[Reach]:
    """Return where each panel begins and ends: cells of many columns take half of the width."""
    start, end = reach
    sizes = [0.0] * len(panels)
    for number, panel in enumerate(panels):
        if isinstance(panel.x, Names) and panel.x.numbered:
            sizes[number] = min(46.0, 0.5 * end / len(panel.x.names)) * len(panel.x.names)
    share = (end - start - sum(sizes)) / max(sizes.count(0.0), 1)
    return list(pairwise(accumulate((size or share for size in sizes), initial=start)))


def _placed(
    names: Names, panels: Sequence[Panel], last: Reach, top: float, *, wide: bool
) -> list[_Row]:
    lanes = {
        name: max(1, *(len(_items(panel, name)) for panel in panels))
        for name in names.names
        if name
    }
    count = sum(lanes.values())
    if any(isinstance(panel.x, Names) for panel in panels):
        step = 38.0 if names.noted else 23.0
        if names.numbered:
            step = max((last[1] - last[0]) / len(names.names), 22.0 if wide else 19.0)
    elif names.noted:
        step = 44.0
    else:
        step = 27.0 if count <= 16 else max(19.0, 432 / count)
    rows = []
    for name in names.names:
        lane_count = lanes.get(name, 1)
        height = step if lane_count == 1 else 16.0 * lane_count + 10
        rows.append(_Row(name, top, height))
        top += height
    return rows


def _write_names(drawing: svg.Drawing, names: Names, rows: Sequence[_Row], room: float) -> None:
    # A hair more than the widest name: a sum of floats must not cut it.
    short = svg.cut_names([row.name for row in rows], room - (25.9 if names.numbered else 0))
    for number, row in enumerate(rows, 1):
        y = row.top + row.height / 2 + 4
        if not row.name:
            words = f"⋮ {names.left_out:,} more between"
            drawing.text(room, y, words, "tick", anchor="end")
        elif names.numbered:
            drawing.text(16, y, str(number), "tick", anchor="end")
            drawing.text(24, y, short[row.name], "name")
        else:
            note = names.notes.get(row.name, "") if names.noted else ""
            drawing.text(room, y - (7 if note else 0), short[row.name], "name", anchor="end")
            if note:
                drawing.text(
                    room, y + 8, svg.cut_name(note, room, size=11.5), "small", anchor="end"
                )
        if row.name in names.ends and number < len(rows):
            drawing.line(0, row.top + row.height, room, row.top + row.height, "tier")


def _bars(drawing: svg.Drawing, panel: Panel, rows: Sequence[_Row], reach: Reach) -> None:
    (start, end), top = reach, rows[0].top
    spare = max((svg.text_width(m.words) for m in panel.marks if isinstance(m, Item)), default=0.0)
    scale = _scale(panel, start + 6, end - spare - (18 if spare else 8))
    bottom = rows[-1].top + rows[-1].height
    _grid(drawing, panel, scale, (top - 6, bottom))
    if panel.end_title:
        drawing.text(end - 4, top - 12, panel.end_title, "tick", anchor="end")
    _rules(drawing, panel.marks, scale, (top - 6, bottom))
    for number, row in enumerate(rows):
        items = _items(panel, row.name) if row.name else []
        lane = row.height / max(len(items), 1)
        for place, item in enumerate(items):
            y = row.top + lane * (place + 0.5)
            if len(items) > 1:
                y = row.top + 5 + (row.height - 10) / len(items) * (place + 0.5)
            with drawing.group(f"row {item.tone}", item.tip, key=item.key):
                drawing.rect(start, y - lane / 2, end - start, lane, "hit")
                _item(drawing, item, scale, y, thick=14.0 if len(items) == 1 else 9.0)
                drawing.text(end - 4, y + 4, item.words, "gap", anchor="end")
            if number == 0 and place == 0:
                _heads(drawing, item, scale, top - 12)


def _scale(panel: Panel, start: float, end: float) -> AxisScale:
    axis = panel.x
    assert isinstance(axis, Axis)
    items = [mark for mark in panel.marks if isinstance(mark, Item)]
    values = [value for item in items for value in item.bar or ()]
    for dot in (dot for item in items for dot in item.dots):
        values += [value for value in (dot.x, dot.low, dot.high) if value is not None]
    barred = any(item.bar and not item.thin for item in items)
    low = 0.0 if barred and axis.low is None and min(values, default=0.0) >= 0 else axis.low
    return AxisScale(*span(values, low, axis.high, axis.scale), start, end, axis.scale)


def _grid(drawing: svg.Drawing, panel: Panel, scale: AxisScale, reach: Reach) -> None:
    axis = panel.x
    assert isinstance(axis, Axis)
    room = scale.end - scale.start
    count = 4 if room > 260 else 2
    ticks = [(value, axis.words(value)) for value in axis.at] or ticks_of(scale, axis.words, count)
    for value, words in ticks[:: 1 if room > 180 or len(ticks) < 4 else 2]:
        drawing.line(scale(value), reach[0], scale(value), reach[1], "grid")
        drawing.text(scale(value), reach[1] + 17, words, "tick", anchor="middle")
    if axis.title:
        drawing.text(scale.start, reach[0] - 8, axis.title, "axis")
    if axis.sides:
        y = reach[0] - 8
        left, right = f"← {axis.sides[0]}", f"{axis.sides[1]} →"
        if scale(0) - scale.start >= svg.text_width(left, 12) + 6:
            drawing.text(scale(0) - 6, y, left, "axis", anchor="end")
        if drawing.width - scale(0) >= svg.text_width(right, 12) + 6:
            drawing.text(scale(0) + 6, y, right, "axis")


def _rules(drawing: svg.Drawing, marks: Sequence[object], scale: AxisScale, reach: Reach) -> None:
    for mark in marks:
        if isinstance(mark, ReferenceLine) and mark.axis == "x":
            with drawing.group(mark.tone, mark.words):
                look = "dashed" if mark.dashed else "zero"
                drawing.line(scale(mark.at), reach[0], scale(mark.at), reach[1], look)


def _item(drawing: svg.Drawing, item: Item, scale: AxisScale, y: float, *, thick: float) -> None:
    if item.bar is not None and item.thin:
        drawing.line(scale(item.bar[0]), y, scale(item.bar[1]), y, "bar")
    elif item.bar is not None:
        start, end = sorted(scale(value) for value in item.bar)
        drawing.rect(start, y - thick / 2, max(end - start, 1.5), thick, "fill")
        drawing.line(scale(0), y - thick / 2 - 2, scale(0), y + thick / 2 + 2, "zero")
    for dot in item.dots:
        with drawing.group(dot.tone, dot.tip):
            if dot.low is not None and dot.high is not None:
                drawing.line(scale(dot.low), y, scale(dot.high), y, "stick")
            svg.draw_shape(drawing, dot.shape, scale(dot.x), y, 5.0 * dot.size)


def _heads(drawing: svg.Drawing, item: Item, scale: AxisScale, y: float) -> None:
    """Name the points of the first row above it, apart from each other and inside."""
    names = sorted((dot for dot in item.dots if dot.label), key=lambda dot: dot.x)
    places = [scale(dot.x) for dot in names]
    for number in range(1, len(names)):
        room = (
            svg.text_width(names[number - 1].label) + svg.text_width(names[number].label)
        ) / 2 + 8
        push = max(0.0, room - (places[number] - places[number - 1])) / 2
        places[number - 1] -= push
        places[number] += push
    edge = scale.end + 12
    over = max(
        [0.0, *(p + svg.text_width(d.label) / 2 - edge for p, d in zip(places, names, strict=True))]
    )
    for dot, place in zip(names, places, strict=True):
        with drawing.group(dot.tone):
            drawing.text(place - over, y, dot.label, "gap", anchor="middle")


# -- cells ------------------------------------------------------------------------------------


def _cells(
    drawing: svg.Drawing, panel: Panel, rows: Sequence[_Row], reach: Reach, *, wide: bool
) -> None:
    names = panel.x
    assert isinstance(names, Names)
    most = len(names.names) if names.numbered else _FEW_COLUMNS if wide else _COLUMNS_NARROW
    columns = list(names.names[:most])
    cells = {(m.row, m.column): m for m in panel.marks if isinstance(m, Cell)}
    part = (reach[1] - reach[0]) / len(columns)
    _column_heads(drawing, names, columns, (reach[0], part, rows[0].top), wide=wide)
    for row in rows:
        for number, column in enumerate(columns):
            if row.name:
                place = (reach[0] + part * number, row.top, part, row.height)
                _cell(drawing, cells.get((row.name, column)), place)


def _cell(
    drawing: svg.Drawing, cell: Cell | None, place: tuple[float, float, float, float]
) -> None:
    x, y, width, height = place
    if cell is None:
        drawing.text(x + width / 2, y + height / 2 + 4, "–", "tick", anchor="middle")
        return
    with drawing.group(f"row {cell.tone}", cell.tip, key=cell.key):
        drawing.rect(x + 1, y + 1, width - 2, height - 2, f"shade s{cell.shade}")
        kind = "cell-strong" if cell.shade >= 4 else "cell-text"
        drawing.text(x + width / 2, y + height / 2 + 4, cell.words, kind, anchor="middle")


def _column_heads(
    drawing: svg.Drawing, names: Names, columns: Sequence[str],
    place: tuple[float, float, float], *, wide: bool,
) -> None:  # fmt: skip
    start, part, top = place
    short = without_shared_start(columns) if not wide else dict(zip(columns, columns, strict=True))
    for number, column in enumerate(columns):
        x = start + part * (number + 0.5)
        if names.numbered:
            # Where cells are small, every fifth number keeps clear of its neighbours.
            if part > 18 or number == 0 or (number + 1) % 5 == 0:
                drawing.text(x, top - 9, str(number + 1), "tick", anchor="middle")
            continue
        words = short[column]
        if wide or (" " not in words and svg.text_width(words, 13) <= part - 12):
            drawing.text(x, top - 9, svg.cut_name(words, part - 18), "strong", anchor="middle")
            continue
        # On a phone a name has two lines, parted where it can be.
        position = words.find(" ") if " " in words else words.rfind("-", 0, len(words) - 1)
        lines = (
            (words[: position + 1].strip(), words[position + 1 :]) if position > 0 else ("", words)
        )
        for line, text in enumerate(lines):
            cut = svg.cut_name(text, part - 16, size=11.5)
            drawing.text(x, top - 23 + 14 * line, cut, "small strong", anchor="middle")


# -- names above ------------------------------------------------------------------------------


def _above(chart: Chart) -> svg.Drawing:
    """Return the chart for a phone: panels are lanes below the name of their row."""
    names, panels = chart.y, chart.panels
    assert isinstance(names, Names)
    keys = svg.legend_rows(chart.legend, _NARROW)
    lanes = {
        name: [(panel, item) for panel in panels for item in _items(panel, name)]
        for name in names.names
    }
    several = [item.name or panel.heading for pairs in lanes.values() for panel, item in pairs]
    has_names = len(panels) > 1 and any(several)
    start = min(max(svg.text_width(name, 11.5) for name in several) + 8, 116) if has_names else 6.0
    marks = [item for pairs in lanes.values() for _, item in pairs]
    spare = max((svg.text_width(item.words) for item in marks), default=0.0) + 10
    top = 24.0 + svg.ROW * len(keys)
    height = top + sum(_HEAD + _LANE * len(pairs) for pairs in lanes.values())
    drawing = svg.Drawing(_NARROW, height + 22, chart.title, kind="rows")
    svg.draw_legend(drawing, keys)
    scale = _scale(Panel(chart.x, marks), start, _NARROW - spare - 6)
    _grid(drawing, Panel(chart.x, ()), scale, (top - 4, height))
    _rules(drawing, chart.marks, scale, (top - 4, height))
    if chart.end_title:
        drawing.text(_NARROW, top - 12, chart.end_title, "tick", anchor="end")
    if marks:
        _heads(drawing, marks[0], scale, top - 12)
    y = top
    for name, pairs in lanes.items():
        y += _HEAD
        if not name:
            drawing.text(0, y - 4, f"⋮ {names.left_out:,} more between", "tick")
            continue
        pair = f"{name} ({names.notes[name]})" if names.notes.get(name) else name
        drawing.text(0, y - 4, svg.cut_name(pair, _NARROW - 10), "name halo")
        for panel, item in pairs:
            with drawing.group(f"row {item.tone}", item.tip, key=item.key):
                drawing.rect(0, y - _HEAD, _NARROW, _HEAD + _LANE, "hit")
                if has_names:
                    lane = svg.cut_name(item.name or panel.heading, start - 6, size=11.5)
                    drawing.text(0, y + 12, lane, "small")
                _item(drawing, item, scale, y + 8, thick=12.0)
                drawing.text(_NARROW - 2, y + 12, item.words, "gap", anchor="end")
            y += _LANE
    return drawing
