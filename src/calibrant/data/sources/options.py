"""What an audit is given: how to read its table, its options, and its opened input."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from calibrant.core.arrays import Estimate, Indices, Stream, named_stream
from calibrant.core.errors import InputError
from calibrant.core.hints import Hint

if TYPE_CHECKING:
    from calibrant.findings.claims.margins import Missing
    from calibrant.metrics.blocks.cell_block import CellBlock
    from calibrant.metrics.blocks.row_block import RowBlock
    from calibrant.metrics.stats.dependence import Dependence
    from calibrant.metrics.stats.graded_estimates import CheckedGrades


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


REPEATED = "rows of one question or cluster depend on each other: tests are between these"
"""What is said of tests that are not between rows."""
_RULES = ("on_invalid", "labels", "graded", "scale", "right", "repeats", "mend",
          "whole_record")  # fmt: skip


def table_settings(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a table in the words that all documents share.

    Parameters
    ----------
    given
        Column names by role, and rules for the rows. Names that are None are left out: they are
        those of the scores schema.

    Examples
    --------
    >>> table_settings({"confidence": "p", "model": None, "on_invalid": "drop"})
    {'on_invalid': 'drop', 'columns': {'confidence': 'p'}}
    """
    if given.get("unit") is not None:
        given = {**given, "cluster": None}
    if "on_invalid" in given:
        given = {**given, "on_invalid": given["on_invalid"] or "missing"}
    confidence = {name: value for name, value in given.items() if value is not None}
    rules = {name: value for name, value in confidence.items() if name in _RULES}
    columns = {name: value for name, value in confidence.items() if name not in _RULES}
    if "mend" in rules:
        rules["mend"] = str(rules["mend"])
    return {**rules, "columns": columns}


class AuditOptions(Struct, frozen=True, kw_only=True):
    """The options of `audit`; their meaning is told there.

    Parameters
    ----------
    table
        How the table is read.
    by, bins, level, resamples, recalibrate, engine, seed
        As for `audit`.
    meaning_bins
        Bins of calibration errors over meanings: Sem-ECE, and the scores that it is made of.
    unlimited_draws, label
        As for `audit`.
    labels
        Store of labels that people made, as for `audit`.
    named_metrics
        Metrics that were asked for by name, beside those of every audit.

    Examples
    --------
    >>> options = AuditOptions(table=ReadingOptions(confidence="p"), bins=10)
    >>> options.settings["bins"], options.settings["columns"]
    (10, {'confidence': 'p'})
    """

    table: ReadingOptions = ReadingOptions()
    by: tuple[str, ...] = ()
    bins: int = 15
    level: float = 0.95
    resamples: int = 1000
    recalibrate: str | None = None
    engine: str | None = None
    seed: int = 0
    meaning_bins: int = 10
    unlimited_draws: bool = False
    label: str = "split"
    named_metrics: tuple[str, ...] = ()
    labels: Any = None

    def bins_of(self, method: str) -> int:
        """Return the bins of a method's calibration error: one number for one quantity."""
        return self.meaning_bins if method in ("sem1", "sem2") else self.bins

    @property
    def needs_all_rows(self) -> str | None:
        """The option that needs all rows of a question, a model or the table at once, if any."""
        names = ("weights", "cluster", "right", "mend", "graded", "repeats")
        request = {
            **{name: getattr(self.table, name) for name in names},
            "recalibrate": self.recalibrate,
            "metrics": self.named_metrics,
            "labels": self.labels,
        }
        return next((name for name, value in request.items() if value), None)

    @property
    def settings(self) -> dict[str, Any]:
        """What the document says about how it was made; the seed stands beside it.

        Not the engine: the numbers do not depend on it.
        """
        return {
            "bins": self.bins,
            "level": self.level,
            "resamples": self.resamples,
            "recalibrate": self.recalibrate,
            "by": list(self.by),
            **({"metrics": list(self.named_metrics)} if self.named_metrics else {}),
            **({"labels": str(self.labels)} if self.labels else {}),
            **({"label": self.label} if self.label != "split" else {}),
            **table_settings(structs.asdict(self.table)),
        }


def not_searched() -> None:
    """Whether rows hang together was not asked, or is known."""


def graded_by_others() -> None:
    """Outcomes came with the data."""


class SourceBlock(Struct, frozen=True):
    """One model, method and perhaps group: its keys, its numbers, notes about its rows.

    `missing` counts graded answers that have no confidence, and `accuracy` gives the share of right
    answers among all that are graded, where some have none; `dependence` tells rows that hang
    together, None where that was not searched; `clustered` gives the numbers between clusters, from
    their codes; `graded` gives the grades that the program made itself, None where others graded
    the rows.
    """

    keys: Mapping[str, str]
    made: Callable[[Stream], RowBlock | CellBlock]
    notes: Sequence[str] = ()
    rows: int | None = None
    missing: Missing | None = None
    dependence: Callable[[], Dependence | None] = not_searched
    clustered: Callable[[Indices, Stream], RowBlock] | None = None
    accuracy: Callable[[], Estimate] | None = None
    graded: Callable[[], CheckedGrades | None] = graded_by_others

    @property
    def group(self) -> dict[str, str] | None:
        """Column and value of the group, or None for the whole model."""
        columns = {name: key for name, key in self.keys.items() if name not in ("model", "method")}
        return columns or None

    def stream(self, seed: int) -> Stream:
        """Return the stream of random numbers of this block, whatever else is audited."""
        return named_stream(seed, *self.keys.items())


class AuditSource(Struct, frozen=True):
    """What an audit works on.

    Parameters
    ----------
    head
        Schema, version, source, input files, seed and settings of the document.
    reading
        How the table was read.
    blocks
        Yields the blocks, each whole model before its groups.
    dropped, dropped_rows, emptied
        Rows that break a rule: counts, the first few, models that lost all of theirs.
    coverage
        What the data covers, with warnings, see `calibrant.data.sources.coverage`; made when asked.
    draws, texts
        Draws with their meanings, and the questions' texts, where there are any.
    parallel
        Whether blocks may be worked on side by side.
    """

    head: Mapping[str, Any]
    reading: Mapping[str, Any]
    blocks: Callable[[], Iterator[SourceBlock]]
    coverage: Callable[[], dict[str, Any]]
    dropped: Mapping[str, int] = {}
    dropped_rows: Mapping[str, Sequence[int | str]] = {}
    emptied: Sequence[str] = ()
    draws: Any = None
    texts: Any = None
    parallel: bool = False
