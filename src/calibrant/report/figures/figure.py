"""A figure: a Vega-Lite specification with the words that go with it."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from html import escape
from pathlib import Path
from types import ModuleType
from typing import Any

import orjson

from calibrant.core.errors import InputError
from calibrant.core.optional import optional_import

FORMATS = ("svg", "png", "pdf")


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a report.

    Parameters
    ----------
    name
        Short, for file names.
    title, caption
        Words beside it; the caption also serves readers who cannot see the figure.
    spec
        Vega-Lite specification with its data inside.
    """

    name: str
    title: str
    caption: str
    spec: dict[str, Any]


def _convert() -> ModuleType:
    # A hundred megabytes, for files that few ask for: pages draw their charts themselves.
    return optional_import("vl_convert", extra="figures", purpose="charts as files")


def figure_svg(figure: Figure) -> str:
    """Return the figure as SVG text."""
    return _described(figure, _convert().vegalite_to_svg(_text(figure), allowed_base_urls=[]))


def _described(figure: Figure, svg: str) -> str:
    """Give the picture its title and caption, for readers who cannot see it."""
    head, mark, rest = svg.partition(">")
    words = f"<title>{escape(figure.title)}</title><desc>{escape(figure.caption)}</desc>"
    return f'{head} role="img"{mark}{words}{rest}'


def save_figure(figure: Figure, folder: Path, *, formats: tuple[str, ...] = FORMATS) -> list[Path]:
    """Write the figure in every format and return the paths."""
    unknown = [name for name in formats if name not in FORMATS]
    if unknown:
        raise InputError(f"a figure is written as {', '.join(FORMATS)}, got {unknown[0]!r}")
    folder.mkdir(parents=True, exist_ok=True)
    text = _text(figure, background="white")
    paths = []
    for name in formats:
        path = folder / f"{figure.name}.{name}"
        if name == "svg":
            svg = _convert().vegalite_to_svg(text, allowed_base_urls=[])
            path.write_text(_described(figure, svg), "utf-8")
        elif name == "png":
            path.write_bytes(_convert().vegalite_to_png(text, scale=2, allowed_base_urls=[]))
        else:
            path.write_bytes(_convert().vegalite_to_pdf(text, allowed_base_urls=[]))
        paths.append(path)
    return paths


def _text(figure: Figure, *, background: str | None = None) -> str:
    spec = copy.deepcopy(figure.spec)
    if spec.get("width") == "container":
        spec["width"] = 480
    config = spec.setdefault("config", {})
    # Room is measured here and used elsewhere: these fonts are of one width.
    config["font"] = "Liberation Sans, Arial, Helvetica, sans-serif"
    if background is not None:
        config["background"] = background
    return orjson.dumps(spec).decode()
