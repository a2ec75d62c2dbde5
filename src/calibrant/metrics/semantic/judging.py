"""How sure a Sem-ECE is, given that clusters and grades are sometimes wrong.

The interval of `sem_ece` takes classes and grades as they are. Here their errors are let loose:
at measured rates classes are joined, split and graded otherwise, and the interval is widened by
what that does to the calibration error.
"""

from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import ArrayLike
from scipy.special import ndtri

from calibrant.core.arrays import Estimate, Floats, Ints, RngLike, as_generator
from calibrant.core.errors import InputError
from calibrant.metrics.semantic.estimators import Bootstrap, QuestionScores, Splits, question_scores
from calibrant.metrics.semantic.pool import DrawPool, meanings, pool_draws
from calibrant.metrics.stats.binning import width_edges

# Ways in which each question may be wrong, of each kind of error.
_VARIANTS = 4


class JudgeErrors(Struct, frozen=True):
    """How often the classes and grades of a question are wrong, as shares of questions.

    Parameters
    ----------
    apart
        Two classes that mean the same.
    together
        One class that holds two meanings.
    grade
        A class with the wrong grade.
    questions
        Questions on which the rates were measured; 0 where they are assumed.
    """

    apart: float
    together: float
    grade: float
    questions: int = 0

    def __post_init__(self) -> None:
        for name in ("apart", "together", "grade"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise InputError(f"{name} is a share of questions, from 0 to 1, got {value}")


class JudgedDraws(Struct, frozen=True):
    """The two calibration errors with intervals that also cover errors of the judge.

    `shift1` and `shift2` say how far such errors move each of them on average.
    """

    sem1: Estimate
    sem2: Estimate
    shift1: float
    shift2: float
    errors: JudgeErrors


def judge_errors(
    question_id: ArrayLike, first: tuple[ArrayLike, ArrayLike], second: tuple[ArrayLike, ArrayLike]
) -> JudgeErrors:
    """Measure how often a second judge, taken for right, finds the first one wrong.

    Parameters
    ----------
    question_id
        Question of each draw.
    first, second
        (class_id, correct) of each draw by the two judges; draws that one of them did not judge
        have a class of -1 or null and are left out.

    Examples
    --------
    >>> judge_errors(["q", "q", "q"], ([0, 1, 2], [1, 0, 0]), ([0, 0, 2], [1, 1, 0]))
    JudgeErrors(apart=1.0, together=0.0, grade=1.0, questions=1)
    """
    question = np.unique(np.asarray(question_id), return_inverse=True)[1].reshape(-1)
    a, b = (meanings(verdicts[0]) for verdicts in (first, second))
    overlap = (a >= 0) & (b >= 0)
    if not overlap.any():
        raise InputError("no draw has a class by both judges")
    question, a, b = question[overlap], a[overlap], b[overlap]
    grades = [np.asarray(verdicts[1], dtype=np.float64)[overlap] for verdicts in (first, second)]
    questions = np.unique(question)
    in_both, of_first, of_second = (part[questions] for part in _class_counts(question, a, b))
    differ = np.abs(grades[0] - grades[1]) > 0.5
    wrong = np.bincount(question, weights=differ)[questions] > 0
    difference, joint = float((in_both > of_second).mean()), float((in_both > of_first).mean())
    return JudgeErrors(difference, joint, float(wrong.mean()), questions.size)


def _class_counts(question: Ints, first: Ints, second: Ints) -> list[Ints]:
    """Count by question: pairs of both judges' classes, classes of the first, of the second."""
    pairs = np.unique(np.column_stack([question, first, second]), axis=0)
    parts = (pairs, pairs[:, :2], pairs[:, ::2])
    return [np.bincount(np.unique(part, axis=0)[:, 0]) for part in parts]


def judged_intervals(
    pool: DrawPool,
    sem1: Estimate,
    sem2: Estimate,
    errors: JudgeErrors,
    *,
    bins: int = 10,
    replicates: int = 200,
    rng: RngLike = 0,
) -> JudgedDraws:
    """Widen the intervals of Sem1-ECE and Sem2-ECE by the judge's errors.

    Parameters
    ----------
    pool
        The draws as they were judged.
    sem1, sem2
        The calibration errors of this pool.
    errors
        How often the judge is wrong.
    bins
        Bins of the calibration errors.
    replicates
        Simulated sets of errors.
    rng
        Seed or generator.

    Notes
    -----
    Errors of the given rates are added once more. The spread of what they do is added to the
    interval in quadrature, and the interval is stretched by their mean effect to the side from
    which they have moved the estimate.
    """
    generator = as_generator(rng)
    plain = question_scores(pool, splits="exact")
    tables = [_wrong(pool, kind, generator) for kind in ("apart", "together", "grade")]
    rates = (errors.apart, errors.together, errors.grade)
    shifts = np.empty((replicates, 2))
    base = _errors(_columns(plain), bins)
    for row in range(replicates):
        cells = _columns(plain)
        for rate, variants in zip(rates, tables, strict=True):
            hit = np.flatnonzero(generator.random(pool.ids.size) < rate)
            which = generator.integers(0, _VARIANTS, hit.size)
            cells[:, hit] = variants[which, :, hit].T
        shifts[row] = _errors(cells, bins) - base
    first, second = (_widened(e, shifts[:, k]) for k, e in enumerate((sem1, sem2)))
    mean = shifts.mean(axis=0)
    return JudgedDraws(first, second, float(mean[0]), float(mean[1]), errors)


def _columns(scores: QuestionScores) -> Floats:
    return np.array([scores.sem1, scores.label1, scores.sem2, scores.label2])


def _errors(cells: Floats, bins: int) -> Floats:
    edges = width_edges(bins)[1:-1]
    errors = []
    for confidence, grade in (cells[:2], cells[2:]):
        place = np.searchsorted(edges, confidence, side="right")
        sums = np.bincount(place, weights=grade - confidence, minlength=bins)
        errors.append(np.abs(sums).sum() / confidence.size)
    return np.array(errors)


def _widened(estimate: Estimate, shifts: Floats) -> Estimate:
    reach = float(ndtri((1 + estimate.level) / 2)) * float(shifts.std())
    mean = float(shifts.mean())
    value = estimate.value
    low = value - np.hypot(value - estimate.low, reach) - max(mean, 0.0)
    high = value + np.hypot(estimate.high - value, reach) + max(-mean, 0.0)
    how = f"{estimate.interval}, with the judge's errors"
    return replace(estimate, low=float(max(low, 0.0)), high=float(min(high, 1.0)), interval=how)


def _wrong(pool: DrawPool, kind: str, rng: np.random.Generator) -> Floats:
    """Return the scores of each question under errors of one kind, (variants, 4, questions)."""
    scores = []
    for _ in range(_VARIANTS):
        counts = np.column_stack([pool.answers, pool.size - pool.answers.sum(axis=1)])
        labels = np.column_stack([np.nan_to_num(pool.labels), np.full(len(counts), np.nan)])
        if kind == "apart":
            counts, labels = _split(counts, labels, rng)
        elif kind == "together":
            counts = _merged(counts, rng)
        else:
            picked = _picked(counts[:, :-1], rng)
            rows = np.arange(len(counts))
            labels[rows, picked] = 1 - labels[rows, picked]
        attempted = np.ones(counts.shape, dtype=bool)
        attempted[:, -1] = False
        wrong = DrawPool(pool.ids, counts, np.where(attempted, labels, np.nan), attempted, {})
        scores.append(_columns(question_scores(wrong, splits="exact")))
    return np.array(scores)


def _picked(weights: Any, rng: np.random.Generator) -> Ints:
    """Pick a class of each question, by weight; the first where no class has any."""
    noise = rng.exponential(size=weights.shape) / np.maximum(weights, 1e-12)
    return np.asarray(np.argmin(noise, axis=1))


def _merged(counts: Ints, rng: np.random.Generator) -> Ints:
    """Put one class of each question into another; questions with one class stay as they are."""
    rows = np.arange(len(counts))
    merged = counts.copy()
    observed = (counts[:, :-1] > 0).astype(np.float64)
    selection = _picked(observed, rng)
    observed[rows, selection] = 0
    into = _picked(observed, rng)
    subset = np.flatnonzero(observed.sum(axis=1) > 0)
    # The larger class keeps its grade.
    swap = counts[rows, selection] > counts[rows, into]
    selection, into = np.where(swap, into, selection), np.where(swap, selection, into)
    merged[subset, into[subset]] += counts[subset, selection[subset]]
    merged[subset, selection[subset]] = 0
    return merged


def _split(counts: Ints, labels: Floats, rng: np.random.Generator) -> tuple[Ints, Floats]:
    """Take a part of one class away, as a class of its own with the same grade."""
    rows = np.arange(len(counts))
    picked = _picked(np.maximum(counts[:, :-1] - 1, 0), rng)
    part = np.floor(rng.random(len(counts)) * counts[rows, picked]).astype(np.int64)
    remaining = counts.copy()
    remaining[rows, picked] -= part
    wider = np.insert(remaining, -1, part, axis=1)
    return wider, np.insert(labels, -1, labels[rows, picked], axis=1)


class ClusteringShift(Struct, frozen=True):
    """First judge minus second judge on the questions that both can use."""

    sem1: Estimate
    sem2: Estimate
    same_partition: float
    questions: int


def clustering_shift(
    question_id: ArrayLike,
    first: tuple[ArrayLike, ArrayLike],
    second: tuple[ArrayLike, ArrayLike],
    *,
    bins: int = 10,
    splits: Splits = "exact",
    level: float = 0.95,
    resamples: int = 1000,
    rng: RngLike = 0,
) -> ClusteringShift:
    """Return how far both calibration errors move when the other judge clusters and grades.

    Parameters
    ----------
    question_id
        Question of each draw.
    first, second
        (class_id, correct) of each draw by each judge.
    bins, splits, level, resamples, rng
        See `sem_ece`.
    """
    generator = as_generator(rng)
    pools = [pool_draws(question_id, *verdicts) for verdicts in (first, second)]
    common, rows_a, rows_b = np.intersect1d(pools[0].ids, pools[1].ids, return_indices=True)
    if common.size == 0:
        raise InputError("no question can be used by both judges")
    selection = [pool.take(rows) for pool, rows in zip(pools, (rows_a, rows_b), strict=True)]
    a, b = (question_scores(pool, splits=splits, rng=generator).scored() for pool in selection)
    how = Bootstrap(bins, level, resamples, generator)
    shift1, shift2 = (how.gaps(*pair) for pair in zip(a, b, strict=True))
    ids, *classes = (
        np.unique(np.asarray(values), return_inverse=True)
        for values in (question_id, first[0], second[0])
    )
    columns = (ids[1].reshape(-1), *(part[1].reshape(-1) for part in classes))
    # Partitions are equal exactly if there are as many pairs of classes as classes in each.
    in_both, of_first, of_second = _class_counts(*columns)
    equal = ((in_both == of_first) & (in_both == of_second))[np.searchsorted(ids[0], common)]
    return ClusteringShift(shift1.ece, shift2.ece, float(equal.mean()), int(common.size))
