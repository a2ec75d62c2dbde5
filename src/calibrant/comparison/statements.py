"""What one model says, sorted so that every bin is a run of rows, and how often it is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from calibrant.comparison.questions import QuestionBlock
from calibrant.comparison.survey import Survey
from calibrant.core.arrays import Floats, Indices
from calibrant.stats.binning import width_edges

# How often each question is drawn: (questions, draws).
Counts: TypeAlias = npt.NDArray[np.floating[Any]]
# Rows that say the same are counted together where there are so many of them on average.
_ALIKE = 4


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of one model, sorted by outcome and confidence: every bin is a run of them."""

    question: Indices
    right: Indices
    weight: Floats
    grade: Floats
    confidence: Floats
    mass: Indices
    width: Indices
    law: Indices

    def take(self, chosen: Indices) -> Rows:
        """Return some of the rows, in their order."""
        return Rows(*(getattr(self, field.name)[chosen] for field in fields(self)))

    def alike(self) -> Indices | None:
        """Return the number of what each row says, or None where few say the same."""
        said = np.stack([self.right, self.grade, self.confidence])
        number = np.cumsum((np.diff(said, prepend=-1) != 0).any(axis=0)) - 1
        return None if _ALIKE * (number.max(initial=-1) + 1) > number.size else number


def sorted_rows(
    block: QuestionBlock, outcome: Floats, survey: Survey, model: int, bins: int
) -> Rows:
    """Sort the rows of a model; a grade between 0 and 1 is a part of a right and of a wrong row."""
    has = np.flatnonzero(~np.isnan(outcome))
    z = outcome[has]
    question = np.concatenate([has[z < 1], has[z > 0]])
    right = np.repeat([0, 1], [(z < 1).sum(), (z > 0).sum()])
    weight = np.concatenate([1 - z[z < 1], z[z > 0]])
    c = block.confidence[model, question]
    steps = survey.law_steps()
    mass = survey.bins(model, c)
    width = np.searchsorted(width_edges(bins)[1:-1], c, side="right")
    law = np.searchsorted(steps, c, side="right") - 1
    grade = outcome[question]
    # Every kind of bin is a range of confidences, so that all are runs of rows sorted this way.
    order = np.lexsort((grade, c, right))
    return Rows(question, right, weight, grade, c, mass, width, law).take(order)


def runs(of: Indices) -> list[tuple[int, int]]:
    """Return where each run of equal numbers starts and ends.

    Examples
    --------
    >>> runs(np.array([4, 4, 7]))
    [(0, 2), (2, 3)]
    """
    starts = np.flatnonzero(np.diff(of, prepend=-1)).tolist()
    return list(zip(starts, [*starts[1:], of.size], strict=True))


class Statements:
    """The rows of a model, or those that say the same as one, and how often each is drawn."""

    def __init__(self, rows: Rows) -> None:
        self.question, self.number = rows.question, rows.alike()
        number = self.number
        self.rows = (
            rows if number is None else rows.take(np.flatnonzero(np.diff(number, prepend=-1)))
        )

    def drawn(self, counts: Counts, chosen: Indices | slice) -> Counts:
        """Return how often each statement is drawn on some of the rows, (statements, draws)."""
        question = self.question[chosen]
        if self.number is None:
            return counts[question]
        size = self.rows.question.size
        ends = np.searchsorted(self.number[chosen], np.arange(size + 1))
        ones = np.ones(question.size, dtype=counts.dtype)
        belongs = sparse.csr_array((ones, question, ends), shape=(size, len(counts)))
        found: Counts = belongs @ counts
        return found

    def lines(self, table: Floats, chosen: Indices) -> Floats:
        """Return the columns of a table by statement that go with `drawn`."""
        return table[:, chosen] if self.number is None else table


class Draws:
    """Statements as often as they are drawn."""

    def __init__(self, said: Statements, counts: Counts) -> None:
        self.said, self.counts = said, counts
        self.whole = None if said.number is None else said.drawn(counts, slice(None))

    def products(
        self, columns: Floats, run: Indices, draws: int | None = None
    ) -> Iterator[tuple[int, Floats]]:
        """Yield the sums of every column over every run of statements, (columns, draws)."""
        columns = columns.astype(self.counts.dtype)
        for start, end in runs(run):
            some = slice(start, end)
            if self.whole is None:
                # Counts are taken a run at a time: all would not stay near the processor.
                drawn = self.counts[self.said.question[some], :draws]
            else:
                drawn = self.whole[some, :draws]
            yield int(run[start]), np.asarray(columns[:, some] @ drawn)
