"""Weighted sums of one model on the questions that it shares with each partner.

All footings of all pairs follow from these sums, in the data and in every resample. The rows of
the model are sorted once by what they say and by outcome; a bin is then a run of rows, and the
sums over it are one matrix product with the counts of the resamples. Where few confidences are
stated, rows that say the same are counted together first. Shifted confidences are
summed at a few shifts, from which those of every partner follow: the time does not grow with the
number of pairs, but with that of models.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

from calibrant.comparison.odds import (
    MASS_BINS,
    NEAR_CLIP,
    ShiftNodes,
    log_odds,
    shift_confidence,
    shift_nodes,
)
from calibrant.comparison.questions import QuestionBlock, Resamples
from calibrant.comparison.survey import (
    Survey,
    cell_index,
    mass_bins,
)
from calibrant.core.arrays import Floats, Indices, Mask
from calibrant.stats.binning import width_edges

Singles: TypeAlias = npt.NDArray[np.float32]
HISTOGRAM_BINS = 20
# Distances between distributions are exact up to so many distinct confidences.
RANK_CELLS = 1_024
# Resamples of what describes a pair and of the laws of confidence, whose quantiles are near.
DESCRIBED = 200
# Columns that every set of questions has: number, confidence, squared residual, spread of grades;
# then the squared error at even odds with two derivatives, on all questions.
_COLUMNS = 7
# Rows that say the same are counted together where there are so many of them on average.
_ALIKE = 4


_BY_KIND = ("mass", "width", "totals", "lacking")


@dataclass(frozen=True, slots=True)
class ModelSums:
    """Sums of one model, (kinds or partners, .., 1 + resamples); wrong answers before right ones.

    `kind` says which common sums belong to a partner: the first are those of all questions of the
    model, partners that lack some have sums of their own. `mass` (kinds, 2, 2, mass bins) holds
    number and confidence, `width` (kinds, 2, width bins) residuals, `totals` (kinds, 2, 2) squared
    residuals and the spread of grades. On all questions: `league` (3, 2) is the squared error at
    even odds with two derivatives, `law` (2, 2, steps) number and confidence by step. `nodes`
    (1 + nodes, 2, mass bins) holds c (1 - c) and, at shifts between which all others lie, shifted
    confidence on all questions; `lacking` (kinds, 2, 2, mass bins) what of confidence and slope,
    shifted to the partner's accuracy, is on questions that the partner lacks. `near` (partners, 2,
    mass bins) is what near-certain statements would add in the data. `same` (partners, 5 + width
    bins) is about questions where the partner shares the outcome: number and confidence of wrong
    and of right answers, squares, and residuals by bin. `ranks` and `histogram` (partners, 4,
    cells) count answers of the data by outcome and by whether the partner shares it.
    """

    kind: Indices
    mass: Floats
    width: Floats
    totals: Floats
    league: Floats
    law: Floats
    nodes: Floats
    lacking: Floats
    near: Floats
    same: Floats
    ranks: Floats
    histogram: Floats

    def add(self, other: ModelSums) -> ModelSums:
        """Return the sums over the questions of both."""
        mine, yours = self, other
        if not np.array_equal(self.kind, other.kind):
            mine, yours = self._spread_out(), other._spread_out()
        names = [field.name for field in fields(self) if field.name != "kind"]
        return replace(mine, **{name: getattr(mine, name) + getattr(yours, name) for name in names})

    def at_shifts(self, served: ShiftNodes, places: Indices, partners: Indices) -> Floats:
        """(places, 2, 2, mass bins, 1 + resamples) confidence and slope at some of the shifts."""
        found = at_shifts(self.mass[0], self.nodes, served, places)
        for row, kind in enumerate(self.kind[partners]):
            if len(self.lacking) > 1:
                found[row] -= self.lacking[kind]
            if served.shifts[places[row]] == 0:
                found[row, 0] = self.mass[kind, 1]
        return found

    def _spread_out(self) -> ModelSums:
        """Return the same with common sums of its own for every partner."""
        own = {name: getattr(self, name)[self.kind] for name in _BY_KIND}
        return replace(self, kind=np.arange(self.kind.size), **own)


def at_shifts(mass: Floats, nodes: Floats, served: ShiftNodes, places: Indices) -> Floats:
    """Return confidence and slope at some of the shifts, on all questions."""
    lines = np.stack([served.values[places], served.slopes[places]], axis=1)
    found = np.tensordot(lines, nodes[1:], axes=1)
    # Without a shift the confidences stay as stated, near-certain ones too.
    found[served.shifts[places] == 0] = np.stack([mass[1], nodes[0]])
    return np.asarray(found)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of one model, sorted by outcome and confidence: every bin is a run of them."""

    question: Indices
    right: Indices
    weight: Floats
    grade: Floats
    confidence: Floats
    mass: Indices
    width: Indices
    law: Indices

    def take(self, chosen: Indices) -> _Rows:
        """Return some of the rows, in their order."""
        return _Rows(*(getattr(self, field.name)[chosen] for field in fields(self)))

    def alike(self) -> Indices | None:
        """Return the number of what each row says, or None where few say the same."""
        said = np.stack([self.right, self.grade, self.confidence])
        number = np.cumsum((np.diff(said, prepend=-1) != 0).any(axis=0)) - 1
        return None if _ALIKE * (number.max(initial=-1) + 1) > number.size else number

    def merged(self, counts: Singles) -> tuple[_Rows, Singles]:
        """Return rows that say the same as one, and the counts that belong to them.

        Where few say the same, all rows stay.
        """
        alike = self.alike()
        if alike is None:
            return self, counts
        first = np.flatnonzero(np.diff(alike, prepend=-1))
        ones = np.ones(self.question.size, dtype=np.float32)
        ends = np.append(first, self.question.size)
        belongs = sparse.csr_array((ones, self.question, ends), shape=(first.size, len(counts)))
        return replace(self.take(first), question=np.arange(first.size)), belongs @ counts


def _runs(of: Indices) -> list[tuple[int, int]]:
    """Return where each run of equal numbers starts and ends."""
    starts = np.flatnonzero(np.diff(of, prepend=-1)).tolist()
    return list(zip(starts, [*starts[1:], of.size], strict=True))


def model_sums(
    block: QuestionBlock, resamples: Resamples, survey: Survey, model: int, *, bins: int
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
    rows = _sorted_rows(block, outcomes[model], survey, model, bins)
    counts = resamples.counts
    others = outcomes.take(rows.question, axis=1)
    served = shift_nodes(survey.shifts(model))
    merged, drawn = rows.merged(counts)
    columns = _columns(merged, survey, model)
    whole, league, nodes = _whole_sums(merged, drawn, columns, served, bins)
    law = _law_sums(merged, drawn[:, : DESCRIBED + 1], columns, survey.law_steps().size - 1)
    present = ~np.isnan(others)
    thin = np.flatnonzero(~present.all(axis=1))
    kind = np.zeros(len(others), dtype=np.intp)
    kind[thin] = 1 + np.arange(thin.size)
    by_kind = [np.empty((1 + thin.size, *part.shape)) for part in whole]
    lacking = np.zeros((1 + thin.size, 2, 2, MASS_BINS, counts.shape[1]))
    for part, of_all in zip(by_kind, whole, strict=True):
        part[0] = of_all
    for number, partner in enumerate(thin, start=1):
        # Few questions are missing as a rule: what they hold is taken off the whole.
        few = present[partner].mean() > 0.5
        some, times = rows.take(np.flatnonzero(present[partner] != few)).merged(counts)
        own, moved = _part_sums(some, times, _columns(some), served.shifts[partner], bins)
        for part, of_all, of_some in zip(by_kind, whole, own, strict=True):
            part[number] = of_all - of_some if few else of_some
        if not few:
            moved = at_shifts(whole[0], nodes, served, np.array([partner]))[0] - moved
        lacking[number] = moved
    near = _near_sums(rows, present, served.shifts)
    shared = _counts_by_sharing(rows, others, survey, model)
    same = _same_sums(rows, counts[:, : DESCRIBED + 1], others, bins)
    # By itself a model is seen as in its pairs, on average.
    same[model] = np.delete(same, model, axis=0).mean(axis=0)
    mass, width, totals = by_kind
    return ModelSums(kind, mass, width, totals, league, law, nodes, lacking, near, same, *shared)


def _sorted_rows(
    block: QuestionBlock, outcome: Floats, survey: Survey, model: int, bins: int
) -> _Rows:
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
    return _Rows(question, right, weight, grade, c, mass, width, law).take(order)


def _products(
    columns: Floats, run: Indices, rows: _Rows, counts: Singles
) -> Iterator[tuple[int, Floats]]:
    """Yield the sums of every column over every run of rows, in data and resamples."""
    for start, end in _runs(run):
        # Counts are taken a run at a time: all of them would not stay near the processor.
        yield int(run[start]), _product(columns[:, start:end], counts[rows.question[start:end]])


def _product(columns: Floats, drawn: Singles) -> Floats:
    """Return resampled sums; those of the data, which are reported, in double precision."""
    sums = (columns.astype(np.float32) @ drawn).astype(np.float64)
    sums[:, 0] = columns @ drawn[:, 0].astype(np.float64)
    return sums


Common: TypeAlias = tuple[Floats, Floats, Floats]


def _whole_sums(
    rows: _Rows, counts: Singles, common: Floats, served: ShiftNodes, bins: int
) -> tuple[Common, Floats, Floats]:
    """Return the common sums over all questions of the model, the league's, and every node's."""
    c, w = rows.confidence, rows.weight
    # A node at 0 is a shift like any other: the clip of its neighbours applies.
    nodes = w * shift_confidence(c, np.where(served.nodes == 0, 1e-300, served.nodes)[:, None])
    columns = np.concatenate([common, (w * c * (1 - c))[None], nodes])
    draws = counts.shape[1]
    mass, width = np.zeros((2, 2, MASS_BINS, draws)), np.zeros((2, bins, draws))
    totals, sums = np.zeros((5, 2, draws)), np.zeros((1 + len(nodes), 2, MASS_BINS, draws))
    run = (rows.right * MASS_BINS + rows.mass) * bins + rows.width
    for place, values in _products(columns, run, rows, counts):
        by_mass, at_width = divmod(place, bins)
        z, at_mass = divmod(by_mass, MASS_BINS)
        mass[:, z, at_mass] += values[:2]
        width[z, at_width] += values[1] - z * values[0]
        totals[:, z] += values[2:_COLUMNS]
        sums[:, z, at_mass] += values[_COLUMNS:]
    return (mass, width, totals[:2]), totals[2:], sums


def _law_sums(rows: _Rows, counts: Singles, common: Floats, steps: int) -> Floats:
    """Return number and confidence by outcome and step."""
    found = np.zeros((2, 2, steps, counts.shape[1]))
    for place, values in _products(common[:2], rows.right * steps + rows.law, rows, counts):
        found[:, *divmod(place, steps)] = values
    return found


def _part_sums(
    rows: _Rows, counts: Singles, columns: Floats, shift: float, bins: int
) -> tuple[Common, Floats]:
    """Return the common sums over some of the rows, and confidence and slope at one shift.

    One product: a line of the table is a bin, with what each row adds to it.
    """
    number, said, squares, spread = columns
    moved = shift_confidence(rows.confidence, shift)
    slope = rows.weight * moved * (1 - moved)
    z, by_mass = rows.right, rows.right * MASS_BINS + rows.mass
    blocks = (
        (number, by_mass, 2 * MASS_BINS),
        (said, by_mass, 2 * MASS_BINS),
        (said - z * number, z * bins + rows.width, 2 * bins),
        (squares, z, 2),
        (spread, z, 2),
        (rows.weight * moved, by_mass, 2 * MASS_BINS),
        (slope, by_mass, 2 * MASS_BINS),
    )
    starts = np.cumsum([0, *(size for _, _, size in blocks)])
    table = np.zeros((starts[-1], z.size))
    for (values, line, _), start in zip(blocks, starts[:-1], strict=True):
        table[start + line, np.arange(z.size)] = values
    sums, draws = _product(table, counts[rows.question]), counts.shape[1]
    masses, widths, totals, at = np.split(sums, starts[[2, 3, 5]])
    common = (
        masses.reshape(2, 2, MASS_BINS, draws),
        widths.reshape(2, bins, draws),
        totals.reshape(2, 2, draws),
    )
    return common, at.reshape(2, 2, MASS_BINS, draws)


def _columns(rows: _Rows, survey: Survey | None = None, model: int = 0) -> Floats:
    """Return what is summed on the questions that both have: (columns, rows).

    With a survey, what the league takes of all questions too.
    """
    c, z = rows.confidence, rows.right
    # The spread of a grade belongs to the question: its two parts hold it together once.
    columns = [np.ones_like(c), c, (c - z) ** 2, rows.grade * (1 - rows.grade)]
    if survey is not None:
        even = -float(log_odds(survey.accuracy(model, model)[:1])[0])
        s = shift_confidence(c, even if np.isfinite(even) else 0.0)
        v = s * (1 - s)
        # (s - z)^2 with log-odds moved by d is league + league_1 d + league_2 d^2.
        columns += [(s - z) ** 2, 2 * (s - z) * v, v**2 + (s - z) * v * (1 - 2 * s)]
    return np.stack(columns) * rows.weight


def _near_sums(rows: _Rows, present: Mask, shifts: Floats) -> Floats:
    """Return what near-certain confidences add in the data when they are taken at their word."""
    extreme = np.flatnonzero(np.abs(rows.confidence - 0.5) > 0.495 - 1e-12)
    found = np.zeros((len(present), 2, MASS_BINS))
    if not extreme.size:
        return found
    part = rows.take(extreme)
    place = part.right * MASS_BINS + part.mass
    said, which = np.unique(part.confidence, return_inverse=True)
    for partner, (has, shift) in enumerate(zip(present[:, extreme], shifts, strict=False)):
        apart = shift_confidence(said, shift, clip=NEAR_CLIP) - shift_confidence(said, shift)
        moved = part.weight * has * apart[which]
        found[partner] = np.bincount(place, moved, 2 * MASS_BINS).reshape(2, MASS_BINS)
    return found


def _same_sums(rows: _Rows, counts: Singles, others: Floats, bins: int) -> Floats:
    """Return sums over the rows where each partner shares the outcome, see `ModelSums`."""
    c = rows.confidence
    of_row = np.stack([np.ones_like(c), c, c**2 - rows.grade * (1 - rows.grade)]) * rows.weight
    shared = (others == rows.grade).astype(np.float32)
    halves = np.zeros((2, len(others), 3, counts.shape[1]))
    residuals = np.zeros((len(others), bins, counts.shape[1]))
    run, alike = rows.right * bins + rows.width, rows.alike()
    for start, end in _runs(run if alike is None else alike):
        drawn, columns = counts[rows.question[start:end]], of_row[:, start:end]
        has = shared[:, start:end]
        if alike is not None:
            # Rows that say the same are only counted.
            sums = (has @ drawn)[:, None] * columns[:, :1]
        else:
            table = (has[:, None] * columns.astype(np.float32)).reshape(-1, end - start)
            sums = (table @ drawn).astype(np.float64).reshape(halves.shape[1:])
            # The data itself in double precision: it is the value that is reported.
            sums[:, :, 0] = has @ columns.T
        right, width = divmod(int(run[start]), bins)
        halves[right] += sums
        residuals[:, width] += sums[:, 1] - right * sums[:, 0]
    number, said = halves[:, :, 0], halves[:, :, 1]
    squares = halves[:, :, 2].sum(axis=0)
    table = np.concatenate([number, said, squares[None]]).transpose(1, 0, 2)
    return np.concatenate([table, residuals], axis=1)


def _counts_by_sharing(rows: _Rows, others: Floats, survey: Survey, model: int) -> list[Floats]:
    """Count answers by confidence, outcome (wrong, right) and whether the partner shares it."""
    sharp = np.flatnonzero((rows.grade == 0) | (rows.grade == 1))
    c, z = rows.confidence[sharp], rows.right[sharp]
    cells = mass_bins(survey.cells[model].sum(axis=0), RANK_CELLS)
    bar = np.searchsorted(width_edges(HISTOGRAM_BINS)[1:-1], c, side="right")
    theirs = others[:, sharp] if sharp.size < rows.grade.size else others
    flags = np.stack([theirs == 1 - z, theirs == z]).astype(np.float32)
    found = []
    for place, size in ((cells[cell_index(c)], RANK_CELLS), (bar, HISTOGRAM_BINS)):
        counted = np.zeros((len(others), 2, 2, size))
        # Cells are runs of the sorted rows.
        at = z * size + place
        starts = np.flatnonzero(np.diff(at, prepend=-1))
        if starts.size:
            right, cell = np.divmod(at[starts], size)
            sums = np.add.reduceat(flags, starts, axis=2)
            counted[:, right, :, cell] = sums.transpose(2, 1, 0)
        found.append(counted.reshape(-1, 4, size))
    return found
