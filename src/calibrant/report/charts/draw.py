"""From a chart to SVG, for a page, a notebook or a file; files of other kinds are made of it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path

from calibrant.core.errors import InputError
from calibrant.core.imports import optional_import
from calibrant.report.charts.chart import Chart, Names
from calibrant.report.charts.plane import NARROW, WIDE, draw_plane
from calibrant.report.charts.rows import draw_rows
from calibrant.report.charts.svg import standalone

FORMATS = ("svg", "png", "pdf")


def draw(chart: Chart, *, wide: bool = True) -> str:
    """Return the chart for a desktop or a phone; colours follow the page around it."""
    if not wide and chart.narrow is not None:
        chart = chart.narrow
    if isinstance(chart.y, Names):
        return draw_rows(chart, wide=wide).svg()
    return draw_plane(chart, WIDE if wide else NARROW).svg()


def chart_file(chart: Chart) -> str:
    """Return the chart as a file of its own: its style, title and caption are inside."""
    head, mark, tail = standalone(draw(chart), plain=True).partition(">")
    words = f"<title>{escape(chart.title)}</title><desc>{escape(chart.caption)}</desc>"
    return f"{head}{mark}{words}{tail}"


@dataclass(frozen=True, slots=True)
class Plot:
    """A chart that shows itself in a notebook; `names`: the charts that a result has."""

    chart: Chart
    names: tuple[str, ...] = ()

    def __repr__(self) -> str:
        peers = ", ".join(name for name in self.names if name != self.chart.name)
        more = f"; others: {peers}" if peers else ""
        return f"<{self.chart.name}: {self.chart.title}{more}>"

    @property
    def svg(self) -> str:
        """Return the chart as SVG that stands alone."""
        return chart_file(self.chart)

    def save(self, path: str | Path) -> None:
        """Write the chart as svg, png or pdf, by the ending of the path."""
        place = Path(path)
        save_chart(replace(self.chart, name=place.stem), place.parent, formats=[place.suffix[1:]])

    def _repr_html_(self) -> str:
        words = f"<figcaption>{escape(self.chart.caption)}</figcaption>"
        return f"<figure>{standalone(draw(self.chart))}{words}</figure>"


def save_chart(chart: Chart, folder: Path, *, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write the chart in every format and return the paths."""
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise InputError(f"a figure is written as {', '.join(FORMATS)}, got {unknown[0]!r}")
    folder.mkdir(parents=True, exist_ok=True)
    svg, paths = chart_file(chart), []
    for name in formats:
        path = folder / f"{chart.name}.{name}"
        if name == "svg":
            path.write_text(svg, "utf-8")
        else:
            convert = optional_import("vl_convert", extra="figures", purpose="png and pdf files")
            draws = convert.svg_to_png(svg, scale=2) if name == "png" else convert.svg_to_pdf(svg)
            path.write_bytes(draws)
        paths.append(path)
    return paths
