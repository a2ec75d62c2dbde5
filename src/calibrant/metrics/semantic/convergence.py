"""How the two estimators move as draws are added: down and up, to a common limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Floats
from calibrant.core.errors import InputError
from calibrant.core.estimate import Estimate
from calibrant.core.rng import RngLike, as_generator
from calibrant.metrics.estimates import metric_estimates
from calibrant.metrics.semantic.estimators import (
    QuestionScores,
    Splits,
    paired_gaps,
    question_scores,
)
from calibrant.metrics.semantic.pool import DrawPool
from calibrant.metrics.semantic.theory import regimes


@dataclass(frozen=True, slots=True)
class ConvergencePoint:
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
    first, second = full.top_two()
    standing = _Standing(
        regimes(first - second, first + second, full.classes, full.size) != "large-margin",
        first - second,
        np.log(full.classes),
    )
    points = []
    for n in wanted:
        runs = _runs(full, n, splits, subsamples, generator)
        points.append(_point(n, runs, standing, bins, level, resamples, generator))
    return points


class _Standing(NamedTuple):
    """What the whole pool says about each question."""

    close: npt.NDArray[np.bool_]
    margin: Floats
    log_classes: Floats


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
    standing: _Standing,
    bins: int,
    level: float,
    resamples: int,
    rng: np.random.Generator,
) -> ConvergencePoint:
    questions = standing.close.size
    low = standing.margin < np.sqrt(standing.log_classes / n)
    rows = np.vstack([np.arange(questions), rng.integers(0, questions, (resamples, questions))])
    shared: dict[str, Any] = {"bins": bins, "level": level, "resamples": resamples, "rng": rng}
    gap = np.mean([r.gap for r in runs], axis=0)
    return ConvergencePoint(
        n,
        sem1=_mean_ece([(r.sem1, r.label1) for r in runs], shared),
        sem2=_mean_ece([(r.sem2, r.label2) for r in runs], shared),
        gap=_estimate(gap[rows].mean(axis=1), questions, level),
        gap_low=_close_gap(gap, standing.close, level, resamples, rng),
        ece_gap_low=_low_ece_gap(runs, low, shared),
    )


def _mean_ece(runs: list[tuple[Floats, Floats]], shared: dict[str, Any]) -> Estimate:
    """Return the mean over sub-samples, with the mean of their intervals.

    The sub-samples share their questions, so that a mean of them is hardly surer than one.
    """
    found = [metric_estimates(c, y, names=("ece",), **shared)["ece"] for c, y in runs]
    value, low, high = np.mean([(e.value, e.low, e.high) for e in found], axis=0)
    return replace(found[0], value=float(value), low=float(low), high=float(high))


def _low_ece_gap(
    runs: list[QuestionScores], low: npt.NDArray[np.bool_], shared: dict[str, Any]
) -> Estimate | None:
    """Return Sem1-ECE minus Sem2-ECE on the low-margin questions, a mean over sub-samples."""
    if not low.any():
        return None
    nobody = np.zeros(int(low.sum()), dtype=bool)
    found = [
        paired_gaps(
            (run.sem1[low], run.label1[low]),
            (run.sem2[low], run.label2[low]),
            close=nobody,
            **shared,
        ).ece
        for run in runs
    ]
    value, lower, upper = np.mean([(e.value, e.low, e.high) for e in found], axis=0)
    return replace(found[0], value=float(value), low=float(lower), high=float(upper))


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
    """Return the log-log slope against n of Sem1-ECE minus Sem2-ECE on low-margin questions.

    Which questions are of low margin is decided at each n, see `ConvergencePoint`. Theory says
    -1/2, the paper measured -0.56 to -0.58. NaN where fewer than two points have a positive gap.
    """
    gaps = [(p.n, p.ece_gap_low.value) for p in points if p.ece_gap_low is not None]
    known = [(n, gap) for n, gap in gaps if gap > 0]
    if len(known) < 2:
        return float("nan")
    n, gap = np.log(np.array(known, dtype=np.float64)).T
    return float(np.polyfit(n, gap, 1)[0])
