"""What Sem-ECE a perfect model would show by chance, and whether the data show more.

The null says that each answer is right as often as the model gives it: the right answer is one
more draw from the model. Then the right answer and the draws can change places, so that the law of
each calibration error is known without any model of the questions.
"""

from typing import NamedTuple

import numpy as np
from msgspec import Struct

from calibrant.core.arrays import Floats, Ints, RngLike, as_generator
from calibrant.metrics.semantic.pool import DrawPool
from calibrant.metrics.stats.binning import width_edges
from calibrant.metrics.stats.splits import exact_cost, sample_splits, split_law

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
    NoiseFloor
        A small p shows that answers are not right as often as the model gives them. That is more
        than a calibration error of 0 with unlimited draws, which only asks about the leading
        answer.

    Examples
    --------
    Every draw of every question agrees, and half of them are wrong:

    >>> from calibrant.metrics.semantic import pool_draws
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
    parts = (min(step, simulations - start) for start in range(0, simulations, step))
    choice = [_choices(swaps.weight, part, generator) for part in parts]
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
    question, size, weight = _sizes(items)
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


def _sizes(items: Ints) -> tuple[Ints, Ints, Floats]:
    """Return question, size and weight of each size of class."""
    rows, columns = np.nonzero(items)
    sizes = items[rows, columns]
    span = int(items.max()) + 1
    kinds, inverse = np.unique(rows * span + sizes, return_inverse=True)
    question = kinds // span
    weight = np.bincount(inverse.reshape(-1), weights=sizes) / items.sum(axis=1)[question]
    return question, kinds % span, weight


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


def _choices(weight: Floats, simulations: int, rng: np.random.Generator) -> Ints:
    """Choose one swap of each question, (simulations, questions)."""
    upper = np.cumsum(weight, axis=1)
    draws = rng.random((simulations, len(weight)))
    choice = np.zeros(draws.shape, dtype=np.int64)
    for column in range(weight.shape[1] - 1):
        choice += (draws >= upper[:, column]) & (weight[:, column + 1] > 0)
    return choice


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
