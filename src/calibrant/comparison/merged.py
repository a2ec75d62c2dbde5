"""A comparison in blocks of questions: sums that add up, so that no more than a block is held.

Every view but the candidate-aligned one is a function of weighted sums over questions, in the
data and in every resample. A block of questions gives its own sums; blocks are drawn from with
replacement each on its own, which for questions that were dealt into blocks at random is the
bootstrap over all questions, up to a part in the size of a block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from calibrant.comparison.aligned import Aligned, align_models
from calibrant.comparison.engine import Comparer
from calibrant.comparison.resampled import Resamples, Sums, weighted_sums
from calibrant.comparison.views import binned_rows, distribution_weights, shared_outcome
from calibrant.core.errors import InputError

__all__ = [
    "BLOCK_QUESTIONS",
    "BlockSums",
    "MergedComparer",
    "aligned_blocks",
    "block_sums",
    "no_sums",
]

Floats: TypeAlias = npt.NDArray[np.float64]
Members: TypeAlias = tuple[int, ...]
# With 1,000 resamples a block takes 200 MB.
BLOCK_QUESTIONS = 50_000


@dataclass(frozen=True, slots=True)
class BlockSums:
    """Sums over some questions; they merge by addition, in the order of the blocks.

    `shared` holds, by members, the sums of each over questions on which all of them share the
    outcome, and `agreed` their number; `moments` the sums of confidence and of its square.
    """

    questions: int
    left_out: Floats
    moments: Floats
    right: list[Sums]
    wrong: list[Sums]
    shared: dict[Members, list[Sums]]
    agreed: dict[Members, int]

    def add(self, other: BlockSums) -> BlockSums:
        """Return the sums over the questions of both."""
        left_out = self.left_out + other.left_out
        if not self.questions or not other.questions:
            return replace(other if other.questions else self, left_out=left_out)
        return BlockSums(
            self.questions + other.questions,
            left_out,
            self.moments + other.moments,
            _added(self.right, other.right),
            _added(self.wrong, other.wrong),
            {key: _added(sums, other.shared[key]) for key, sums in self.shared.items()},
            {key: count + other.agreed[key] for key, count in self.agreed.items()},
        )


def _added(first: Sequence[Sums], second: Sequence[Sums]) -> list[Sums]:
    return [mine + yours for mine, yours in zip(first, second, strict=True)]


def no_sums(models: int, left_out: Floats | None = None) -> BlockSums:
    """Return the sums over no questions."""
    alone = np.zeros(models) if left_out is None else left_out
    return BlockSums(0, alone, np.zeros((models, 2)), [], [], {}, {})


def aligned_blocks(frame: pl.DataFrame, models: Sequence[str]) -> tuple[Floats, Iterator[Aligned]]:
    """Return how many rows per model have no counterpart, and the others in blocks of questions.

    Parameters
    ----------
    frame
        Columns question_id, model, confidence, correct: all rows of the questions in it.
    models
        Names, in order.
    """
    chosen = frame.filter(pl.col("model").is_in(list(models)))
    twice = chosen.select("question_id", "model").is_duplicated()
    if twice.any():
        row = chosen.row(int(twice.arg_max() or 0), named=True)
        raise InputError(
            f"question {row['question_id']!r} has several rows of {row['model']!r}",
            hint="keep one row per question and model",
        )
    complete = chosen.filter(pl.len().over("question_id") == len(models))
    sizes = dict(chosen.group_by("model").len().iter_rows())
    common = complete.height // len(models)
    left_out = np.array([sizes.get(name, 0) - common for name in models], np.float64)
    return left_out, _cut(complete, models, common)


def _cut(complete: pl.DataFrame, models: Sequence[str], common: int) -> Iterator[Aligned]:
    if not common:
        return
    whole = align_models(complete, models)
    pieces = max(round(common / BLOCK_QUESTIONS), 1)
    if pieces == 1:
        yield whole
        return
    # Dealt at random: blocks of neighbours in a sorted table would differ more than by chance.
    dealt = np.random.default_rng(common).permutation(common)
    for part in np.array_split(dealt, pieces):
        yield Aligned(
            whole.models,
            whole.questions[part],
            whole.confidence[:, part],
            whole.correct[:, part],
            {},
        )


def block_sums(aligned: Aligned, resamples: Resamples, *, bins: int) -> BlockSums:
    """Return the sums of one block of questions."""
    correct = aligned.correct
    rows = [binned_rows(c, z, bins=bins) for c, z in zip(aligned.confidence, correct, strict=True)]
    count = len(rows)
    right = weighted_sums(list(zip(rows, correct, strict=True)), resamples)
    wrong = weighted_sums(list(zip(rows, 1 - correct, strict=True)), resamples)
    shared, agreed = {}, {}
    for members in dict.fromkeys([*combinations(range(count), 2), tuple(range(count))]):
        same = shared_outcome(correct[list(members)])
        weights = same.astype(np.float64)
        shared[members] = [
            sums for m in members for sums in weighted_sums([(rows[m], weights)], resamples)
        ]
        agreed[members] = int(same.sum())
    moments = np.stack(
        [aligned.confidence.sum(axis=1), np.square(aligned.confidence).sum(axis=1)], axis=1
    )
    return BlockSums(
        int(aligned.questions.size), np.zeros(count), moments, right, wrong, shared, agreed
    )


class MergedComparer(Comparer):
    """Compares models whose sums are known, as `Comparer` does those whose rows are."""

    def __init__(
        self, models: Sequence[str], sums: BlockSums, *, bins: int, target: str | float
    ) -> None:
        self._models, self._sums = tuple(models), sums
        self.bins, self.target, self.candidates = bins, self._known_target(target), None
        self.right, self.wrong = sums.right, sums.wrong
        for number, name in enumerate(self._models):
            share = float(self.accuracy(number)[0])
            distribution_weights(np.array([share]), 0.5, model=name, accuracy=share)

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models."""
        return self._models

    @property
    def questions(self) -> int:
        """Number of questions that all models answered."""
        return self._sums.questions

    def confidence_moments(self, model: int) -> tuple[float, float]:
        """Return mean and standard deviation of a model's confidence."""
        n, (total, squares) = self.questions, self._sums.moments[model]
        mean = float(total) / n
        if n < 2:
            return mean, float("nan")
        return mean, float(np.sqrt(max(float(squares) - n * mean**2, 0.0) / (n - 1)))

    def _shared_sums(self, members: Members) -> list[Sums]:
        return self._sums.shared[members]

    def _retention(self, members: Members) -> float:
        return self._sums.agreed[members] / self.questions

    def _effective_size(self, model: int, target: float) -> float:
        """Return Kish's size: weights take two values, one per outcome."""
        right, wrong = float(self.right[model].weight[0]), float(self.wrong[model].weight[0])
        up, down = target * self.questions / right, (1 - target) * self.questions / wrong
        return (right * up + wrong * down) ** 2 / (right * up**2 + wrong * down**2)
