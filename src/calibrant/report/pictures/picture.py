"""A picture that answers a document's question, drawn for a wide screen and for a phone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from calibrant.core.optional import optional_import
from calibrant.report.pictures.svg import standalone


@dataclass(frozen=True, slots=True)
class Picture:
    """Words beside it, and what draws it: `draw(wide=True)` returns SVG."""

    title: str
    caption: str
    draw: Callable[[bool], str]

    @property
    def wide(self) -> str:
        """Return the picture for a desktop."""
        return self.draw(True)

    @property
    def narrow(self) -> str:
        """Return the picture for a phone."""
        return self.draw(False)


def save_picture(picture: Picture, folder: Path, *, formats: Sequence[str]) -> list[Path]:
    """Write the picture as ``answer`` in every format and return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    svg = standalone(picture.wide, plain=True)
    paths = []
    for name in formats:
        path = folder / f"answer.{name}"
        if name == "svg":
            path.write_text(svg, "utf-8")
        else:
            convert = optional_import("vl_convert", extra="figures", purpose="png and pdf files")
            drawn = convert.svg_to_png(svg, scale=2) if name == "png" else convert.svg_to_pdf(svg)
            path.write_bytes(drawn)
        paths.append(path)
    return paths
