"""Scores of every model and gap of every pair under every view, in data and resamples."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from calibrant.comparison.aligned import Aligned, Candidates
from calibrant.comparison.resampled import Resamples, Sums, weighted_sums
from calibrant.comparison.views import (
    BinnedRows,
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


@dataclass(frozen=True, slots=True)
class ViewScores:
    """Brier and ECE of one model under one view, (1 + resamples,) with the data first."""

    brier: Floats
    ece: Floats


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
        if isinstance(target, str) and target not in TARGETS:
            raise InputError(f"target is {', '.join(TARGETS)} or a number, got {target!r}")
        self.aligned = aligned
        self.resamples = resamples
        self.bins = bins
        self.target = target
        self.candidates = candidates
        for name, accuracy in zip(aligned.models, aligned.accuracy, strict=True):
            distribution_weights(np.array([accuracy]), 0.5, model=name, accuracy=float(accuracy))
        self.rows = [
            binned_rows(c, z, bins=bins)
            for c, z in zip(aligned.confidence, aligned.correct, strict=True)
        ]
        self.right = [
            weighted_sums(rows, z, resamples)
            for rows, z in zip(self.rows, aligned.correct, strict=True)
        ]
        self.wrong = [
            weighted_sums(rows, 1 - z, resamples)
            for rows, z in zip(self.rows, aligned.correct, strict=True)
        ]

    def accuracy(self, model: int) -> Floats:
        """Accuracy of a model in the data and in every resample."""
        share: Floats = self.right[model].weight / (
            self.right[model].weight + self.wrong[model].weight
        )
        return share

    def pairs(self) -> Iterator[PairScores]:
        """Yield every pair, in order; two at a time are worked out in threads."""
        numbers = combinations(range(len(self.aligned.models)), 2)
        with ThreadPoolExecutor(_THREADS) as pool:
            yield from pool.map(lambda pair: self.pair(*pair), numbers)

    def pair(self, a: int, b: int) -> PairScores:
        """Compare two models."""
        members = (a, b)
        same = shared_outcome(self.aligned.correct[list(members)])
        goal = self._goal(members)
        views = {
            "raw": tuple(_scores(self.right[m] + self.wrong[m]) for m in members),
            "da": tuple(_scores(self._reweighted(m, goal)) for m in members),
            "ia": tuple(
                _scores(weighted_sums(self.rows[m], None, self.resamples, subset=same))
                for m in members
            ),
        }
        if self.candidates is not None:
            views["ca"] = tuple(_scores(self._judged(m, members)) for m in members)
        weights = [distribution_weights(self.aligned.correct[m], float(goal[0])) for m in members]
        return PairScores(
            a,
            b,
            {name: (first, second) for name, (first, second) in views.items()},
            float(same.mean()),
            float(goal[0]),
            (effective_size(weights[0]), effective_size(weights[1])),
        )

    def league(self) -> list[dict[str, ViewScores]]:
        """Return every model under every view of all models at once.

        Instance-aligned: questions on which all share the outcome. Distribution-aligned: one
        common target. Candidate-aligned: the pool of all answers.
        """
        everyone = tuple(range(len(self.aligned.models)))
        same = shared_outcome(self.aligned.correct)
        goal = self._goal(everyone)
        found = []
        for m in everyone:
            views = {
                "raw": _scores(self.right[m] + self.wrong[m]),
                "da": _scores(self._reweighted(m, goal)),
                "ia": _scores(weighted_sums(self.rows[m], None, self.resamples, subset=same)),
            }
            if self.candidates is not None:
                views["ca"] = _scores(self._judged(m, everyone))
            found.append(views)
        return found

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
        return self.right[model].scaled(up) + self.wrong[model].scaled(down)

    def _judged(self, judge: int, authors: tuple[int, ...]) -> Sums:
        pool = self.candidates
        assert pool is not None
        total: Sums | None = None
        for author in authors:
            rows: BinnedRows = binned_rows(
                pool.confidence[judge, author], pool.correct[author], bins=self.bins
            )
            weight = _shared_weight(pool, author, authors)
            sums = weighted_sums(rows, weight, self.resamples)
            total = sums if total is None else total + sums
        assert total is not None
        return total


def _shared_weight(pool: Candidates, author: int, authors: tuple[int, ...]) -> Floats:
    """Return 1 over the number of these authors that gave the same answer."""
    same = (pool.identity[list(authors)] == pool.identity[author]).sum(axis=0)
    weight: Floats = 1.0 / same
    return weight


def _scores(sums: Sums) -> ViewScores:
    return ViewScores(*sums.scores())
