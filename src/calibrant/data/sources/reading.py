"""How a table is to be read, as its user said: columns by role, and rules for the rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import Struct, structs

from calibrant.core.errors import InputError
from calibrant.core.hints import Hint


def cluster_of(unit: str | None, cluster: str | None) -> str | None:
    """Return the column whose rows depend on each other, where one or the other names it.

    Examples
    --------
    >>> cluster_of("doc", None), cluster_of(None, "topic")
    ('doc', 'topic')
    """
    if unit is not None and cluster not in (None, unit):
        rule = Hint("{unit} and {cluster} name two columns, and intervals are between one of them")
        raise InputError(rule, hint=Hint("leave out {cluster}"))
    return unit or cluster


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
    unit: str | None = None

    def __post_init__(self) -> None:
        # Rows of one unit depend on each other: what knows clusters knows units.
        structs.force_setattr(self, "cluster", cluster_of(self.unit, self.cluster))

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
