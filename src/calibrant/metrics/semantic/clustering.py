"""How much of a Sem-ECE hangs on who clustered: the same draws, two judges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import InputError
from calibrant.core.estimate import Estimate
from calibrant.core.rng import RngLike, as_generator
from calibrant.metrics.semantic.estimators import Splits, question_scores
from calibrant.metrics.semantic.pool import pool_draws
from calibrant.metrics.semantic.resampling import paired_gaps


@dataclass(frozen=True, slots=True)
class ClusteringShift:
    """First judge minus second judge on the questions that both can use."""

    sem1: Estimate
    sem2: Estimate
    same_partition: float
    questions: int


def clustering_shift(
    question_id: npt.ArrayLike,
    first: tuple[npt.ArrayLike, npt.ArrayLike],
    second: tuple[npt.ArrayLike, npt.ArrayLike],
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
    pools = [pool_draws(question_id, *judged) for judged in (first, second)]
    common, rows_a, rows_b = np.intersect1d(pools[0].ids, pools[1].ids, return_indices=True)
    if common.size == 0:
        raise InputError("no question can be used by both judges")
    taken = [pool.take(rows) for pool, rows in zip(pools, (rows_a, rows_b), strict=True)]
    scores = [question_scores(pool, splits=splits, rng=generator) for pool in taken]
    shared: dict[str, Any] = {
        "close": np.zeros(common.size, dtype=bool),
        "bins": bins,
        "level": level,
        "resamples": resamples,
    }
    a, b = scores
    shift1 = paired_gaps((a.sem1, a.label1), (b.sem1, b.label1), rng=generator, **shared)
    shift2 = paired_gaps((a.sem2, a.label2), (b.sem2, b.label2), rng=generator, **shared)
    same = _same_partition(np.asarray(question_id), first[0], second[0], common)
    return ClusteringShift(shift1.ece, shift2.ece, same, int(common.size))


def _same_partition(
    question: npt.NDArray[Any], first: npt.ArrayLike, second: npt.ArrayLike, common: Any
) -> float:
    """Return the share of questions on which both judges put the same draws together.

    Two partitions are equal exactly if there are as many pairs of classes as classes in each.
    """
    names, code = np.unique(question, return_inverse=True)
    code = code.reshape(-1)

    def together(owner: npt.NDArray[Any], values: npt.ArrayLike) -> tuple[Any, Any]:
        """Return the owner of each distinct pair (owner, value), and the pair of each row."""
        value = np.unique(np.asarray(values), return_inverse=True)[1].reshape(-1)
        span = int(value.max()) + 1
        keys, pair = np.unique(owner * span + value, return_inverse=True)
        return keys // span, pair.reshape(-1)

    def classes(owner: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        return np.bincount(owner, minlength=names.size)

    of_first, first_class = together(code, first)
    of_second, second_class = together(code, second)
    of_pair, _ = together(first_class, second_class)
    pairs = classes(of_first[of_pair])
    equal = (pairs == classes(of_first)) & (pairs == classes(of_second))
    return float(equal[np.searchsorted(names, common)].mean())
