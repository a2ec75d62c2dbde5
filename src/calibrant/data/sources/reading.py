"""How a table is to be read, as its user said: columns by role, and rules for the rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import Struct, structs


class ReadingOptions(Struct, frozen=True, kw_only=True):
    """The options of a table, see `calibrant.data.load_scores`; None leaves it to the content.

    Examples
    --------
    >>> asked = ReadingOptions(confidence="p", scale="percent")
    >>> asked.by_schema().confidence, asked.by_schema().scale
    (None, 'percent')
    """

    on_invalid: str | None = None
    graded: bool = False
    scale: str | None = None
    right: str | None = None
    repeats: bool = False
    mend: str | Path | None = None
    confidence: str | None = None
    model: str | None = None
    method: str | None = None
    question: str | None = None
    answer: str | None = None
    cluster: str | None = None
    correct: str | None = None
    weights: str | None = None
    gold: str | None = None
    probs: str | None = None

    @property
    def rules(self) -> dict[str, Any]:
        """Which rows are taken, and how their cells are read."""
        return {name: getattr(self, name) for name in self.__struct_fields__[:6]}

    @property
    def columns(self) -> dict[str, str | None]:
        """The columns by role."""
        return {name: getattr(self, name) for name in self.__struct_fields__[6:]}

    def by_schema(self) -> ReadingOptions:
        """Return the same rules for a table whose columns have the names of the scores schema."""
        return structs.replace(self, **dict.fromkeys(self.columns))
