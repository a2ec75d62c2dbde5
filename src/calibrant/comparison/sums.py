"""Weighted sums of one model on the questions that it shares with each partner.

All footings of all pairs follow from these sums, in the data and in every resample. The rows of
the model are sorted once by what they say and by outcome; a bin is then a run of rows, and the
sums over it are one matrix product with the counts of the resamples. Where few confidences are
stated, rows that say the same are counted together first. Shifted confidences are
summed at a few shifts, from which those of every partner follow: the time does not grow with the
number of pairs, but with that of models.
"""

from __future__ import annotations

from operator import add
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import astuple, replace

from calibrant.comparison.questions import QuestionBlock, Resamples
from calibrant.comparison.statements import (
    MASS_BINS,
    NEAR_CLIP,
    ComparisonDraws,
    ComparisonRows,
    Counts,
    ShiftNodes,
    Statements,
    log_odds,
    runs,
    shift_confidence,
    shift_nodes,
    sorted_rows,
)
from calibrant.comparison.survey import AnswerCounts, cell_index, mass_bins
from calibrant.core.arrays import Floats, Indices, Mask
from calibrant.metrics.stats.binning import width_edges

Singles: TypeAlias = npt.NDArray[np.float32]
HISTOGRAM_BINS = 20
# Distances between distributions are exact up to so many distinct confidences.
RANK_CELLS = 1_024
# Resamples of what describes a pair and of the laws of confidence, whose quantiles are near.
DESCRIBED = 200
# Columns that every set of questions has: number, confidence, squared residual, spread of grades;
# then the squared error at even odds with two derivatives, on all questions.
_COLUMNS = 7
# Lines by outcome and equal-mass bin, and those of two outcomes and two totals.
_BY_MASS = 2 * MASS_BINS
_TOTALS = 4


class WeightedSums(Struct, frozen=True):
    """Sums over questions as often as they are drawn, (.., draws); wrong answers before right ones.

    `common` (kinds, lines) holds `mass`, `width` and `totals` on the questions that a kind of
    partner has too, and `lacking` on those that it lacks. On all questions of the model: `league`
    (3, 2) is the squared error at even odds with two derivatives, `law` (2, 2, steps) number and
    confidence by step, `nodes` (1 + nodes, 2, mass bins) c (1 - c) and, at shifts between which
    all others lie, shifted confidence. `same` (partners, 5 + width bins) is about questions where
    the partner shares the outcome: number and confidence of wrong and of right answers, squares,
    and residuals by bin.
    """

    common: Floats
    league: Floats
    law: Floats
    nodes: Floats
    same: Floats

    @property
    def mass(self) -> Floats:
        """(kinds, 2, 2, mass bins, draws) number and confidence."""
        return self._lines(0, 2 * _BY_MASS, 2, 2, MASS_BINS)

    @property
    def width(self) -> Floats:
        """(kinds, 2, width bins, draws) residuals."""
        return self._lines(2 * _BY_MASS, -2 * _BY_MASS - _TOTALS, 2, -1)

    @property
    def totals(self) -> Floats:
        """(kinds, 2, 2, draws) squared residuals and the spread of grades."""
        return self._lines(-2 * _BY_MASS - _TOTALS, -2 * _BY_MASS, 2, 2)

    @property
    def lacking(self) -> Floats:
        """(kinds, 2, 2, mass bins, draws) confidence and slope, at the partner's accuracy."""
        return self._lines(-2 * _BY_MASS, None, 2, 2, MASS_BINS)

    def _lines(self, start: int, end: int | None, *shape: int) -> Floats:
        kinds, _, draws = self.common.shape
        return self.common[:, start:end].reshape(kinds, *shape, draws)

    def __add__(self, other: WeightedSums) -> WeightedSums:
        """Return the sums over the questions of both."""
        return WeightedSums(*map(add, astuple(self), astuple(other)))

    def at_shifts(self, served: ShiftNodes, places: Indices, kinds: Indices) -> Floats:
        """(places, 2, 2, mass bins, draws) confidence and slope at some of the shifts."""
        shifted = _at_nodes(self.nodes, served, places)
        mass, lacking = self.mass, self.lacking
        for row, (kind, place) in enumerate(zip(kinds, places, strict=True)):
            if kind:
                shifted[row] -= lacking[kind]
            if served.shifts[place] == 0:
                # Without a shift the confidences stay as stated, near-certain ones too.
                shifted[row, 0] = mass[kind, 1]
        return shifted


def _at_nodes(nodes: Floats, served: ShiftNodes, places: Indices) -> Floats:
    """Return confidence and slope at some of the shifts, on all questions."""
    lines = np.stack([served.values[places], served.slopes[places]], axis=1)
    shifted = np.tensordot(lines.astype(nodes.dtype), nodes[1:], axes=1)
    shifted[served.shifts[places] == 0, 1] = nodes[0]
    return np.asarray(shifted)


class ModelSums(Struct, frozen=True):
    """Sums of one model.

    `data` are those of the data, which are reported, in double precision; `drawn` those of the
    data and all resamples, whose spread alone is used, in single precision. `kind` says which
    common sums belong to a partner: the first are those of all questions of the model, partners
    that lack some have sums of their own. `near` (partners, 2, mass bins) is what near-certain
    statements would add in the data. `ranks` and `histogram` (partners, 4, cells) count answers of
    the data by outcome and by whether the partner shares it.
    """

    kind: Indices
    data: WeightedSums
    drawn: WeightedSums
    near: Floats
    ranks: Floats
    histogram: Floats

    def __add__(self, other: ModelSums) -> ModelSums:
        """Return the sums over the questions of both."""
        mine, yours = self, other
        if not np.array_equal(self.kind, other.kind):
            mine, yours = self._spread_out(), other._spread_out()
        return ModelSums(mine.kind, *map(add, astuple(mine)[1:], astuple(yours)[1:]))

    def _spread_out(self) -> ModelSums:
        """Return the same with common sums of its own for every partner."""
        data, draws = (
            replace(part, common=part.common[self.kind]) for part in (self.data, self.drawn)
        )
        return replace(self, kind=np.arange(self.kind.size), data=data, drawn=draws)


def model_sums(
    block: QuestionBlock, resamples: Resamples, survey: AnswerCounts, model: int, *, bins: int
) -> ModelSums:
    """Return the sums of one model in one block of questions, for all models as partners.

    Parameters
    ----------
    block, resamples
        The questions, and how often each is in every resample.
    survey
        Survey of all blocks: equal-mass bins and shifts are those of all questions.
    model
        Number of the model; as its own partner it stands for all its questions.
    bins
        Equal-width bins of the views of the literature.
    """
    outcomes = block.outcome
    rows = sorted_rows(block, outcomes[model], survey, model, bins)
    peers = outcomes.take(rows.question, axis=1)
    work = _Work(rows, peers, survey, model, bins)
    return ModelSums(
        work.kind,
        work.sums(np.ones((block.size, 1))),
        work.sums(resamples.counts),
        _near_sums(rows, work.present, work.served.shifts),
        *_counts_by_sharing(rows, peers, survey, model),
    )


class _Work:
    """What is summed of one model in one block, alike over the data and over the resamples."""

    def __init__(
        self, rows: ComparisonRows, others: Floats, survey: AnswerCounts, model: int, bins: int
    ) -> None:
        self.rows, self.model, self.bins = rows, model, bins
        self.said = Statements(rows)
        self.columns = _columns(self.said.rows, survey, model)
        self.served = shift_nodes(survey.shifts(model))
        self.steps = survey.law_steps().size - 1
        self.present = ~np.isnan(others)
        self.shared = (others == rows.grade).astype(np.float32)
        self.thin = np.flatnonzero(~self.present.all(axis=1))
        self.kind = np.zeros(len(others), dtype=np.intp)
        self.kind[self.thin] = 1 + np.arange(self.thin.size)

    def sums(self, counts: Counts) -> WeightedSums:
        """Return all sums, with questions drawn so often."""
        draws = ComparisonDraws(self.said, counts)
        whole, league, nodes = self._whole(draws)
        equal = _same_sums(self.rows, counts[:, : DESCRIBED + 1], self.shared, self.bins)
        # By itself a model is seen as in its pairs, on average.
        equal[self.model] = np.delete(equal, self.model, axis=0).mean(axis=0)
        return WeightedSums(
            self._by_kind(whole, nodes, counts), league, self._law(draws), nodes, equal
        )

    def _whole(self, draws: ComparisonDraws) -> tuple[Floats, Floats, Floats]:
        """Return the lines over all questions of the model, the league's, and every node's."""
        rows, answers_served, bins = self.said.rows, self.served, self.bins
        c, w = rows.confidence, rows.weight
        # A node at 0 is a shift like any other: the clip of its neighbours applies.
        nodes = w * shift_confidence(
            c, np.where(answers_served.nodes == 0, 1e-300, answers_served.nodes)[:, None]
        )
        columns = np.concatenate([self.columns, (w * c * (1 - c))[None], nodes])
        kind: Any = draws.counts.dtype
        size = draws.counts.shape[1]
        mass, width = np.zeros((2, 2, MASS_BINS, size), kind), np.zeros((2, bins, size), kind)
        totals = np.zeros((5, 2, size), kind)
        sums = np.zeros((1 + len(nodes), 2, MASS_BINS, size), kind)
        run = (rows.right * MASS_BINS + rows.mass) * bins + rows.width
        for place, values in draws.products(columns, run):
            by_mass, at_width = divmod(place, bins)
            z, at_mass = divmod(by_mass, MASS_BINS)
            mass[:, z, at_mass] += values[:2]
            width[z, at_width] += values[1] - z * values[0]
            totals[:, z] += values[2:_COLUMNS]
            sums[:, z, at_mass] += values[_COLUMNS:]
        lines = [part.reshape(-1, size) for part in (mass, width, totals[:2])]
        return np.concatenate(lines), totals[2:], sums

    def _law(self, draws: ComparisonDraws) -> Floats:
        """Return number and confidence by outcome and step."""
        rows, size = self.said.rows, min(draws.counts.shape[1], DESCRIBED + 1)
        table = np.zeros((2, 2, self.steps, size), draws.counts.dtype)
        run = rows.right * self.steps + rows.law
        for place, values in draws.products(self.columns[:2], run, size):
            table[:, *divmod(place, self.steps)] = values
        return table

    def _by_kind(self, whole: Floats, nodes: Floats, counts: Counts) -> Floats:
        """Return the lines of all questions, and of the partners that lack some."""
        common = np.zeros(
            (1 + self.thin.size, len(whole) + 2 * _BY_MASS, whole.shape[1]), whole.dtype
        )
        common[0, : len(whole)] = whole
        if not self.thin.size:
            return common
        lines, by_mass = _lines(self.said.rows, self.columns[:4], self.bins)
        moved = shift_confidence(self.said.rows.confidence, self.served.shifts[self.thin, None])
        # Few questions are missing as a rule: what they hold is taken off the whole.
        present = self.present[self.thin]
        few = present.mean(axis=1) > 0.5
        draws = self.said.drawn_by_partner(counts, present != few[:, None])
        for subset, choice, times in draws:
            c, part = moved[subset, None, choice], common[1:][subset]
            table = np.empty((len(c), part.shape[1], c.shape[2]), whole.dtype)
            table[:, : len(whole)] = lines[:, choice]
            np.multiply(by_mass[:, choice], c, out=table[:, len(whole) : -_BY_MASS])
            np.multiply(by_mass[:, choice], c * (1 - c), out=table[:, -_BY_MASS:])
            np.matmul(table, times, out=part)
            for place, sums in zip(range(len(few))[subset], part, strict=True):
                if few[place]:
                    np.subtract(whole, sums[: len(whole)], out=sums[: len(whole)])
                    continue
                remainder = _at_nodes(nodes, self.served, self.thin[place : place + 1])
                sums[len(whole) :] = remainder.reshape(-1, whole.shape[1]) - sums[len(whole) :]
        return common


def _lines(rows: ComparisonRows, columns: Floats, bins: int) -> tuple[Floats, Floats]:
    """Return what each statement adds to every line of the common sums, (lines, statements).

    And how much it weighs in its outcome and equal-mass bin.
    """
    number, confidence, squares, spread = columns
    z, place = rows.right, np.arange(rows.right.size)
    blocks = (
        (number, z * MASS_BINS + rows.mass, _BY_MASS),
        (confidence, z * MASS_BINS + rows.mass, _BY_MASS),
        (confidence - z * number, z * bins + rows.width, 2 * bins),
        (squares, z, 2),
        (spread, z, 2),
    )
    tables = []
    for values, line, size in blocks:
        table = np.zeros((size, z.size))
        table[line, place] = values
        tables.append(table)
    return np.concatenate(tables), tables[0]


def _columns(rows: ComparisonRows, survey: AnswerCounts, model: int) -> Floats:
    """Return what is summed: (columns, statements); the last three for the league."""
    c, z = rows.confidence, rows.right
    even = -float(log_odds(survey.accuracy(model, model)[:1])[0])
    s = shift_confidence(c, even if np.isfinite(even) else 0.0)
    v = s * (1 - s)
    columns = [
        np.ones_like(c),
        c,
        (c - z) ** 2,
        # The spread of a grade belongs to the question: its two parts hold it together once.
        rows.grade * (1 - rows.grade),
        # (s - z)^2 with log-odds moved by d is league + league_1 d + league_2 d^2.
        (s - z) ** 2,
        2 * (s - z) * v,
        v**2 + (s - z) * v * (1 - 2 * s),
    ]
    return np.stack(columns) * rows.weight


def _near_sums(rows: ComparisonRows, present: Mask, shifts: Floats) -> Floats:
    """Return what near-certain confidences add in the data when they are taken at their word."""
    extreme = np.flatnonzero(np.abs(rows.confidence - 0.5) > 0.495 - 1e-12)
    sums = np.zeros((len(present), 2, MASS_BINS))
    if not extreme.size:
        return sums
    part = rows.take(extreme)
    place = part.right * MASS_BINS + part.mass
    confidence, inverse = np.unique(part.confidence, return_inverse=True)
    for partner, (has, shift) in enumerate(zip(present[:, extreme], shifts, strict=False)):
        distance = shift_confidence(confidence, shift, clip=NEAR_CLIP) - shift_confidence(
            confidence, shift
        )
        moved = part.weight * has * distance[inverse]
        sums[partner] = np.bincount(place, moved, 2 * MASS_BINS).reshape(2, MASS_BINS)
    return sums


def _same_sums(rows: ComparisonRows, counts: Counts, shared: Singles, bins: int) -> Floats:
    """Return sums over the rows where each partner shares the outcome, see `WeightedSums`."""
    c, kind, draws = rows.confidence, counts.dtype, counts.shape[1]
    of_row = np.stack([np.ones_like(c), c, c**2 - rows.grade * (1 - rows.grade)]) * rows.weight
    of_row = of_row.astype(kind)
    halves = np.zeros((2, len(shared), 3, draws), kind)
    residuals = np.zeros((len(shared), bins, draws), kind)
    run, alike = rows.right * bins + rows.width, rows.alike()
    for start, end in runs(run if alike is None else alike):
        sample, columns = counts[rows.question[start:end]], of_row[:, start:end]
        has = shared[:, start:end]
        if alike is not None:
            # Rows that say the same are only counted.
            sums = (has @ sample)[:, None] * columns[:, :1]
        elif draws == 1:
            sums = (has @ (columns * sample[:, 0]).T)[:, :, None]
        else:
            sums = ((has[:, None] * columns).reshape(-1, end - start) @ sample).reshape(
                -1, 3, draws
            )
        right, width = divmod(int(run[start]), bins)
        halves[right] += sums
        residuals[:, width] += sums[:, 1] - right * sums[:, 0]
    number, statement = halves[:, :, 0], halves[:, :, 1]
    squares = halves[:, :, 2].sum(axis=0)
    table = np.concatenate([number, statement, squares[None]]).transpose(1, 0, 2)
    return np.concatenate([table, residuals], axis=1)


def _counts_by_sharing(
    rows: ComparisonRows, peers: Floats, survey: AnswerCounts, model: int
) -> list[Floats]:
    """Count answers by confidence, outcome (wrong, right) and whether the partner shares it."""
    sharp = np.flatnonzero((rows.grade == 0) | (rows.grade == 1))
    c, z = rows.confidence[sharp], rows.right[sharp]
    cells = mass_bins(survey.cells[model].sum(axis=0), RANK_CELLS)
    bar = np.searchsorted(width_edges(HISTOGRAM_BINS)[1:-1], c, side="right")
    theirs = peers[:, sharp] if sharp.size < rows.grade.size else peers
    # Which partners share the outcome (1), which do not (0), and which have none (2).
    state = np.where(np.isnan(theirs), 2, theirs == z).astype(np.intp)
    counts = []
    for place, size in ((cells[cell_index(c)], RANK_CELLS), (bar, HISTOGRAM_BINS)):
        position = 3 * (z * size + place)
        tally = np.stack([np.bincount(position + part, minlength=6 * size) for part in state])
        sums = tally.reshape(-1, 2, size, 3)[..., :2].swapaxes(2, 3)
        counts.append(sums.reshape(-1, 4, size).astype(np.float64))
    return counts
