"""Reliability diagram: share of right answers against confidence, with room for chance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.report.pictures.scales import Axis, across, percent, upright
from calibrant.report.pictures.svg import Drawing

_FEW = 5

Diagram = tuple[str, str, Mapping[str, Any]]
"""Name (empty for a single one), tone, and the `reliability` block: bins, curve, histogram."""


def reliability_diagram(diagrams: Sequence[Diagram], label: str, *, wide: bool) -> str:
    """Return the diagram: dots are bins, grey is where a calibrated one lies, bars are counts."""
    width, height = (700.0, 470.0) if wide else (350.0, 372.0)
    counts = diagrams[0][2].get("histogram") or []
    left, foot = 52.0, height - 44
    base = foot - (62 if counts else 0)
    x = Axis(0, 1, left, width - 14)
    y = Axis(0, 1, base, 16)
    drawing = Drawing(width, height, label, kind="reliability")
    shares = (0, 0.25, 0.5, 0.75, 1)
    upright(drawing, y, [(v, percent(v)) for v in shares], left, width - 14)
    across(drawing, x, [(v, percent(v)) for v in shares], 16, foot)
    drawing.text((left + width) / 2, height - 6, "confidence", "axis", anchor="middle")
    drawing.text(left, 8, "share right", "axis")
    for _, _, block in diagrams:
        _band(drawing, block.get("curve"), x, y)
    drawing.line(x(0), y(0), x(1), y(1), "diagonal")
    if len(diagrams) == 1:
        _side_words(drawing, x, y, wide=wide)
    for number, (name, tone, block) in enumerate(diagrams):
        _dots(drawing, block["bins"], (x, y), tone, name, number)
    if counts:
        _histogram(drawing, counts, x, base + 8, foot)
    return drawing.svg()


def _side_words(drawing: Drawing, x: Axis, y: Axis, *, wide: bool) -> None:
    """Say once what the two sides of the diagonal mean."""
    place = 0.03 if wide else 0.04
    drawing.text(x(place), y(0.93), "says less than it knows", "small")
    drawing.text(x(1 - place / 2), y(0.05), "says more than it knows", "small", anchor="end")


def _band(drawing: Drawing, curve: Mapping[str, Any] | None, x: Axis, y: Axis) -> None:
    if not curve or not curve.get("band_low"):
        return
    places = list(zip(curve["confidence"], curve["band_low"], curve["band_high"], strict=True))
    known = [(said, low, high) for said, low, high in places if low is not None]
    upper = [(x(said), y(high)) for said, _, high in known]
    lower = [(x(said), y(low)) for said, low, _ in reversed(known)]
    if len(known) > 1:
        drawing.polygon([*upper, *lower], "band")


def _dots(
    drawing: Drawing,
    bins: Sequence[Mapping[str, Any]],
    axes: tuple[Axis, Axis],
    tone: str,
    name: str,
    number: int,
) -> None:
    x, y = axes
    drawing.open_group(tone, name or "share right by confidence")
    # Bins of a few rows jump about: they are shown small, and the line passes over them.
    most = max((bin_["n"] for bin_ in bins), default=1) or 1
    steady = [bin_ for bin_ in bins if bin_["n"] >= max(_FEW, most / 50)]
    drawing.polyline([(x(b["confidence"]), y(b["rate"])) for b in steady], "series faint")
    for bin_ in bins:
        words = (
            f"{percent(bin_['lower'])} to {percent(bin_['upper'])}: right "
            f"{percent(bin_['rate'])} ({percent(bin_['low'])} to {percent(bin_['high'])}), "
            f"{bin_['n']:,.0f} rows"
        )
        drawing.open_group("bin", words)
        place = x(bin_["confidence"])
        drawing.line(place, y(bin_["low"]), place, y(bin_["high"]), "stick")
        drawing.circle(place, y(bin_["rate"]), 3 + 4.5 * (bin_["n"] / most) ** 0.5, "mark")
        drawing.close_group()
    if name and bins:
        _series_name(drawing, bins, axes, name, number)
    drawing.close_group()


def _series_name(
    drawing: Drawing,
    bins: Sequence[Mapping[str, Any]],
    axes: tuple[Axis, Axis],
    name: str,
    number: int,
) -> None:
    """Put names of two series where the corners are empty, with their colour."""
    x, y = axes
    above = sum(b["n"] * (b["rate"] - b["confidence"]) for b in bins) > 0
    if above:
        drawing.text(x(0.98), y(0.14) + 19 * number, name, "label", anchor="end")
    else:
        drawing.text(x(0.03), y(0.95) + 19 * number, name, "label")


def _histogram(drawing: Drawing, counts: Sequence[float], x: Axis, top: float, foot: float) -> None:
    most = max(counts) or 1
    step = 1 / len(counts)
    for place, count in enumerate(counts):
        if not count:
            continue
        height = (foot - top) * count / most
        drawing.open_group("first", f"{count:,} rows")
        start = x(place * step)
        drawing.rect(start + 0.5, foot - height, x((place + 1) * step) - start - 1, height, "fill")
        drawing.close_group()
    drawing.text(x(0) + 4, top + 9, "rows", "small")
