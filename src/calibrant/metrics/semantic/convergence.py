"""How the two estimators move as draws are added: down and up, to a common limit."""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from calibrant.core.arrays import Ints
from calibrant.core.errors import InputError
from calibrant.core.estimate import Estimate
from calibrant.core.rng import RngLike, as_generator
from calibrant.metrics.semantic import estimators
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
