"""What one model says, sorted and as often as it is drawn, and what it would say elsewhere.

Rows are sorted so that every bin is a run of them. Weighting right answers by t/a and wrong ones by
(1 - t)/(1 - a) brings a model of accuracy a to accuracy t. A calibrated model stays calibrated only
if its log-odds move by logit t - logit a (Bayes' rule): the odds shift. The distribution-aligned
view of the literature leaves the confidences where they are, and so makes every calibrated model of
another accuracy look miscalibrated.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import astuple
from scipy import sparse, special

from calibrant.core.arrays import Floats, Indices, Mask
from calibrant.metrics.stats.binning import width_edges

if TYPE_CHECKING:
    from calibrant.comparison.questions import QuestionBlock
    from calibrant.comparison.survey import AnswerCounts

# Equal-mass bins on the confidences as stated, the same on every footing.
MASS_BINS = 10
# A confidence of exactly 0 or 1 has no finite odds; inside the shift alone it is moved this far.
CLIP = 0.005
# The same with 'almost certain' taken at its word; where the two differ, the verdict says so.
NEAR_CLIP = 1e-6
# Shifted confidences between the nodes are exact to about this.
_NODE_ERROR = 1e-10


def log_odds(share: npt.ArrayLike) -> Floats:
    """Return logit(share): minus infinity at 0, infinity at 1.

    Examples
    --------
    >>> log_odds([0.0, 0.5, 1.0]).tolist()
    [-inf, 0.0, inf]
    """
    return np.asarray(special.logit(np.asarray(share, dtype=np.float64)))


def shift_confidence(confidence: Floats, shift: npt.ArrayLike, *, clip: float = CLIP) -> Floats:
    """Return confidences whose log-odds are moved by `shift`; without a shift they are untouched.

    Examples
    --------
    >>> shift_confidence(np.array([0.5, 1.0]), float(log_odds(0.75))).round(3).tolist()
    [0.75, 0.998]
    """
    moved = special.expit(special.logit(np.clip(confidence, clip, 1 - clip)) + shift)
    return np.asarray(np.where(np.asarray(shift) == 0, confidence, moved))


class ShiftNodes(Struct, frozen=True):
    """Shifts at which confidences are summed, so that sums at many others follow.

    A sum of shifted confidences is a smooth function of the shift: a few nodes hold it for all
    partners of a model. `values` and `slopes` (shifts, nodes) turn sums at the nodes into sums at
    each shift, and into their derivatives.
    """

    shifts: Floats
    nodes: Floats
    values: Floats
    slopes: Floats


def shift_nodes(shifts: Floats) -> ShiftNodes:
    """Return the nodes (of Chebyshev) that serve these shifts.

    Examples
    --------
    >>> wanted = np.array([-1.0, 0.3, 2.0])
    >>> found = shift_nodes(wanted)
    >>> at_nodes = special.expit(0.7 + found.nodes)
    >>> bool(np.abs(found.values @ at_nodes - special.expit(0.7 + wanted)).max() < 1e-9)
    True
    """
    low, high = float(shifts.min()), float(shifts.max())
    middle, half = (low + high) / 2, max((high - low) / 2, 1e-3)
    # The logistic curve has its nearest pole at a distance of pi from the real line.
    reach = math.pi / half
    rate = reach + math.sqrt(reach**2 + 1)
    count = max(math.ceil(-math.log(_NODE_ERROR) / math.log(rate)), 3)
    angles = (np.arange(count) + 0.5) * np.pi / count
    polynomials = np.polynomial.chebyshev
    inverse = np.linalg.inv(polynomials.chebvander(np.cos(angles), count - 1))
    place = (shifts - middle) / half
    steep = polynomials.chebder(np.eye(count), axis=0)
    slopes = polynomials.chebvander(place, count - 2) @ steep / half
    return ShiftNodes(
        shifts,
        middle + half * np.cos(angles),
        polynomials.chebvander(place, count - 1) @ inverse,
        slopes @ inverse,
    )


# How often each question is drawn: (questions, draws).
Counts: TypeAlias = npt.NDArray[np.floating[Any]]
# Rows that say the same are counted together where there are so many of them on average.
_ALIKE = 4
# Partners whose missing rows are counted together: their sums then stay near the processor.
_TOGETHER = 8


class ComparisonRows(Struct, frozen=True):
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
        return ComparisonRows(*(part[chosen] for part in astuple(self)))

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
