"""First look at the questions: who answered what, how often right, and how confidences spread.

A survey of a block of questions merges with that of another by addition, so that models are
compared the same way whether all questions are in memory or read in parts.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from calibrant.comparison.odds import MASS_BINS, TARGETS, log_odds, target_accuracies
from calibrant.comparison.questions import QuestionBlock
from calibrant.comparison.resampled import Resamples
from calibrant.core.arrays import Floats, Indices

# Cells of equal width in log-odds: fine where confidences crowd, near 0 and near 1.
CELLS = 32_768
_REACH = 16.0


def cell_index(confidence: Floats) -> Indices:
    """Return the cell of every confidence; equal confidences share a cell.

    Examples
    --------
    >>> cell_index(np.array([0.0, 0.5, 1.0])).tolist()
    [0, 16384, 32767]
    """
    odds = np.clip(log_odds(confidence), -_REACH, _REACH)
    place = ((odds + _REACH) * (CELLS / (2 * _REACH))).astype(np.intp)
    index: Indices = np.minimum(place, CELLS - 1)
    return index


def mass_bins(rows: Floats, bins: int = MASS_BINS) -> Indices:
    """Return the equal-mass bin of every cell; a cell is never split, empty bins are left out.

    Parameters
    ----------
    rows
        Number of rows per cell, shape (cells,).

    Examples
    --------
    >>> mass_bins(np.array([5.0, 0.0, 1.0, 4.0]), bins=2).tolist()
    [0, 0, 1, 1]
    """
    total = rows.sum()
    middle = (np.cumsum(rows) - rows / 2) / max(total, 1.0)
    number = np.minimum((middle * bins).astype(np.intp), bins - 1)
    # Numbers rise along the cells: a new bin begins where a filled cell has the next one.
    filled = np.flatnonzero(rows > 0)
    begins = filled[np.diff(number[filled], prepend=-1) > 0]
    index: Indices = np.searchsorted(begins, np.arange(rows.size), side="right") - 1
    return np.maximum(index, 0)


@dataclass(slots=True)
class Survey:
    """Sums over questions; models run along the first axes.

    `complete` counts questions that all models have, `alone` those that only this model has.
    `cells` (models, 2, cells) counts wrong and right answers by confidence, `shared` the same
    where all models share the outcome; `stated` sums confidence by cell, `moments` counts answers
    and sums confidence and its square. `both` (models, models, 1 + resamples) counts questions
    that both have, `right` those that the first has right among them; `agreed` counts shared
    outcomes. `absent` (models, 2, 3) sums over questions that a model has or lacks: their
    number, the share of the others that are right, its square. `edges` are the least confidences
    of each model's equal-mass bins where one block holds all questions; merged surveys place them
    to the width of a cell.
    """

    questions: int
    complete: int
    alone: Floats
    cells: Floats
    shared: Floats
    stated: Floats
    moments: Floats
    both: Floats
    right: Floats
    agreed: Floats
    absent: Floats
    edges: list[Floats] | None = None

    def add(self, other: Survey) -> Survey:
        """Return the survey of the questions of both."""
        names = (field.name for field in fields(self) if field.name != "edges")
        return Survey(*(getattr(self, name) + getattr(other, name) for name in names))

    def accuracy(self, a: int, b: int) -> Floats:
        """(1 + resamples,) accuracy of `a` on the questions that `b` has too; NaN without any."""
        with np.errstate(divide="ignore", invalid="ignore"):
            share: Floats = self.right[a, b] / self.both[a, b]
        return share

    def constant(self, model: int) -> float | None:
        """Return the one confidence that a model always states, or None where it varies."""
        number, total, squares = self.moments[model]
        mean = total / number if number else 0.0
        varies = not number or squares - number * mean**2 > 1e-9 * number
        return None if varies else round(float(mean), 9)

    def common(self, a: int, b: int) -> int:
        """Return the number of questions that both models have."""
        return int(self.both[a, b, 0])

    def bins(self, model: int, confidence: Floats) -> Indices:
        """Return the equal-mass bin of every confidence of a model."""
        if self.edges is not None:
            return np.searchsorted(self.edges[model][1:], confidence, side="right")
        index: Indices = mass_bins(self.cells[model].sum(axis=0))[cell_index(confidence)]
        return index

    def league_goals(self) -> dict[str, Floats]:
        """Return the accuracies of the weakest and of the strongest of all models."""
        own = np.stack([self.accuracy(model, model) for model in range(len(self.moments))])
        return {"weakest": own.min(axis=0), "strongest": own.max(axis=0)}

    def shifts(self, a: int, b: int) -> tuple[dict[str, float], dict[str, int]]:
        """Return the log-odds shift of `a` at every target, and which of three sums serves it.

        The first sums are of the confidences as stated: one target is the model's own accuracy.
        As its own partner a model meets the weakest and the strongest of all models.
        """
        own = self.accuracy(a, b)[:1]
        if a == b:
            goals = {name: goal[:1] for name, goal in self.league_goals().items()}
            slots = (1, 0, 2)
        else:
            other = self.accuracy(b, a)[:1]
            slots = (0, 1, 2) if own[0] <= other[0] else (1, 2, 0)
            goals = target_accuracies(own, other)
        moved = {
            name: 0.0 if goal[0] == own[0] else float((log_odds(goal) - log_odds(own))[0])
            for name, goal in goals.items()
        }
        sound = {name: value if np.isfinite(value) else 0.0 for name, value in moved.items()}
        served = dict(zip(TARGETS, slots, strict=True))
        return sound, {name: served[name] for name in goals}


def survey_block(block: QuestionBlock, resamples: Resamples) -> Survey:
    """Survey one block of questions.

    Parameters
    ----------
    block
        The models on these questions.
    resamples
        Resampled questions, the same that the sums of the block take.
    """
    present, correct = block.present, np.nan_to_num(block.correct)
    count = len(block.models)
    alike = shared_by_all(block)
    cells, shared = np.zeros((2, count, 2, CELLS))
    stated, moments = np.zeros((count, CELLS)), np.zeros((count, 3))
    edges = []
    for model in range(count):
        has = present[model]
        c, z = block.confidence[model, has], correct[model, has]
        cell = cell_index(c)
        for outcome, weight in enumerate((1 - z, z)):
            cells[model, outcome] = np.bincount(cell, weight, CELLS)
            shared[model, outcome] = np.bincount(cell, weight * alike[has], CELLS)
        stated[model] = np.bincount(cell, c, CELLS)
        moments[model] = c.size, c.sum(), c @ c
        edges.append(_mass_edges(c))
    both, right = _resampled_counts(present, correct, resamples)
    agreed = np.array([[_agreements(block, a, b) for b in range(count)] for a in range(count)])
    absent = _absences(present, correct)
    answers = present.sum(axis=0)
    alone = (present & (answers == 1)).sum(axis=1).astype(np.float64)
    complete = int((answers == count).sum())
    return Survey(
        block.size,
        complete,
        alone,
        cells,
        shared,
        stated,
        moments,
        both,
        right,
        agreed,
        absent,
        edges,
    )


def distinct_rows(flags: npt.NDArray[np.bool_]) -> tuple[npt.NDArray[np.bool_], Indices]:
    """Return the distinct rows of a table of flags, and which of them each row is.

    Examples
    --------
    >>> distinct_rows(np.array([[True, False], [True, True], [True, False]]))[1].tolist()
    [0, 1, 0]
    """
    known: dict[bytes, int] = {}
    kind = [known.setdefault(row.tobytes(), len(known)) for row in np.packbits(flags, axis=1)]
    first = [kind.index(number) for number in range(len(known))]
    return flags[first], np.array(kind, dtype=np.intp)


def _mass_edges(confidence: Floats) -> Floats:
    """Return the least confidence of every equal-mass bin; equal confidences share a bin."""
    distinct, rows = np.unique(confidence, return_counts=True)
    if not distinct.size:
        return distinct
    number = mass_bins(rows.astype(np.float64))
    return np.asarray(distinct[np.flatnonzero(np.diff(number, prepend=-1))])


def shared_by_all(block: QuestionBlock) -> npt.NDArray[np.bool_]:
    """Return the questions that all models have, with the same outcome for all."""
    same: npt.NDArray[np.bool_] = (block.correct == block.correct[0]).all(axis=0)
    return same


def _agreements(block: QuestionBlock, a: int, b: int) -> float:
    return float((block.correct[a] == block.correct[b]).sum())


def _resampled_counts(
    present: npt.NDArray[np.bool_], correct: Floats, resamples: Resamples
) -> tuple[Floats, Floats]:
    """Count common questions and right answers of every pair, in data and resamples."""
    # Models with the same questions share their sums: a complete table needs one mask.
    masks, kind = distinct_rows(present)
    count = present.shape[0]
    both, right = np.zeros((2, count, count, resamples.counts.shape[1]))
    for model in range(count):
        held = np.stack([masks & present[model], masks * correct[model]])
        sums = resamples.totals(held.reshape(-1, present.shape[1]).astype(np.float64))
        both[model], right[model] = sums.reshape(2, len(masks), -1)[:, kind]
    return both, right


def _absences(present: npt.NDArray[np.bool_], correct: Floats) -> Floats:
    """Return, per model, sums over the questions that it has and that it lacks."""
    answers, right = present.sum(axis=0), correct.sum(axis=0)
    table = np.zeros((present.shape[0], 2, 3))
    for model, has in enumerate(present):
        others = answers - has
        share = np.divide(
            right - np.where(has, correct[model], 0.0),
            others,
            out=np.zeros(others.size),
            where=others > 0,
        )
        for line, chosen in enumerate((has, ~has)):
            of = share[chosen & (others > 0)]
            table[model, line] = of.size, of.sum(), of @ of
    return table
