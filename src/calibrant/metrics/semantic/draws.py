"""More draws: how both estimators move with them, where to spend them, what each one states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import ArrayLike

from calibrant.core.arrays import Estimate, Floats, Ints, Mask, RngLike, as_generator
from calibrant.core.errors import InputError
from calibrant.metrics.estimates import metric_estimates
from calibrant.metrics.semantic import estimators, theory
from calibrant.metrics.semantic.pool import DrawPool
from calibrant.metrics.semantic.theory import regimes


class ConvergencePoint(Struct, frozen=True):
    """Both errors at n draws per question.

    `gap` is mean(c1 - c2) over all questions, `gap_low` over those outside the large-margin
    regime of the whole pool, both with percentile bootstraps over questions; the calibration
    errors have the intervals of `sem_ece`. `ece_gap_low` is Sem1-ECE minus Sem2-ECE on the
    questions whose margin is low for n draws: D < sqrt(log K / n), a threshold that falls with n
    (as in Figure 10 of the paper); None where there are none.
    """

    n: int
    sem1: Estimate
    sem2: Estimate
    gap: Estimate
    gap_low: Estimate | None
    ece_gap_low: Estimate | None = None


def subsample(pool: DrawPool, n: int, rng: RngLike) -> DrawPool:
    """Return the pool with n draws of each question, chosen without replacement.

    Class columns keep their places.
    """
    generator = as_generator(rng)
    if int(pool.size.min()) < n:
        raise InputError(f"a question has only {int(pool.size.min())} draws, {n} were asked for")
    left, remainder = np.full(pool.ids.size, n), pool.size
    selection = np.zeros_like(pool.counts)
    for column, counts in enumerate(pool.counts.T):
        remainder = remainder - counts
        selection[:, column] = generator.hypergeometric(counts, remainder, left)
        left = left - selection[:, column]
    return DrawPool(pool.ids, selection, pool.labels, pool.attempted, {})


def convergence_curve(
    pool: DrawPool,
    sizes: Sequence[int] | None = None,
    *,
    bins: int = 10,
    splits: estimators.Splits = 50,
    subsamples: int = 20,
    level: float = 0.95,
    resamples: int = 200,
    rng: RngLike = 0,
) -> list[ConvergencePoint]:
    """Return Sem1-ECE and Sem2-ECE against the number of draws per question.

    Parameters
    ----------
    pool
        The draws. Questions with fewer draws than the largest size, or with as many draws
        without an answer as half of the smallest, are not in the curve; each point says its n.
    sizes
        Numbers of draws; default 10, 20, ... up to the pool.
    bins, splits
        See `sem_ece`.
    subsamples
        Sub-samples per size; errors are averaged over them.
    level, resamples
        Interval over questions, from the resampled mean over sub-samples.
    rng
        Seed or generator.
    """
    how = estimators.Bootstrap(bins, level, resamples, as_generator(rng))
    median = int(np.median(pool.size))
    step = 10 if median >= 20 else 2
    targets = sizes or range(step, median + 1, step) or [median]
    # Half of the smallest sub-sample must hold an answer whichever draws it gets.
    refusals = pool.size - pool.answers.sum(axis=1)
    usable = (pool.size >= max(targets)) & (refusals < max(min(targets) // 2, 1))
    full = pool.take(np.flatnonzero(usable))
    if full.ids.size == 0:
        raise InputError(
            f"no question has {max(targets)} draws with fewer than {min(targets) // 2} refusals"
        )
    first, second = full.top_two()
    margin, log_classes = first - second, np.log(full.classes)
    close = regimes(margin, first + second, full.classes, full.size) != "large-margin"
    points = []
    for n in targets:
        runs = _runs(full, n, splits, subsamples, how.rng)
        rows = _resampled(close.size, how)
        gap = np.mean([run.gap for run in runs], axis=0)
        scored = [run.scored() for run in runs]
        sem1, sem2 = (_mean([how.ece(pair[place]) for pair in scored]) for place in (0, 1))
        mean_gap = estimators.percentile_estimate(gap[rows].mean(axis=1), close.size, level)
        gap_low = ece_gap_low = None
        if (near := gap[close]).size:
            means = near[_resampled(near.size, how)].mean(axis=1)
            gap_low = estimators.percentile_estimate(means, near.size, level)
        if (low := margin < np.sqrt(log_classes / n)).any():
            ece_gap_low = _mean([how.gaps(*run.scored(low)).ece for run in runs])
        points.append(ConvergencePoint(n, sem1, sem2, mean_gap, gap_low, ece_gap_low))
    return points


def _runs(
    pool: DrawPool, n: int, splits: estimators.Splits, subsamples: int, rng: np.random.Generator
) -> list[estimators.QuestionScores]:
    whole = (pool.size == n).all()
    parts = [pool] if whole else (subsample(pool, n, rng) for _ in range(subsamples))
    return [estimators.question_scores(part, splits=splits, rng=rng) for part in parts]


def _resampled(size: int, how: estimators.Bootstrap) -> Ints:
    """Return all places, and below them as many drawn ones for every resample."""
    return np.vstack([np.arange(size), how.rng.integers(0, size, (how.resamples, size))])


def _mean(estimates: list[Estimate]) -> Estimate:
    """Return the mean over sub-samples, with the mean of their intervals.

    The sub-samples share their questions, so that a mean of them is hardly surer than one.
    """
    value, low, high = np.mean([(e.value, e.low, e.high) for e in estimates], axis=0)
    return replace(estimates[0], value=float(value), low=float(low), high=float(high))


def gap_slope(points: Sequence[ConvergencePoint]) -> float:
    """Return the log-log slope against n of Sem1-ECE minus Sem2-ECE on low-margin questions.

    Which questions are of low margin is decided at each n, see `ConvergencePoint`. Theory says
    -1/2, the paper measured -0.56 to -0.58. NaN where fewer than two points have a positive gap.
    """
    gaps = [(p.n, p.ece_gap_low.value) for p in points if p.ece_gap_low is not None]
    positive = [(n, gap) for n, gap in gaps if gap > 0]
    if len(positive) < 2:
        return float("nan")
    n, gap = np.log(np.array(positive, dtype=np.float64)).T
    return float(np.polyfit(n, gap, 1)[0])


class AdaptiveRule(Struct, frozen=True):
    """When to stop drawing for the selection of a question's mode.

    Only the selection block is adaptive; the evaluation block has a fixed size and is drawn
    afterwards, so that the held-out frequency stays unbiased given the selection.

    Parameters
    ----------
    target
        Stop when the plug-in bound on the selection error is at most this.
    minimum, maximum
        Draws that are always made, and never exceeded.
    batch
        Draws made between two looks.

    Examples
    --------
    >>> rule = AdaptiveRule(target=0.05, minimum=5, maximum=25)
    >>> rule.settled(np.array([[12, 0], [7, 5]])).tolist()
    [True, False]
    """

    target: float = 0.05
    minimum: int = 5
    maximum: int = 25
    batch: int = 5

    def settled(self, counts: ArrayLike) -> Mask:
        """Return, per question, whether its selection block may stop.

        One class is added to those seen and half a draw given to it, so that a question whose
        few draws agree is not called settled by a bound of exactly 0.
        """
        table = np.asarray(counts, dtype=np.float64)
        n = table.sum(axis=1)
        ranking = np.sort(np.column_stack([table, np.full(n.size, 0.5)]), axis=1)[:, ::-1]
        first, second = ranking[:, 0] / (n + 0.5), ranking[:, 1] / (n + 0.5)
        classes = (table > 0).sum(axis=1) + 1
        bound = theory.selection_error_bound(first - second, first + second, classes, n.clip(1))
        enough = n >= self.minimum
        return np.asarray((enough & (bound <= self.target)) | (n >= self.maximum))


class AdaptiveScores(Struct, frozen=True):
    """Held-out confidence after an adaptive selection.

    `draws` counts the calls per question: selection plus evaluation.
    """

    selected: Ints
    confidence: Floats
    draws: Ints


def adaptive_scores(classes: ArrayLike, rule: AdaptiveRule, *, evaluation: int) -> AdaptiveScores:
    """Replay the rule over draws in the order in which they would have been made.

    Parameters
    ----------
    classes
        (questions, draws) class of each draw, numbers from 0; at least `rule.maximum` +
        `evaluation` draws.
    rule
        When to stop selecting.
    evaluation
        Draws of the evaluation block, made after the selection stopped.
    """
    table = np.asarray(classes, dtype=np.int64)
    questions, draws = table.shape
    if draws < rule.maximum + evaluation:
        raise InputError(
            f"{rule.maximum} + {evaluation} draws per question are needed, there are {draws}"
        )
    width = int(table.max()) + 1
    counts = np.zeros((questions, width), dtype=np.int64)
    used = np.zeros(questions, dtype=np.int64)
    open_rows = np.arange(questions)
    while open_rows.size:
        first = int(used[open_rows[0]])
        last = min(max(first + rule.batch, rule.minimum), rule.maximum)
        piece = table[open_rows, first:last]
        np.add.at(counts, (open_rows[:, None], piece), 1)
        used[open_rows] = last
        open_rows = open_rows[~rule.settled(counts[open_rows])]
    selected = np.argmax(counts, axis=1)
    columns = used[:, None] + np.arange(evaluation)
    agrees = table[np.arange(questions)[:, None], columns] == selected[:, None]
    return AdaptiveScores(selected, agrees.mean(axis=1), used + evaluation)


def best_selection_size(
    top: ArrayLike, margin: ArrayLike, mass: ArrayLike, pool: int, *, goal: str
) -> int:
    """Return how many of `pool` draws Sem2 should select on; the others evaluate.

    Parameters
    ----------
    top, margin, mass
        Probability of the mode, top-two margin and mass per question (plug-in or assumed).
    pool
        Draws per question.
    goal
        ``"bias"``: smallest mean absolute selection bias (as many as possible); ``"error"``:
        smallest mean squared error of the confidence of one split, selection bias squared plus
        p1 (1 - p1) / m.

    Examples
    --------
    >>> best_selection_size([0.9], [0.85], [0.95], 50, goal="error")
    7
    """
    if goal not in ("bias", "error"):
        raise InputError(f"goal must be bias or error, got {goal!r}")
    p1, p = (np.asarray(x, dtype=np.float64) for x in (top, mass))
    sizes = np.arange(1, pool)
    costs = []
    for n in sizes:
        lam = theory.standardised_margin(margin, p, n) / 2
        bias = np.sqrt(p / n) * theory.selection_bias(lam)
        spread = 0.0 if goal == "bias" else p1 * (1 - p1) / (pool - n)
        costs.append(float(np.mean(np.abs(bias) if goal == "bias" else bias**2 + spread)))
    return int(sizes[int(np.argmin(costs))])


class VerEce(Struct, frozen=True):
    """Calibration error of stated confidence.

    `parse_failures` is the share of draws without a readable confidence; `imputed` is the value
    that was put in their place, or None where they were left out.
    """

    ece: Estimate
    confidence: Floats
    accuracy: Floats
    parse_failures: float
    questions_without: int
    imputed: float | None


def ver_ece(
    question_id: ArrayLike,
    stated: ArrayLike,
    correct: ArrayLike,
    *,
    bins: int = 10,
    impute: float | None = None,
    level: float = 0.95,
    resamples: int = 1000,
    rng: RngLike = 0,
) -> VerEce:
    """Return the calibration error of stated confidence, averaged over the draws of a question.

    The mean confidence of a question answers for the mean grade of the same draws: each stated
    confidence is about its own answer.

    Parameters
    ----------
    question_id
        Question of each draw.
    stated
        Confidence in [0, 1]; NaN where none could be read.
    correct
        Grade of each draw's own answer.
    bins, level, resamples, rng
        See `sem_ece`.
    impute
        Value for unreadable confidences (published: 1.0); None leaves those draws out.
    """
    values = np.asarray(stated, dtype=np.float64)
    grades = np.asarray(correct, dtype=np.float64)
    missing = np.isnan(values)
    without = np.flatnonzero(np.isnan(grades))
    if without.size:
        raise InputError("every draw needs a grade", row=int(without[0]) + 1)
    if impute is not None:
        values = np.where(missing, impute, values)
    ids, question = np.unique(np.asarray(question_id), return_inverse=True)
    finite: Any = ~np.isnan(values)
    size = np.bincount(question[finite], minlength=ids.size)
    subset = size > 0
    if not subset.any():
        raise InputError("no draw states a confidence that can be read")
    mean, rate = (
        np.bincount(question[finite], weights=column[finite], minlength=ids.size)[subset]
        / size[subset]
        for column in (values, grades)
    )
    estimates = metric_estimates(
        mean, rate, names=("ece",), bins=bins, level=level, resamples=resamples, rng=rng
    )
    return VerEce(estimates["ece"], mean, rate, float(missing.mean()), int((~subset).sum()), impute)
