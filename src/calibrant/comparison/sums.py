"""Weighted sums of one model on the questions that it shares with each partner.

All views of all pairs follow from these sums, in the data and in every resample. The rows of the
model are sorted once by bin and outcome; a bin is then a run of rows, and the sums over it, for
all partners at once, are one matrix product with the counts of the resamples.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import special

from calibrant.comparison.odds import CLIP, MASS_BINS, OutcomeSums, log_odds
from calibrant.comparison.questions import QuestionBlock
from calibrant.comparison.resampled import Resamples
from calibrant.comparison.survey import (
    Survey,
    cell_index,
    distinct_rows,
    mass_bins,
    shared_by_all,
)
from calibrant.core.arrays import Floats, Indices
from calibrant.stats.binning import width_edges

Singles: TypeAlias = npt.NDArray[np.float32]
HISTOGRAM_BINS = 20
# Distances between distributions are exact up to so many distinct confidences.
RANK_CELLS = 1_024
# Columns that depend on which questions the partner has, and those on what it answered.
_PAIRED = ("c1", "v1", "c2", "v2", "residual", "same", "square", "sharp", "sharp_c")
# Partners of one product: their columns and products then stay near 50 MB.
_PARTNERS = 32


@dataclass(frozen=True, slots=True)
class ModelSums:
    """Sums of one model, (kinds or partners, .., 1 + resamples); wrong answers before right ones.

    `kind` says which common sums belong to a partner: partners with the same questions share
    them. `mass` (kinds, 3, 2, mass bins) holds number, confidence and slope, `width` (kinds, 2,
    width bins) residuals, `totals` (kinds, 5, 2) squared residuals, the spread of grades, and the
    squared error at even odds with two derivatives. `shifted` (partners, 4, 2, mass bins) holds
    confidence and slope at two targets, `same` (partners, width bins) residuals on shared
    outcomes, `halves` (partners, 4, 2) their number and squares, and number and confidence where
    both are right or both are wrong. `ranks` and `histogram` (partners, 4, cells) count answers
    of the data by outcome and by whether the partner shares it.
    """

    kind: Indices
    mass: Floats
    width: Floats
    totals: Floats
    shifted: Floats
    same: Floats
    halves: Floats
    ranks: Floats
    histogram: Floats

    def add(self, other: ModelSums) -> ModelSums:
        """Return the sums over the questions of both."""
        mine, yours = self, other
        if not np.array_equal(self.kind, other.kind):
            mine, yours = self._spread_out(), other._spread_out()
        names = [field.name for field in fields(self) if field.name != "kind"]
        return replace(mine, **{name: getattr(mine, name) + getattr(yours, name) for name in names})

    def _spread_out(self) -> ModelSums:
        """Return the same with common sums of its own for every partner."""
        own = {name: getattr(self, name)[self.kind] for name in ("mass", "width", "totals")}
        return replace(self, kind=np.arange(self.kind.size), **own)

    def outcome_sums(self, partner: int, slot: int) -> OutcomeSums:
        """Return the sums of an odds-shifted view; slot 0 holds the confidences as stated."""
        count, stated, slope = self.mass[self.kind[partner]]
        if slot:
            stated, slope = self.shifted[partner, 2 * slot - 2 : 2 * slot]
        return OutcomeSums(count, stated, slope)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of one model in the order of their runs (bins of both kinds, and outcome)."""

    question: Indices
    outcome: Floats
    weight: Floats
    grade: Floats
    confidence: Floats
    odds: Floats
    run: Indices
    run_outcome: Indices
    mass: Indices
    width: Indices

    def shifted(self, shift: float) -> Floats:
        """Return confidences whose log-odds are moved; see `odds.shift_confidence`."""
        return np.asarray(special.expit(self.odds + shift)) if shift else self.confidence


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
    rows = _sorted_rows(block, survey, model, bins)
    counts = resamples.counts[rows.question]
    others = block.correct[:, rows.question]
    common = _common_sums(rows, counts, ~np.isnan(others), survey, model, bins)
    numbers = range(len(block.models))
    # As its own partner the model meets all models at once: outcomes that all of them share.
    others[model] = np.where(shared_by_all(block)[rows.question], others[model], np.inf)
    paired = [
        _paired_sums(rows, counts, others, survey, model, numbers[start : start + _PARTNERS], bins)
        for start in range(0, len(numbers), _PARTNERS)
    ]
    together = [np.concatenate(part) for part in zip(*paired, strict=True)]
    shifted, same, halves = together
    return ModelSums(*common, shifted, same, halves, *_counts_by_sharing(block, survey, model))


def _sorted_rows(block: QuestionBlock, survey: Survey, model: int, bins: int) -> _Rows:
    """Sort the rows of a model; a grade between 0 and 1 is a part of a right and of a wrong row."""
    has = np.flatnonzero(block.present[model])
    z = block.correct[model, has]
    question = np.concatenate([has[z < 1], has[z > 0]])
    outcome = np.repeat([0, 1], [(z < 1).sum(), (z > 0).sum()])
    weight = np.concatenate([1 - z[z < 1], z[z > 0]])
    c = block.confidence[model, question]
    mass = survey.bins(model, c)
    width = np.searchsorted(width_edges(bins)[1:-1], c, side="right")
    key = (mass * bins + width) * 2 + outcome
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.diff(key[order], prepend=-1))
    first = order[starts]
    return _Rows(
        question[order],
        outcome[order].astype(np.float64),
        weight[order],
        block.correct[model, question[order]],
        c[order],
        log_odds(np.clip(c[order], CLIP, 1 - CLIP)),
        np.repeat(np.arange(starts.size), np.diff(starts, append=order.size)),
        outcome[first],
        mass[first],
        width[first],
    )


def _products(columns: Floats, run: Indices, counts: Singles) -> Iterator[tuple[int, Floats]]:
    """Yield the sums of every column over every run of rows, in data and resamples."""
    if not run.size:
        return
    single = columns.astype(np.float32)
    starts = np.flatnonzero(np.diff(run, prepend=-1))
    ends = np.append(starts[1:], run.size)
    exact = np.add.reduceat(columns, starts, axis=1)
    for place, (start, end) in enumerate(zip(starts, ends, strict=True)):
        wide = (single[:, start:end] @ counts[start:end]).astype(np.float64)
        # The data itself in double precision: it is the value that is reported.
        wide[:, 0] = exact[:, place]
        yield int(run[start]), wide


def _common_sums(
    rows: _Rows,
    counts: Singles,
    present: npt.NDArray[np.bool_],
    survey: Survey,
    model: int,
    bins: int,
) -> tuple[Indices, Floats, Floats, Floats]:
    """Return the sums on the questions that both have, once per set of questions."""
    masks, kind = distinct_rows(present)
    columns = _common_columns(rows, survey, model)
    whole = _summed(columns, rows, counts, np.arange(rows.question.size), bins)
    found = []
    for mask in masks:
        # Few questions are missing as a rule: what they hold is taken off the whole.
        lacks = np.flatnonzero(~mask)
        if lacks.size <= mask.size // 2:
            less = _summed(columns, rows, counts, lacks, bins)
            found.append(tuple(a - b for a, b in zip(whole, less, strict=True)))
        else:
            found.append(_summed(columns, rows, counts, np.flatnonzero(mask), bins))
    mass, width, totals = (np.stack(part) for part in zip(*found, strict=True))
    return kind, mass, width, totals


def _summed(
    columns: Floats, rows: _Rows, counts: Singles, chosen: Indices, bins: int
) -> tuple[Floats, Floats, Floats]:
    """Return the sums over some of the rows, in their order."""
    draws = counts.shape[1]
    mass, width = np.zeros((3, 2, MASS_BINS, draws)), np.zeros((2, bins, draws))
    totals = np.zeros((5, 2, draws))
    whole = chosen.size == rows.question.size
    part = (columns, rows.run, counts)
    if not whole:
        part = (columns[:, chosen], rows.run[chosen], counts[chosen])
    for run, values in _products(*part):
        m, w, z = rows.mass[run], rows.width[run], rows.run_outcome[run]
        mass[:, z, m] += values[:3]
        width[z, w] += values[1] - z * values[0]
        totals[:, z] += values[3:]
    return mass, width, totals


def _common_columns(rows: _Rows, survey: Survey, model: int) -> Floats:
    """Return what is summed on the questions that both have: (columns, rows)."""
    c, z = rows.confidence, rows.outcome
    even = -float(log_odds(survey.accuracy(model, model)[:1])[0])
    s = rows.shifted(even if np.isfinite(even) else 0.0)
    v = s * (1 - s)
    # The spread of a grade belongs to the question: its two parts hold it together once.
    columns = [np.ones_like(c), c, c * (1 - c), (c - z) ** 2, rows.grade * (1 - rows.grade)]
    # (s - z)^2 with log-odds moved by d is league + league_1 d + league_2 d^2.
    columns += [(s - z) ** 2, 2 * (s - z) * v, v**2 + (s - z) * v * (1 - 2 * s)]
    return np.stack(columns) * rows.weight


def _paired_sums(
    rows: _Rows,
    counts: Singles,
    others: Floats,
    survey: Survey,
    model: int,
    partners: Sequence[int],
    bins: int,
) -> tuple[Floats, Floats, Floats]:
    """Return the sums that depend on each partner: shifted, on shared outcomes, their halves."""
    columns = np.concatenate([_paired_columns(rows, others[b], survey, model, b) for b in partners])
    draws, size = counts.shape[1], len(partners)
    shifted = np.zeros((size, 4, 2, MASS_BINS, draws))
    same, halves = np.zeros((size, bins, draws)), np.zeros((size, 4, 2, draws))
    for run, sums in _products(columns, rows.run, counts):
        values = sums.reshape(size, len(_PAIRED), draws)
        m, w, z = rows.mass[run], rows.width[run], rows.run_outcome[run]
        shifted[:, :, z, m] += values[:, :4]
        same[:, w] += values[:, 4]
        halves[:, :, z] += values[:, 5:]
    return shifted, same, halves


def _paired_columns(rows: _Rows, other: Floats, survey: Survey, model: int, partner: int) -> Floats:
    """Return what is summed for one partner: (columns, rows)."""
    c, z = rows.confidence, rows.outcome
    both = (~np.isnan(other)) * rows.weight
    same = (rows.grade == other) * rows.weight
    sharp = same * ((rows.grade == 0) | (rows.grade == 1))
    shifts, slots = survey.shifts(model, partner)
    columns = np.zeros((len(_PAIRED), c.size))
    for goal, slot in slots.items():
        if slot:
            moved = rows.shifted(shifts[goal])
            columns[2 * slot - 2] = both * moved
            columns[2 * slot - 1] = columns[2 * slot - 2] * (1 - moved)
    columns[4] = same * (c - z)
    columns[5] = same
    columns[6] = same * ((c - z) ** 2 - rows.grade * (1 - rows.grade))
    columns[7] = sharp
    columns[8] = sharp * c
    return columns


def _counts_by_sharing(block: QuestionBlock, survey: Survey, model: int) -> tuple[Floats, Floats]:
    """Count answers by confidence, outcome (wrong, right) and whether the partner shares it."""
    z = block.correct[model]
    own = np.flatnonzero((z == 0) | (z == 1))
    c, z = block.confidence[model, own], z[own].astype(np.intp)
    rank = mass_bins(survey.cells[model].sum(axis=0), RANK_CELLS)[cell_index(c)]
    bar = np.searchsorted(width_edges(HISTOGRAM_BINS)[1:-1], c, side="right")
    found = []
    for place, size in ((rank, RANK_CELLS), (bar, HISTOGRAM_BINS)):
        table = np.zeros((len(block.models), 4, size))
        for partner, correct in enumerate(block.correct[:, own]):
            there = ~np.isnan(correct)
            line = (2 * z + (correct == z))[there]
            counts = np.bincount(line * size + place[there], minlength=4 * size)
            table[partner] = counts.reshape(4, size)
        found.append(table)
    return found[0], found[1]
