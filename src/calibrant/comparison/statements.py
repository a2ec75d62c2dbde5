"""What one model says, sorted so that every bin is a run of rows, and how often it is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from calibrant.comparison.questions import QuestionBlock
from calibrant.comparison.survey import AnswerCounts
from calibrant.core.arrays import Floats, Indices, Mask
from calibrant.metrics.stats.binning import width_edges

# How often each question is drawn: (questions, draws).
Counts: TypeAlias = npt.NDArray[np.floating[Any]]
# Rows that say the same are counted together where there are so many of them on average.
_ALIKE = 4
# Partners whose missing rows are counted together: their sums then stay near the processor.
_TOGETHER = 8


@dataclass(frozen=True, slots=True)
class ComparisonRows:
    """Rows of one model, sorted by outcome and confidence: every bin is a run of them."""

    question: Indices
    right: Indices
    weight: Floats
    grade: Floats
    confidence: Floats
    mass: Indices
    width: Indices
    law: Indices

    def take(self, chosen: Indices) -> ComparisonRows:
        """Return some of the rows, in their order."""
        return ComparisonRows(*(getattr(self, field.name)[chosen] for field in fields(self)))

    def alike(self) -> Indices | None:
        """Return the number of what each row says, or None where few say the same."""
        confidence = np.stack([self.right, self.grade, self.confidence])
        number = np.cumsum((np.diff(confidence, prepend=-1) != 0).any(axis=0)) - 1
        return None if _ALIKE * (number.max(initial=-1) + 1) > number.size else number


def sorted_rows(
    block: QuestionBlock, outcome: Floats, survey: AnswerCounts, model: int, bins: int
) -> ComparisonRows:
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
    return ComparisonRows(question, right, weight, grade, c, mass, width, law).take(order)


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

    def __init__(self, rows: ComparisonRows) -> None:
        self.question, self.number = rows.question, rows.alike()
        number = self.number
        self.rows = (
            rows if number is None else rows.take(np.flatnonzero(np.diff(number, prepend=-1)))
        )

    def drawn(self, counts: Counts, number: Indices) -> Counts:
        """Return how often what says the same is drawn, (statements, draws)."""
        return _belonging(self.question, number, number[-1] + 1, counts)

    def drawn_by_partner(
        self, counts: Counts, chosen: Mask
    ) -> Iterator[tuple[slice, Indices | slice, Counts]]:
        """Yield, for rows chosen by partner, how often statements are drawn there.

        Some partners, statements, and (partners, statements, draws).
        """
        if self.number is None:
            for place, rows in enumerate(map(np.flatnonzero, chosen)):
                yield slice(place, place + 1), rows, counts[self.question[rows]][None]
            return
        size = self.rows.question.size
        for start in range(0, len(chosen), _TOGETHER):
            subset = slice(start, min(start + _TOGETHER, len(chosen)))
            partner, row = np.nonzero(chosen[subset])
            lines = partner * size + self.number[row]
            table = _belonging(self.question[row], lines, (subset.stop - start) * size, counts)
            yield subset, slice(None), table.reshape(-1, size, counts.shape[1])


def _belonging(question: Indices, line: Indices, lines: int, counts: Counts) -> Counts:
    """Return sums of counts over the questions of every line; lines rise."""
    ends = np.searchsorted(line, np.arange(lines + 1))
    ones_vector = np.ones(question.size, dtype=counts.dtype)
    belongs = sparse.csr_array((ones_vector, question, ends), shape=(lines, len(counts)))
    sums: Counts = belongs @ counts
    return sums


class ComparisonDraws:
    """Statements as often as they are drawn."""

    def __init__(self, said: Statements, counts: Counts) -> None:
        self.said, self.counts = said, counts
        self.whole = None if said.number is None else said.drawn(counts, said.number)

    def products(
        self, columns: Floats, run: Indices, draws: int | None = None
    ) -> Iterator[tuple[int, Floats]]:
        """Yield the sums of every column over every run of statements, (columns, draws)."""
        columns = columns.astype(self.counts.dtype)
        for start, end in runs(run):
            subset = slice(start, end)
            if self.whole is None:
                # Counts are taken a run at a time: all would not stay near the processor.
                sample = self.counts[self.said.question[subset], :draws]
            else:
                sample = self.whole[subset, :draws]
            yield int(run[start]), np.asarray(columns[:, subset] @ sample)
