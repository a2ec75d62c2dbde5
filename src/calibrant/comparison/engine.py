"""Scores of every model and gap of every pair under every view, in data and resamples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from calibrant.comparison.aligned import Aligned, Candidates
from calibrant.comparison.resampled import Resamples, Sums, weighted_sums
from calibrant.comparison.views import (
    binned_rows,
    distribution_weights,
    effective_size,
    shared_outcome,
)
from calibrant.core.errors import InputError

__all__ = ["Comparer", "PairScores", "ViewScores"]

Floats: TypeAlias = npt.NDArray[np.float64]
TARGETS = ("weakest", "strongest", "mean")
_THREADS = 2
_CHUNK = 8


@dataclass(frozen=True, slots=True)
class ViewScores:
    """Brier and ECE of one model under one view, (1 + resamples,) with the data first."""

    brier: Floats
    ece: Floats
    sums: Sums

    @property
    def residuals(self) -> Floats:
        """(bins, 1 + resamples) share of the bin times its gap; their absolute sum is the ECE."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.sums.gaps / self.sums.weight)


@dataclass(frozen=True, slots=True)
class PairScores:
    """Two models under every view.

    `views` maps a view to the scores of both; `retention` is the share of questions with shared
    outcome; `target` the common accuracy of the distribution-aligned view; `effective` the
    effective sample sizes there.
    """

    a: int
    b: int
    views: dict[str, tuple[ViewScores, ViewScores]]
    retention: float
    target: float
    effective: tuple[float, float]


class Comparer:
    """Holds what all pairs share: binned rows and sums over right and wrong answers.

    Parameters
    ----------
    aligned
        The models on their common questions.
    resamples
        Resampled questions, shared by all models and pairs.
    bins
        Equal-width bins.
    target
        ``"weakest"``, ``"strongest"``, ``"mean"`` or a number: the common accuracy.
    candidates
        Candidate scores on the same questions, for the candidate-aligned view.
    """

    def __init__(
        self,
        aligned: Aligned,
        resamples: Resamples,
        *,
        bins: int = 15,
        target: str | float = "weakest",
        candidates: Candidates | None = None,
    ) -> None:
        self.aligned = aligned
        self.resamples = resamples
        self.bins = bins
        self.target = self._known_target(target)
        self.candidates = candidates
        for name, accuracy in zip(aligned.models, aligned.accuracy, strict=True):
            distribution_weights(np.array([accuracy]), 0.5, model=name, accuracy=float(accuracy))
        self.rows = [
            binned_rows(c, z, bins=bins)
            for c, z in zip(aligned.confidence, aligned.correct, strict=True)
        ]
        # One thread per product and two products at a time: the threads of the linear algebra
        # library would fight over the cores.
        with threadpool_limits(1):
            self.right = self._sums_by_model(aligned.correct)
            self.wrong = self._sums_by_model(1 - aligned.correct)

    @staticmethod
    def _known_target(target: str | float) -> str | float:
        if isinstance(target, str) and target not in TARGETS:
            raise InputError(f"target is {', '.join(TARGETS)} or a number, got {target!r}")
        return target

    def _sums_by_model(self, weights: Floats) -> list[Sums]:
        parts = list(zip(self.rows, weights, strict=True))
        chunks = [parts[start : start + _CHUNK] for start in range(0, len(parts), _CHUNK)]
        return [sums for chunk in chunks for sums in weighted_sums(chunk, self.resamples)]

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models."""
        return self.aligned.models

    @property
    def questions(self) -> int:
        """Number of questions that all models answered."""
        return int(self.aligned.questions.size)

    def confidence_moments(self, model: int) -> tuple[float, float]:
        """Return mean and standard deviation of a model's confidence."""
        values = self.aligned.confidence[model]
        return float(values.mean()), float(values.std(ddof=1)) if values.size > 1 else float("nan")

    def accuracy(self, model: int) -> Floats:
        """Accuracy of a model in the data and in every resample."""
        share: Floats = self.right[model].weight / (
            self.right[model].weight + self.wrong[model].weight
        )
        return share

    def pairs(self) -> Iterator[PairScores]:
        """Yield every pair, in order; two at a time are worked out in threads."""
        numbers = combinations(range(len(self.models)), 2)
        with threadpool_limits(1), ThreadPoolExecutor(_THREADS) as pool:
            yield from pool.map(lambda pair: self.pair(*pair), numbers)

    def pair(self, a: int, b: int) -> PairScores:
        """Compare two models."""
        goal, views = self._views((a, b))
        target = float(goal[0])
        return PairScores(
            a,
            b,
            {name: (first, second) for name, (first, second) in views.items()},
            self._retention((a, b)),
            target,
            (self._effective_size(a, target), self._effective_size(b, target)),
        )

    def league(self) -> list[dict[str, ViewScores]]:
        """Return every model under every view of all models at once.

        Instance-aligned: questions on which all share the outcome. Distribution-aligned: one
        common target. Candidate-aligned: the pool of all answers.
        """
        members = tuple(range(len(self.models)))
        with threadpool_limits(1), ThreadPoolExecutor(_THREADS) as pool:
            _, views = self._views(members, pool.map)
        return [{name: scores[m] for name, scores in views.items()} for m in members]

    def _views(
        self, members: tuple[int, ...], each: Callable[..., Iterable[Sums]] = map
    ) -> tuple[Floats, dict[str, list[ViewScores]]]:
        """Return the target accuracy and the scores of all members by view."""
        goal = self._goal(members)
        views = {
            "raw": [_scores(self.right[m] + self.wrong[m]) for m in members],
            "da": [_scores(self._reweighted(m, goal)) for m in members],
            "ia": [_scores(sums) for sums in self._shared_sums(members)],
        }
        if self.candidates is not None:
            judged = each(lambda judge: self._judged(judge, members), members)
            views["ca"] = [_scores(sums) for sums in judged]
        return goal, views

    def _shared_sums(self, members: tuple[int, ...]) -> list[Sums]:
        """Return the sums of every member over questions on which all share the outcome."""
        shared = shared_outcome(self.aligned.correct[list(members)]).astype(np.float64)
        return [
            sums
            for m in members
            for sums in weighted_sums([(self.rows[m], shared)], self.resamples)
        ]

    def _retention(self, members: tuple[int, ...]) -> float:
        """Return the share of questions on which all members share the outcome."""
        return float(shared_outcome(self.aligned.correct[list(members)]).mean())

    def _effective_size(self, model: int, target: float) -> float:
        return effective_size(distribution_weights(self.aligned.correct[model], target))

    def target_curve(self, model: int, targets: Floats) -> Floats:
        """Return the ECE of a model at every target accuracy, (targets,)."""
        a = float(self.accuracy(model)[0])
        gaps = self.right[model].gaps[:, 0, None] * (targets / a) + self.wrong[model].gaps[
            :, 0, None
        ] * ((1 - targets) / (1 - a))
        total = self.right[model].weight[0] + self.wrong[model].weight[0]
        curve: Floats = np.abs(gaps).sum(axis=0) / total
        return curve

    def _goal(self, members: tuple[int, ...]) -> Floats:
        accuracies = np.vstack([self.accuracy(m) for m in members])
        if not isinstance(self.target, str):
            return np.full(accuracies.shape[1], float(self.target))
        goal: Floats
        if self.target == "mean":
            goal = accuracies.mean(axis=0)
        else:
            goal = accuracies.min(axis=0) if self.target == "weakest" else accuracies.max(axis=0)
        return goal

    def _reweighted(self, model: int, goal: Floats) -> Sums:
        a = self.accuracy(model)
        with np.errstate(invalid="ignore", divide="ignore"):
            up, down = goal / a, (1 - goal) / (1 - a)
            # A resample without right or without wrong answers has no such weights: NaN.
            return self.right[model].scaled(up) + self.wrong[model].scaled(down)

    def _judged(self, judge: int, authors: tuple[int, ...]) -> Sums:
        pool = self.candidates
        assert pool is not None
        parts = [
            (
                binned_rows(pool.confidence[judge, author], pool.correct[author], bins=self.bins),
                _shared_weight(pool, author, authors),
            )
            for author in authors
        ]
        chunks = [parts[start : start + _CHUNK] for start in range(0, len(parts), _CHUNK)]
        sums = [part for chunk in chunks for part in weighted_sums(chunk, self.resamples)]
        return reduce(Sums.__add__, sums)


def _shared_weight(pool: Candidates, author: int, authors: tuple[int, ...]) -> Floats:
    """Return 1 over the number of these authors that gave the same answer."""
    same = (pool.identity[list(authors)] == pool.identity[author]).sum(axis=0)
    weight: Floats = 1.0 / same
    return weight


def _scores(sums: Sums) -> ViewScores:
    return ViewScores(*sums.scores(), sums)
