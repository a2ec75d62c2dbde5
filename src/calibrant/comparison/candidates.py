"""Candidate answers that every model scores: the same answers for all judges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from msgspec import Struct

from calibrant.comparison.ece_interval import Residuals, residuals_of
from calibrant.comparison.evidence import interval
from calibrant.comparison.footings import AlignedScores
from calibrant.comparison.questions import QuestionBlock, Resamples
from calibrant.comparison.statements import MASS_BINS
from calibrant.comparison.survey import CELLS, cell_index, mass_bins
from calibrant.core.arrays import Floats, Indices, Ints
from calibrant.metrics.stats.binning import width_edges

# Rows that are put in their places at once; bounds what is held beside the table.
_SLICE = 4_000_000


class CandidateTable(Struct, frozen=True):
    """Every model's confidence in every model's answer; NaN where it was not asked.

    Parameters
    ----------
    confidence
        (judges, authors, questions): how sure the judge is that the author's answer is right.
    correct
        (authors, questions): the grade of the author's answer.
    identity
        (authors, questions): a number per distinct answer of a question, so that a candidate
        that several models named counts once.
    """

    confidence: Floats
    correct: Floats
    identity: Ints


class CandidateViews(Struct, frozen=True):
    """A judge on a pool of candidates: scores with equal-width bins, and statistics of the test."""

    scores: AlignedScores
    statistics: Residuals


def align_candidates(candidates: pl.DataFrame, block: QuestionBlock) -> CandidateTable:
    """Put judges and authors side by side on the questions of a block.

    Parameters
    ----------
    candidates
        Columns question_id, judge, author, confidence; and answer, where the same answer of two
        models is to count once.
    block
        The models; the grade of a candidate is the grade of its author's own answer.
    """
    models, questions = block.models, block.questions.tolist()
    confidence = np.full((len(models), len(models), len(questions)), np.nan)
    answers = np.repeat(np.arange(len(models))[:, None], len(questions), axis=1)
    targets = {"judge": models, "author": models, "question_id": questions}
    texts = [name for name in (*targets, "answer") if name in candidates.columns]
    table = candidates.with_columns(pl.col(texts).cast(pl.Categorical))
    lookups = {name: _lookup(table[name], values) for name, values in targets.items()}
    # From the end to the start: of several scores for one place the first stays.
    for start in reversed(range(0, table.height, _SLICE)):
        part = table.slice(start, _SLICE)
        judge, author, question = (_places(part[name], lookups[name]) for name in targets)
        scores = part["confidence"].to_numpy()
        usable = (judge >= 0) & (author >= 0) & (question >= 0) & ~np.isnan(scores)
        rows = np.flatnonzero(usable)[::-1]
        confidence[judge[rows], author[rows], question[rows]] = scores[rows]
        if "answer" in part.columns:
            codes = part["answer"].to_physical().cast(pl.Int64).fill_null(-1).to_numpy()
            answers[author[rows], question[rows]] = codes[rows]
    confidence[:, np.isnan(block.correct)] = np.nan
    # The first author who gave the same answer.
    identity = np.argmax(answers[:, None, :] == answers[None, :, :], axis=1)
    return CandidateTable(confidence, block.correct, identity)


def complete_questions(pool: CandidateTable, members: Sequence[int]) -> Indices:
    """Return the questions where each of these models scored the answer of each of them."""
    choice = np.asarray(members)
    judges = pool.confidence[choice[:, None], choice[None]]
    return np.flatnonzero(~np.isnan(judges).any(axis=(0, 1)))


def candidate_views(
    pool: CandidateTable, resamples: Resamples, judge: int, members: Sequence[int], *, bins: int
) -> CandidateViews | None:
    """Return a judge's scores on the answers of all members; None without a complete question.

    An answer that several members gave counts once.
    """
    rows = complete_questions(pool, members)
    if not rows.size:
        return None
    choice = np.asarray(members)[:, None]
    identity, grade = pool.identity[choice, rows], pool.correct[choice, rows]
    confidence = pool.confidence[judge][choice, rows]
    weight = 1.0 / (identity[:, None] == identity[None]).sum(axis=1)
    cell = cell_index(confidence.ravel())
    per_cell = np.bincount(cell, weight.ravel(), CELLS).astype(np.float64)
    mass = mass_bins(per_cell)[cell].reshape(confidence.shape)
    width = np.searchsorted(width_edges(bins)[1:-1], confidence, side="right")
    table = np.zeros((bins + 2 * MASS_BINS + 2, rows.size))
    column = np.arange(rows.size)
    for author in range(len(members)):
        w, residual = weight[author], weight[author] * (confidence[author] - grade[author])
        table[width[author], column] += residual
        table[bins + mass[author], column] += residual
        table[bins + MASS_BINS + mass[author], column] += w
        table[-2] += residual * (confidence[author] - grade[author])
        table[-1] += w
    sums = Resamples(resamples.counts[rows]).totals(table)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = sums[:-1] / sums[-1]
    residuals, share = shares[None, bins : bins + MASS_BINS], shares[None, bins + MASS_BINS : -1]
    data = residuals[..., :1], share[..., :1]
    return CandidateViews(
        AlignedScores(shares[-1], np.abs(shares[:bins]).sum(axis=0), rows.size, shares[:bins]),
        *residuals_of(data, (residuals, share)),
    )


def self_preference(
    pool: CandidateTable, models: Sequence[str], resamples: Resamples, *, level: float
) -> list[dict[str, Any]]:
    """Return how much more each judge trusts its own answers than the other judges would.

    Within a question, two different answers of the same grade are compared: the judge's own minus
    another model's, as this judge scores them, minus the same difference as the other judges
    score it. A judge that knows more scores right answers higher and wrong ones lower, whoever
    gave them, and shows no preference. With two judges only the sum of both preferences is seen.
    """
    rows = []
    for judge, name in enumerate(models):
        halves = []
        for grade in (1.0, 0.0):
            total, number = _preferences(pool, judge, grade)
            sums = resamples.totals(np.stack([total, number]))
            with np.errstate(divide="ignore", invalid="ignore"):
                halves.append((sums[0] / sums[1], int((number > 0).sum())))
        means = [mean for mean, size in halves if size]
        pair = np.mean(means, axis=0) if means else np.full(resamples.counts.shape[1], np.nan)
        right, wrong = (interval(mean, size, level=level) for mean, size in halves)
        size = halves[0][1] + halves[1][1]
        rows.append(
            {
                "judge": name,
                "bias": interval(pair, size, level=level),
                "on_right": right,
                "on_wrong": wrong,
                "judges": len(models),
            }
        )
    return rows


def _preferences(pool: CandidateTable, judge: int, grade: float) -> tuple[Floats, Floats]:
    """Return, per question, the summed preference over comparable answers and their number."""
    authors, size = pool.correct.shape
    total, number = np.zeros((2, size))
    for author in [item for item in range(authors) if item != judge]:
        alike = (pool.correct[judge] == grade) & (pool.correct[author] == grade)
        alike &= pool.identity[judge] != pool.identity[author]
        gaps = pool.confidence[:, judge] - pool.confidence[:, author]
        # Third judges have no stake in either answer; of two models the other author is all.
        third = [item for item in range(authors) if item not in (judge, author)] or [author]
        request = ~np.isnan(gaps[third])
        others = np.where(request, gaps[third], 0.0).sum(axis=0) / np.maximum(
            request.sum(axis=0), 1
        )
        usable = alike & request.any(axis=0) & ~np.isnan(gaps[judge])
        total += np.where(usable, gaps[judge] - others, 0.0)
        number += usable
    return total, number


def _lookup(values: pl.Series, target: Sequence[str]) -> npt.NDArray[np.int32]:
    """Return, by category code, the place in `wanted`; -1 where it is not there.

    Distinct values are looked up once, so that tens of millions of rows stay cheap. The last
    entry is for nulls.
    """
    distinct = values.drop_nulls().unique()
    place_of = {name: place for place, name in enumerate(target)}
    codes = distinct.to_physical().to_numpy()
    lookup = np.full(int(codes.max(initial=0)) + 2, -1, dtype=np.int32)
    lookup[codes] = [place_of.get(name, -1) for name in distinct.cast(pl.String)]
    return lookup


def _places(values: pl.Series, lookup: npt.NDArray[np.int32]) -> npt.NDArray[np.int32]:
    rows = values.to_physical().fill_null(lookup.size - 1).to_numpy()
    places: npt.NDArray[np.int32] = lookup[rows]
    return places
