"""Sem1 and Sem2: confidence read off the frequencies of meanings, and its calibration error."""

from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import ArrayLike

from calibrant.core.arrays import Array, Estimate, Floats, Ints, Mask, RngLike, as_generator
from calibrant.core.errors import InputError
from calibrant.metrics.estimates import metric_estimates
from calibrant.metrics.semantic.pool import DrawPool, pool_draws
from calibrant.metrics.semantic.theory import regimes, standardised_margin
from calibrant.metrics.stats.binning import width_edges
from calibrant.metrics.stats.splits import SplitLaw, sample_splits, split_law

Scored: TypeAlias = tuple[Floats, Floats]


# Resamples that share one matrix product.
_TOGETHER = 50


class PairedGaps(Struct, frozen=True):
    """Sem1 against Sem2 on the same questions.

    `confidence`: mean(c1 - c2). `ece`: Sem1-ECE minus Sem2-ECE. `ece_close`: the same where the
    margin is below 1/sqrt(n), None where no question is that close.
    """

    confidence: Estimate
    ece: Estimate
    ece_close: Estimate | None


class Bootstrap(Struct, frozen=True):
    """How the calibration errors of one analysis are made: bins, level, resamples, numbers."""

    bins: int
    level: float
    resamples: int
    rng: np.random.Generator

    def estimates(self, scored: Scored, *names: str) -> dict[str, Estimate]:
        """Return metrics of questions with their intervals."""
        how = {"bins": self.bins, "level": self.level, "resamples": self.resamples}
        return metric_estimates(*scored, names=names, rng=self.rng, **how)  # type: ignore[arg-type]

    def ece(self, scored: Scored) -> Estimate:
        """Return the ECE of questions with its interval."""
        return self.estimates(scored, "ece")["ece"]

    def gaps(self, first: Scored, second: Scored, close: Mask | None = None) -> PairedGaps:
        """Return the gaps with percentile intervals from one joint bootstrap over questions."""
        questions = first[0].size
        near = np.zeros((questions, 1), dtype=bool) if close is None else close[:, None]
        columns = [(first[0] - second[0])[:, None]]
        columns += [_residuals(scored, self.bins) for scored in (first, second)]
        columns += [part * near for part in columns[1:]]
        table = np.hstack([*columns, near.astype(np.float64)])
        sums = np.empty((self.resamples + 1, table.shape[1]))
        sums[0] = table.sum(axis=0)
        for start in range(1, self.resamples + 1, _TOGETHER):
            stop = min(start + _TOGETHER, self.resamples + 1)
            rows = self.rng.integers(0, questions, (stop - start, questions))
            rows += questions * np.arange(stop - start)[:, None]
            counts = np.bincount(rows.ravel(), minlength=questions * (stop - start))
            sums[start:stop] = counts.reshape(stop - start, questions).astype(np.float64) @ table
        return _gaps(sums, questions, int(near.sum()), self.bins, self.level)


def _residuals(scored: Scored, bins: int) -> Floats:
    """(questions, bins): outcome minus confidence in the column of the question's bin."""
    confidence, outcome = scored
    place = np.searchsorted(width_edges(bins)[1:-1], confidence, side="right")
    table = np.zeros((confidence.size, bins))
    table[np.arange(confidence.size), place] = outcome - confidence
    return table


def _gaps(sums: Floats, questions: int, close: int, bins: int, level: float) -> PairedGaps:
    edges = np.cumsum([1, bins, bins, bins, bins])
    mean, first, second, first_close, second_close, size = np.split(sums, edges, axis=1)
    ece_gap = np.abs(first).sum(axis=1) - np.abs(second).sum(axis=1)
    close_gap = np.abs(first_close).sum(axis=1) - np.abs(second_close).sum(axis=1)
    usable = size[:, 0] > 0
    near = None
    if close:
        near = percentile_estimate(close_gap[usable] / size[usable, 0], close, level)
    confidence = percentile_estimate(mean[:, 0] / questions, questions, level)
    return PairedGaps(confidence, percentile_estimate(ece_gap / questions, questions, level), near)


def percentile_estimate(values: Floats, n: int, level: float) -> Estimate:
    """Return the first value, with the percentiles of the others as its interval."""
    low, high = np.quantile(values[1:], [(1 - level) / 2, (1 + level) / 2]).tolist()
    return Estimate(float(values[0]), low, high, n, level, interval="bootstrap-percentile")


Splits: TypeAlias = int | Literal["exact"]


LABELS = ("split", "pool")


class QuestionScores(Struct, frozen=True):
    """Per question: both confidences, the grades they answer for, and how close the race is.

    Parameters
    ----------
    ids
        Question ids.
    n, selection_n
        Draws in the pool, and in the block that Sem2 selects on.
    classes
        Classes seen.
    sem1, label1
        Frequency of the pool's mode, and the mode's grade (the mean grade of tied modes).
    sem2, label2
        Mean held-out frequency of the class that a split selects, and the mean grade of the
        selected classes (or of the pool's mode, see `sem_ece`). Classes that tie for the lead of
        a selection block count for equal shares.
    top, margin, mass
        Frequency of the mode, top-two margin D and top-two mass p of the pool.
    tied
        Share of the splits whose selection block has several leading classes.
    """

    ids: Array
    n: Ints
    selection_n: Ints
    classes: Ints
    sem1: Floats
    label1: Floats
    sem2: Floats
    label2: Floats
    top: Floats
    margin: Floats
    mass: Floats
    tied: Floats

    def scored(self, rows: Any = slice(None)) -> tuple[Scored, Scored]:
        """Return Sem1 and Sem2 of some questions, each with the grades it answers for."""
        return (self.sem1[rows], self.label1[rows]), (self.sem2[rows], self.label2[rows])

    @property
    def standardised_margin(self) -> Floats:
        """D / sqrt(p / n), plug-in."""
        return standardised_margin(self.margin, self.mass, self.n)

    @property
    def regime(self) -> Array:
        """Regime of each question, plug-in."""
        return regimes(self.margin, self.mass, self.classes, self.n)

    @property
    def gap(self) -> Floats:
        """sem1 - sem2, the difficulty diagnostic: large where the mode is not settled."""
        return self.sem1 - self.sem2


class SemEce(Struct, frozen=True):
    """Sem1-ECE and Sem2-ECE with what they are made of.

    Parameters
    ----------
    sem1, sem2
        The two calibration errors.
    gaps
        Paired bootstrap of mean(c1 - c2), of the ECE gap, and of the ECE gap where D < 1/sqrt(n).
    accuracy
        Accuracy of the pool's mode.
    questions
        Per-question values.
    left_out
        Questions left out, by reason.
    bins, splits, label
        How it was computed.
    """

    sem1: Estimate
    sem2: Estimate
    gaps: PairedGaps
    accuracy: Estimate
    questions: QuestionScores
    left_out: dict[str, int]
    bins: int
    splits: Splits
    label: str


def sem_ece(
    question_id: ArrayLike,
    class_id: ArrayLike,
    correct: ArrayLike,
    *,
    bins: int = 10,
    splits: Splits = 200,
    rng: RngLike = 0,
    label: str = "split",
    selection_share: float = 0.5,
    conflicts: str = "error",
    level: float = 0.95,
    resamples: int = 1000,
) -> SemEce:
    r"""Return the calibration error of open-ended answers, from one row per draw.

    Sem1 takes the frequency of the most frequent meaning as confidence: biased upwards, because
    the winner is read off the draws that made it win. Sem2 selects on one part of the draws and
    reads the frequency off the other: unbiased given the selection, biased downwards by wrong
    selections. Both errors are in [0, 1] and measure this number of draws; their intervals cover
    them at this number of draws. The error with unlimited draws may lie outside both, and a
    smaller value is not a better one.

    Parameters
    ----------
    question_id, class_id, correct
        Question, meaning and grade of each draw, see `pool_draws`.
    bins
        Equal-width bins.
    splits
        Random splits per question, or ``"exact"`` for the law of all of them.
    rng
        Seed or generator.
    label
        ``"split"``: Sem2 answers for the class that each split selects (as it is defined);
        ``"pool"``: for the mode of the whole pool, as the authors' published code grades it.
    selection_share
        Share of the draws that Sem2 selects on; the rest evaluates.
    conflicts
        See `pool_draws`.
    level, resamples
        Coverage of the intervals and bootstrap resamples, by question.

    References
    ----------
    'Sem-ECE: calibration of open-ended answers by semantic sampling' (2026), Sections 4 and 6.

    Examples
    --------
    >>> question = ["a"] * 4 + ["b"] * 4
    >>> meaning, correct = [0, 0, 0, 1, 0, 1, 2, 3], [1, 1, 1, 0, 0, 0, 0, 0]
    >>> result = sem_ece(question, meaning, correct, splits="exact")
    >>> result.questions.sem1.tolist(), result.questions.sem2.round(4).tolist()
    ([0.75, 0.25], [0.5, 0.0])
    """
    pool = pool_draws(question_id, class_id, correct, conflicts=conflicts)
    answers = partial(sem_ece_of_pool, pool, label=label, selection_share=selection_share)
    return answers(bins=bins, splits=splits, rng=rng, level=level, resamples=resamples)


def sem_ece_of_pool(
    pool: DrawPool,
    *,
    bins: int = 10,
    splits: Splits = 200,
    rng: RngLike = 0,
    label: str = "split",
    selection_share: float = 0.5,
    level: float = 0.95,
    resamples: int = 1000,
) -> SemEce:
    """Return `sem_ece` of draws that are counted already."""
    generator = as_generator(rng)
    scores = question_scores(
        pool, splits=splits, rng=generator, label=label, selection_share=selection_share
    )
    how = Bootstrap(bins, level, resamples, generator)
    first, second = scores.scored()
    by_name = how.estimates(first, "ece", "accuracy")
    return SemEce(
        sem1=by_name["ece"],
        sem2=how.ece(second),
        gaps=how.gaps(first, second, scores.margin < 1 / np.sqrt(scores.n)),
        accuracy=by_name["accuracy"],
        questions=scores,
        left_out=pool.left_out,
        bins=bins,
        splits=splits,
        label=label,
    )


def question_scores(
    pool: DrawPool,
    *,
    splits: Splits = 200,
    rng: RngLike = 0,
    label: str = "split",
    selection_share: float = 0.5,
) -> QuestionScores:
    """Return both confidences of each question with the grades that they answer for."""
    if label not in LABELS:
        raise InputError(f"label must be one of {', '.join(LABELS)}, got {label!r}")
    if not 0 < selection_share < 1:
        raise InputError(f"selection_share must lie between 0 and 1, got {selection_share}")
    block = np.clip(np.floor(pool.size * selection_share).astype(np.int64), 1, pool.size - 1)
    law = _held_out(pool, block, splits, as_generator(rng))
    # The grade of the most frequent class, the mean grade where several tie.
    modes = pool.answers == pool.answers.max(axis=1, keepdims=True)
    label1 = np.where(modes, np.nan_to_num(pool.labels), 0.0).sum(axis=1) / modes.sum(axis=1)
    first, second = pool.top_two()
    return QuestionScores(
        ids=pool.ids,
        n=pool.size,
        selection_n=block,
        classes=pool.classes,
        sem1=first,
        label1=label1,
        sem2=np.minimum(law.confidence, 1.0),
        label2=law.mean_of(pool.labels) if label == "split" else label1,
        top=first,
        margin=first - second,
        mass=first + second,
        tied=law.tied,
    )


def _held_out(pool: DrawPool, block: Ints, splits: Splits, rng: np.random.Generator) -> SplitLaw:
    """Return what the splits select; every question must have a split that selects something."""
    if splits == "exact":
        law = split_law(pool.counts, block, selectable=pool.attempted)
    else:
        law = sample_splits(pool.counts, block, splits=splits, rng=rng, selectable=pool.attempted)
    empty = np.flatnonzero(law.selection.sum(axis=1) == 0)
    if empty.size:
        raise InputError(
            f"no split of question {pool.ids[int(empty[0])]} holds an answer",
            hint="use more splits, or splits='exact'",
        )
    return law
