"""How the two estimators move as draws are added: down and up, to a common limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import InputError
from calibrant.core.estimate import Estimate
from calibrant.core.rng import RngLike, as_generator
from calibrant.metrics.estimates import metric_estimates
from calibrant.metrics.semantic.estimators import QuestionScores, Splits, question_scores
from calibrant.metrics.semantic.pool import DrawPool

__all__ = ["ConvergencePoint", "convergence_curve", "gap_slope", "subsample"]

Floats: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ConvergencePoint:
    """Both errors at n draws per question.

    `gap` is mean(c1 - c2) over all questions, `gap_low` over those outside the large-margin
    regime of the whole pool, both with percentile bootstraps over questions; the calibration
    errors have the intervals of `sem_ece`.
    """

    n: int
    sem1: Estimate
    sem2: Estimate
    gap: Estimate
    gap_low: Estimate | None


def subsample(pool: DrawPool, n: int, rng: RngLike) -> DrawPool:
    """Return the pool with n draws of each question, chosen without replacement.

    Class columns keep the order of the whole pool, so ties are broken as before.
    """
    generator = as_generator(rng)
    if int(pool.size.min()) < n:
        raise InputError(f"a question has only {int(pool.size.min())} draws, {n} were asked for")
    left = np.full(pool.ids.size, n, dtype=np.int64)
    rest = pool.size.copy()
    taken = np.zeros_like(pool.counts)
    for column in range(pool.counts.shape[1]):
        own = pool.counts[:, column]
        rest = rest - own
        taken[:, column] = generator.hypergeometric(own, rest, left)
        left = left - taken[:, column]
    return DrawPool(pool.ids, taken, pool.labels, pool.attempted, {})


def convergence_curve(
    pool: DrawPool,
    sizes: Sequence[int] | None = None,
    *,
    bins: int = 10,
    splits: Splits = 50,
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
    generator = as_generator(rng)
    wanted = list(sizes or _default_sizes(int(np.median(pool.size))))
    # Half of the smallest sub-sample must hold an answer whichever draws it gets.
    refusals = pool.size - pool.answers.sum(axis=1)
    usable = (pool.size >= max(wanted)) & (refusals < max(min(wanted) // 2, 1))
    full = pool.take(np.flatnonzero(usable))
    if full.ids.size == 0:
        raise InputError(
            f"no question has {max(wanted)} draws with fewer than {min(wanted) // 2} refusals"
        )
    close = question_scores(full, splits=1, rng=0).regime != "large-margin"
    points = []
    for n in wanted:
        runs = _runs(full, n, splits, subsamples, generator)
        points.append(_point(n, runs, close, bins, level, resamples, generator))
    return points


def _default_sizes(pool: int) -> list[int]:
    step = 10 if pool >= 20 else 2
    return [n for n in range(step, pool + 1, step) if n >= 2] or [pool]


def _runs(
    pool: DrawPool, n: int, splits: Splits, subsamples: int, rng: np.random.Generator
) -> list[QuestionScores]:
    if (pool.size == n).all():
        return [question_scores(pool, splits=splits, rng=rng)]
    parts = (subsample(pool, n, rng) for _ in range(subsamples))
    return [question_scores(part, splits=splits, rng=rng) for part in parts]


def _point(
    n: int,
    runs: list[QuestionScores],
    close: npt.NDArray[np.bool_],
    bins: int,
    level: float,
    resamples: int,
    rng: np.random.Generator,
) -> ConvergencePoint:
    questions = close.size
    rows = np.vstack([np.arange(questions), rng.integers(0, questions, (resamples, questions))])
    shared: dict[str, Any] = {"bins": bins, "level": level, "resamples": resamples, "rng": rng}
    gap = np.mean([r.gap for r in runs], axis=0)
    return ConvergencePoint(
        n,
        sem1=_mean_ece([(r.sem1, r.label1) for r in runs], shared),
        sem2=_mean_ece([(r.sem2, r.label2) for r in runs], shared),
        gap=_estimate(gap[rows].mean(axis=1), questions, level),
        gap_low=_close_gap(gap, close, level, resamples, rng),
    )


def _mean_ece(runs: list[tuple[Floats, Floats]], shared: dict[str, Any]) -> Estimate:
    """Return the mean over sub-samples, with the mean of their intervals.

    The sub-samples share their questions, so that a mean of them is hardly surer than one.
    """
    found = [metric_estimates(c, y, names=("ece",), **shared)["ece"] for c, y in runs]
    value, low, high = np.mean([(e.value, e.low, e.high) for e in found], axis=0)
    return replace(found[0], value=float(value), low=float(low), high=float(high))


def _close_gap(
    gap: Floats,
    close: npt.NDArray[np.bool_],
    level: float,
    resamples: int,
    rng: np.random.Generator,
) -> Estimate | None:
    near = gap[close]
    if near.size == 0:
        return None
    rows = np.vstack([np.arange(near.size), rng.integers(0, near.size, (resamples, near.size))])
    return _estimate(near[rows].mean(axis=1), near.size, level)


def _estimate(values: Floats, n: int, level: float) -> Estimate:
    low, high = np.quantile(values[1:], [(1 - level) / 2, (1 + level) / 2])
    return Estimate(
        float(values[0]), float(low), float(high), n, level, interval="bootstrap-percentile"
    )


def gap_slope(points: Sequence[ConvergencePoint]) -> float:
    """Return the log-log slope of the low-margin gap against n; theory says -1/2.

    NaN where fewer than two points have a positive gap.
    """
    known = [
        (p.n, p.gap_low.value) for p in points if p.gap_low is not None and p.gap_low.value > 0
    ]
    if len(known) < 2:
        return float("nan")
    n, gap = np.log(np.array(known, dtype=np.float64)).T
    return float(np.polyfit(n, gap, 1)[0])
