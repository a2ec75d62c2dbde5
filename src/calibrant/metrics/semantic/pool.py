"""Draws as class counts per question, and what Sem-ECE a perfect model would show by chance.

The null: each answer is right as often as the model gives it. Then the right answer and the draws
can change places, and the law of each calibration error needs no model of the questions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import ArrayLike

from calibrant.core.arrays import Array, Floats, Ints, Mask, RngLike, as_generator
from calibrant.core.errors import InputError
from calibrant.metrics.stats.binning import width_edges
from calibrant.metrics.stats.splits import exact_cost, sample_splits, split_law
from calibrant.metrics.stats.units import appearance_codes


class DrawPool(Struct, frozen=True):
    """Class counts of each question.

    Parameters
    ----------
    ids
        (questions,) question ids in order of first appearance.
    counts
        (questions, classes) draws per class, in order of first appearance, zero-padded.
    labels
        (questions, classes) grade of each class; NaN where it has none.
    attempted
        (questions, classes) False for the column that holds draws without an answer: they fill
        places in the pool, but are never chosen.
    left_out
        Questions that were left out, by reason.
    """

    ids: Array
    counts: Ints
    labels: Floats
    attempted: Mask
    left_out: dict[str, int]

    @property
    def size(self) -> Ints:
        """(questions,) draws per question."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def answers(self) -> Ints:
        """Counts of the classes that can be chosen."""
        return np.where(self.attempted, self.counts, 0)

    @property
    def classes(self) -> Ints:
        """(questions,) number of classes seen."""
        return np.asarray((self.answers > 0).sum(axis=1))

    def take(self, rows: Array) -> DrawPool:
        """Return the pool of some questions."""
        return DrawPool(
            self.ids[rows], self.counts[rows], self.labels[rows], self.attempted[rows], {}
        )

    def top_two(self) -> tuple[Floats, Floats]:
        """Return the frequencies of the two most frequent classes of each question."""
        answers = self.answers
        if answers.shape[1] == 1:
            answers = np.column_stack([answers, np.zeros(len(answers), dtype=np.int64)])
        ranking = np.sort(answers, axis=1)[:, ::-1] / self.size[:, None]
        return ranking[:, 0], ranking[:, 1]


def pool_draws(
    question_id: ArrayLike, class_id: ArrayLike, correct: ArrayLike, *, conflicts: str = "error"
) -> DrawPool:
    """Count classes per question from one row per draw.

    Parameters
    ----------
    question_id
        Question of each draw.
    class_id
        Meaning of each draw; null, NaN or -1 for a draw that holds no answer.
    correct
        Grade of each draw: 0 or 1, null or NaN where its class could not be graded.
    conflicts
        Correctness is a property of the class. ``"error"`` refuses a class whose draws have
        different grades; ``"mean"`` gives it the mean grade.

    Examples
    --------
    >>> pool = pool_draws(["q", "q", "q"], [4, 4, 7], [1, 1, 0])
    >>> pool.counts.tolist(), pool.labels.tolist()
    ([[2, 1]], [[1.0, 0.0]])
    """
    ids, question = appearance_codes(np.asarray(question_id))
    meaning = meanings(class_id)
    grade = _grades(correct)
    if not (question.size == meaning.size == grade.size) or question.ndim != 1:
        raise InputError(
            "question_id, class_id and correct must be one-dimensional and of equal length, got "
            f"{question.size}, {meaning.size} and {grade.size}"
        )
    if question.size == 0:
        raise InputError("there are no draws")
    column = _columns(question, meaning)
    width = int(column.max()) + 1
    cell = question * width + column
    shape = (ids.size, width)
    counts = np.bincount(cell, minlength=ids.size * width).reshape(shape)
    labels = _class_grades(cell, grade, shape, ids, conflicts)
    empty = np.zeros(shape, dtype=bool)
    empty[question[meaning < 0], column[meaning < 0]] = True
    return _usable(DrawPool(ids, counts, labels, ~empty, {}))


def meanings(class_id: ArrayLike) -> Ints:
    """Return the meaning of each draw as a number; -1 where it holds no answer."""
    values = np.asarray(class_id)
    if values.dtype.kind in "iu":
        return np.asarray(np.where(values < 0, -1, values).astype(np.int64))
    if values.dtype.kind == "f":
        missing = np.isnan(values) | (values < 0)
        return np.where(missing, -1, values).astype(np.int64)
    missing = np.array([value is None or value != value for value in values], dtype=bool)
    texts = np.array(["" if gone else str(v) for v, gone in zip(values, missing, strict=True)])
    _, codes = appearance_codes(texts)
    return np.where(missing, -1, codes)


def _grades(correct: ArrayLike) -> Floats:
    values = np.asarray(correct)
    if values.dtype == object:
        values = np.array([np.nan if value is None else value for value in values])
    grades = values.astype(np.float64)
    outside = ~np.isnan(grades) & ((grades < 0) | (grades > 1))
    if outside.any():
        row = int(np.flatnonzero(outside)[0])
        raise InputError(f"a grade must lie in [0, 1], got {grades[row]}", row=row + 1)
    return grades


def _columns(question: Ints, meaning: Ints) -> Ints:
    """Give the classes of each question numbers in order of first appearance."""
    span = int(meaning.max()) + 2
    keys, code = appearance_codes(question * span + meaning + 1)
    owner = keys // span
    # Keys are in order of appearance; a stable sort by question keeps that order inside each.
    order = np.argsort(owner, kind="stable")
    start = np.searchsorted(owner[order], owner[order], side="left")
    place = np.empty(order.size, dtype=np.int64)
    place[order] = np.arange(order.size) - start
    return place[code]


def _class_grades(
    cell: Ints, grade: Floats, shape: tuple[int, int], ids: Array, conflicts: str
) -> Floats:
    if conflicts not in ("error", "mean"):
        raise InputError(f"conflicts must be error or mean, got {conflicts!r}")
    finite = ~np.isnan(grade)
    size = shape[0] * shape[1]
    graded = np.bincount(cell[finite], minlength=size)
    total = np.bincount(cell[finite], weights=grade[finite], minlength=size)
    with np.errstate(invalid="ignore"):
        mean = total / graded
    if conflicts == "error":
        odd = finite & (np.abs(grade - mean[cell]) > 1e-12)
        if odd.any():
            row = int(np.flatnonzero(odd)[0])
            raise InputError(
                f"draws of one class have different grades (question {ids[cell[row] // shape[1]]})",
                row=row + 1,
                hint="grade a class once, or use conflicts='mean' to give it the mean grade",
            )
    return mean.reshape(shape)


def _usable(pool: DrawPool) -> DrawPool:
    """Leave out, and count, questions that no estimator is defined on."""
    answers, enough = pool.classes > 0, pool.size >= 2
    graded = ~((pool.answers > 0) & np.isnan(pool.labels)).any(axis=1)
    reasons = {
        "no draw holds an answer": ~answers,
        "a class has no grade": answers & ~graded,
        "fewer than two draws": answers & graded & ~enough,
    }
    left_out = {reason: int(rows.sum()) for reason, rows in reasons.items() if rows.any()}
    keep = np.flatnonzero(answers & graded & enough)
    if keep.size == 0:
        counts = ", ".join(f"{reason} ({count:,})" for reason, count in left_out.items())
        raise InputError(f"no question can be used: {counts or 'there are none'}")
    return replace(pool.take(keep), left_out=left_out)


# Multiplications up to which the law of the splits is worked out: about two seconds.
_AFFORDABLE = 2e9
_SPLITS = 100
# Uniform numbers that are held at once.
_TOGETHER = 4_000_000
# Above this share of questions with several right classes the test says nothing about the pool.
_MOST_SEVERAL = 0.05


class FloorTest(Struct, frozen=True):
    """One calibration error against chance.

    Parameters
    ----------
    observed
        The calibration error of the questions that the test can use.
    floor
        Its mean if the right answer were one more draw of the model: what chance alone shows.
    threshold
        Its 95 % quantile under the same law.
    p
        Chance of a value at least as large.
    """

    observed: float
    floor: float
    threshold: float
    p: float


class ChanceTests(Struct, frozen=True):
    """Both tests, or why there is none.

    `several_right` counts the questions that were left out because more than one class is right,
    or a class has a grade between 0 and 1.
    """

    sem1: FloorTest | None
    sem2: FloorTest | None
    questions: int
    several_right: int
    refused: str | None


class _Swaps(NamedTuple):
    """Every pool that a change of places between truth and draw can make, (questions, swaps)."""

    weight: Floats
    first: tuple[Floats, Floats]
    second: tuple[Floats, Floats]
    observed: Ints


def noise_floor(
    pool: DrawPool,
    *,
    bins: int = 10,
    selection_share: float = 0.5,
    simulations: int = 999,
    rng: RngLike = 0,
) -> ChanceTests:
    """Return what Sem1-ECE and Sem2-ECE would be by chance, and test them.

    The right answer joins the n draws as item n + 1 (as a class of its own where no draw is
    right). If it is one more draw from the model's law, each of the n + 1 items is the right
    answer with the same chance. Draws without an answer keep their places: the law is that of
    the draws that hold one. The test needs one right class per question.

    Parameters
    ----------
    pool
        The draws.
    bins, selection_share
        See `sem_ece`.
    simulations
        Simulated tables of questions.
    rng
        Seed or generator.

    Returns
    -------
    ChanceTests
        A small p shows that answers are not right as often as the model gives them. That is more
        than a calibration error of 0 with unlimited draws, which only asks about the leading
        answer.

    Examples
    --------
    Every draw of every question agrees, and half of them are wrong:

    >>> pool = pool_draws(np.repeat(np.arange(40), 10), np.zeros(400), np.repeat([0, 1], 200))
    >>> noise_floor(pool).sem2.p < 0.01
    True
    """
    observed = pool.answers > 0
    partly = (observed & (pool.labels > 0) & (pool.labels < 1)).any(axis=1)
    usable = ~partly & ((observed & (pool.labels == 1)).sum(axis=1) <= 1)
    several = int((~usable).sum())
    selection = pool.take(np.flatnonzero(usable))
    if several > _MOST_SEVERAL * pool.ids.size or not selection.ids.size:
        reason = (
            f"in {several:,} of {pool.ids.size:,} questions several meanings are graded right, and "
            "the test needs one"
        )
        return ChanceTests(None, None, int(selection.ids.size), several, reason)
    generator = as_generator(rng)
    swaps = _swaps(selection, selection_share, generator)
    step = max(1, _TOGETHER // selection.ids.size)
    upper = np.cumsum(swaps.weight, axis=1)
    choice = []
    # One swap of each question, (simulations, questions).
    for start in range(0, simulations, step):
        draws = generator.random((min(step, simulations - start), len(upper)))
        swap = np.zeros(draws.shape, dtype=np.int64)
        for column in range(upper.shape[1] - 1):
            swap += (draws >= upper[:, column]) & (swaps.weight[:, column + 1] > 0)
        choice.append(swap)
    first, second = (
        _test(scored, swaps.observed, choice, bins) for scored in (swaps.first, swaps.second)
    )
    return ChanceTests(first, second, int(selection.ids.size), several, None)


def _swaps(pool: DrawPool, share: float, rng: np.random.Generator) -> _Swaps:
    """Take one item out of the n + 1, for each size of class that a question has.

    Classes of the same size are alike, so that one of them stands for all.
    """
    answers = pool.answers
    right = np.where((answers > 0) & (pool.labels == 1), 1, 0)
    unseen = right.sum(axis=1) == 0
    items = np.column_stack([answers + right, unseen.astype(np.int64)])
    truth = np.where(unseen, 1, (items[:, :-1] * right).sum(axis=1))
    refusals = pool.size - answers.sum(axis=1)
    # Question, size and weight of each size of class.
    owner, column = np.nonzero(items)
    sizes, span = items[owner, column], int(items.max()) + 1
    kinds, inverse = np.unique(owner * span + sizes, return_inverse=True)
    question, size = kinds // span, kinds % span
    weight = np.bincount(inverse.reshape(-1), weights=sizes) / items.sum(axis=1)[question]
    place = np.argmax(items[question] == size[:, None], axis=1)
    left = items[question]
    left[np.arange(question.size), place] -= 1
    scored = _scored(left, place, refusals[question], share, rng)
    column = np.arange(question.size) - np.searchsorted(question, question)
    width = int(column.max()) + 1
    table = np.zeros((5, pool.ids.size, width))
    table[:, question, column] = np.vstack([weight, *scored])
    observations = np.full((pool.ids.size, width), -1)
    observations[question, column] = size
    observed = np.argmax(observations == truth[:, None], axis=1)
    return _Swaps(table[0], (table[1], table[2]), (table[3], table[4]), observed)


def _scored(
    remaining: Ints, place: Ints, refusals: Ints, share: float, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return both confidences of each pool, and the grade if the item taken out is right."""
    rows = np.arange(len(remaining))
    n = remaining.sum(axis=1) + refusals
    block = np.clip(np.floor(n * share).astype(np.int64), 1, n - 1)
    lead = remaining.max(axis=1)
    modes = (remaining == lead[:, None]).sum(axis=1)
    first_grade = np.where(remaining[rows, place] == lead, 1 / modes, 0.0)
    counts = np.column_stack([remaining, refusals])
    free = np.ones(counts.shape, dtype=bool)
    free[:, -1] = False
    if exact_cost(counts, block) <= _AFFORDABLE:
        law = split_law(counts, block, selectable=free)
    else:
        law = sample_splits(counts, block, splits=_SPLITS, rng=rng, selectable=free)
    choice = np.maximum(law.selection.sum(axis=1), 1e-12)
    second = np.clip(law.heldout.sum(axis=1) / choice, 0.0, 1.0)
    second_grade = law.selection[rows, place] / choice
    return lead / n, first_grade, second, second_grade


def _test(
    scored: tuple[Floats, Floats], observed: Ints, choice: list[Ints], bins: int
) -> FloorTest:
    confidence, grade = scored
    place = np.searchsorted(width_edges(bins)[1:-1], confidence, side="right")
    residual = grade - confidence
    observed_value = float(_errors(place, residual, observed[None, :], bins)[0])
    errors = np.concatenate([_errors(place, residual, part, bins) for part in choice])
    above = int((errors >= observed_value - 1e-12).sum())
    threshold = float(np.quantile(errors, 0.95))
    return FloorTest(
        observed_value, float(errors.mean()), threshold, (1 + above) / (1 + errors.size)
    )


def _errors(place: Ints, residual: Floats, choice: Ints, bins: int) -> Floats:
    """Return the calibration error of each row of chosen swaps."""
    tables, questions = choice.shape
    flat = choice + residual.shape[1] * np.arange(questions)
    cell = place.ravel()[flat] + bins * np.arange(tables)[:, None]
    sums = np.bincount(
        cell.ravel(), weights=residual.ravel()[flat].ravel(), minlength=tables * bins
    )
    return np.asarray(np.abs(sums.reshape(tables, bins)).sum(axis=1) / questions)
