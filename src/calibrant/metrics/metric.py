"""What a metric is: its facts, and the family that computes it from rows and from cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from calibrant.core.arrays import Array, Floats

if TYPE_CHECKING:
    from calibrant.metrics.block import MetricBlock
    from calibrant.metrics.cell_block import CellBlock

Ends: TypeAlias = tuple[float, float, float, str]
"""Value, ends of its interval, and how these were made; of a value that is NaN, why it is."""

Interval: TypeAlias = "Callable[[MetricBlock], Ends]"
RowLoss: TypeAlias = Callable[[Floats, Array], Array]
"""What a row of confidence and outcome costs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """How a kind of metric is computed.

    Parameters
    ----------
    interval
        Its value with an interval, from a block of rows or of cells.
    bound
        How far the value from cells may be from that of the rows themselves.
    cells
        `interval` of a block of cells, where their sums need a way of their own.
    influence
        Its value, and the influence of every row on it. A metric that has one is compared between
        models with a normal interval.
    rows
        What a row costs, where the metric is the mean over rows.
    """

    interval: Interval
    bound: Callable[[CellBlock], float]
    cells: Callable[[CellBlock], Ends] | None = None
    influence: Callable[[MetricBlock], tuple[float, Floats]] | None = None
    rows: RowLoss | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric: whatever lists metrics reads this.

    Parameters
    ----------
    name
        In documents, options and Python.
    title
        In tables.
    words
        What it is, in a sentence or two; with `formula` the entry of the glossary.
    value
        Plain function of confidence, correct and keyword ``weights``.
    range
        Least and largest value.
    better
        Which way is good: ``low``, ``high``, ``zero`` (either sign is bad) or ``neither``.
    probability
        Whether it needs probabilities; other metrics take any score.
    group
        What it tells: how well confidence is calibrated, a score of both, how well it ranks, a
        share of rows, or a part of the Brier score.
    main
        Whether tables that have no room for every metric show it.
    unit
        ``points`` where a reader wants percentage points, ``share`` for a share of rows.
    audit
        Whether an audit has it ``always``, when ``asked`` for by name, or ``never``.
    family
        How it is computed with its interval; every audit needs it.
    binned
        Whether `value` takes ``bins``.
    """

    name: str
    title: str
    words: str
    value: Callable[..., float]
    formula: str = ""
    range: tuple[float, float] = (0.0, 1.0)
    better: Literal["low", "high", "zero", "neither"] = "low"
    probability: bool = True
    group: Literal["calibration", "score", "ranking", "share", "part"] = "calibration"
    main: bool = False
    unit: Literal["", "points", "share"] = ""
    audit: Literal["always", "asked", "never"] = "always"
    family: Family | None = None
    binned: bool = False

    def __post_init__(self) -> None:
        if self.audit == "always" and self.family is None:
            raise TypeError(f"{self.name}: a metric of every audit has a family, with its bound")

    def __call__(self, confidence: Any, correct: Any, **options: Any) -> float:
        """Return the value."""
        return self.value(confidence, correct, **options)
