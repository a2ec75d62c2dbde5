"""The pool of draws as class counts per question: all that Sem-ECE needs to know."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from calibrant.core.arrays import Array, Floats, Ints, Mask
from calibrant.core.errors import InputError


@dataclass(frozen=True, slots=True)
class DrawPool:
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

    def mode_grade(self) -> Floats:
        """Return the grade of the most frequent class, the mean grade where several tie."""
        answers = self.answers
        modes = answers == answers.max(axis=1, keepdims=True)
        total = np.where(modes, np.nan_to_num(self.labels), 0.0).sum(axis=1)
        return np.asarray(total / modes.sum(axis=1))

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
    ids, question = _codes(np.asarray(question_id))
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


def _codes(values: Array) -> tuple[Array, Ints]:
    """Return distinct values in order of first appearance and the code of each row."""
    distinct, first, inverse = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(order.size, dtype=np.int64)
    rank[order] = np.arange(order.size)
    return distinct[order], rank[inverse.reshape(-1)]


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
    _, codes = _codes(texts)
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
    keys, code = _codes(question * span + meaning + 1)
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
