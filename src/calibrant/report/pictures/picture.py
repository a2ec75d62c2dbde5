"""A picture that answers a document's question, drawn for a wide screen and for a phone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Picture"]


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
