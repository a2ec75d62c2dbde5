"""The input of an audit, opened once: blocks of rows or of sums, and what was left out.

Rows and sums answer the same questions, so that whoever builds a document need not know which
they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from calibrant.core.arrays import Indices
from calibrant.core.estimate import Estimate
from calibrant.core.rng import named_stream
from calibrant.stats.common_draws import FEW_ROWS, CommonDraws, Stream

if TYPE_CHECKING:
    from calibrant.claims.missing import Missing
    from calibrant.metrics.cell_block import CellBlock
    from calibrant.metrics.row_block import RowBlock


@dataclass(frozen=True, slots=True)
class SourceBlock:
    """One model, method and perhaps group: its keys, its numbers, notes about its rows.

    `missing` counts graded answers that have no confidence, and `accuracy` gives the share of right
    answers among all that are graded, where some have none; `others` gives further columns of the
    rows, as codes, which may explain the errors.
    """

    keys: Mapping[str, str]
    made: Callable[[Stream], RowBlock | CellBlock]
    notes: Sequence[str] = ()
    rows: int | None = None
    missing: Missing | None = None
    others: Callable[[], dict[str, Indices]] = dict
    accuracy: Callable[[], Estimate] | None = None

    @property
    def group(self) -> dict[str, str] | None:
        """Column and value of the group, or None for the whole model."""
        found = {name: key for name, key in self.keys.items() if name not in ("model", "method")}
        return found or None

    @property
    def few(self) -> bool:
        """Whether there are so few rows that draws are shared with other such blocks."""
        return self.rows is not None and self.rows <= FEW_ROWS

    def stream(self, seed: int) -> Stream:
        """Return the stream of random numbers of this block, whatever else is audited.

        Blocks of few rows share one: their draws would take longer than everything else.
        """
        if self.few:
            return CommonDraws(seed)
        return named_stream(seed, *self.keys.items())


@dataclass(frozen=True, slots=True)
class AuditSource:
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
        What the data covers, with warnings, see `calibrant.inputs.coverage`; made when asked.
    draws, texts
        Draws with their meanings, and the questions' texts, where there are any.
    parallel
        Whether blocks may be worked on side by side.
    grading
        By model and method, how sure the grades are that the program made itself.
    """

    head: Mapping[str, Any]
    reading: Mapping[str, Any]
    blocks: Callable[[], Iterator[SourceBlock]]
    coverage: Callable[[], dict[str, Any]]
    dropped: Mapping[str, int] = field(default_factory=dict)
    dropped_rows: Mapping[str, Sequence[int | str]] = field(default_factory=dict)
    emptied: Sequence[str] = ()
    draws: Any = None
    texts: Any = None
    parallel: bool = False
    grading: Mapping[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
