"""First look at the questions: who answered what, how often right, and how confidences spread.

A survey of a block of questions merges with that of another by addition, so that models are
compared the same way whether all questions are in memory or read in parts.
"""

from __future__ import annotations

from operator import add

import numpy as np
from msgspec import Struct
from msgspec.structs import astuple
from scipy import sparse, special

from calibrant.comparison.questions import QuestionBlock, Resamples
from calibrant.comparison.statements import MASS_BINS, log_odds
from calibrant.core.arrays import Floats, Indices, Mask

# Cells of equal width in log-odds: fine where confidences crowd, near 0 and near 1.
CELLS = 32_768
_REACH = 16.0
# Steps in which two laws of confidence are held against each other; more where models share them.
_LAW_CELLS = 40
_SHARED_LAW_CELLS = 80


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


class AnswerCounts(Struct):
    """Sums over questions; models run along the first axes.

    `complete` counts questions that all models have, `alone` those that only this model has.
    `cells` (models, 2, cells) counts wrong and right answers by confidence, `shared` the same
    where all models share the outcome; `stated` sums confidence by cell, `moments` counts answers
    and sums confidence and its square. `both` (models, models, 1 + resamples) counts questions
    that both have, `right` those that the first has right among them; `agreed` counts shared
    outcomes. `graded` (4, models, models) is about questions that both have a grade for: their
    number, grades of the first, and wrong and right answers of the first that state no confidence;
    `apart` (4, models, models) sums differences of grades over clusters, see `graded_sums`.
    `clusters` counts them, 0 where questions are independent. `absent` (models, 2, 3) sums
    over questions that a model has or lacks: their number, the share of the others that are right,
    its square. `edges` are the least confidences of each model's equal-mass bins, and
    `law` the steps of all models' confidences, where one block holds all questions; merged surveys
    place them to the width of a cell.
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
    graded: Floats
    apart: Floats
    clusters: int
    absent: Floats
    edges: list[Floats] | None = None
    law: Floats | None = None

    def __add__(self, other: AnswerCounts) -> AnswerCounts:
        """Return the survey of the questions of both."""
        # A merged survey works edges and law out anew.
        return AnswerCounts(*map(add, astuple(self)[:-2], astuple(other)[:-2]))

    def accuracy(self, a: int | Indices, b: int | Indices) -> Floats:
        """(.., 1 + resamples) accuracy of `a` on the questions that `b` has too, or NaN."""
        with np.errstate(divide="ignore", invalid="ignore"):
            share: Floats = self.right[a, b] / self.both[a, b]
        return share

    def inside(self, share: Floats, a: int, b: Indices) -> Floats:
        """Return accuracies that leave half a right and half a wrong answer, so that odds exist."""
        half = 0.5 / np.maximum(self.both[a, b], 1.0)
        return np.asarray(np.clip(share, half, 1 - half))

    def bins(self, model: int, confidence: Floats) -> Indices:
        """Return the equal-mass bin of every confidence of a model."""
        if self.edges is not None:
            return np.searchsorted(self.edges[model][1:], confidence, side="right")
        index: Indices = mass_bins(self.cells[model].sum(axis=0))[cell_index(confidence)]
        return index

    def law_steps(self) -> Floats:
        """Return rising confidences from 0 to 1 that part the answers of all models evenly."""
        if self.law is not None:
            return self.law
        rows = self.cells.sum(axis=(0, 1))
        used = np.flatnonzero(rows)
        confidence = self.stated.sum(axis=0)[used] / rows[used]
        size = _law_size(len(self.moments))
        places = np.searchsorted(np.cumsum(rows[used]), rows.sum() * np.arange(1, size) / size)
        return _steps(confidence[np.minimum(places, used.size - 1)])

    def goals(self, a: int) -> Floats:
        """(models + 1, 1 + resamples) accuracies that `a` is brought to: that of every partner.

        In its own place stands the weakest model of all, in the last the strongest.
        """
        models = np.arange(len(self.moments))
        alone = self.accuracy(models, models)
        goals = np.vstack([self.accuracy(models, a), alone.max(axis=0)])
        goals[a] = alone.min(axis=0)
        return goals

    def shifts(self, a: int) -> Floats:
        """(models + 1,) by how much the log-odds of `a` move to reach each goal; 0 if nowhere."""
        accuracies = self.accuracy(a, np.append(np.arange(len(self.moments)), a))[:, 0]
        goals = self.goals(a)[:, 0]
        with np.errstate(invalid="ignore"):
            moved = log_odds(goals) - log_odds(accuracies)
        return np.asarray(np.where((goals == accuracies) | ~np.isfinite(moved), 0.0, moved))

    def more_accurate(self, a: int, b: int) -> tuple[int, float, float]:
        """Return, on questions graded for both: their number, a's lead, its standard error.

        The error is that of paired differences, see `paired_gap`.
        """
        n, mine = self.graded[:2, a, b]
        if not n:
            return 0, float("nan"), float("nan")
        gap, error = paired_gap(n, mine - self.graded[1, b, a], self.apart[:, a, b])
        return int(n), float(gap), float(error)

    def own_accuracy(self, model: int) -> tuple[int, float]:
        """Return graded answers of a model, and the share of them that is right."""
        n, right = self.graded[:2, model, model]
        return int(n), float(right / n) if n else float("nan")

    def unstated(self, a: int, b: int) -> Floats:
        """Return the share of wrong and of right answers of `a` that state no confidence."""
        n, right = self.graded[:2, a, b]
        with np.errstate(divide="ignore", invalid="ignore"):
            share = self.graded[2:, a, b] / np.array([n - right, right])
        return np.asarray(np.nan_to_num(share))

    @property
    def unit_share(self) -> float:
        """Independent units per question: 1, or less where questions form clusters."""
        return self.clusters / self.questions if self.clusters else 1.0

    def missing(self, a: int, b: int) -> tuple[float, bool]:
        """Return the share of answers without confidence, and whether they are unlike the rest.

        Unlike: right more or less often than the others, beyond the chance of 1 in 100.
        """
        n, right, wrong_mute, right_mute = self.graded[:, a, b]
        share = (wrong_mute + right_mute) / max(n, 1.0)
        if not 0 < right < n or not 0 < share < 1:
            return float(share), False
        units = np.array([right, n - right]) * self.unit_share
        error = np.sqrt(share * (1 - share) * (1 / units).sum())
        distance = abs(right_mute / right - wrong_mute / (n - right))
        return float(share), bool(2 * special.ndtr(-distance / error) <= 0.01)


def survey_block(block: QuestionBlock, resamples: Resamples) -> AnswerCounts:
    """Survey one block of questions.

    Parameters
    ----------
    block
        The models on these questions.
    resamples
        Resampled questions, the same that the sums of the block take.
    """
    present, outcomes, count = block.present, block.outcome, len(block.models)
    correct = np.nan_to_num(outcomes)
    # Questions that all models have, with the same outcome for all.
    alike = (outcomes == outcomes[0]).all(axis=0)
    cells, shared = np.zeros((2, count, 2, CELLS))
    stated_confidence, moments = np.zeros((count, CELLS)), np.zeros((count, 3))
    edges = []
    for model in range(count):
        has = present[model]
        c, z = block.confidence[model, has], correct[model, has]
        cell = cell_index(c)
        for outcome, weight in enumerate((1 - z, z)):
            cells[model, outcome] = np.bincount(cell, weight, CELLS)
            shared[model, outcome] = np.bincount(cell, weight * alike[has], CELLS)
        stated_confidence[model] = np.bincount(cell, c, CELLS)
        moments[model] = c.size, c.sum(), c @ c
        # The least confidence of every equal-mass bin; equal confidences share a bin.
        distinct, rows = np.unique(c, return_counts=True)
        number = mass_bins(rows.astype(np.float64))
        edges.append(distinct[np.flatnonzero(np.diff(number, prepend=-1))])
    pair, right = _resampled_counts(present, correct, resamples)
    agreed = np.array([(row == outcomes).sum(axis=1) for row in outcomes], dtype=np.float64)
    confidence, size = block.confidence[present], _law_size(count)
    answers = present.sum(axis=0)
    return AnswerCounts(
        block.size,
        int((answers == count).sum()),
        (present & (answers == 1)).sum(axis=1).astype(np.float64),
        cells,
        shared,
        stated_confidence,
        moments,
        pair,
        right,
        agreed,
        *graded_sums(block),
        0 if block.cluster is None else int(block.cluster.max()) + 1,
        _absences(present, correct),
        edges,
        _steps(np.quantile(confidence, np.arange(1, size) / size)) if confidence.size else None,
    )


def _law_size(models: int) -> int:
    return _LAW_CELLS if models == 2 else _SHARED_LAW_CELLS


def _steps(inside: Floats) -> Floats:
    """Return the steps between 0 and 1; a confidence of 1 lies inside the last."""
    return np.unique(np.concatenate([[0.0], inside, [1.0 + 1e-12]]))


def paired_gap(n: Floats, total: Floats, apart: Floats) -> tuple[Floats, Floats]:
    """Return the mean paired difference and its standard error.

    Two more questions on which both differ are added to the error: a handful that all speak for
    one model prove little.

    Parameters
    ----------
    n, total
        Questions graded for both, and the sum of differences.
    apart
        Sums over clusters, see `graded_sums`.
    """
    gap = total / n
    squares, products, sizes, clusters = apart
    spread = np.maximum(squares - 2 * gap * products + gap**2 * sizes, 0.0)
    return gap, np.sqrt(spread + 2 * sizes / clusters) / n


def graded_sums(block: QuestionBlock) -> tuple[Floats, Floats]:
    """Return sums over the questions that both models of a pair have a grade for.

    Their number, grades of the first, and its wrong and right answers that state no confidence;
    then, with D and m the sum of differences and the number of questions of a cluster, the sums of
    D^2, of D m, of m^2, and the number of clusters.
    """
    graded = (~np.isnan(block.correct)).astype(np.float64)
    grade = np.nan_to_num(block.correct)
    mute = graded * np.isnan(block.confidence)
    sums = (graded, grade, mute * (1 - grade), mute * grade)
    return np.stack([part @ graded.T for part in sums]), _apart(graded, grade, block.cluster)


def _apart(graded: Floats, grade: Floats, cluster: Indices | None) -> Floats:
    """Return the sums over clusters; questions that are independent are clusters of one."""
    if cluster is None:
        n, right, squares = graded @ graded.T, grade @ graded.T, grade**2 @ graded.T
        return np.stack([squares + squares.T - 2 * grade @ grade.T, right - right.T, n, n])
    ones_vector, places = np.ones(cluster.size), np.arange(cluster.size)
    belongs = sparse.csr_array((ones_vector, (cluster, places)))
    difference = np.empty((4, len(graded), len(graded)))
    for model, (has, first) in enumerate(zip(graded, grade, strict=True)):
        sizes = belongs @ (graded * has).T
        sums = belongs @ ((first - grade) * graded * has).T
        table = sums**2, sums * sizes, sizes**2, sizes > 0
        difference[:, model] = [part.sum(axis=0) for part in table]
    return difference


def _resampled_counts(
    present: Mask, correct: Floats, resamples: Resamples
) -> tuple[Floats, Floats]:
    """Count common questions and right answers of every pair, in data and resamples."""
    # Models with the same questions share their sums: a complete table needs one mask.
    kinds: dict[bytes, int] = {}
    kind = [kinds.setdefault(row.tobytes(), len(kinds)) for row in np.packbits(present, axis=1)]
    masks = present[[kind.index(number) for number in range(len(kinds))]]
    count = present.shape[0]
    table = np.concatenate([present, correct]).astype(np.float64)
    sums = np.zeros((len(masks), 2 * count, resamples.counts.shape[1]))
    whole = resamples.totals(table)
    for number, mask in enumerate(masks):
        # Few questions are missing as a rule: what they hold is taken off the whole.
        few = mask.sum() > mask.size // 2
        rows = np.flatnonzero(~mask if few else mask)
        part = Resamples(resamples.counts[rows]).totals(table[:, rows])
        sums[number] = whole - part if few else part
    by_partner = sums[kind].reshape(count, 2, count, -1).transpose(1, 2, 0, 3)
    return by_partner[0], by_partner[1]


def _absences(present: Mask, correct: Floats) -> Floats:
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
        for line, choice in enumerate((has, ~has)):
            of = share[choice & (others > 0)]
            table[model, line] = of.size, of.sum(), of @ of
    return table
